//! Billed requests, summed up from the recorded attempts. Deleted scans count: their daily sums are
//! stored.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use sqlx::PgPool;
use uuid::Uuid;

use super::store::{self, UsageRange, UsageSumRow};
use crate::contract::usage::{AttemptCounts, Usage, UsageGroup, UsageQuery, UsageRow, UsageTotals};
use crate::db;
use crate::ids::{MonitorId, ScanId, TenantId};
use crate::paging::{self, PageError, limit_plus_one};

const SCANS: &str = "usage";
const MONITORS: &str = "usage-monitors";

impl UsageRange {
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
    let (since, until) = query.date_range(now.to_zoned(TimeZone::UTC).date())?;
    let group = query.group_or_default();
    let after = start_after(query)?;
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
    let range = UsageRange::of((since, until));
    // One snapshot, so that the totals equal the sum of the rows while scans run.
    let mut tx = db::snapshot(pool.acquire().await?).await?;
    let days = store::by_day(&mut tx, tenant, &range).await?;
    usage.totals = days.iter().fold(UsageTotals::default(), add_row);
    usage.data = match group {
        UsageGroup::Day => days,
        UsageGroup::Endpoint => store::by_endpoint(&mut tx, tenant, &range).await?,
        UsageGroup::Scan | UsageGroup::Monitor => {
            let limit = usize::from(query.limit_or_default().get());
            let limit_and_one = limit_plus_one(limit);
            let mut rows = if group == UsageGroup::Monitor {
                store::by_monitor(
                    &mut tx,
                    tenant,
                    &range,
                    after.map(MonitorId::from),
                    limit_and_one,
                )
                .await?
            } else {
                store::by_scan(
                    &mut tx,
                    tenant,
                    &range,
                    after.map(ScanId::from),
                    limit_and_one,
                )
                .await?
            };
            // The row without an id is last.
            let last = paging::truncate_page(&mut rows, limit).and_then(|last| last.key(group));
            usage.next_cursor = last.map(|last| paging::encode_cursor(list_name(group), [last]));
            rows
        }
    }
    .into_iter()
    .map(|row| row.to_usage_row(group))
    .collect();
    tx.commit().await?;
    Ok(usage)
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

fn add_row(sum: UsageTotals, row: &UsageSumRow) -> UsageTotals {
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
        avoided: sum.avoided + count(row.avoided),
    }
}

impl UsageSumRow {
    fn search_status(&self) -> AttemptCounts {
        let with_status = self.ok + self.empty + self.partial + self.degraded;
        AttemptCounts {
            ok: count(self.ok),
            empty: count(self.empty),
            partial: count(self.partial),
            degraded: count(self.degraded),
            none: count(self.attempts - with_status),
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
            requests: count(self.requests),
            attempts: count(self.attempts),
            search_status: self.search_status(),
            avoided: count(self.avoided),
        }
    }
}

/// Counts are never negative.
fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
