//! SQL of usage, quotas, own limits and settings. Every statement names its tenant first.

use jiff_sqlx::{Timestamp, ToSqlx as _};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use crate::contract::Api;
use crate::contract::account_settings::AccountSettings;
use crate::contract::plans::MarketplacePlan;
use crate::contract::quota::{LaneBounds, PaceSource};
use crate::contract::scans::PauseReason;
use crate::ids::{MonitorId, ScanId, TenantId};

/// From the start of one UTC day to the end of another.
pub(super) struct UsageRange {
    pub(super) since: jiff::Timestamp,
    pub(super) until: jiff::Timestamp,
}

/// The sums of one day, endpoint, scan or monitor.
pub(super) struct UsageSumRow {
    /// The day or the endpoint.
    pub(super) word: Option<String>,
    /// The scan or the monitor; `None`: deleted scans, or scans without a monitor.
    pub(super) id: Option<Uuid>,
    pub(super) attempts: i64,
    pub(super) requests: i64,
    pub(super) ok: i64,
    pub(super) empty: i64,
    pub(super) partial: i64,
    pub(super) degraded: i64,
    pub(super) avoided: i64,
}

pub(super) async fn by_day(
    conn: &mut PgConnection,
    tenant: TenantId,
    range: &UsageRange,
) -> sqlx::Result<Vec<UsageSumRow>> {
    sqlx::query_as!(
        UsageSumRow,
        r#"select day::text as word, null::uuid as id, sum(attempts)::bigint as "attempts!", sum(requests)::bigint as "requests!",
                  sum(ok)::bigint as "ok!", sum(empty)::bigint as "empty!", sum(partial)::bigint as "partial!",
                  sum(degraded)::bigint as "degraded!", sum(avoided)::bigint as "avoided!"
           from usage_rows($1, $2, $3) group by day order by day"#,
        tenant.uuid(),
        range.since.to_sqlx() as _,
        range.until.to_sqlx() as _,
    )
    .fetch_all(conn)
    .await
}

pub(super) async fn by_endpoint(
    conn: &mut PgConnection,
    tenant: TenantId,
    range: &UsageRange,
) -> sqlx::Result<Vec<UsageSumRow>> {
    sqlx::query_as!(
        UsageSumRow,
        r#"select endpoint as word, null::uuid as id, sum(attempts)::bigint as "attempts!", sum(requests)::bigint as "requests!",
                  sum(ok)::bigint as "ok!", sum(empty)::bigint as "empty!", sum(partial)::bigint as "partial!",
                  sum(degraded)::bigint as "degraded!", sum(avoided)::bigint as "avoided!"
           from usage_rows($1, $2, $3) group by endpoint order by endpoint collate "C""#,
        tenant.uuid(),
        range.since.to_sqlx() as _,
        range.until.to_sqlx() as _,
    )
    .fetch_all(conn)
    .await
}

/// Newest first; deleted scans together and last.
pub(super) async fn by_scan(
    conn: &mut PgConnection,
    tenant: TenantId,
    range: &UsageRange,
    after: Option<ScanId>,
    limit: i64,
) -> sqlx::Result<Vec<UsageSumRow>> {
    sqlx::query_as!(
        UsageSumRow,
        r#"select null::text as word, scan_id as id, sum(attempts)::bigint as "attempts!", sum(requests)::bigint as "requests!",
                  sum(ok)::bigint as "ok!", sum(empty)::bigint as "empty!", sum(partial)::bigint as "partial!",
                  sum(degraded)::bigint as "degraded!", sum(avoided)::bigint as "avoided!"
           from usage_rows($1, $2, $3)
           where $4::uuid is null or scan_id is null or scan_id < $4
           group by scan_id order by scan_id desc nulls last limit $5"#,
        tenant.uuid(),
        range.since.to_sqlx() as _,
        range.until.to_sqlx() as _,
        after.map(ScanId::uuid),
        limit,
    )
    .fetch_all(conn)
    .await
}

/// Newest first; deleted scans and scans without a monitor together and last.
pub(super) async fn by_monitor(
    conn: &mut PgConnection,
    tenant: TenantId,
    range: &UsageRange,
    after: Option<MonitorId>,
    limit: i64,
) -> sqlx::Result<Vec<UsageSumRow>> {
    sqlx::query_as!(
        UsageSumRow,
        r#"select null::text as word, s.monitor_id as id, sum(u.attempts)::bigint as "attempts!", sum(u.requests)::bigint as "requests!",
                  sum(u.ok)::bigint as "ok!", sum(u.empty)::bigint as "empty!", sum(u.partial)::bigint as "partial!",
                  sum(u.degraded)::bigint as "degraded!", sum(u.avoided)::bigint as "avoided!"
           from usage_rows($1, $2, $3) u left join scans s on s.tenant_id = $1 and s.scan_id = u.scan_id
           where $4::uuid is null or s.monitor_id is null or s.monitor_id < $4
           group by s.monitor_id order by s.monitor_id desc nulls last limit $5"#,
        tenant.uuid(),
        range.since.to_sqlx() as _,
        range.until.to_sqlx() as _,
        after.map(MonitorId::uuid),
        limit,
    )
    .fetch_all(conn)
    .await
}

