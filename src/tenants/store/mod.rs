//! Tenants and their fingerprints in the database; their sealed keys in `grants`, whether a marketplace has accepted them in
//! `acceptance`.

pub mod acceptance;
mod grants;

use std::collections::HashMap;

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, PgPool, Postgres};

pub use self::grants::{
    GrantError, HeldGrant, HeldSecret, OpenedGrants, RingCheckError, check_ring, grants_beside,
    insert_grant, open_grant, open_grants, open_secrets, remove_grants, replace_grant, swap_sealed,
    wipe, wipe_expired,
};
use super::fingerprint::Fingerprint;
use super::keyring::Keyring;
use crate::db;
use crate::ids::TenantId;
use crate::search::CallerKey;

/// The tenant that a key belongs to, if it ever ordered anything. Its fingerprint is renewed under the primary.
///
/// # Errors
/// When the database does not answer.
pub async fn find(
    conn: &mut PgConnection,
    ring: &Keyring,
    key: &CallerKey,
    now: Timestamp,
) -> sqlx::Result<Option<TenantId>> {
    look_up(conn, &Fingerprint::all(ring, key), now).await
}

/// The same, with the connection that told it. One that is idle is taken without asking whether it still works: the look-up shows that, and
/// one that was cut makes way for the next. It saves a reader one of his three waits for the database.
///
/// # Errors
/// When the database does not answer.
pub async fn find_connected(
    pool: &PgPool,
    ring: &Keyring,
    key: &CallerKey,
    now: Timestamp,
) -> sqlx::Result<(PoolConnection<Postgres>, Option<TenantId>)> {
    let prints = Fingerprint::all(ring, key);
    while let Some(mut conn) = pool.try_acquire() {
        match db::in_time(look_up(&mut conn, &prints, now)).await {
            Ok(tenant) => return Ok((conn, tenant)),
            Err(error) => {
                // Not back into the pool, which would wait for what it has to say.
                drop(conn.detach());
                if !db::is_cut(&error) {
                    return Err(error);
                }
            }
        }
    }
    let mut conn = pool.acquire().await?;
    let tenant = look_up(&mut conn, &prints, now).await?;
    Ok((conn, tenant))
}

/// The same for a transaction that seals the key: until its end the tenant stays the key's, a rotation waits for it. To be called before
/// any lane is locked.
///
/// # Errors
/// When the database does not answer.
pub async fn find_and_hold(
    conn: &mut PgConnection,
    ring: &Keyring,
    key: &CallerKey,
    now: Timestamp,
) -> sqlx::Result<Option<TenantId>> {
    look_up_and_hold(conn, &Fingerprint::all(ring, key), now).await
}

