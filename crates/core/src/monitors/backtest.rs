//! Backtests a monitor: what its rules would have reported in the past days, by the caller's own
//! stored prices (monitors.md, rules 80 to 83). No call, and nothing is stored.
//!
//! Its searches are counted before any is planned. Each day is planned twice, first for its searches
//! and requests, then for its evaluation, and dropped, so that one plan is in memory at a time.
//!
//! Here: the slots, their searches and requests, and the limits. Not here: the prices of past days
//! (`history::replay`) and the rules (`alerts`).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};
use sqlx::PgPool;

use super::alerts::RuleReplay;
use super::forecast::most_confirmations;
use super::monthly_limit;
use super::schedule::Schedule;
use super::thread_time::thread_time;
use super::validate::{ValidatedMonitor, run_request, validate};
use crate::channels;
use crate::commands::{CommandError, RequestContext};
use crate::contract::monitors::relative_dates::resolve_dates;
use crate::contract::monitors::{Backtest, BacktestCeiling, BacktestDays, Rule};
use crate::contract::scans::RequestRange;
use crate::contract::{Endpoint, FieldValue as _, ValidationError, ValidationErrors};
use crate::db;
use crate::history::Subject;
use crate::history::past_prices::PastError;
use crate::history::replay::{ReplayedPrice, ReplayedSearch, replay};
use crate::ids::TenantId;
use crate::scans::cells::PlannedCells;
use crate::scans::plan::{ScanPlan, count_items, earliest_today, plan, with_permit};
use crate::scans::preview;
use crate::tenants::acceptance::NotAccepted;
use crate::tenants::store::acceptance::is_accepted;
use crate::webhooks::Guard;

/// The most searches of the first runs of all days: a year of 270 searches a day.
const MAX_SEARCHES: usize = 100_000;
/// Without optimization, planning and evaluating take ten times as long.
const SLOWDOWN: u64 = if cfg!(debug_assertions) { 10 } else { 1 };
/// The most processor time for planning them once.
const MAX_PLANNING: Duration = Duration::from_secs(2 * SLOWDOWN);
/// The longest time for reading the history.
const MAX_READING: Duration = Duration::from_secs(10);
/// The most processor time for evaluating the days.
const MAX_EVALUATION: Duration = Duration::from_secs(10 * SLOWDOWN);
/// The longest time for evaluating the days while others compute, with the waits for planning permits.
const MAX_EVALUATION_WAIT: Duration = Duration::from_secs(60 * SLOWDOWN);

/// What decides the slots, searches and rules of a monitor.
struct ReplayedMonitor {
    schedule: Schedule,
    rules: Vec<Rule>,
    ceiling: Option<u32>,
    scan: Map<String, Value>,
}

/// The run of a slot.
struct PlannedRun {
    requests: RequestRange,
    /// The requests that must be left of a month.
    needed: u32,
    /// Of no day yet.
    searches: Vec<ReplayedSearch>,
}

impl PlannedRun {
    fn of(plan: &ScanPlan, rules: &[Rule]) -> Self {
        let subjects = plan.items.iter().filter_map(Subject::of);
        let searches = subjects.map(|subject| ReplayedSearch {
            series: subject.series.key,
            first_date: subject.first_date,
            last_date: subject.last_date,
            day: Date::ZERO,
            by_name: subject.series.endpoint == Endpoint::HotelsByName,
        });
        Self {
            requests: preview::requests_with(plan, most_confirmations(rules, plan)),
            needed: monthly_limit::requests_needed(plan),
            searches: searches.collect(),
        }
    }
}

/// The first slot of a day that has a run.
#[derive(Clone, Copy)]
struct ReplayedDay {
    slot: Timestamp,
    searches: usize,
}

/// The slots of a time, and the first run of each day of UTC.
struct ReplayedSlots {
    slots: u32,
    runs: u32,
    days: Vec<ReplayedDay>,
    /// The searches of these days, in their order.
    searches: Vec<ReplayedSearch>,
    /// The slots whose scan could not be planned.
    failed: Vec<BacktestCeiling>,
    months: ReplayedMonths,
}

