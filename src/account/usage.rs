//! Billed requests, added up from the ledger. The scans that were deleted count on: their days were kept.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use sqlx::PgPool;
use uuid::Uuid;

use super::store::{self, SpentRow};
use crate::contract::usage::{AttemptCounts, Usage, UsageGroup, UsageQuery, UsageRow, UsageTotals};
use crate::db;
use crate::ids::{MonitorId, ScanId, TenantId};
use crate::paging::{self, PageError, one_more_than};

const SCANS: &str = "usage";
const MONITORS: &str = "usage-monitors";

/// From the beginning of one UTC day to the end of another.
pub(super) struct Range {
    pub(super) since: Timestamp,
    pub(super) until: Timestamp,
}

impl Range {
    fn of((first, last): (Date, Date)) -> Self {
        let begin = |day: Date| {
            TimeZone::UTC
                .to_timestamp(day.to_datetime(jiff::civil::Time::midnight()))
                .unwrap_or(Timestamp::MAX)
        };
        Self {
            since: begin(first),
            until: begin(last.saturating_add(1.day())),
        }
    }
}

/// What the query asks for; `None` for a tenant: a caller who never ordered anything has spent nothing.
///
/// # Errors
/// A range that cannot be, a cursor that is none of this list's, or the database does not answer.
pub async fn usage(
    pool: &PgPool,
    tenant: Option<TenantId>,
    query: &UsageQuery,
    now: Timestamp,
) -> Result<Usage, PageError> {
    let (since, until) = query.days(now.to_zoned(TimeZone::UTC).date())?;
    let group = query.group_or_default();
    let after = after(query)?;
    let mut usage = Usage {
        since,
        until,
        group,
        totals: UsageTotals::default(),
        data: Vec::new(),
        next_cursor: None,
    };
    let Some(tenant) = tenant else {
        return Ok(usage);
    };
    let range = Range::of((since, until));
    // One sight of the ledger, so that the totals are those of the rows while scans run.
    let mut tx = db::snapshot(pool.acquire().await?).await?;
    let days = store::by_day(&mut tx, tenant, &range).await?;
    usage.totals = days.iter().fold(UsageTotals::default(), plus);
    usage.data = match group {
        UsageGroup::Day => days,
        UsageGroup::Endpoint => store::by_endpoint(&mut tx, tenant, &range).await?,
        UsageGroup::Scan | UsageGroup::Monitor => {
            let limit = usize::from(query.limit_or_default().get());
            let most = one_more_than(limit);
            let mut rows = if group == UsageGroup::Monitor {
                store::by_monitor(&mut tx, tenant, &range, after.map(MonitorId::from), most).await?
            } else {
                store::by_scan(&mut tx, tenant, &range, after.map(ScanId::from), most).await?
            };
            // The row without an id is the last of all.
            let last = paging::cut(&mut rows, limit).and_then(|last| last.key(group));
            usage.next_cursor = last.map(|last| paging::after(list(group), [last]));
            rows
        }
    }
    .into_iter()
    .map(|row| row.shown(group))
    .collect();
    tx.commit().await?;
    Ok(usage)
}

/// The word of a list with pages.
fn list(group: UsageGroup) -> &'static str {
    if group == UsageGroup::Monitor {
        MONITORS
    } else {
        SCANS
    }
}

/// Where a page begins.
fn after(query: &UsageQuery) -> Result<Option<Uuid>, PageError> {
    let Some(cursor) = &query.cursor else {
        return Ok(None);
    };
    let group = query.group_or_default();
    let [id] = paging::read(list(group), cursor)?;
    let id = match group {
        UsageGroup::Monitor => id.parse().map(MonitorId::uuid),
        _ => id.parse().map(ScanId::uuid),
    };
    Ok(Some(id.map_err(|_| paging::refused(cursor))?))
}

fn plus(sum: UsageTotals, row: &SpentRow) -> UsageTotals {
    let (more, counts) = (row.search_status(), sum.search_status);
    UsageTotals {
        requests: sum.requests + count(row.requests),
        attempts: sum.attempts + count(row.attempts),
        search_status: AttemptCounts {
            ok: counts.ok + more.ok,
            empty: counts.empty + more.empty,
            partial: counts.partial + more.partial,
            degraded: counts.degraded + more.degraded,
            none: counts.none + more.none,
        },
    }
}

impl SpentRow {
    fn search_status(&self) -> AttemptCounts {
        let told = self.ok + self.empty + self.partial + self.degraded;
        AttemptCounts {
            ok: count(self.ok),
            empty: count(self.empty),
            partial: count(self.partial),
            degraded: count(self.degraded),
            none: count(self.attempts - told),
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

    fn shown(&self, group: UsageGroup) -> UsageRow {
        UsageRow {
            key: self.key(group),
            requests: count(self.requests),
            attempts: count(self.attempts),
            search_status: self.search_status(),
        }
    }
}

/// Counts are never below 0.
fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
