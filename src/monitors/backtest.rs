//! Backtests a monitor: what its rules would have reported in the past days, by the caller's own
//! stored prices (monitors.md, rules 80 to 83). No call, and nothing is stored.
//!
//! Here: the slots, their searches and requests, and the limits. Not here: the prices of past days
//! (`history::replay`) and the rules (`alerts`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};
use sqlx::PgPool;

use super::alerts::RuleReplay;
use super::forecast::most_confirmations;
use super::monthly_limit;
use super::relative_dates::resolve_dates;
use super::schedule::Schedule;
use super::validate::{ValidatedMonitor, run_request, validate};
use crate::commands::{CommandError, RequestContext};
use crate::contract::monitors::{Backtest, BacktestCeiling, BacktestDays, Rule};
use crate::contract::scans::RequestRange;
use crate::contract::{Endpoint, FieldValue as _, ValidationError, ValidationErrors};
use crate::db;
use crate::history::past_prices::PastError;
use crate::history::replay::{ReplayedPrice, ReplayedSearch, replay};
use crate::scans::cells::PlannedCells;
use crate::scans::plan::{earliest_today, plan};
use crate::scans::preview;
use crate::webhooks::Guard;

/// The most searches of the first runs of all days: a year of 270 searches a day.
const MAX_SEARCHES: usize = 100_000;
/// The longest time for planning the runs.
const MAX_PLANNING: Duration = Duration::from_secs(10);
/// The longest time for reading the history.
const MAX_READING: Duration = Duration::from_secs(10);

/// The run of a slot.
struct PlannedRun {
    cells: PlannedCells,
    requests: RequestRange,
    /// The requests that must be left of a month.
    needed: u32,
}

/// The first slot of a day that has a run.
struct ReplayedDay {
    slot: Timestamp,
    day: Date,
    planned: Arc<PlannedRun>,
}

/// The slots of a time, and the first run of each day of UTC.
struct ReplayedSlots {
    slots: u32,
    runs: u32,
    days: Vec<ReplayedDay>,
    months: ReplayedMonths,
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
    let rules = monitor.request.alerts.as_ref();
    let rules: Vec<Rule> = rules.map_or_else(Vec::new, |rules| rules.as_slice().to_vec());
    let scan = body.get("scan").and_then(Value::as_object);
    let scan = scan.cloned().unwrap_or_default();
    let until = Instant::now() + MAX_PLANNING;
    let planned =
        tokio::task::spawn_blocking(move || replayed_slots(&monitor, &scan, (since, now), until));
    let planned = match planned.await {
        Ok(planned) => planned.map_err(|expected| too_many(days, &expected))?,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    };
    let ReplayedSlots {
        slots,
        runs,
        days: replayed,
        months,
    } = planned;
    let replay = RuleReplay::new(rules);
    let prices = read_prices(context, history, &replay, &replayed, days).await?;
    let evaluate = move || evaluate(replay, &replayed, prices);
    let evaluated = match tokio::task::spawn_blocking(evaluate).await {
        Ok(evaluated) => evaluated,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    };
    Ok(Backtest {
        since,
        until: now,
        slots,
        runs,
        monthly_ceiling: months.refused,
        requests: months.requests,
        ..evaluated
    })
}

fn too_many(days: BacktestDays, expected: &str) -> ValidationErrors {
    ValidationError::new("days", &days.to_value(), expected).into()
}

/// Decides the slots of a time in their order, until an instant. `Err`: what is expected of `days`.
fn replayed_slots(
    monitor: &ValidatedMonitor,
    scan: &Map<String, Value>,
    (since, now): (Timestamp, Timestamp),
    until: Instant,
) -> Result<ReplayedSlots, String> {
    let ValidatedMonitor { schedule, .. } = monitor;
    let ceiling = monitor.request.max_requests_per_month.as_ref();
    let mut plans = DailyPlans::new(monitor, scan);
    let mut found = ReplayedSlots {
        slots: 0,
        runs: 0,
        days: Vec::new(),
        months: ReplayedMonths::new(ceiling.map(|ceiling| ceiling.get())),
    };
    let (mut searches, mut days, mut planned_day) = (0_usize, 0, None);
    for slot in schedule.slots_after(since).take_while(|slot| *slot <= now) {
        found.slots += 1;
        // Also for slots that cannot be planned, which takes as long.
        if Instant::now() > until {
            return Err("fewer days; planning their runs took too long".to_owned());
        }
        let Some(planned) = plans.of(slot) else {
            continue;
        };
        let day = slot.to_zoned(TimeZone::UTC).date();
        if planned_day.replace(day) != Some(day) {
            // A range with one fixed end has more dates on an earlier day. What a month's limit
            // refuses counts too: it was planned.
            searches += planned.cells.searches.len();
            if searches > MAX_SEARCHES {
                return Err(format!(
                    "fewer days, at most {days} of them with a slot: a backtest plans {MAX_SEARCHES} searches"
                ));
            }
            days += 1;
        }
        if !found.months.begins(schedule, slot, &planned) {
            continue;
        }
        found.runs += 1;
        if found.days.last().is_some_and(|last| last.day == day) {
            continue;
        }
        found.days.push(ReplayedDay { slot, day, planned });
    }
    found.months.close();
    Ok(found)
}

