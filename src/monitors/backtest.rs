//! Backtests a monitor: what its rules would have reported in the past days, by the caller's own
//! stored prices (monitors.md, rules 80 to 83). No call, and nothing is stored.
//!
//! Here: the slots, their searches and the limits. Not here: the prices of past days
//! (`history::replay`) and the rules (`alerts`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};
use sqlx::PgPool;

use super::alerts::RuleReplay;
use super::relative_dates::resolve_dates;
use super::schedule::Schedule;
use super::validate::{ValidatedMonitor, run_request, validate};
use crate::commands::{CommandError, RequestContext};
use crate::contract::monitors::{Backtest, BacktestDays, Rule};
use crate::contract::scans::RequestRange;
use crate::contract::{FieldValue as _, ValidationError, ValidationErrors};
use crate::db;
use crate::history::past_prices::PastError;
use crate::history::replay::{ReplayedPrice, ReplayedSearch, replay};
use crate::scans::cells::PlannedCells;
use crate::scans::plan::{earliest_today, plan};
use crate::scans::preview;
use crate::webhooks::Guard;

/// The most searches of all evaluated runs: a year of 270 searches a day.
const MAX_SEARCHES: usize = 100_000;
/// The longest time for reading the history.
const MAX_READING: Duration = Duration::from_secs(10);

/// The first slot of a day and its searches.
struct ReplayedDay {
    slot: Timestamp,
    day: Date,
    planned: Arc<PlannedCells>,
}

/// Replays a monitor on the last `days`. The history is read from `history`, the primary database or
/// its replica.
///
/// # Errors
/// `ValidationErrors` with every error of the body, as on creation, and for `days` with too many
/// searches.
pub async fn backtest(
    context: RequestContext<'_>,
    history: &PgPool,
    guard: Guard,
    body: &Map<String, Value>,
    days: BacktestDays,
) -> Result<Backtest, CommandError> {
    let now = context.now;
    let monitor = validate(body.clone(), guard, now).await?;
    let age = SignedDuration::from_hours(24 * i64::from(days.get()));
    let since = now.checked_sub(age).unwrap_or(Timestamp::MIN);
    let per_run = preview::requests(&monitor.plan);
    let rules = monitor.request.alerts.as_ref();
    let rules: Vec<Rule> = rules.map_or_else(Vec::new, |rules| rules.as_slice().to_vec());
    let scan = body.get("scan").and_then(Value::as_object);
    let scan = scan.cloned().unwrap_or_default();
    let planned = tokio::task::spawn_blocking(move || replayed_days(&monitor, &scan, since, now));
    let (slots, replayed) = match planned.await {
        Ok(planned) => planned.map_err(|most| too_many(days, most))?,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    };
    let replay = RuleReplay::new(rules);
    let prices = read_prices(context, history, &replay, &replayed, days).await?;
    let evaluate = move || evaluate(replay, &replayed, prices);
    let evaluated = match tokio::task::spawn_blocking(evaluate).await {
        Ok(evaluated) => evaluated,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    };
    let all = |requests: u64| requests.saturating_mul(slots.into());
    Ok(Backtest {
        since,
        until: now,
        slots,
        requests: RequestRange {
            least: all(per_run.least),
            expected: None,
            most: all(per_run.most),
        },
        ..evaluated
    })
}

fn too_many(days: BacktestDays, most: usize) -> ValidationErrors {
    let expected = format!(
        "fewer days, at most {most} of them with a slot: a backtest replays {MAX_SEARCHES} searches"
    );
    ValidationError::new("days", &days.to_value(), expected).into()
}

