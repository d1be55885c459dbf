//! `script/study monitors`: which of 90 dates is the cheapest now, on each of 150 days?

use farescan::planner::{
    BestCandidate, Candidate, FullSearch, Played, SearchPlanner, StoredCalendar, StoredPrice, play,
};
use farescan::sandbox::scenarios::ScenarioFare;
use jiff::civil::{Date, time};
use jiff::{SignedDuration, ToSpan as _};
use rust_decimal::Decimal;
use serde::Serialize;

use crate::cheapest::{DATES, TOLERANCE, above};
use crate::comparators::Rotation;
use crate::families::{StudyFamily, World, Worlds, in_parallel};
use crate::statistics::{mean, percentile, ratio};
use crate::table;

/// A drop of the cheapest price, as a share of the day before.
const DROP: f64 = 0.9;
/// A drop counts as seen within so many days after it.
const SEEN_WITHIN: usize = 2;

/// A watched route: the fares of each date on each day.
struct Watch {
    dates: Vec<Date>,
    fares: Vec<Vec<Option<ScenarioFare>>>,
    days: usize,
}

/// What a monitor shows on a day.
struct Shown {
    position: Option<usize>,
    price: Option<Decimal>,
    /// The cheapest price that was searched on this day.
    searched: Option<Decimal>,
    requests: usize,
}

/// One strategy's 150 days in one world.
struct WatchResult {
    strategy: &'static str,
    requests: usize,
    searches_of_full: usize,
    right: Vec<f64>,
    wrong_price: Vec<f64>,
    regrets: Vec<f64>,
    drops: usize,
    seen_drops: usize,
}

/// A family's figures for one strategy.
#[derive(Debug, Serialize)]
pub struct MonitorRow {
    study: &'static str,
    family: String,
    strategy: &'static str,
    monitors: usize,
    days: usize,
    requests_per_day: f64,
    share_of_full: f64,
    /// The share of days on which the named date is within 1 % of the cheapest.
    right: f64,
    /// The share of days on which the price that is shown for it is off by more than 1 %.
    wrong_price: f64,
    regret_p90: f64,
    regret_worst: f64,
    /// Falls of the cheapest price by 10 % or more in a day.
    drops: usize,
    drops_seen: f64,
}

/// Plays all strategies in all worlds of the families, for so many days. The watched dates begin on
/// the day after the last one.
pub fn run(
    families: &[StudyFamily],
    worlds: &Worlds,
    days: usize,
) -> Result<Vec<MonitorRow>, Box<dyn std::error::Error>> {
    let mut rows = Vec::new();
    for family in families {
        let results = in_parallel(&family.worlds(worlds), |world| {
            let watch = Watch::new(world, days);
            strategies()
                .into_iter()
                .map(|(name, planner)| watch.play(name, planner.as_ref()))
                .collect()
        });
        if results.iter().all(|result| result.regrets.is_empty()) {
            let name = &family.name;
            return Err(format!(
                "{name}: none of the watched dates has an offer; fewer --days bring them nearer"
            )
            .into());
        }
        for (strategy, _) in strategies() {
            let of_it: Vec<_> = results
                .iter()
                .filter(|result: &&WatchResult| result.strategy == strategy)
                .collect();
            rows.push(summarize(&family.name, strategy, &of_it));
        }
    }
    Ok(rows)
}

fn strategies() -> Vec<(&'static str, Box<dyn SearchPlanner>)> {
    let (tenth, fifth) = (DATES / 10, DATES / 5);
    vec![
        ("full scan, daily", Box::new(FullSearch)),
        ("rotation, a fifth", Box::new(Rotation { searches: fifth })),
        ("rotation, a tenth", Box::new(Rotation { searches: tenth })),
        (
            "cheapest known, a fifth",
            Box::new(StoredCalendar { searches: fifth }),
        ),
        (
            "cheapest known, a tenth",
            Box::new(StoredCalendar { searches: tenth }),
        ),
        (
            "the same date again",
            Box::new(StoredCalendar { searches: 1 }),
        ),
    ]
}

impl Watch {
    /// A recorded route may have fewer days.
    fn new(world: &World, days: usize) -> Self {
        let first_day = *world.days.start();
        let recorded = usize::try_from((*world.days.end() - first_day).get_days()).unwrap_or(0) + 1;
        let days = recorded.min(days);
        let after = |days: usize| first_day.saturating_add(i64::try_from(days).unwrap_or(0).days());
        let dates: Vec<_> = after(days).series(1.day()).take(DATES).collect();
        let fares = dates
            .iter()
            .map(|date| {
                let days = first_day..=after(days - 1);
                world
                    .prices
                    .oneway_by_day(&world.route, *date, days, time(12, 0, 0, 0))
            })
            .collect();
        Self { dates, fares, days }
    }

    fn fare(&self, position: usize, day: usize) -> Option<ScenarioFare> {
        self.fares[position][day]
    }

    fn cheapest(&self, day: usize) -> Option<i64> {
        (0..self.dates.len())
            .filter_map(|position| Some(self.fare(position, day)?.genuine))
            .min()
    }