/// The current state of a lane.
pub(super) struct LaneRow {
    pub(super) api: Api,
    pub(super) seconds_per_search: f64,
    pub(super) pace_source: PaceSource,
    pub(super) burst: i32,
    pub(super) max_in_flight: i32,
    pub(super) in_flight: i64,
    pub(super) plan_limit: Option<i64>,
    pub(super) plan_remaining: Option<i64>,
    pub(super) plan_reset_at: Option<Timestamp>,
    pub(super) plan_seen_at: Option<Timestamp>,
    /// Why the lane is paused now.
    pub(super) paused: Option<PauseReason>,
    /// `None`: until a resume.
    pub(super) paused_until: Option<Timestamp>,
    pub(super) own_plan: Option<String>,
    pub(super) own_per_minute: Option<i32>,
    pub(super) own_in_flight: Option<i32>,
    pub(super) keep_in_reserve: i64,
}

pub(super) async fn lanes(
    conn: impl PgExecutor<'_>,
    tenant: TenantId,
) -> sqlx::Result<Vec<LaneRow>> {
    sqlx::query_as!(
        LaneRow,
        r#"-- The pace that holds now: after a 429 it grows by itself.
           select l.api, extract(epoch from p.emission)::double precision as "seconds_per_search!", p.pace_source as "pace_source!: PaceSource",
                  p.burst as "burst!", p.max_in_flight as "max_in_flight!",
                  -- By the index of what is in flight; what was only claimed has not been sent.
                  (select count(*) from scan_items i
                   where i.tenant_id = l.tenant_id and i.api = l.api and i.worker_id is not null and i.state = 'calling')
                      as "in_flight!",
                  l.plan_limit, l.plan_remaining, l.plan_reset_at as "plan_reset_at: Timestamp", l.plan_seen_at as "plan_seen_at: Timestamp",
                  case when l.paused_until > clock_timestamp() then l.pause_reason end as "paused: PauseReason",
                  nullif(l.paused_until, 'infinity') as "paused_until: Timestamp", l.own_plan, l.own_per_minute, l.own_in_flight,
                  l.keep_in_reserve
           from lanes l cross join lateral with_pace(l, clock_timestamp()) p
           where l.tenant_id = $1"#,
        tenant.uuid(),
    )
    .fetch_all(conn)
    .await
}

/// Replaces the caller's own limits of a lane.
pub(super) async fn set_lane_bounds(
    conn: &mut PgConnection,
    tenant: TenantId,
    api: Api,
    bounds: &LaneBounds,
    plan: Option<&MarketplacePlan>,
) -> sqlx::Result<()> {
    let count = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    sqlx::query!(
        "select set_lane_limits($1, $2, $3, $4, $5, $6, $7, $8)",
        tenant.uuid(),
        api.as_str(),
        plan.map(|plan| plan.name.as_str()),
        plan.and_then(|plan| plan.requests_per_minute).map(count),
        plan.map(|plan| i64::try_from(plan.requests_per_month).unwrap_or(i64::MAX)),
        bounds.requests_per_minute.map(|rate| count(rate.get())),
        bounds.max_in_flight.map(|most| count(most.get())),
        bounds
            .keep_in_reserve
            .map(|reserve| i64::try_from(reserve.get()).unwrap_or(i64::MAX)),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The caller's settings, if it has set any.
pub(super) async fn settings(
    conn: &mut PgConnection,
    tenant: TenantId,
) -> sqlx::Result<Option<AccountSettings>> {
    let row = sqlx::query!(
        "select record_searches, max_age_seconds from account_settings where tenant_id = $1",
        tenant.uuid()
    );
    Ok(row.fetch_optional(conn).await?.map(|row| AccountSettings {
        record_searches: row.record_searches,
        max_age_seconds: row.max_age_seconds.and_then(|age| u32::try_from(age).ok()),
    }))
}

/// Replaces the caller's settings.
pub(super) async fn replace_settings(
    conn: &mut PgConnection,
    tenant: TenantId,
    settings: AccountSettings,
    now: jiff::Timestamp,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into account_settings (tenant_id, record_searches, max_age_seconds, changed_at) values ($1, $2, $3, $4)
         on conflict (tenant_id) do update
         set record_searches = excluded.record_searches, max_age_seconds = excluded.max_age_seconds,
             changed_at = excluded.changed_at",
        tenant.uuid(),
        settings.record_searches,
        settings.max_age_seconds.and_then(|age| i32::try_from(age).ok()),
        now.to_sqlx() as _,
    )
    .execute(conn)
    .await?;
    Ok(())
}
