//! The twin: a second tenant with a copy of every row of the first, under the same ids. Every primary key begins with the tenant, so all
//! of them may be equal. Other values tell its rows from the first's: cheaper prices in the opposite order, other names, a lane that
//! stands still for ever, so that no worker ever has reason to touch it. Beside the copies it has rows of its own: scans that the first
//! has not.
//!
//! Without the twin a tenant condition that is missing could not be seen: ids are UUIDs, and never meet by chance.

use std::fmt::Write as _;

use sqlx::{AssertSqlSafe, PgConnection};
use uuid::Uuid;

/// Which twin: what can be seen of a missing condition is a matter of what the twin does, and of which of two rows is found first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Twin {
    /// Sorted before every other tenant, and found by key.
    First,
    /// Sorted after, and found where rows were written: it was written before.
    Last,
    /// As the first, but its scans are paused where the others run and run where they are paused, and its items are of other scans.
    Stopped,
}

impl Twin {
    pub const ALL: [Self; 3] = [Self::First, Self::Last, Self::Stopped];

    pub fn tenant(self) -> Uuid {
        match self {
            Self::First | Self::Stopped => Uuid::from_u128(1),
            Self::Last => Uuid::from_u128(u128::MAX - 1),
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Last => "last",
            Self::Stopped => "stopped",
        }
    }

    /// Session settings by which rows are found.
    pub fn ways(self) -> [(&'static str, &'static str); 5] {
        let (by_key, by_place) = if self == Self::Last {
            ("off", "on")
        } else {
            ("on", "off")
        };
        [
            ("enable_seqscan", by_place),
            ("enable_indexscan", by_key),
            ("enable_bitmapscan", "off"),
            ("enable_hashjoin", "off"),
            ("enable_mergejoin", "off"),
        ]
    }
}

