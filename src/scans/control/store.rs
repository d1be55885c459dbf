//! Statements of the commands on a scan. Every condition begins with the tenant.

use sqlx::PgConnection;
use uuid::Uuid;

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
pub(crate) async fn resume_lane(
    conn: &mut PgConnection,
    tenant: TenantId,
    api: Api,
) -> sqlx::Result<()> {
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

/// Adds the usage of a scan to that of the deleted scans, by the days of its attempts and of the
/// answers that it took. Days are
/// inserted in order, so that concurrent deletions do not deadlock.
async fn archive_usage(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: ScanId,
    items: &[Uuid],
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into deleted_usage (tenant_id, day, endpoint, attempts, requests, ok, empty, partial, degraded, avoided)
         select $1, u.day, s.endpoint, sum(u.attempts), sum(u.requests), sum(u.ok), sum(u.empty), sum(u.partial), sum(u.degraded),
                sum(u.avoided)
         from scans s cross join (
             select (a.started_at at time zone 'UTC')::date as day, count(*) as attempts, sum(a.requests_spent) as requests,
                    count(*) filter (where a.search_status = 'ok') as ok, count(*) filter (where a.search_status = 'empty') as empty,
                    count(*) filter (where a.search_status = 'partial') as partial,
                    count(*) filter (where a.search_status = 'degraded') as degraded, 0 as avoided
             from attempts a where a.tenant_id = $1 and a.item_id = any ($3)
             group by 1
             union all
             select (i.reused_at at time zone 'UTC')::date, 0, 0, 0, 0, 0, 0, count(*)
             from scan_items i where i.tenant_id = $1 and i.item_id = any ($3) and i.reused_at is not null
             group by 1
         ) u
         where s.tenant_id = $1 and s.scan_id = $2
         group by u.day, s.endpoint order by u.day
         on conflict (tenant_id, day, endpoint) do update
            set attempts = deleted_usage.attempts + excluded.attempts, requests = deleted_usage.requests + excluded.requests,
                ok = deleted_usage.ok + excluded.ok, empty = deleted_usage.empty + excluded.empty,
                partial = deleted_usage.partial + excluded.partial, degraded = deleted_usage.degraded + excluded.degraded,
                avoided = deleted_usage.avoided + excluded.avoided",
        tenant.uuid(),
        id.uuid(),
        items,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Archives the usage of a scan, then deletes it and all that belongs to it; foreign keys cascade
/// to its items and attempts.
pub(super) async fn delete(lock: &mut DeletionLock<'_>) -> sqlx::Result<()> {
    let (tenant, id, items, grant) = (lock.tenant, lock.id, lock.item_ids(), lock.grant());
    let conn = &mut *lock.conn;
    archive_usage(conn, tenant, id, &items).await?;
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