/// The caller's tenant. Only a caller whose key a marketplace has accepted has stored prices.
///
/// # Errors
/// `NotAccepted` for any other caller.
pub async fn accepted_tenant(context: RequestContext<'_>) -> Result<TenantId, CommandError> {
    // Never committed: finding a tenant may renew its fingerprint, and a backtest stores nothing.
    let mut tx = db::begin(context.pool).await?;
    if let Some(tenant) = context.find_tenant(&mut tx).await?
        && is_accepted(&mut *tx, tenant).await?
    {
        return Ok(tenant);
    }
    Err(NotAccepted::Required.into())
}

/// Replays a monitor of the [`accepted_tenant`] on the last `days`. The history is read from
/// `history`, the primary database or its replica.
///
/// # Errors
/// `ValidationErrors` with every error of the body, as on creation, and for `days` with too many
/// searches; `Busy` while others plan.
pub async fn backtest(
    (context, tenant): (RequestContext<'_>, TenantId),
    history: &PgPool,
    guard: Guard,
    body: &Map<String, Value>,
    days: BacktestDays,
) -> Result<Backtest, CommandError> {
    let now = context.now;
    let age = SignedDuration::from_hours(24 * i64::from(days.get()));
    let since = now.checked_sub(age).unwrap_or(Timestamp::MIN);
    let ValidatedMonitor {
        request, schedule, ..
    } = validate(body.clone(), guard, now).await?;
    let mut conn = context.pool.acquire().await?;
    channels::check_named(&mut conn, Some(tenant), request.channels()).await?;
    drop(conn);
    let scan = body.get("scan").and_then(Value::as_object);
    let monitor = Arc::new(ReplayedMonitor {
        schedule,
        rules: request.rules().to_vec(),
        ceiling: request.max_requests_per_month.map(|max| max.get()),
        scan: scan.cloned().unwrap_or_default(),
    });
    let replayed = Arc::clone(&monitor);
    let planned = with_permit(move || replayed_slots(replayed, (since, now))).await?;
    let ReplayedSlots {
        slots,
        runs,
        days: replayed,
        searches,
        failed,
        months,
    } = planned.map_err(|expected| refused_days(days, &expected))?;
    let rules = RuleReplay::new(monitor.rules.clone());
    let mut snapshot = db::snapshot(history.acquire().await?).await?;
    let until = Instant::now() + MAX_READING;
    let prices = replay(&mut snapshot, tenant, &rules.question(), &searches, until).await;
    drop((searches, snapshot));
    let prices = prices.map_err(|error| match error {
        PastError::Database(error) => CommandError::from(error),
        PastError::OutOfTime => {
            refused_days(days, "fewer days; reading their history took too long").into()
        }
    })?;
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let (evaluated_days, searched) = (count(replayed.len()), count(prices.len()));
    let evaluation = evaluate(rules, monitor, replayed, prices, MAX_EVALUATION).await?;
    let evaluation = evaluation
        .ok_or_else(|| refused_days(days, "fewer days; evaluating their runs took too long"))?;
    Ok(Backtest {
        since,
        until: now,
        slots,
        runs,
        failed,
        monthly_ceiling: months.refused,
        days: evaluated_days,
        days_with_prices: count(evaluation.days_with_prices),
        searches: searched,
        searches_with_prices: count(evaluation.searches_with_prices),
        requests: months.requests,
        billed_requests: 0,
        fired: count(evaluation.rules.fired),
        alerts: evaluation.rules.alerts,
        not_replayed: evaluation.rules.not_replayed,
    })
}

fn refused_days(days: BacktestDays, expected: &str) -> ValidationErrors {
    ValidationError::new("days", &days.to_value(), expected).into()
}

/// Decides the slots of a time in their order. `Err`: what is expected of `days`.
fn replayed_slots(
    monitor: Arc<ReplayedMonitor>,
    (since, now): (Timestamp, Timestamp),
) -> Result<ReplayedSlots, String> {
    let schedule = &monitor.schedule;
    let slots = || schedule.slots_after(since).take_while(|slot| *slot <= now);
    check_count(&monitor, slots())?;
    let until = thread_time() + MAX_PLANNING;
    let mut plans = DailyPlans::new(Arc::clone(&monitor), |monitor, plan, _| {
        PlannedRun::of(plan, &monitor.rules)
    });
    let mut found = ReplayedSlots {
        slots: 0,
        runs: 0,
        days: Vec::new(),
        searches: Vec::new(),
        failed: Vec::new(),
        months: ReplayedMonths::new(monitor.ceiling),
    };
    let mut last_day = None;
    for slot in slots() {
        found.slots += 1;
        if thread_time() > until {
            return Err("fewer days; planning their runs took too long".to_owned());
        }
        let planned = match plans.of(slot) {
            Ok(planned) => planned,
            Err(reason) => {
                let (begin, _) = schedule.month(slot);
                count_by_month(&mut found.failed, begin, slot, || reason.to_owned());
                continue;
            }
        };
        if !found.months.begins(schedule, slot, planned) {
            continue;
        }
        found.runs += 1;
        let day = day_of(slot);
        if last_day.replace(day) == Some(day) {
            continue;
        }
        found.days.push(ReplayedDay {
            slot,
            searches: planned.searches.len(),
        });
        let of_day = |search: &ReplayedSearch| ReplayedSearch { day, ..*search };
        found.searches.extend(planned.searches.iter().map(of_day));
    }
    found.months.close();
    Ok(found)
}

fn day_of(slot: Timestamp) -> Date {
    slot.to_zoned(TimeZone::UTC).date()
}

/// Checks how many searches the days of these slots have before any is planned, also those that
/// cannot be planned or that the limit of a month refuses. `Err`: what is expected of `days`.
fn check_count(
    monitor: &ReplayedMonitor,
    slots: impl Iterator<Item = Timestamp>,
) -> Result<(), String> {
    let (mut searches, mut days, mut last_day) = (0_usize, 0, None);
    for slot in slots {
        let day = day_of(slot);
        if last_day.replace(day) == Some(day) {
            continue;
        }
        // A range with one fixed end has more dates on an earlier day.
        let scan = resolve_dates(&monitor.scan, monitor.schedule.date(slot));
        searches = searches.saturating_add(count_items(&scan, earliest_today(slot)));
        if searches > MAX_SEARCHES {
            return Err(format!(
                "fewer days, at most {days} of them with a slot: a backtest plans {MAX_SEARCHES} searches"
            ));
        }
        days += 1;
    }
    Ok(())
}

/// Plans the runs of slots: once for all slots with the same dates. Only the last one is kept.
struct DailyPlans<T> {
    monitor: Arc<ReplayedMonitor>,
    of_plan: OfPlan<T>,
    last: Option<LastPlan<T>>,
}

/// What is kept of a plan and its body.
type OfPlan<T> = fn(&ReplayedMonitor, &ScanPlan, &Map<String, Value>) -> T;

/// The date of the last slot, its scan, and what its plan gave or why there is none.
struct LastPlan<T> {
    date: Date,
    scan: Map<String, Value>,
    planned: Result<T, String>,
}

impl<T> DailyPlans<T> {
    const fn new(monitor: Arc<ReplayedMonitor>, of_plan: OfPlan<T>) -> Self {
        Self {
            monitor,
            of_plan,
            last: None,
        }
    }

    fn of(&mut self, slot: Timestamp) -> Result<&T, &str> {
        let date = self.monitor.schedule.date(slot);
        let scan = resolve_dates(&self.monitor.scan, date);
        let last = self.last.take();
        let planned = match last.filter(|last| last.date == date || last.scan == scan) {
            Some(same) => same.planned,
            None => self.plan(slot),
        };
        let last = self.last.insert(LastPlan {
            date,
            scan,
            planned,
        });
        last.planned.as_ref().map_err(String::as_str)
    }

    fn plan(&self, slot: Timestamp) -> Result<T, String> {
        let body = run_request(&self.monitor.scan, &self.monitor.schedule, slot);
        let plan = plan(&body, earliest_today(slot));
        let plan = plan.map_err(|errors| errors.prefix("scan").to_string())?;
        Ok((self.of_plan)(&self.monitor, &plan, &body))
    }
}

/// Counts a slot without a run: by months, each with the reason of the first.
fn count_by_month(
    months: &mut Vec<BacktestCeiling>,
    begin: Timestamp,
    slot: Timestamp,
    reason: impl FnOnce() -> String,
) {
    match months.last_mut().filter(|first| first.slot >= begin) {
        Some(first) => first.slots += 1,
        None => months.push(BacktestCeiling {
            slot,
            slots: 1,
            reason: reason(),
        }),
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
            count_by_month(&mut self.refused, begin, slot, || reason);
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

/// The evaluation of the days in their order.
struct DailyEvaluation {
    rules: RuleReplay,
    plans: DailyPlans<PlannedCells>,
    prices: std::vec::IntoIter<ReplayedPrice>,
    searches_with_prices: usize,
    days_with_prices: usize,
}

impl DailyEvaluation {
    fn evaluate(&mut self, day: &ReplayedDay) -> std::io::Result<()> {
        let found: Vec<_> = self.prices.by_ref().take(day.searches).collect();
        let is_priced = |found: &&ReplayedPrice| found.price.is_some() && !found.is_implausible;
        let priced = found.iter().filter(is_priced).count();
        self.searches_with_prices += priced;
        self.days_with_prices += usize::from(priced > 0);
        let cells = self.plans.of(day.slot).map_err(std::io::Error::other)?;
        self.rules.replay_run(day.slot, cells, found)
    }
}

/// Evaluates the days in at most so much processor time, each under a planning permit of its own:
/// others plan between them. `None`: there was not enough time.
async fn evaluate(
    rules: RuleReplay,
    monitor: Arc<ReplayedMonitor>,
    days: Vec<ReplayedDay>,
    prices: Vec<ReplayedPrice>,
    max_time: Duration,
) -> Result<Option<DailyEvaluation>, CommandError> {
    let until = Instant::now() + MAX_EVALUATION_WAIT;
    let mut used = Duration::ZERO;
    let evaluation = Arc::new(Mutex::new(DailyEvaluation {
        rules,
        plans: DailyPlans::new(monitor, |_, plan, body| PlannedCells::of(plan, body)),
        prices: prices.into_iter(),
        searches_with_prices: 0,
        days_with_prices: 0,
    }));
    for day in days {
        let evaluated = loop {
            if used >= max_time || Instant::now() >= until {
                return Ok(None);
            }
            let evaluation = Arc::clone(&evaluation);
            let work = move || {
                let began = thread_time();
                let mut evaluation = evaluation.lock().unwrap_or_else(PoisonError::into_inner);
                let evaluated = evaluation.evaluate(&day);
                (evaluated, thread_time().saturating_sub(began))
            };
            match with_permit(work).await {
                // The days before it are not lost while others plan.
                Err(CommandError::Busy) if Instant::now() < until => {}
                evaluated => break evaluated?,
            }
        };
        let (evaluated, took) = evaluated;
        used += took;
        evaluated.map_err(|error| CommandError::Internal(error.to_string()))?;
    }
    // All work on it has ended.
    let evaluation = Arc::into_inner(evaluation);
    Ok(evaluation.map(|all| all.into_inner().unwrap_or_else(PoisonError::into_inner)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_evaluation_ends_in_time() {
        let scan = serde_json::json!({
            "endpoint": "flights/oneway",
            "request": {"from_airport": "TLV", "to_airport": "LHR", "departure_date": "+30d"}
        });
        let monitor = Arc::new(ReplayedMonitor {
            schedule: Schedule::parse("0 6 * * *", "UTC").unwrap(),
            rules: Vec::new(),
            ceiling: None,
            scan: scan.as_object().cloned().unwrap(),
        });
        let day = ReplayedDay {
            slot: "2027-01-01T06:00:00Z".parse().unwrap(),
            searches: 0,
        };
        let evaluated_within = async |max_time| {
            let (rules, monitor) = (RuleReplay::new(Vec::new()), Arc::clone(&monitor));
            let evaluated = evaluate(rules, monitor, vec![day], Vec::new(), max_time);
            evaluated.await.unwrap().is_some()
        };
        assert!(!evaluated_within(Duration::ZERO).await);
        assert!(evaluated_within(MAX_EVALUATION).await);
    }
}