/// Plans the runs of slots: once for all slots with the same dates.
struct DailyPlans<'a> {
    monitor: &'a ValidatedMonitor,
    scan: &'a Map<String, Value>,
    last: Option<LastPlan>,
}

/// The date of the last slot, its scan, and its run if one could be planned.
struct LastPlan {
    date: Date,
    scan: Map<String, Value>,
    planned: Option<Arc<PlannedRun>>,
}

impl<'a> DailyPlans<'a> {
    const fn new(monitor: &'a ValidatedMonitor, scan: &'a Map<String, Value>) -> Self {
        Self {
            monitor,
            scan,
            last: None,
        }
    }

    fn of(&mut self, slot: Timestamp) -> Option<Arc<PlannedRun>> {
        let date = self.monitor.schedule.date(slot);
        if let Some(last) = self.last.as_ref().filter(|last| last.date == date) {
            return last.planned.clone();
        }
        let scan = resolve_dates(self.scan, date);
        let same = self.last.take().filter(|last| last.scan == scan);
        let planned = same.and_then(|last| last.planned);
        let planned = planned.or_else(|| self.plan(slot).map(Arc::new));
        self.last = Some(LastPlan {
            date,
            scan,
            planned: planned.clone(),
        });
        planned
    }

    fn plan(&self, slot: Timestamp) -> Option<PlannedRun> {
        let body = run_request(self.scan, &self.monitor.schedule, slot);
        let plan = plan(&body, earliest_today(slot)).ok()?;
        let rules = self.monitor.request.alerts.as_ref();
        let rules = rules.map_or(&[][..], |rules| rules.as_slice());
        Some(PlannedRun {
            requests: preview::requests_with(&plan, most_confirmations(rules, &plan)),
            needed: monthly_limit::requests_needed(&plan),
            cells: PlannedCells::of(&plan, &body),
        })
    }
}

/// The requests of the runs by months, each with the least that it may cost, against
/// `max_requests_per_month`.
struct ReplayedMonths {
    ceiling: Option<u32>,
    /// The begin and end of the current month, and its requests.
    month: Option<(Timestamp, Timestamp)>,
    spent: RequestRange,
    /// Those of the months before.
    requests: RequestRange,
    refused: Vec<BacktestCeiling>,
}

impl ReplayedMonths {
    fn new(ceiling: Option<u32>) -> Self {
        Self {
            ceiling,
            month: None,
            spent: RequestRange::default(),
            requests: RequestRange::default(),
            refused: Vec::new(),
        }
    }

    /// Whether the month's limit lets a slot start its run, which is counted then.
    fn begins(&mut self, schedule: &Schedule, slot: Timestamp, run: &PlannedRun) -> bool {
        let is_in = |(begin, end): (Timestamp, Timestamp)| slot >= begin && slot < end;
        let (begin, _) = match self.month.filter(|month| is_in(*month)) {
            Some(month) => month,
            None => {
                self.close();
                *self.month.insert(schedule.month(slot))
            }
        };
        let spent = i64::try_from(self.spent.least).unwrap_or(i64::MAX);
        let left = self
            .ceiling
            .map(|ceiling| monthly_limit::left_for_run(ceiling.into(), spent, run.needed));
        if let Some(Err(reason)) = left {
            match self.refused.last_mut().filter(|first| first.slot >= begin) {
                Some(first) => first.slots += 1,
                None => self.refused.push(BacktestCeiling {
                    slot,
                    slots: 1,
                    reason,
                }),
            }
            return false;
        }
        self.spent.least = self.spent.least.saturating_add(run.requests.least);
        self.spent.most = self.spent.most.saturating_add(run.requests.most);
        true
    }

    /// Ends the current month: no request exceeds its limit.
    fn close(&mut self) {
        let RequestRange { least, most, .. } = std::mem::take(&mut self.spent);
        let most = self
            .ceiling
            .map_or(most, |ceiling| most.min(ceiling.into()));
        self.requests.least = self.requests.least.saturating_add(least);
        self.requests.most = self.requests.most.saturating_add(most);
    }
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
        let cells = &day.planned.cells;
        let by_name = cells.endpoint == Endpoint::HotelsByName;
        let searches = cells.searches.iter();
        searches.map(move |(_, subject)| ReplayedSearch {
            series: subject.series.key,
            first_date: subject.first_date,
            last_date: subject.last_date,
            day: day.day,
            by_name,
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
        let expected = day.planned.cells.searches.len();
        let mut found: Vec<_> = prices.by_ref().take(expected).collect();
        found.resize_with(expected, ReplayedPrice::default);
        let is_priced = |found: &&ReplayedPrice| found.price.is_some() && !found.is_implausible;
        let priced = found.iter().filter(is_priced).count();
        searches += expected;
        searches_with_prices += priced;
        days_with_prices += usize::from(priced > 0);
        replay.evaluate(day.slot, &day.planned.cells, found);
    }
    Backtest {
        since: Timestamp::MIN,
        until: Timestamp::MIN,
        slots: 0,
        runs: 0,
        monthly_ceiling: Vec::new(),
        days: count(days.len()),
        days_with_prices: count(days_with_prices),
        searches: count(searches),
        searches_with_prices: count(searches_with_prices),
        requests: RequestRange::default(),
        billed_requests: 0,
        fired: count(replay.fired),
        alerts: replay.alerts,
        not_replayed: replay.not_replayed,
    }
}
