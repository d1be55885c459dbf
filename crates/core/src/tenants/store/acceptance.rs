//! Statements on which callers a marketplace has accepted.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::{PgConnection, PgExecutor, PgPool};
use uuid::Uuid;

use crate::db;
use crate::ids::TenantId;
use crate::search::CallerKey;
use crate::tenants::acceptance::UNACCEPTED_RETENTION;
use crate::tenants::fingerprint::Fingerprint;
use crate::tenants::master_keys::Keyring;
use crate::tenants::relocate;

/// Whether a marketplace has accepted the caller's key.
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

/// The tenant of a key that a marketplace has accepted, as by [`super::find_or_create`]. `None`: it
/// is not accepted yet, and the caller must roll the transaction back.
pub async fn find_accepted(
    conn: &mut PgConnection,
    ring: &Keyring,
    key: &CallerKey,
    now: Timestamp,
) -> sqlx::Result<Option<TenantId>> {
    let tenant = super::find_or_create(conn, ring, key, now).await?;
    Ok(is_accepted(conn, tenant).await?.then_some(tenant))
}

/// Records that a marketplace accepted the keys of these callers; returns those that were not
/// accepted before. It locks them in the order of their ids, so that two writers cannot deadlock.
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

/// Records that a marketplace refused the keys of these callers, except those already accepted.
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

/// Records a submission of a caller that is not accepted yet. Locks the caller's row: call it after
/// locking the lane (`scans::store::lock`).
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

/// Records that a marketplace accepted a key outside of any scan; creates its tenant if necessary.
pub async fn record_key_accepted(
    pool: &PgPool,
    ring: &Keyring,
    key: &CallerKey,
    now: Timestamp,
) -> sqlx::Result<()> {
    record_fingerprints_accepted(pool, &Fingerprint::all(ring, key), now).await?;
    Ok(())
}

/// As [`record_key_accepted`], for the fingerprints of a key; returns its tenant.
pub async fn record_fingerprints_accepted(
    pool: &PgPool,
    fingerprints: &[Fingerprint],
    now: Timestamp,
) -> sqlx::Result<TenantId> {
    let mut tx = db::begin(pool).await?;
    let tenant = super::find_or_create_by_fingerprints(&mut tx, fingerprints, now).await?;
    record_accepted(&mut tx, &[tenant], now).await?;
    tx.commit().await?;
    Ok(tenant)
}

/// Removes up to `most` callers that no marketplace accepted within [`UNACCEPTED_RETENTION`] after
/// their last submission and refusal; returns how many. A caller with a scan that can still run
/// stays. Each removal is one transaction, which waits for running submissions of the caller and
/// then checks again.
///
/// # Errors
/// When the database does not answer; the next pass removes the others.
pub async fn remove_unaccepted(pool: &PgPool, most: i64, now: Timestamp) -> sqlx::Result<usize> {
    let before = now
        .checked_sub(UNACCEPTED_RETENTION)
        .unwrap_or(Timestamp::MIN);
    let due = removable_tenants(pool, None, before, most).await?;
    let mut removed = 0;
    for tenant in due {
        let mut tx = db::begin(pool).await?;
        relocate::lock(&mut tx, tenant.into()).await?;
        if removable_tenants(&mut *tx, Some(tenant), before, 1)
            .await?
            .is_empty()
        {
            continue;
        }
        relocate::delete(&mut tx, tenant.into()).await?;
        tx.commit().await?;
        removed += 1;
    }
    Ok(removed)
}

async fn removable_tenants(
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
               select from scan_items i where i.tenant_id = t.tenant_id and i.worker_id is not null)
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
