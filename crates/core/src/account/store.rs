//! SQL of usage, quotas, own limits and settings. Every statement names its tenant first.

use jiff::civil::Date;
use jiff_sqlx::{Timestamp, ToSqlx as _};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use crate::contract::Api;
use crate::contract::account_settings::AccountSettings;
use crate::contract::plans::MarketplacePlan;
use crate::contract::quota::{LaneBounds, PaceSource};
use crate::contract::scans::PauseReason;
use crate::contract::usage::UsageGroup;
use crate::ids::TenantId;

/// The days of a usage, UTC, inclusive.
#[derive(Debug, Clone, Copy)]
pub(super) struct UsageRange {
    pub(super) since: Date,
    pub(super) until: Date,
}

/// The sums of one day, endpoint, scan or monitor in one API; without a group of one API.
#[derive(Debug)]
pub(super) struct UsageSumRow {
    pub(super) api: Api,
    /// The day or the endpoint; by scan and monitor `single` for single searches.
    pub(super) word: Option<String>,
    /// The scan or the monitor.
    pub(super) id: Option<Uuid>,
    pub(super) attempts: i64,
    pub(super) billed: i64,
    pub(super) reused: i64,
    pub(super) not_needed: i64,
    pub(super) ok: i64,
    pub(super) empty: i64,
    pub(super) partial: i64,
    pub(super) degraded: i64,
}

/// The sums of a range. Of scans and monitors first those without an id, which no id is `after`, then
/// the others, newest first.
pub(super) async fn usage(
    conn: &mut PgConnection,
    tenant: TenantId,
    range: UsageRange,
    group: Option<UsageGroup>,
    after: Option<Uuid>,
    limit: Option<i64>,
) -> sqlx::Result<Vec<UsageSumRow>> {
    sqlx::query_as!(
        UsageSumRow,
        r#"select u.api as "api!: Api", u.word, u.id, sum(u.attempts)::bigint as "attempts!", sum(u.billed)::bigint as "billed!",
                  sum(u.reused)::bigint as "reused!", sum(u.not_needed)::bigint as "not_needed!", sum(u.ok)::bigint as "ok!",
                  sum(u.empty)::bigint as "empty!", sum(u.partial)::bigint as "partial!", sum(u.degraded)::bigint as "degraded!"
           from (select split_part(d.endpoint, '/', 1) as api, d.attempts, d.billed, d.reused, d.not_needed, d.ok, d.empty, d.partial,
                        d.degraded,
                        case when $4 = 'day' then d.day::text when $4 = 'endpoint' then d.endpoint
                             when $4 in ('scan', 'monitor') and d.single then 'single' end as word,
                        case when $4 = 'scan' then d.scan_id when $4 = 'monitor' then m.monitor_id end as id
                 from daily_usage d
                 left join monitors m on $4 = 'monitor' and m.tenant_id = $1 and m.monitor_id = d.monitor_id
                 where d.tenant_id = $1 and d.day between $2 and $3) u
           where $5::uuid is null or u.id < $5
           group by u.api, u.word, u.id
           order by u.id is not null, u.id desc, u.word collate "C", u.api limit $6"#,
        tenant.uuid(),
        range.since.to_sqlx() as _,
        range.until.to_sqlx() as _,
        group.map(UsageGroup::as_str),
        after,
        limit,
    )
    .fetch_all(conn)
    .await
}

/// The billed requests of one day and source.
#[derive(Debug)]
pub(super) struct DailyUseRow {
    pub(super) api: Api,
    pub(super) day: jiff_sqlx::Date,
    pub(super) single: bool,
    pub(super) monitor_id: Option<Uuid>,
    pub(super) name: Option<String>,
    pub(super) billed: i64,
}

/// The billed requests of a range by day and source; deleted monitors are no source of their own.
pub(super) async fn daily_use(
    conn: &mut PgConnection,
    tenant: TenantId,
    range: UsageRange,
) -> sqlx::Result<Vec<DailyUseRow>> {
    sqlx::query_as!(
        DailyUseRow,
        r#"select split_part(u.endpoint, '/', 1) as "api!: Api", u.day as "day: jiff_sqlx::Date", u.single, m.monitor_id as "monitor_id?",
                  m.name as "name?", sum(u.billed)::bigint as "billed!"
           from daily_usage u left join monitors m on m.tenant_id = $1 and m.monitor_id = u.monitor_id
           where u.tenant_id = $1 and u.day between $2 and $3 and u.billed > 0
           group by 1, 2, 3, 4, 5"#,
        tenant.uuid(),
        range.since.to_sqlx() as _,
        range.until.to_sqlx() as _,
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
