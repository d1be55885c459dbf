//! The bill: what a caller asked for and what it cost, by day and source, and when its plans end. All
//! of it is read from one table (`daily_usage`).

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use rust_decimal::Decimal;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::forecast::{self, DailyUse, PlanLeft, UseSource};
use super::store::{self, DailyUseRow, LaneRow, UsageRange, UsageSumRow};
use crate::contract::Api;
use crate::contract::plans::{MarketplacePlan, PlanName};
use crate::contract::usage::{
    AttemptCounts, PlanForecast, PlanForecasts, Usage, UsageCounts, UsageGroup, UsageMoney,
    UsageQuery, UsageRow, UsageTotal, UsageTotals,
};
use crate::db;
use crate::ids::{MonitorId, ScanId, TenantId};
use crate::paging::{self, PageError, limit_plus_one};

const SCANS: &str = "usage";
const MONITORS: &str = "usage-monitors";
/// The most rows without an id: single searches and the rest, of two APIs.
const ROWS_WITHOUT_ID: i64 = 4;

/// The usage of a query. `None` for a tenant: a caller who never submitted anything, so all sums
/// are 0.
///
/// # Errors
/// An invalid range, a cursor of another list, or the database does not answer.
pub async fn usage(
    pool: &PgPool,
    tenant: Option<TenantId>,
    query: &UsageQuery,
    now: Timestamp,
) -> Result<Usage, PageError> {
    let (since, until) = query.date_range(today(now))?;
    let group = query.group_or_default();
    let after = start_after(query)?;
    let mut usage = Usage {
        since,
        until,
        group,
        totals: UsageTotals::default(),
        data: Vec::new(),
        next_cursor: None,
        forecast: PlanForecasts::default(),
    };
    let Some(tenant) = tenant else {
        return Ok(usage);
    };
    let range = UsageRange { since, until };
    // One snapshot, so that the totals equal the sum of the rows while searches are charged.
    let mut tx = db::snapshot(pool.acquire().await?).await?;
    let totals = store::usage(&mut tx, tenant, range, None, None, None).await?;
    let lanes = store::lanes(&mut *tx, tenant).await?;
    usage.totals = UsageTotals {
        flights: total(Api::Flights, &totals, &lanes),
        hotels: total(Api::Hotels, &totals, &lanes),
    };
    let limit = is_paged(group).then(|| usize::from(query.limit_or_default().get()));
    let most = limit.map(|limit| limit_plus_one(limit) + ROWS_WITHOUT_ID);
    let mut rows = store::usage(&mut tx, tenant, range, Some(group), after, most).await?;
    if let Some(limit) = limit {
        let without_id = rows.iter().filter(|row| row.id.is_none()).count();
        let mut with_id = rows.split_off(without_id);
        let last = paging::truncate_page(&mut with_id, limit).and_then(|last| last.key(group));
        usage.next_cursor = last.map(|last| paging::encode_cursor(list_name(group), [last]));
        rows.append(&mut with_id);
    }
    usage.data = rows.iter().map(|row| row.to_usage_row(group)).collect();
    usage.forecast = forecasts_on(&mut tx, tenant, &lanes, now).await?;
    tx.commit().await?;
    Ok(usage)
}

/// When the plan of an API ends; `None` while the plan or its use is not known.
pub async fn plan_forecast(
    conn: &mut PgConnection,
    tenant: TenantId,
    api: Api,
    now: Timestamp,
) -> sqlx::Result<Option<PlanForecast>> {
    let lanes = store::lanes(&mut *conn, tenant).await?;
    let forecasts = forecasts_on(conn, tenant, &lanes, now).await?;
    Ok(forecasts.of(api).cloned())
}

async fn forecasts_on(
    conn: &mut PgConnection,
    tenant: TenantId,
    lanes: &[LaneRow],
    now: Timestamp,
) -> sqlx::Result<PlanForecasts> {
    let until = today(now);
    let since = until.saturating_sub(forecast::WINDOW.days());
    let rows = store::daily_use(conn, tenant, UsageRange { since, until }).await?;
    let of = |api: Api| {
        let lane = lanes.iter().find(|lane| lane.api == api)?;
        let left = PlanLeft {
            api,
            limit: lane.plan_limit.and_then(|limit| u64::try_from(limit).ok()),
            requests: u64::try_from(lane.plan_remaining?).ok()?,
            resets_at: lane.plan_reset_at.map(jiff_sqlx::Timestamp::to_jiff),
        };
        let rows = rows.iter().filter(|row| row.api == api);
        let uses: Vec<_> = rows.map(DailyUse::from).collect();
        forecast::forecast(&uses, left, now)
    };
    Ok(PlanForecasts {
        flights: of(Api::Flights),
        hotels: of(Api::Hotels),
    })
}

