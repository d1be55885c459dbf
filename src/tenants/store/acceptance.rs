//! Which callers a marketplace has accepted.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::{PgConnection, PgExecutor, PgPool};
use uuid::Uuid;

use crate::db;
use crate::ids::TenantId;
use crate::search::CallerKey;
use crate::tenants::acceptance::RECENT;
use crate::tenants::fingerprint::Fingerprint;
use crate::tenants::keyring::Keyring;
use crate::tenants::relocate;

/// Whether a marketplace has accepted the caller's key.
///
/// # Errors
/// When the database does not answer.
pub async fn is_accepted(database: impl PgExecutor<'_>, tenant: TenantId) -> sqlx::Result<bool> {
    let accepted = sqlx::query_scalar!(
        "select accepted_at is not null from tenants where tenant_id = $1",
        tenant.uuid()
    );
    Ok(accepted
        .fetch_optional(database)
        .await?
        .flatten()
        .unwrap_or(false))
}

/// The tenant of a key that a marketplace has accepted, as by [`super::find_or_make`]; `None`: it is not accepted yet, and the transaction is
/// to be rolled back.
///
/// # Errors
/// When the database does not answer.
pub async fn find_accepted(
    conn: &mut PgConnection,
    ring: &Keyring,
    key: &CallerKey,
    now: Timestamp,
) -> sqlx::Result<Option<TenantId>> {
    let tenant = super::find_or_make(conn, ring, key, now).await?;
    Ok(is_accepted(conn, tenant).await?.then_some(tenant))
}

/// Records that a marketplace accepted the keys of these callers; gives those that were not accepted before. In the order of their ids, so
/// that two writers do not wait for each other in a circle.
///
/// # Errors
/// When the database does not answer.
pub async fn record_accepted(
    conn: &mut PgConnection,
    tenants: &[TenantId],
    now: Timestamp,
) -> sqlx::Result<Vec<TenantId>> {
    let rows = sqlx::query_scalar!(
        "with held as (
             select tenant_id from tenants where tenant_id = any ($1) and accepted_at is null order by tenant_id for no key update
         )
         update tenants t set accepted_at = $2, refused_at = null, ordered_at = null
         from held h where t.tenant_id = h.tenant_id and t.accepted_at is null
         returning t.tenant_id",
        &uuids(tenants),
        now.to_sqlx() as _,
    );
    Ok(rows
        .fetch_all(conn)
        .await?
        .into_iter()
        .map(TenantId::from)
        .collect())
}

/// Records that a marketplace refused the keys of these callers. Of one that was accepted nothing is recorded.
///
/// # Errors
/// When the database does not answer.
pub async fn record_refused(
    conn: &mut PgConnection,
    tenants: &[TenantId],
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query!(
        "with held as (
             select tenant_id from tenants where tenant_id = any ($1) and accepted_at is null order by tenant_id for no key update
         )
         update tenants t set refused_at = $2 from held h where t.tenant_id = h.tenant_id",
        &uuids(tenants),
        now.to_sqlx() as _,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Records that a caller that is not accepted yet has ordered.
///
/// # Errors
/// When the database does not answer.
pub async fn record_order(
    conn: &mut PgConnection,
    tenant: TenantId,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update tenants set ordered_at = $2 where tenant_id = $1 and accepted_at is null",
        tenant.uuid(),
        now.to_sqlx() as _
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Records that a marketplace accepted a key outside of any scan; its tenant is made if there is none.
///
/// # Errors
/// When the database does not answer.
pub async fn record_key(
    pool: &PgPool,
    ring: &Keyring,
    key: &CallerKey,
    now: Timestamp,
) -> sqlx::Result<()> {
    record_prints(pool, &Fingerprint::all(ring, key), now).await
}

/// The same for the fingerprints of a key.
///
/// # Errors
/// When the database does not answer.
pub async fn record_prints(
    pool: &PgPool,
    prints: &[Fingerprint],
    now: Timestamp,
) -> sqlx::Result<()> {
    let mut tx = db::begin(pool).await?;
    let tenant = super::find_or_make_of(&mut tx, prints, now).await?;
    record_accepted(&mut tx, &[tenant], now).await?;
    tx.commit().await
}

/// Removes callers that no marketplace accepted within [`RECENT`] after their last order and the last refusal, at most `most`; gives how
/// many. One whose scan still waits for the marketplace stays. Each in a transaction of its own, which waits for the orders of the caller
/// that are under way and then looks again.
///
/// # Errors
/// When the database does not answer; what is left waits for the next pass.
pub async fn remove_left(pool: &PgPool, most: i64, now: Timestamp) -> sqlx::Result<usize> {
    let before = now.checked_sub(RECENT).unwrap_or(Timestamp::MIN);
    let due = left(pool, None, before, most).await?;
    let mut removed = 0;
    for tenant in due {
        let mut tx = db::begin(pool).await?;
        sqlx::query!(
            "select from tenant_keys where tenant_id = $1 order by key_id for update",
            tenant
        )
        .execute(&mut *tx)
        .await?;
        sqlx::query!(
            "select from tenants where tenant_id = $1 for update",
            tenant
        )
        .execute(&mut *tx)
        .await?;
        if left(&mut *tx, Some(tenant), before, 1).await?.is_empty() {
            continue;
        }
        relocate::delete(&mut tx, tenant.into()).await?;
        tx.commit().await?;
        removed += 1;
    }
    Ok(removed)
}

async fn left(
    database: impl PgExecutor<'_>,
    only: Option<Uuid>,
    before: Timestamp,
    most: i64,
) -> sqlx::Result<Vec<Uuid>> {
    let rows = sqlx::query_scalar!(
        "select t.tenant_id from tenants t
         where t.accepted_at is null and greatest(t.created_at, t.refused_at, t.ordered_at) < $2
           and ($1::uuid is null or t.tenant_id = $1)
           and not exists (
               select from scans s left join lanes l on l.tenant_id = s.tenant_id and l.api = s.api
               where s.tenant_id = t.tenant_id and s.finished_at is null and s.status in ('queued', 'running')
                 and coalesce(l.pause_reason, '') not in ('key_rejected', 'not_subscribed'))
           and not exists (
               select from scan_items i where i.tenant_id = t.tenant_id and i.state in ('claimed', 'calling'))
         order by t.created_at limit $3",
        only,
        before.to_sqlx() as _,
        most,
    );
    rows.fetch_all(database).await
}

fn uuids(tenants: &[TenantId]) -> Vec<Uuid> {
    tenants.iter().map(|tenant| tenant.uuid()).collect()
}