/// The number of slots in a time, and the first of each day of UTC with its searches. `Err`: so many
/// days would not be too many.
fn replayed_days(
    monitor: &ValidatedMonitor,
    scan: &Map<String, Value>,
    since: Timestamp,
    now: Timestamp,
) -> Result<(u32, Vec<ReplayedDay>), usize> {
    let ValidatedMonitor { schedule, plan, .. } = monitor;
    let mut slots = 0;
    let mut firsts = Vec::<(Timestamp, Date)>::new();
    for slot in schedule.slots_after(since).take_while(|slot| *slot <= now) {
        slots += 1;
        let day = slot.to_zoned(TimeZone::UTC).date();
        if firsts.last().is_none_or(|(_, last)| *last != day) {
            firsts.push((slot, day));
        }
    }
    if firsts.len().saturating_mul(plan.items.len()) > MAX_SEARCHES {
        return Err(MAX_SEARCHES / plan.items.len());
    }
    let (mut days, mut searches) = (Vec::<ReplayedDay>::new(), 0_usize);
    for (slot, day) in firsts {
        let is_fixed = days.last().is_some_and(|last| {
            let dates = |slot| resolve_dates(scan, schedule.date(slot));
            dates(last.slot) == dates(slot)
        });
        let planned = match days.last() {
            Some(last) if is_fixed => Arc::clone(&last.planned),
            _ => match planned_cells(scan, schedule, slot) {
                Some(planned) => Arc::new(planned),
                // No run of that day could have been planned.
                None => continue,
            },
        };
        // A range with one fixed end has more dates on an earlier day.
        searches += planned.searches.len();
        if searches > MAX_SEARCHES {
            return Err(days.len());
        }
        days.push(ReplayedDay { slot, day, planned });
    }
    Ok((slots, days))
}

fn planned_cells(
    scan: &Map<String, Value>,
    schedule: &Schedule,
    slot: Timestamp,
) -> Option<PlannedCells> {
    let body = run_request(scan, schedule, slot);
    let plan = plan(&body, earliest_today(slot)).ok()?;
    Some(PlannedCells::of(&plan, &body))
}

/// The prices of the searches of all days, in their order; empty for a caller without a history.
async fn read_prices(
    context: RequestContext<'_>,
    history: &PgPool,
    rules: &RuleReplay,
    days: &[ReplayedDay],
    asked: BacktestDays,
) -> Result<Vec<ReplayedPrice>, CommandError> {
    let mut tx = db::begin(context.pool).await?;
    let tenant = context.find_tenant(&mut tx).await?;
    // Never committed: finding a tenant may renew its fingerprint, and a backtest stores nothing.
    tx.rollback().await?;
    let Some(tenant) = tenant else {
        return Ok(Vec::new());
    };
    let searches = days.iter().flat_map(|day| {
        let searches = day.planned.searches.iter();
        searches.map(|(_, subject)| ReplayedSearch {
            series: subject.series.key,
            first_date: subject.first_date,
            last_date: subject.last_date,
            day: day.day,
        })
    });
    let searches: Vec<_> = searches.collect();
    let mut snapshot = db::snapshot(history.acquire().await?).await?;
    let until = Instant::now() + MAX_READING;
    match replay(&mut snapshot, tenant, &rules.question(), &searches, until).await {
        Ok(prices) => Ok(prices),
        Err(PastError::Database(error)) => Err(error.into()),
        Err(PastError::OutOfTime) => {
            let expected = "fewer days; reading their history took too long";
            let fault = ValidationError::new("days", &asked.to_value(), expected);
            Err(ValidationErrors::from(fault).into())
        }
    }
}

/// Evaluates the days in their order.
fn evaluate(mut replay: RuleReplay, days: &[ReplayedDay], prices: Vec<ReplayedPrice>) -> Backtest {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let (mut searches, mut searches_with_prices, mut days_with_prices) = (0, 0, 0);
    let mut prices = prices.into_iter();
    for day in days {
        let expected = day.planned.searches.len();
        let mut found: Vec<_> = prices.by_ref().take(expected).collect();
        found.resize_with(expected, ReplayedPrice::default);
        let priced = found.iter().filter(|found| found.price.is_some()).count();
        searches += expected;
        searches_with_prices += priced;
        days_with_prices += usize::from(priced > 0);
        replay.evaluate(day.slot, &day.planned, found);
    }
    Backtest {
        since: Timestamp::MIN,
        until: Timestamp::MIN,
        slots: 0,
        days: count(days.len()),
        days_with_prices: count(days_with_prices),
        searches: count(searches),
        searches_with_prices: count(searches_with_prices),
        requests: RequestRange {
            least: 0,
            expected: None,
            most: 0,
        },
        billed_requests: 0,
        fired: count(replay.fired),
        alerts: replay.alerts,
        not_replayed: replay.not_replayed,
    }
}