impl From<&DailyUseRow> for DailyUse {
    fn from(row: &DailyUseRow) -> Self {
        let source = match (row.single, row.monitor_id) {
            (true, _) => UseSource::Single,
            (false, None) => UseSource::Scans,
            (false, Some(id)) => {
                UseSource::Monitor(MonitorId::from(id), row.name.clone().unwrap_or_default())
            }
        };
        Self {
            day: row.day.to_jiff(),
            source,
            billed: count(row.billed),
        }
    }
}

fn today(now: Timestamp) -> Date {
    now.to_zoned(TimeZone::UTC).date()
}

const fn is_paged(group: UsageGroup) -> bool {
    matches!(group, UsageGroup::Scan | UsageGroup::Monitor)
}

/// The list name in the cursor.
fn list_name(group: UsageGroup) -> &'static str {
    if group == UsageGroup::Monitor {
        MONITORS
    } else {
        SCANS
    }
}

/// The id after which the page begins.
fn start_after(query: &UsageQuery) -> Result<Option<Uuid>, PageError> {
    let Some(cursor) = &query.cursor else {
        return Ok(None);
    };
    let group = query.group_or_default();
    let [id] = paging::decode_cursor(list_name(group), cursor)?;
    let id = match group {
        UsageGroup::Monitor => id.parse().map(MonitorId::uuid),
        _ => id.parse().map(ScanId::uuid),
    };
    Ok(Some(id.map_err(|_| paging::invalid_cursor(cursor))?))
}

fn total(api: Api, rows: &[UsageSumRow], lanes: &[LaneRow]) -> UsageTotal {
    let row = rows.iter().find(|row| row.api == api);
    let counts = row.map(UsageSumRow::counts).unwrap_or_default();
    let lane = lanes.iter().find(|lane| lane.api == api);
    UsageTotal {
        counts,
        money: lane.and_then(known_plan).map(|plan| money(plan, &counts)),
    }
}

/// The plan that the caller named, or the one with the reported limit.
fn known_plan(lane: &LaneRow) -> Option<&'static MarketplacePlan> {
    let named = lane.own_plan.as_deref().and_then(PlanName::parse);
    let limit = lane.plan_limit.and_then(|limit| u64::try_from(limit).ok());
    MarketplacePlan::all(lane.api).iter().find(|plan| {
        named.map_or(Some(plan.requests_per_month) == limit, |named| {
            plan.name == named
        })
    })
}

fn money(plan: &MarketplacePlan, counts: &UsageCounts) -> UsageMoney {
    let each = plan.usd_per_request();
    let usd = |requests: u64| (Decimal::from(requests) * each).round_dp(4).normalize();
    UsageMoney {
        plan: plan.name,
        usd_per_request: each.round_dp(6).normalize(),
        billed_usd: usd(counts.billed),
        saved_usd: usd(counts.reused + counts.not_needed),
    }
}

impl UsageSumRow {
    fn counts(&self) -> UsageCounts {
        let with_status = self.ok + self.empty + self.partial + self.degraded;
        UsageCounts {
            asked: count(self.billed) + count(self.reused) + count(self.not_needed),
            billed: count(self.billed),
            reused: count(self.reused),
            not_needed: count(self.not_needed),
            attempts: count(self.attempts),
            search_status: AttemptCounts {
                ok: count(self.ok),
                empty: count(self.empty),
                partial: count(self.partial),
                degraded: count(self.degraded),
                none: count(self.attempts - with_status),
            },
        }
    }

    fn key(&self, group: UsageGroup) -> Option<String> {
        let id = |id| {
            if group == UsageGroup::Monitor {
                MonitorId::from(id).to_string()
            } else {
                ScanId::from(id).to_string()
            }
        };
        self.word.clone().or_else(|| self.id.map(id))
    }

    fn to_usage_row(&self, group: UsageGroup) -> UsageRow {
        UsageRow {
            key: self.key(group),
            api: self.api,
            counts: self.counts(),
        }
    }
}

/// Counts are never negative.
fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
