//! Statements of the commands on a scan. Every condition begins with the tenant.

use sqlx::PgConnection;

use crate::contract::Api;
use crate::contract::scans::ResumeRequest;
use crate::ids::{GrantId, ScanId, TenantId};
use crate::scans::store::lock::{DeletionLock, LockedScan};

/// Pauses a live scan and sets its unsent items to `held`. A delayed retry keeps its time.
pub(super) async fn pause(scan: &mut LockedScan<'_>) -> sqlx::Result<()> {
    let (tenant, id) = (scan.tenant(), scan.id());
    let conn = scan.conn();
    sqlx::query!(
        "update scans set status = 'paused', status_reason = 'by_caller' where tenant_id = $1 and scan_id = $2",
        tenant.uuid(),
        id.uuid(),
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "update scan_items set state = 'held', worker_id = null
         where tenant_id = $1 and scan_id = $2 and state in ('pending', 'claimed', 'delayed')",
        tenant.uuid(),
        id.uuid(),
    )
    .execute(&mut *conn)
    .await?;
    notify_watchers(conn, id).await
}

/// Ends a lane's pause that waits for its caller, and locks the lane. The caller's resume allows
/// calls beyond an exhausted quota until the quota resets. Calls that began earlier can no longer
/// pause the lane.
pub async fn resume_lane(conn: &mut PgConnection, tenant: TenantId, api: Api) -> sqlx::Result<()> {
    sqlx::query!(
        "update lanes
         set resumes = resumes + 1,
             paused_until = case when pause_reason in ('key_rejected', 'not_subscribed', 'quota_exhausted') then null
                                 else paused_until end,
             pause_reason = case when pause_reason in ('key_rejected', 'not_subscribed', 'quota_exhausted') then null
                                 else pause_reason end,
             beyond_quota_until = case when pause_reason = 'quota_exhausted' then coalesce(plan_reset_at, 'infinity') else beyond_quota_until end
         where tenant_id = $1 and api = $2",
        tenant.uuid(),
        api.as_str(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Resumes a scan. Its `held` items get new consecutive sequence numbers: five remaining items wait
/// as long as a scan of five.
pub(super) async fn resume(scan: &mut LockedScan<'_>, request: &ResumeRequest) -> sqlx::Result<()> {
    let (tenant, id, sequence) = (scan.tenant(), scan.id(), scan.sequence());
    let conn = scan.conn();
    sqlx::query!(
        "update scans
         set status = case when status <> 'paused' then status when started_at is null then 'queued' else 'running' end,
             status_reason = null, max_requests = coalesce($3, max_requests)
         where tenant_id = $1 and scan_id = $2",
        tenant.uuid(),
        id.uuid(),
        request.max_requests.and_then(|max| i32::try_from(max.get()).ok()),
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "with held as (
             select item_id, row_number() over (order by position) - 1 as place, coalesce(not_before > clock_timestamp(), false) as early
             from scan_items where tenant_id = $1 and scan_id = $2 and state = 'held'
         )
         update scan_items i
         set state = case when h.early then 'delayed' else 'pending' end, turn = $3::bigint + h.place * $4::bigint,
             not_before = case when h.early then i.not_before end
         from held h
         where i.tenant_id = $1 and i.item_id = h.item_id",
        tenant.uuid(),
        id.uuid(),
        sequence.start,
        sequence.stride,
    )
    .execute(&mut *conn)
    .await?;
    notify_watchers(conn, id).await
}

/// Wakes the readers that watch the scan.
async fn notify_watchers(conn: &mut PgConnection, id: ScanId) -> sqlx::Result<()> {
    sqlx::query!(
        "select pg_notify('farescan_scan', $1)",
        id.uuid().to_string()
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Deletes a scan and all that belongs to it but its usage; foreign keys cascade to its items and
/// attempts.
pub(super) async fn delete(lock: &mut DeletionLock<'_>) -> sqlx::Result<()> {
    let (tenant, id, items, grant) = (lock.tenant, lock.id, lock.item_ids(), lock.grant());
    let conn = &mut *lock.conn;
    sqlx::query!(
        "select keep_usage_of_scan($1, $2)",
        tenant.uuid(),
        id.uuid()
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "delete from answers where tenant_id = $1 and item_id = any ($2)",
        tenant.uuid(),
        &items
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "delete from scans where tenant_id = $1 and scan_id = $2",
        tenant.uuid(),
        id.uuid()
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "delete from key_grants where tenant_id = $1 and grant_id = $2",
        tenant.uuid(),
        grant.map(GrantId::uuid)
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "delete from idempotency_keys where tenant_id = $1 and starts_with(path, $2)",
        tenant.uuid(),
        format!("/v1/scans/{id}/"),
    )
    .execute(conn)
    .await?;
    Ok(())
}
