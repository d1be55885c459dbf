//! When a plan ends at the present rate, and what uses it. Pure.
//!
//! Each source (a monitor, single searches, other scans) is expected to use on each weekday what it
//! used on that weekday in the last four weeks, and one that is younger than a week its mean. A monitor that
//! began today goes on like that; what somebody searched by hand today says nothing yet. A source that was
//! silent for more than a week is over.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

use crate::contract::Api;
use crate::contract::usage::{ForecastCause, PlanForecast};
use crate::ids::MonitorId;

/// The full days that are looked at: each weekday four times.
pub(super) const WINDOW: i32 = 28;
/// A source that did nothing for longer is over: one that runs weekly is not.
const SILENCE: i32 = 8;
/// How far ahead the end is looked for where the reset is not known: a plan's month.
const HORIZON: i32 = 31;
/// The causes that are named use this share of the plan.
const NAMED_PERCENT: f64 = 80.0;
const MOST_CAUSES: usize = 5;
const DAY_SECONDS: i64 = 86_400;

/// What uses a plan.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum UseSource {
    Monitor(MonitorId, String),
    /// Single searches and key checks.
    Single,
    /// Scans without a monitor.
    Scans,
}

/// The billed requests of one day and source.
#[derive(Debug, Clone)]
pub(super) struct DailyUse {
    pub(super) day: Date,
    pub(super) source: UseSource,
    pub(super) billed: u64,
}

/// What is left of a plan.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlanLeft {
    pub(super) api: Api,
    pub(super) limit: Option<u64>,
    pub(super) requests: u64,
    pub(super) resets_at: Option<Timestamp>,
}

/// The use of one source, by day.
type Days = BTreeMap<Date, f64>;

/// What a source is expected to use.
struct Rates {
    /// On each weekday, from Monday.
    by_weekday: [f64; 7],
    used_today: f64,
}

/// The forecast; `None` without any use, and once the plan has been reset: what is left is not known
/// then.
pub(super) fn forecast(uses: &[DailyUse], left: PlanLeft, now: Timestamp) -> Option<PlanForecast> {
    if left.resets_at.is_some_and(|resets| resets <= now) {
        return None;
    }
    let today = now.to_zoned(TimeZone::UTC).date();
    let mut sources = BTreeMap::<&UseSource, Days>::new();
    for one in uses {
        let days = sources.entry(&one.source).or_default();
        *days.entry(one.day).or_default() += to_f64(one.billed);
    }
    sources.retain(|source, days| is_alive(days, today) && goes_on(source, days, today));
    let sources: Vec<_> = sources
        .into_iter()
        .map(|(source, days)| (source, Rates::of(&days, today)))
        .collect();
    let (last, part_of_last) = match left.resets_at {
        // The part of the day before the reset: otherwise a reset that moves over midnight would move the sum by a day.
        Some(resets) => {
            let seconds = resets.as_second().rem_euclid(DAY_SECONDS);
            let part = to_f64(seconds.unsigned_abs()) / to_f64(DAY_SECONDS.unsigned_abs());
            (resets.to_zoned(TimeZone::UTC).date(), part)
        }
        None => (today + HORIZON.days(), 1.0),
    };
    let mut sums: BTreeMap<&UseSource, f64> = BTreeMap::new();
    let (mut used, mut days, mut ends_on) = (0.0, 0.0, None);
    for day in today.series(1.day()).take_while(|day| *day <= last) {
        let part = if day == last && day != today {
            part_of_last
        } else {
            1.0
        };
        days += part;
        for (source, rates) in &sources {
            let expected = part * rates.on(day, today);
            *sums.entry(source).or_default() += expected;
            used += expected;
        }
        if used >= to_f64(left.requests) {
            ends_on = Some(day);
            break;
        }
    }
    (!sources.is_empty()).then(|| PlanForecast {
        api: left.api,
        requests_limit: left.limit,
        requests_left: left.requests,
        requests_per_day: (used / days * 10.0).round() / 10.0,
        requests_expected: Some(to_u64(used)),
        resets_at: left.resets_at,
        ends_on,
        causes: causes(&sums, used),
    })
}

/// A monitor has a schedule. What somebody searched by hand on one day says nothing of the next.
fn goes_on(source: &UseSource, days: &Days, today: Date) -> bool {
    let first = days.first_key_value().map(|(day, _)| *day);
    matches!(source, UseSource::Monitor(..)) || first.is_some_and(|first| first < today)
}

fn is_alive(days: &Days, today: Date) -> bool {
    let last = days.last_key_value().map(|(day, _)| *day);
    last.is_some_and(|last| last >= today - SILENCE.days())
}

impl Rates {
    fn of(seen: &Days, today: Date) -> Self {
        let used_today = seen.get(&today).copied().unwrap_or_default();
        let begin = today - WINDOW.days();
        let first = seen.keys().next().copied().unwrap_or(today).max(begin);
        let full_days: Vec<_> = first
            .series(1.day())
            .take_while(|day| *day < today)
            .map(|day| (weekday(day), seen.get(&day).copied().unwrap_or_default()))
            .collect();
        let mean = |only: Option<usize>| {
            let of_day = full_days
                .iter()
                .filter(|(day, _)| only.is_none_or(|only| *day == only));
            let (sum, days) = of_day.fold((0.0, 0.0), |(sum, days), (_, used)| {
                (sum + used, days + 1.0)
            });
            sum / f64::max(days, 1.0)
        };
        let by_weekday = match full_days.len() {
            // Begun today.
            0 => [used_today; 7],
            1..7 => [mean(None); 7],
            _ => std::array::from_fn(|day| mean(Some(day))),
        };
        Self {
            by_weekday,
            used_today,
        }
    }

    /// On a day from `today` on; today what it has not used yet.
    fn on(&self, day: Date, today: Date) -> f64 {
        let rate = self.by_weekday.get(weekday(day)).copied();
        let rate = rate.unwrap_or_default();
        if day == today {
            (rate - self.used_today).max(0.0)
        } else {
            rate
        }
    }
}

/// From Monday.
fn weekday(day: Date) -> usize {
    usize::try_from(day.weekday().to_monday_zero_offset()).unwrap_or_default()
}

fn causes(sums: &BTreeMap<&UseSource, f64>, used: f64) -> Vec<ForecastCause> {
    let mut sums: Vec<_> = sums.iter().filter(|(_, sum)| **sum > 0.0).collect();
    sums.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let (mut named, mut causes) = (0.0, Vec::new());
    for (source, sum) in sums.into_iter().take(MOST_CAUSES) {
        if named >= NAMED_PERCENT {
            break;
        }
        let percent = 100.0 * sum / used;
        named += percent;
        let (key, name) = match source {
            UseSource::Monitor(id, name) => (id.to_string(), Some(name.clone())),
            UseSource::Single => ("single".to_owned(), None),
            UseSource::Scans => ("scans".to_owned(), None),
        };
        causes.push(ForecastCause {
            key,
            name,
            percent: to_percent(percent),
        });
    }
    causes
}

#[expect(clippy::cast_precision_loss, reason = "no plan has 2^53 requests")]
fn to_f64(requests: u64) -> f64 {
    requests as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "no use is negative, and a cast stops at the largest number"
)]
fn to_u64(requests: f64) -> u64 {
    requests.round() as u64
}

fn to_percent(percent: f64) -> u8 {
    u8::try_from(to_u64(percent).min(100)).unwrap_or(100)
}

#[cfg(test)]
#[path = "forecast/tests.rs"]
mod tests;
