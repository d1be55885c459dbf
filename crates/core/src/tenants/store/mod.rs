//! Statements on tenants and their fingerprints; `grants` has their sealed keys, `acceptance`
//! whether a marketplace has accepted them.

pub mod acceptance;
mod grants;

use std::collections::HashMap;

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, PgExecutor, PgPool, Postgres};

pub use self::grants::{
    GrantError, OpenedSecret, RingCheckError, StoredGrant, check_ring, grants_under_other_keys,
    insert_grant, open_grant, open_secrets, remove_grants, replace_grant, replace_sealed_keys,
    wipe, wipe_expired,
};
use super::fingerprint::Fingerprint;
use super::master_keys::Keyring;
use crate::db;
use crate::ids::TenantId;
use crate::search::CallerKey;

/// Finds the tenant of a key and renews its fingerprint under the primary.
pub async fn find(
    conn: &mut PgConnection,
    ring: &Keyring,
    key: &CallerKey,
    now: Timestamp,
) -> sqlx::Result<Option<TenantId>> {
    look_up(conn, &Fingerprint::all(ring, key), now).await
}

/// As [`find`]; also returns the connection. It uses an idle connection without testing it first,
/// because the look-up shows whether it works; a broken one is replaced by the next. This saves a
/// read request one of three round trips.
pub async fn find_with_connection(
    pool: &PgPool,
    ring: &Keyring,
    key: &CallerKey,
    now: Timestamp,
) -> sqlx::Result<(PoolConnection<Postgres>, Option<TenantId>)> {
    let fingerprints = Fingerprint::all(ring, key);
    while let Some(mut conn) = pool.try_acquire() {
        match db::with_timeout(look_up(&mut conn, &fingerprints, now)).await {
            Ok(tenant) => return Ok((conn, tenant)),
            Err(error) => {
                // Not back into the pool, which would wait for its pending response.
                drop(conn.detach());
                if !db::is_disconnected(&error) {
                    return Err(error);
                }
            }
        }
    }
    let mut conn = pool.acquire().await?;
    let tenant = look_up(&mut conn, &fingerprints, now).await?;
    Ok((conn, tenant))
}

/// As [`find`], for a transaction that seals the key: locks the tenant's fingerprints, so that a
/// rotation waits until the transaction ends. Call it before locking any lane.
pub async fn find_and_lock(
    conn: &mut PgConnection,
    ring: &Keyring,
    key: &CallerKey,
    now: Timestamp,
) -> sqlx::Result<Option<TenantId>> {
    look_up_and_lock(conn, &Fingerprint::all(ring, key), now).await
}

/// Locks a tenant's fingerprints where no request brought a key, so that a rotation waits. Call it
/// before opening a grant in order to seal its key again.
pub async fn lock_tenant_shared(conn: &mut PgConnection, tenant: TenantId) -> sqlx::Result<()> {
    sqlx::query!(
        "select from tenant_keys where tenant_id = $1 order by key_id for key share",
        tenant.uuid()
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Finds the tenant of a key or creates it, and locks it as [`find_and_lock`] does. Call it inside
/// a transaction. Concurrent first requests of one caller wait for each other and create one
/// tenant, also in processes whose rings differ during a roll-out of a new primary.
pub async fn find_or_create(
    conn: &mut PgConnection,
    ring: &Keyring,
    key: &CallerKey,
    now: Timestamp,
) -> sqlx::Result<TenantId> {
    find_or_create_by_fingerprints(conn, &Fingerprint::all(ring, key), now).await
}

/// As [`find_or_create`], where an earlier look-up of the same request found `found`. That still
/// holds if one of the key's fingerprints is `found`'s, which the lock shows; otherwise the key was
/// rotated or its caller deleted meanwhile, and it is looked up again.
pub async fn lock_or_create(
    conn: &mut PgConnection,
    ring: &Keyring,
    key: &CallerKey,
    found: Option<TenantId>,
    now: Timestamp,
) -> sqlx::Result<TenantId> {
    let fingerprints = Fingerprint::all(ring, key);
    if let Some(tenant) = found
        && lock_fingerprints(conn, &fingerprints, tenant).await?
    {
        return Ok(tenant);
    }
    find_or_create_by_fingerprints(conn, &fingerprints, now).await
}

/// As [`find_and_lock`], where the key is not known any more.
pub async fn find_by_fingerprints(
    conn: &mut PgConnection,
    fingerprints: &[Fingerprint],
    now: Timestamp,
) -> sqlx::Result<Option<TenantId>> {
    look_up_and_lock(conn, fingerprints, now).await
}

/// As [`find_or_create`], where the key is not known any more.
pub async fn find_or_create_by_fingerprints(
    conn: &mut PgConnection,
    fingerprints: &[Fingerprint],
    now: Timestamp,
) -> sqlx::Result<TenantId> {
    if let Some(tenant) = look_up_and_lock(conn, fingerprints, now).await? {
        return Ok(tenant);
    }
    take_advisory_locks(conn, fingerprints).await?;
    if let Some(tenant) = look_up_and_lock(conn, fingerprints, now).await? {
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
    insert_fingerprints(conn, tenant, fingerprints, now).await?;
    Ok(tenant)
}

/// The generation of the caller's sessions of the dashboard; `None` if the tenant is gone.
pub async fn session_generation(
    conn: &mut PgConnection,
    tenant: TenantId,
) -> sqlx::Result<Option<i32>> {
    sqlx::query_scalar!(
        "select session_generation from tenants where tenant_id = $1",
        tenant.uuid()
    )
    .fetch_optional(conn)
    .await
}

/// Ends every session of the caller.
pub async fn end_sessions(database: impl PgExecutor<'_>, tenant: TenantId) -> sqlx::Result<()> {
    sqlx::query!(
        "update tenants set session_generation = session_generation + 1 where tenant_id = $1",
        tenant.uuid()
    )
    .execute(database)
    .await?;
    Ok(())
}

/// Finds the tenants of many fingerprints at once.
pub async fn find_all(
    pool: &PgPool,
    fingerprints: &[&Fingerprint],
) -> sqlx::Result<HashMap<Fingerprint, TenantId>> {
    let (key_ids, digests): (Vec<_>, Vec<_>) = fingerprints
        .iter()
        .map(|fingerprint| (fingerprint.key_id.clone(), fingerprint.digest.to_vec()))
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

fn columns(fingerprints: &[Fingerprint]) -> (Vec<String>, Vec<Vec<u8>>) {
    fingerprints
        .iter()
        .map(|fingerprint| (fingerprint.key_id.clone(), fingerprint.digest.to_vec()))
        .unzip()
}

/// The locks of [`take_advisory_locks`], in the same order in every process.
fn advisory_lock_ids<'a>(fingerprints: impl IntoIterator<Item = &'a Fingerprint>) -> Vec<i64> {
    let mut advisory_lock_ids: Vec<_> = fingerprints
        .into_iter()
        .map(Fingerprint::advisory_lock_id)
        .collect();
    advisory_lock_ids.sort_unstable();
    advisory_lock_ids
}

/// Until the transaction ends, no other one creates a tenant with these fingerprints, renews or
/// transfers them.
pub(super) async fn take_advisory_locks(
    conn: &mut PgConnection,
    fingerprints: impl IntoIterator<Item = &Fingerprint>,
) -> sqlx::Result<()> {
    for lock in advisory_lock_ids(fingerprints) {
        sqlx::query!("select pg_advisory_xact_lock($1)", lock)
            .execute(&mut *conn)
            .await?;
    }
    Ok(())
}

/// The owner of these fingerprints, and whether the primary's fingerprint is stored.
async fn owner_and_is_current(
    conn: &mut PgConnection,
    fingerprints: &[Fingerprint],
) -> sqlx::Result<Option<(TenantId, bool)>> {
    let (key_ids, digests) = columns(fingerprints);
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
        found.iter().any(|row| row.key_id == fingerprints[0].key_id),
    )))
}

