//! The catalogue of a migrated database: whether its tables could be sharded by tenant
//! (docs/scaling.md).

use sqlx::PgPool;

use crate::support::db::{TestDb, connect, execute};

/// Keys of tables with a tenant that do not begin with it, with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    (
        "tenant_keys primary key (key_id, fingerprint)",
        "finds the tenant; small enough to be the same on every shard",
    ),
    (
        "passed_keys primary key (key_id, fingerprint)",
        "as tenant_keys: rotated keys, for two days",
    ),
    ("tenants primary key (tenant_id)", "the tenant itself"),
];

/// Tables without a tenant, with the reason.
const TABLES_WITHOUT_TENANT: &[(&str, &str)] = &[
    ("_sqlx_migrations", "which migrations have run"),
    (
        "circuits",
        "one of each API of the marketplace, for all callers",
    ),
    (
        "installation",
        "one row: the id of this database and its marketplace",
    ),
    (
        "mailed_addresses",
        "codes mailed to an address, counted over all callers",
    ),
    ("retiring_partitions", "partitions that are being removed"),
    ("workers", "leases of processes, which work for all callers"),
];

/// Primary keys, unique indexes and foreign keys of tables with a tenant that do not begin with it;
/// of a foreign key both ends.
async fn tenant_key_violations(pool: &PgPool) -> Vec<String> {
    let keys = "
        with tables as (
            select c.oid, c.relname, a.attnum as tenant
            from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id' and not a.attisdropped
            where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = 'public'::regnamespace
        ), columns as (
            select c.oid as relid, k.keys, string_agg(a.attname, ', ' order by k.place) as names
            from pg_class c
            cross join lateral (
                select n.conkey as keys, u.attnum, u.place from pg_constraint n, unnest(n.conkey) with ordinality u (attnum, place) where n.conrelid = c.oid
                union
                select x.indkey::int2[], u.attnum, u.place from pg_index x, unnest(x.indkey::int2[]) with ordinality u (attnum, place) where x.indrelid = c.oid
            ) k
            join pg_attribute a on a.attrelid = c.oid and a.attnum = k.attnum
            group by 1, 2
        )
        select t.relname || case when x.indisprimary then ' primary key (' else ' unique index (' end || n.names || ')'
        from tables t join pg_index x on x.indrelid = t.oid and x.indisunique
        left join columns n on n.relid = t.oid and n.keys = x.indkey::int2[]
        where x.indkey[0] <> t.tenant or x.indisprimary and t.relname = 'tenants'
        union all
        select t.relname || ' foreign key (' || n.names || ')'
        from tables t join pg_constraint f on f.conrelid = t.oid and f.contype = 'f'
        left join columns n on n.relid = t.oid and n.keys = f.conkey
        left join tables r on r.oid = f.confrelid
        where (f.conkey[1] <> t.tenant or f.confkey[1] is distinct from r.tenant)
        order by 1";
    values!(pool, keys)
}

async fn tables_without_tenant(pool: &PgPool) -> Vec<String> {
    let tables = "
        select c.relname::text from pg_class c
        where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = 'public'::regnamespace
          and not exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'tenant_id' and a.attnotnull)
        order by 1";
    values!(pool, tables)
}

#[tokio::test]
async fn every_table_can_be_sharded_by_tenant() {
    let db = TestDb::new().await;
    let mut expected: Vec<_> = EXCEPTIONS
        .iter()
        .map(|(key, _)| (*key).to_owned())
        .collect();
    expected.sort();
    assert_eq!(
        tenant_key_violations(db.pool()).await,
        expected,
        "a key that does not begin with tenant_id, or an obsolete exception"
    );
    let expected: Vec<_> = TABLES_WITHOUT_TENANT
        .iter()
        .map(|(table, _)| (*table).to_owned())
        .collect();
    assert_eq!(
        tables_without_tenant(db.pool()).await,
        expected,
        "a table without a tenant, or an obsolete exception"
    );
}

#[tokio::test]
async fn tables_that_cannot_be_sharded_are_found() {
    let db = TestDb::new().await;
    let mut conn = connect(&db.connect_options()).await;
    let tables = "
        create table one (id uuid primary key, tenant_id uuid not null references tenants);
        create table two (tenant_id uuid not null, id uuid, other uuid references one, primary key (tenant_id, id), unique (id, tenant_id));
        create table three (id uuid)";
    execute(&mut conn, tables).await.unwrap();
    let seen = tenant_key_violations(db.pool()).await;
    for key in [
        "one primary key (id)",
        "two unique index (id, tenant_id)",
        "two foreign key (other)",
    ] {
        assert!(seen.contains(&key.to_owned()), "{key}: {seen:?}");
    }
    assert!(
        tables_without_tenant(db.pool())
            .await
            .contains(&"three".to_owned())
    );
}

/// No sequence counts over all tenants, except one that no tenant sees. `isolation::unscoped_sql`
/// checks that each statement names its tenant.
#[tokio::test]
async fn no_sequence_is_shared_by_tenants() {
    let db = TestDb::new().await;
    let sequences: Vec<String> = values!(db.pool(), "select d.refobjid::regclass::text from pg_class s join pg_depend d on d.objid = s.oid and d.deptype in ('a', 'i')
         where s.relkind = 'S' and s.relnamespace = 'public'::regnamespace order by 1");
    assert_eq!(sequences, ["workers"], "numbers of processes");
}