    /// The first day is a full scan for every strategy.
    fn play(&self, strategy: &'static str, planner: &dyn SearchPlanner) -> WatchResult {
        let mut known: Vec<Candidate> =
            self.dates.iter().copied().map(Candidate::unknown).collect();
        let shown: Vec<_> = (0..self.days)
            .map(|day| {
                let planner = if day == 0 { &FullSearch } else { planner };
                let Played { searched, best } = play(planner, &mut known, |position| {
                    self.fare(position, day)
                        .and_then(ScenarioFare::found)
                        .map(Decimal::from)
                });
                let shown = show(&known, best, searched.len());
                age(&mut known);
                shown
            })
            .collect();
        self.score(strategy, &shown)
    }

    fn score(&self, strategy: &'static str, shown: &[Shown]) -> WatchResult {
        let mut result = WatchResult {
            strategy,
            requests: shown.iter().map(|day| day.requests).sum(),
            searches_of_full: self.days * self.dates.len(),
            right: Vec::new(),
            wrong_price: Vec::new(),
            regrets: Vec::new(),
            drops: 0,
            seen_drops: 0,
        };
        for (day, seen) in shown.iter().enumerate() {
            let Some(cheapest) = self.cheapest(day) else {
                continue;
            };
            let genuine = seen.position.and_then(|position| self.fare(position, day));
            let regret = genuine.map_or(f64::INFINITY, |fare| above(fare.genuine, cheapest));
            let is_wrong = match (seen.price, genuine) {
                (Some(price), Some(fare)) => is_off(price, Decimal::from(fare.genuine)),
                (shown, offered) => shown.is_some() != offered.is_some(),
            };
            let share = |is: bool| f64::from(u8::from(is));
            result.right.push(share(regret <= TOLERANCE - 1.0));
            result.wrong_price.push(share(is_wrong));
            result.regrets.push(regret);
            let before = day.checked_sub(1).and_then(|day| self.cheapest(day));
            if before.is_some_and(|before| above(cheapest, before) <= DROP - 1.0) {
                result.drops += 1;
                let last = (day + SEEN_WITHIN).min(shown.len() - 1);
                let limit = Decimal::from(cheapest) * Decimal::new(101, 2);
                let was_seen = shown[day..=last]
                    .iter()
                    .any(|day| day.searched.is_some_and(|price| price <= limit));
                result.seen_drops += usize::from(was_seen);
            }
        }
        result
    }
}

/// Whether two prices differ by more than 1 %.
fn is_off(price: Decimal, other: Decimal) -> bool {
    (price - other).abs() * Decimal::ONE_HUNDRED > other
}

fn show(known: &[Candidate], best: BestCandidate, requests: usize) -> Shown {
    Shown {
        position: best.position,
        price: best
            .position
            .and_then(|position| known[position].known_price()),
        searched: known
            .iter()
            .filter_map(|candidate| candidate.searched?)
            .min(),
        requests,
    }
}

/// A night passes: what was searched is stored, and everything stored is a day older.
fn age(known: &mut [Candidate]) {
    let day = SignedDuration::from_hours(24);
    for candidate in known {
        candidate.stored = match candidate.searched.take() {
            Some(price) => Some(StoredPrice { price, age: day }),
            None => candidate.stored.map(|stored| StoredPrice {
                age: stored.age + day,
                ..stored
            }),
        };
    }
}

fn summarize(family: &str, strategy: &'static str, results: &[&WatchResult]) -> MonitorRow {
    let all = |values: fn(&WatchResult) -> &Vec<f64>| {
        results
            .iter()
            .flat_map(|result| values(result).iter().copied())
            .collect::<Vec<_>>()
    };
    let sum = |value: fn(&WatchResult) -> usize| results.iter().map(|result| value(result)).sum();
    let regrets = all(|result| &result.regrets);
    let (requests, of_full): (usize, usize) = (
        sum(|result| result.requests),
        sum(|result| result.searches_of_full),
    );
    let drops = sum(|result| result.drops);
    MonitorRow {
        study: "monitors",
        family: family.to_owned(),
        strategy,
        monitors: results.len(),
        days: regrets.len(),
        requests_per_day: ratio(requests * DATES, of_full),
        share_of_full: ratio(requests, of_full),
        right: mean(&all(|result| &result.right)),
        wrong_price: mean(&all(|result| &result.wrong_price)),
        regret_p90: percentile(&regrets, 90),
        regret_worst: percentile(&regrets, 100),
        drops,
        drops_seen: ratio(sum(|result| result.seen_drops), drops),
    }
}

/// Prints the figures.
pub fn print(rows: &[MonitorRow], days: u16) {
    let lines: Vec<_> = rows
        .iter()
        .map(|row| {
            vec![
                row.family.clone(),
                row.strategy.to_owned(),
                row.days.to_string(),
                format!("{:.1}", row.requests_per_day),
                table::percent(row.share_of_full),
                table::percent(row.right),
                table::percent(row.wrong_price),
                table::percent(row.regret_p90),
                table::percent(row.regret_worst),
                row.drops.to_string(),
                table::percent(row.drops_seen),
            ]
        })
        .collect();
    println!("The cheapest of {DATES} dates, asked on {days} days\n");
    table::print(
        &[
            "family",
            "strategy",
            "days",
            "requests",
            "of full",
            "right",
            "wrong price",
            "regret p90",
            "worst",
            "drops",
            "seen",
        ],
        &lines,
    );
}