/// What differs in the twin's rows, by table: a column and the value in its place.
const DIFFERS: &[(&str, &[(&str, &str)])] = &[
    // Held long, so that no sweep has reason to wipe it; each scan of the twin holds the key of another of its scans.
    (
        "key_grants",
        &[(
            "expires_at",
            "case when p_kind = 'last' then '2999-01-01' else now() + interval '20 days' end",
        )],
    ),
    (
        "lanes",
        &[
            ("emission", "'1000 s'"),
            ("max_in_flight", "t.max_in_flight + 7"),
            ("virtual_time", "t.virtual_time + 1000000"),
            ("next_at", "null"),
            ("arrival", "'-infinity'"),
            ("plan_seen_at", "'-infinity'"),
            ("paused_until", "'2999-01-01'"),
            ("pause_reason", "'key_rejected'"),
            ("plan_limit", "4444"),
            ("plan_remaining", "44"),
            ("plan_reset_at", "'2999-01-01'"),
        ],
    ),
    (
        "scans",
        &[
            ("label", "'twin'"),
            ("tags", "array['twin'] || t.tags"),
            (
                "endpoint",
                "case t.endpoint when 'hotels/by-name' then 'flights/oneway' else 'hotels/by-name' end",
            ),
            (
                "best_currency",
                "case when t.best_currency is not null then 'EUR' end",
            ),
            (
                "status",
                "case when p_kind <> 'stopped' or t.finished_at is not null then t.status when t.status = 'paused' then 'running' else 'paused' end",
            ),
            (
                "status_reason",
                "case when p_kind = 'stopped' and t.finished_at is null and t.status <> 'paused' then 'twin' else t.status_reason end",
            ),
            (
                "priority",
                "case t.priority when 'scheduled' then 'interactive' else 'scheduled' end",
            ),
            ("upstream_limit", "7"),
            ("max_attempts", "t.max_attempts + 3"),
            ("retry_delay", "t.retry_delay + interval '1 hour'"),
            ("requests_spent", "t.requests_spent + 900"),
            (
                "max_requests",
                "case when t.max_requests is not null then t.max_requests + 1000 end",
            ),
            ("best_price", "round(10000 / t.best_price, 2)"),
            (
                "grant_id",
                "coalesce((select o.grant_id from scans o where o.tenant_id = t.tenant_id and o.scan_id <> t.scan_id and o.finished_at is null \
                          order by o.scan_id desc limit 1), t.grant_id)",
            ),
        ],
    ),
    (
        "scan_items",
        &[
            (
                "scan_id",
                "case when p_kind <> 'stopped' then t.scan_id else coalesce( \
                     (select o.scan_id from scans o where o.tenant_id = t.tenant_id and o.scan_id > t.scan_id order by 1 limit 1), \
                     (select o.scan_id from scans o where o.tenant_id = t.tenant_id order by 1 limit 1)) end",
            ),
            (
                "body",
                r#"t.body || case t.api when 'flights' then '{"passengers": [1, 1]}' else '{"adults": 4}' end::jsonb"#,
            ),
            ("first_date", "t.first_date - 9000"),
            (
                "state",
                "case when t.state = 'cancelled' then 'done' else t.state end",
            ),
            (
                "observed_at",
                "case when t.state = 'cancelled' then '2026-01-01' else t.observed_at end",
            ),
            ("requests_spent", "t.requests_spent + 70"),
            ("results", "t.results + 100"),
            ("best_price", "round(10000 / t.best_price, 2)"),
            ("latency_ms", "t.latency_ms + 1000"),
            ("calls", "t.calls + 10"),
        ],
    ),
    (
        "attempts",
        &[
            ("attempt_id", "t.item_id"),
            ("requests_spent", "t.requests_spent + 7"),
            ("latency_ms", "t.latency_ms + 1000"),
            ("http_status", "418"),
            ("error", "'twin'"),
        ],
    ),
    (
        "answers",
        &[("body", "(select body from isolation.twin_answer)")],
    ),
    (
        "item_offers",
        &[
            ("seller", "'Twin Air'"),
            ("board", "'twin'"),
            ("band_low", "1"),
            ("band_high", "2"),
        ],
    ),
    (
        "series",
        &[
            ("product", r#"t.product || '{"passengers": [2, 2]}'"#),
            ("market", "'zz'"),
        ],
    ),
    (
        "observations",
        &[
            ("price", "round(10000 / t.price, 2)"),
            ("seller", "'Twin Air'"),
            ("results", "t.results + 100"),
        ],
    ),
    (
        "latest_prices",
        &[
            ("price", "round(10000 / t.price, 2)"),
            ("seller", "'Twin Air'"),
        ],
    ),
    (
        "scan_strategies",
        &[
            ("coarse_step", "t.coarse_step + 1"),
            ("refine", "t.refine + 1"),
            (
                "skipped",
                "case when p_kind = 'stopped' and exists (select from scans o where o.tenant_id = t.tenant_id and o.scan_id = t.scan_id \
                 and o.finished_at is not null) then coalesce(t.skipped, 0) else t.skipped end",
            ),
        ],
    ),
    (
        "monitors",
        &[
            ("name", "'twin'"),
            ("cron", "'15 3 * * 1'"),
            ("timezone", "'Asia/Tokyo'"),
            ("rules", r#"'[{"type": "stale", "runs": 9}]'"#),
            (
                "max_requests_per_month",
                "coalesce(t.max_requests_per_month, 0) + 7000",
            ),
            ("next_slot", "t.next_slot - interval '1 day'"),
        ],
    ),
    (
        "monitor_slots",
        &[
            (
                "outcome",
                "case when t.scan_id is null then 'overlap' else 'late' end",
            ),
            ("reason", "'twin'"),
            ("deleted_requests", "t.deleted_requests + 500"),
            ("fired", "t.fired + 70"),
            ("not_comparable", "t.not_comparable + 700"),
        ],
    ),
    // Packed: of the whole scan, not armed.
    (
        "rule_states",
        &[(
            "states",
            r"'\x28b52ffd0458a100007b22223a7b2261726d6564223a66616c73657d7d43025588'::bytea",
        )],
    ),
    (
        "alerts",
        &[
            (
                "alert",
                "jsonb_set(t.alert::jsonb, '{price}', '7777')::json",
            ),
            ("rule_type", "'stale'"),
        ],
    ),
    ("scan_events", &[("last_id", "t.last_id + 1")]),
    (
        "search_outcomes",
        &[("outcome", "(select body from isolation.twin_answer)")],
    ),
    (
        "deleted_usage",
        &[
            ("attempts", "t.attempts + 1000"),
            ("requests", "t.requests + 1000"),
        ],
    ),
    // Never due, so that no deliverer has reason to touch it.
    (
        "webhook_endpoints",
        &[
            ("url", "'http://twin.test/'"),
            ("next_at", "null"),
            ("failing_since", "'2020-01-01'"),
        ],
    ),
    (
        "deliveries",
        &[
            ("event_type", "'twin'"),
            ("body", r#"'{"twin": true}'"#),
            ("failures", "7"),
            ("due_at", "t.due_at - interval '1 day'"),
        ],
    ),
    (
        "delivery_tries",
        &[("response", "'twin'"), ("http_status", "418")],
    ),
    (
        "idempotency_keys",
        &[(
            "response",
            r#"case when t.response is not null then '{"id": "twin"}'::json end"#,
        )],
    ),
];

/// The directory that finds the tenant: it is not the tenant's own.
const DIRECTORY: [&str; 3] = ["tenants", "tenant_keys", "passed_keys"];

/// A table whose rows belong to tenants.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct Table {
    pub name: String,
    columns: Vec<String>,
    key: Vec<String>,
}

/// The tables whose rows belong to tenants, from the catalogue: none can be forgotten.
pub async fn tables(conn: &mut PgConnection) -> Vec<Table> {
    sqlx::query_as(
        "select c.relname::text as name,
                array_agg(a.attname::text order by a.attnum) as columns,
                (select array_agg(k.attname::text order by array_position(i.indkey::smallint[], k.attnum))
                 from pg_index i join pg_attribute k on k.attrelid = i.indrelid and k.attnum = any (i.indkey)
                 where i.indrelid = c.oid and i.indisprimary) as key
         from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
                                            and a.attidentity = ''
         where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = 'public'::regnamespace
           and exists (select from pg_attribute t where t.attrelid = c.oid and t.attname = 'tenant_id' and not t.attisdropped)
         group by c.oid, c.relname order by c.relname",
    )
    .fetch_all(conn)
    .await
    .unwrap()
}

/// Functions in a schema of their own that copy the first tenant's rows to the twin and show the rows of both.
pub async fn install(conn: &mut PgConnection) {
    let tables = tables(conn).await;
    let (mut copies, mut held, mut shown) = (String::new(), String::new(), Vec::new());
    for table in &tables {
        let Table { name, columns, key } = table;
        let differs = DIFFERS
            .iter()
            .find(|(table, _)| table == name)
            .map_or(&[][..], |(_, differs)| *differs);
        assert!(
            differs
                .iter()
                .all(|(column, _)| columns.iter().any(|held| held == column)),
            "{name} has other columns now"
        );
        let begins = key.first().map(String::as_str);
        assert!(
            begins == Some("tenant_id") || DIRECTORY.contains(&name.as_str()),
            "{name}: its key does not begin with the tenant"
        );
        if !DIRECTORY.contains(&name.as_str()) {
            let value =
                |column: &String| match differs.iter().find(|(differing, _)| differing == column) {
                    _ if column == "tenant_id" => "p_twin".to_owned(),
                    Some((_, value)) => (*value).to_owned(),
                    None => format!("t.{column}"),
                };
            let values = columns.iter().map(value).collect::<Vec<_>>().join(", ");
            let list = columns.join(", ");
            write!(
                copies,
                "delete from {name} where tenant_id = p_twin;
                 insert into {name} ({list}) select {values} from {name} t where tenant_id = p_first;
                 if to_regclass('isolation.own_{name}') is not null then
                     execute 'insert into {name} ({list}) select {list} from isolation.own_{name} on conflict do nothing';
                 end if;
                 if p_kind = 'last' then
                     with taken as (delete from {name} where tenant_id = p_first returning {list})
                     insert into {name} ({list}) select {list} from taken;
                 end if;\n"
            )
            .unwrap();
        }
        writeln!(
            held,
            "perform from {name} where tenant_id = p_twin for update;"
        )
        .unwrap();
        let row = if DIRECTORY.contains(&name.as_str()) {
            "jsonb_build_array('a row')"
        } else {
            "to_jsonb(t) - 'tenant_id'"
        };
        shown.push(format!(
            "select '{name}' as name, coalesce(jsonb_agg({row} order by {}), '[]') as rows from {name} t where tenant_id = p_tenant",
            key.join(", ")
        ));
    }
    assert!(tables.len() >= 13, "{tables:?}");
    let sql = format!(
        "create schema isolation;
         create table isolation.twin_answer (body bytea);
         create function isolation.refresh(p_first uuid, p_twin uuid, p_kind text) returns void language plpgsql
         set session_replication_role = replica set enable_seqscan = on as $$ begin {copies} end $$;
         create function isolation.hold(p_twin uuid) returns void language plpgsql as $$ begin {held} end $$;
         create function isolation.rows(p_tenant uuid) returns jsonb language sql as
         $$ select jsonb_object_agg(name, rows) from ({}) tables $$;",
        shown.join(" union all ")
    );
    run(conn, &sql).await;
    let answer = zstd::encode_all(&br#"[{"twin": true}]"#[..], 3).unwrap();
    sqlx::query("insert into isolation.twin_answer values ($1)")
        .bind(answer)
        .execute(conn)
        .await
        .unwrap();
}

/// Makes the twin as the first tenant is now.
pub async fn refresh(conn: &mut PgConnection, first: Uuid, twin: Twin) {
    let refresh = sqlx::query("select isolation.refresh($1, $2, $3)")
        .bind(first)
        .bind(twin.tenant())
        .bind(twin.word());
    refresh.execute(conn).await.unwrap();
}

/// Makes what `tenant` has the twin's own, for ever: it stays beside every copy.
pub async fn adopt(conn: &mut PgConnection, tenant: Uuid, twin: Twin) {
    let tables = tables(conn).await;
    refresh(conn, tenant, twin).await;
    let twin = twin.tenant();
    for Table { name, .. } in tables
        .iter()
        .filter(|table| !DIRECTORY.contains(&table.name.as_str()))
    {
        run(
            conn,
            &format!(
                "set session_replication_role = replica;
                 create table isolation.own_{name} as select * from {name} where tenant_id = '{twin}';
                 delete from {name} where tenant_id = '{tenant}'"
            ),
        )
        .await;
    }
    run(
        conn,
        &format!(
            "insert into tenants values ('{twin}', now());
             delete from tenant_keys where tenant_id = '{tenant}'; delete from tenants where tenant_id = '{tenant}';
             insert into tenant_keys values ('test', '\\x00112233445566778899aabbccddeeff', '{twin}', now()),
                                            ('next', '\\x00112233445566778899aabbccddeeff', '{twin}', now());
             set session_replication_role = origin"
        ),
    )
    .await;
}

async fn run(conn: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(conn)
        .await
        .unwrap_or_else(|error| panic!("{error}: {sql}"));
}