/// The owner of these fingerprints.
pub(super) async fn owner(
    conn: &mut PgConnection,
    fingerprints: &[Fingerprint],
) -> sqlx::Result<Option<TenantId>> {
    Ok(owner_and_is_current(conn, fingerprints)
        .await?
        .map(|(tenant, _)| tenant))
}

async fn look_up(
    conn: &mut PgConnection,
    fingerprints: &[Fingerprint],
    now: Timestamp,
) -> sqlx::Result<Option<TenantId>> {
    match owner_and_is_current(conn, fingerprints).await? {
        Some((_, false)) => renew(conn, fingerprints, now).await,
        found => Ok(found.map(|(tenant, _)| tenant)),
    }
}

/// Adds the fingerprint under the primary, in one statement, because the look-up may run outside a
/// transaction.
async fn renew(
    conn: &mut PgConnection,
    fingerprints: &[Fingerprint],
    now: Timestamp,
) -> sqlx::Result<Option<TenantId>> {
    let (key_ids, digests) = columns(fingerprints);
    let owner = sqlx::query_scalar!(
        "select renew_fingerprint($1, $2, $3, $4)",
        &advisory_lock_ids(fingerprints),
        &key_ids,
        &digests,
        now.to_sqlx() as _,
    );
    Ok(owner.fetch_one(conn).await?.map(TenantId::from))
}

/// Locks after the look-up, because a renewal, like a rotation, takes its advisory lock before any
/// row.
async fn look_up_and_lock(
    conn: &mut PgConnection,
    fingerprints: &[Fingerprint],
    now: Timestamp,
) -> sqlx::Result<Option<TenantId>> {
    let Some(tenant) = look_up(conn, fingerprints, now).await? else {
        return Ok(None);
    };
    let is_locked = lock_fingerprints(conn, fingerprints, tenant).await?;
    Ok(Some(tenant).filter(|_| is_locked))
}

/// Locks the fingerprints that belong to `tenant`; `false`: none does.
async fn lock_fingerprints(
    conn: &mut PgConnection,
    fingerprints: &[Fingerprint],
    tenant: TenantId,
) -> sqlx::Result<bool> {
    let (key_ids, digests) = columns(fingerprints);
    let locked = sqlx::query!(
        "select from tenant_keys
         where (key_id, fingerprint) in (select * from unnest($1::text[], $2::bytea[])) and tenant_id = $3
         order by key_id for key share",
        &key_ids,
        &digests,
        tenant.uuid(),
    )
    .execute(conn)
    .await?;
    Ok(locked.rows_affected() > 0)
}

/// Stores a tenant's fingerprints. A new tenant gets one under every key of the ring, because a
/// process without the new primary must find it too.
pub(super) async fn insert_fingerprints(
    conn: &mut PgConnection,
    tenant: TenantId,
    fingerprints: &[Fingerprint],
    now: Timestamp,
) -> sqlx::Result<()> {
    let (key_ids, digests) = columns(fingerprints);
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

/// Counts the callers with fingerprints under an entry but not under `primary`: they have not
/// called since it became the primary.
pub async fn count_callers_by_older_key(
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