/// The same for a tenant that is known, where no key came with the work: a rotation waits, or has been. To be called before the key of any
/// grant is opened to be sealed again.
///
/// # Errors
/// When the database does not answer.
pub async fn hold(conn: &mut PgConnection, tenant: TenantId) -> sqlx::Result<()> {
    sqlx::query!(
        "select from tenant_keys where tenant_id = $1 order by key_id for key share",
        tenant.uuid()
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The tenant that a key belongs to, made now if there is none, and held as by [`find_and_hold`]. To be called inside a transaction: first
/// requests of one caller wait for each other, so that they make one tenant, also between processes whose rings differ while a new primary
/// is rolled out.
///
/// # Errors
/// When the database does not answer.
pub async fn find_or_make(
    conn: &mut PgConnection,
    ring: &Keyring,
    key: &CallerKey,
    now: Timestamp,
) -> sqlx::Result<TenantId> {
    find_or_make_of(conn, &Fingerprint::all(ring, key), now).await
}

async fn find_or_make_of(
    conn: &mut PgConnection,
    prints: &[Fingerprint],
    now: Timestamp,
) -> sqlx::Result<TenantId> {
    if let Some(tenant) = look_up_and_hold(conn, prints, now).await? {
        return Ok(tenant);
    }
    lock(conn, prints).await?;
    if let Some(tenant) = look_up_and_hold(conn, prints, now).await? {
        return Ok(tenant);
    }
    let tenant = TenantId::new();
    sqlx::query!(
        "insert into tenants (tenant_id, created_at) values ($1, $2)",
        tenant.uuid(),
        now.to_sqlx()
    )
    .execute(&mut *conn)
    .await?;
    give_fingerprints(conn, tenant, prints, now).await?;
    Ok(tenant)
}

/// The tenants that fingerprints lead to; of many callers at once.
///
/// # Errors
/// When the database does not answer.
pub async fn find_all(
    pool: &PgPool,
    prints: &[&Fingerprint],
) -> sqlx::Result<HashMap<Fingerprint, TenantId>> {
    let (key_ids, digests): (Vec<_>, Vec<_>) = prints
        .iter()
        .map(|print| (print.key_id.clone(), print.digest.to_vec()))
        .unzip();
    let rows = sqlx::query!(
        "select k.key_id, k.fingerprint, k.tenant_id
         from (select distinct * from unnest($1::text[], $2::bytea[]) as x (key_id, fingerprint)) x
         join tenant_keys k on k.key_id = x.key_id and k.fingerprint = x.fingerprint",
        &key_ids,
        &digests,
    );
    let rows = rows.fetch_all(pool).await?;
    let known = rows.into_iter().filter_map(|row| {
        let digest = row.fingerprint.try_into().ok()?;
        Some((
            Fingerprint {
                key_id: row.key_id,
                digest,
            },
            TenantId::from(row.tenant_id),
        ))
    });
    Ok(known.collect())
}

fn columns(prints: &[Fingerprint]) -> (Vec<String>, Vec<Vec<u8>>) {
    prints
        .iter()
        .map(|print| (print.key_id.clone(), print.digest.to_vec()))
        .unzip()
}

/// What [`lock`] takes, in one order for all.
fn locks<'a>(prints: impl IntoIterator<Item = &'a Fingerprint>) -> Vec<i64> {
    let mut locks: Vec<_> = prints.into_iter().map(Fingerprint::lock).collect();
    locks.sort_unstable();
    locks
}

/// Until the transaction ends, nobody else makes a tenant of these fingerprints, renews them or passes them on.
pub(super) async fn lock(
    conn: &mut PgConnection,
    prints: impl IntoIterator<Item = &Fingerprint>,
) -> sqlx::Result<()> {
    for lock in locks(prints) {
        sqlx::query!("select pg_advisory_xact_lock($1)", lock)
            .execute(&mut *conn)
            .await?;
    }
    Ok(())
}

/// Whose fingerprints these are; and whether the primary's is among those that are known.
async fn rows_of(
    conn: &mut PgConnection,
    prints: &[Fingerprint],
) -> sqlx::Result<Option<(TenantId, bool)>> {
    let (key_ids, digests) = columns(prints);
    let found = sqlx::query!(
        "select key_id, tenant_id from tenant_keys
         where (key_id, fingerprint) in (select * from unnest($1::text[], $2::bytea[])) order by created_at",
        &key_ids,
        &digests,
    )
    .fetch_all(conn)
    .await?;
    let Some(first) = found.first() else {
        return Ok(None);
    };
    Ok(Some((
        first.tenant_id.into(),
        found.iter().any(|row| row.key_id == prints[0].key_id),
    )))
}

/// Whose fingerprints these are.
pub(super) async fn owner(
    conn: &mut PgConnection,
    prints: &[Fingerprint],
) -> sqlx::Result<Option<TenantId>> {
    Ok(rows_of(conn, prints).await?.map(|(tenant, _)| tenant))
}

async fn look_up(
    conn: &mut PgConnection,
    prints: &[Fingerprint],
    now: Timestamp,
) -> sqlx::Result<Option<TenantId>> {
    match rows_of(conn, prints).await? {
        Some((_, false)) => renew(conn, prints, now).await,
        found => Ok(found.map(|(tenant, _)| tenant)),
    }
}

/// Adds the fingerprint under the primary, in one statement: the look-up may stand outside a transaction.
async fn renew(
    conn: &mut PgConnection,
    prints: &[Fingerprint],
    now: Timestamp,
) -> sqlx::Result<Option<TenantId>> {
    let (key_ids, digests) = columns(prints);
    let owner = sqlx::query_scalar!(
        "select renew_fingerprint($1, $2, $3, $4)",
        &locks(prints),
        &key_ids,
        &digests,
        now.to_sqlx() as _,
    );
    Ok(owner.fetch_one(conn).await?.map(TenantId::from))
}

/// After the look-up, because a renewal takes its lock before any row, as a rotation does.
async fn look_up_and_hold(
    conn: &mut PgConnection,
    prints: &[Fingerprint],
    now: Timestamp,
) -> sqlx::Result<Option<TenantId>> {
    let Some(tenant) = look_up(conn, prints, now).await? else {
        return Ok(None);
    };
    let (key_ids, digests) = columns(prints);
    let held = sqlx::query!(
        "select from tenant_keys
         where (key_id, fingerprint) in (select * from unnest($1::text[], $2::bytea[])) and tenant_id = $3
         order by key_id for key share",
        &key_ids,
        &digests,
        tenant.uuid(),
    )
    .execute(conn)
    .await?;
    Ok(Some(tenant).filter(|_| held.rows_affected() > 0))
}

/// Makes a tenant known by these fingerprints: for a new tenant under every key of the ring, because a process that does not have the new
/// primary yet must find it too.
pub(super) async fn give_fingerprints(
    conn: &mut PgConnection,
    tenant: TenantId,
    prints: &[Fingerprint],
    now: Timestamp,
) -> sqlx::Result<()> {
    let (key_ids, digests) = columns(prints);
    sqlx::query!(
        "insert into tenant_keys (key_id, fingerprint, tenant_id, created_at)
         select x.key_id, x.fingerprint, $1, $2 from unnest($3::text[], $4::bytea[]) as x (key_id, fingerprint)",
        tenant.uuid(),
        now.to_sqlx(),
        &key_ids,
        &digests,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// How many callers are known under an entry and not under `primary`: those that have not called since it is the primary.
///
/// # Errors
/// When the database does not answer.
pub async fn strangers_to(
    conn: &mut PgConnection,
    primary: &str,
) -> sqlx::Result<Vec<(String, i64)>> {
    let rows = sqlx::query!(
        r#"select key_id, count(distinct tenant_id) as "callers!" from tenant_keys k
           where not exists (select from tenant_keys p where p.tenant_id = k.tenant_id and p.key_id = $1)
           group by key_id order by key_id"#,
        primary,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| (row.key_id, row.callers))
        .collect())
}
