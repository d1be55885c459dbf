//! `script/study monitors` and `script/study watch`: which of 90 dates is the cheapest now, on each of
//! 150 days?

use farescan::planner::{
    BoundSearch, Candidate, Ends, Played, SearchDecision, SearchPlanner, StoredPrice, Wanted, play,
    trusted,
};
use farescan::sandbox::scenarios::ScenarioFare;
use jiff::civil::{Date, time};
use jiff::{SignedDuration, ToSpan as _};
use rust_decimal::Decimal;
use serde::Serialize;

use crate::cheapest::{DATES, TOLERANCE, above};
use crate::comparators::{FullSearch, Rotation, StoredCalendar};
use crate::families::{StudyFamily, World, Worlds, in_parallel};
use crate::statistics::{RiskBin, mean, percentile, ratio, risk_bins};
use crate::table;

/// A drop of the cheapest price, as a share of the day before.
const DROP: f64 = 0.9;
/// A drop counts as seen within so many days after it.
const SEEN_WITHIN: usize = 2;

/// The question `below` asks for a price that the cheapest one undercuts on so many percent of the
/// days.
const BELOW_PERCENTILE: usize = 25;

/// A watched route: the fares of each date on each day.
struct WatchedRoute {
    dates: Vec<Date>,
    fares: Vec<Vec<Option<ScenarioFare>>>,
    days: usize,
    /// The price of the question `below`.
    below: Decimal,
}

/// How a strategy is played.
struct MonitorStrategy {
    name: &'static str,
    /// Whether its first day is a full scan.
    begins_full: bool,
    /// Whether it goes by `trusted` prices, as the service does for a watch.
    doubts: bool,
    planner: PlannerOfDay,
}

type PlannerOfDay = fn(&WatchedRoute) -> Box<dyn SearchPlanner>;

/// What a monitor shows on a day.
struct Shown {
    position: Option<usize>,
    price: Option<Decimal>,
    /// The cheapest price that was searched on this day.
    searched: Option<Decimal>,
    /// The declared risk.
    risk: Option<f64>,
    /// The dates whose newest known price is that of the day, within 1 %.
    right_dates: f64,
    requests: usize,
}

/// One strategy's 150 days in one world.
struct WatchResult {
    strategy: &'static str,
    requests: usize,
    most_requests: usize,
    searches_of_full: usize,
    right: Vec<f64>,
    right_below: Vec<f64>,
    right_dates: Vec<f64>,
    risks: Vec<(f64, bool)>,
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
    /// The most requests of a day, the first one aside.
    most_requests: usize,
    /// The share of days on which the named date is within 1 % of the cheapest.
    right: f64,
    /// The share of days on which the price that is shown for it is off by more than 1 %.
    wrong_price: f64,
    /// The share of days on which it is right whether the cheapest price is below a given one.
    right_below: f64,
    /// The share of dates and days on which the newest known price is that of the day.
    right_dates: f64,
    regret_p90: f64,
    regret_worst: f64,
    /// Falls of the cheapest price by 10 % or more in a day.
    drops: usize,
    drops_seen: f64,
    /// Declared risks, the first day aside, with how often another date was cheaper.
    risks: Vec<RiskBin>,
}

/// The strategies that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// Simple ones.
    Monitors,
    /// Watch budgets, beside a full scan, rotation and the cheapest known.
    Watches,
}

/// Plays all strategies in all worlds of the families, for so many days. The watched dates begin on
/// the day after the last one.
pub fn run(
    families: &[StudyFamily],
    worlds: &Worlds,
    days: usize,
    compared: Compared,
) -> Result<Vec<MonitorRow>, Box<dyn std::error::Error>> {
    let strategies = strategies(compared);
    let study = match compared {
        Compared::Monitors => "monitors",
        Compared::Watches => "watch",
    };
    let mut rows = Vec::new();
    for family in families {
        let results = in_parallel(&family.worlds(worlds), |world| {
            let route = WatchedRoute::new(world, days);
            let all = strategies.iter();
            all.map(|strategy| route.play(strategy)).collect()
        });
        if results.iter().all(|result| result.regrets.is_empty()) {
            let name = &family.name;
            return Err(format!(
                "{name}: none of the watched dates has an offer; fewer --days bring them nearer"
            )
            .into());
        }
        for strategy in &strategies {
            let of_it: Vec<_> = results
                .iter()
                .filter(|result: &&WatchResult| result.strategy == strategy.name)
                .collect();
            rows.push(summarize(study, &family.name, strategy.name, &of_it));
        }
    }
    Ok(rows)
}

const TENTH: usize = DATES / 10;
const FIFTH: usize = DATES / 5;

fn strategies(compared: Compared) -> Vec<MonitorStrategy> {
    let simple = |name, planner: PlannerOfDay| MonitorStrategy {
        name,
        begins_full: true,
        doubts: false,
        planner,
    };
    let watch = |name, planner: PlannerOfDay| MonitorStrategy {
        doubts: true,
        ..simple(name, planner)
    };
    let mut all = vec![
        simple("full scan, daily", |_| Box::new(FullSearch)),
        simple("rotation, a fifth", |_| {
            Box::new(Rotation { searches: FIFTH })
        }),
        simple("rotation, a tenth", |_| {
            Box::new(Rotation { searches: TENTH })
        }),
        simple("cheapest known, a fifth", |_| {
            Box::new(StoredCalendar { searches: FIFTH })
        }),
        simple("cheapest known, a tenth", |_| {
            Box::new(StoredCalendar { searches: TENTH })
        }),
    ];
    let others = match compared {
        Compared::Monitors => vec![simple("the same date again", |_| {
            Box::new(StoredCalendar { searches: 1 })
        })],
        Compared::Watches => vec![
            watch("watch cheapest, a fifth", |_| {
                spends(Wanted::Cheapest, FIFTH)
            }),
            watch("watch cheapest, a tenth", |_| {
                spends(Wanted::Cheapest, TENTH)
            }),
            MonitorStrategy {
                begins_full: false,
                ..watch("the same, from nothing", |_| {
                    spends(Wanted::Cheapest, TENTH)
                })
            },
            watch("watch below, a tenth", |route| {
                spends(Wanted::Below(route.below), TENTH)
            }),
        ],
    };
    all.extend(others);
    all
}

/// A day of a watch.
fn spends(wanted: Wanted, budget: usize) -> Box<dyn SearchPlanner> {
    Box::new(BoundSearch {
        wanted,
        ends: Ends::Spent { budget },
        most: budget,
    })
}

impl WatchedRoute {
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
        let mut route = Self {
            dates,
            fares,
            days,
            below: Decimal::ZERO,
        };
        let mut cheapest: Vec<_> = (0..days).filter_map(|day| route.cheapest(day)).collect();
        cheapest.sort_unstable();
        let nth = cheapest.len() * BELOW_PERCENTILE / 100;
        route.below = cheapest.get(nth).copied().unwrap_or_default().into();
        route
    }

    fn fare(&self, position: usize, day: usize) -> Option<ScenarioFare> {
        self.fares[position][day]
    }

    fn cheapest(&self, day: usize) -> Option<i64> {
        (0..self.dates.len())
            .filter_map(|position| Some(self.fare(position, day)?.genuine))
            .min()
    }

    fn play(&self, strategy: &MonitorStrategy) -> WatchResult {
        let mut known: Vec<Candidate> =
            self.dates.iter().copied().map(Candidate::unknown).collect();
        let mut answers = vec![[None; 2]; known.len()];
        let shown: Vec<_> = (0..self.days)
            .map(|day| {
                let of_day = (strategy.planner)(self);
                let is_full = day == 0 && strategy.begins_full;
                let planner = if is_full {
                    &FullSearch
                } else {
                    of_day.as_ref()
                };
                let Played { searched, end } = play(planner, &mut known, |position| {
                    self.fare(position, day)
                        .and_then(ScenarioFare::found)
                        .map(Decimal::from)
                });
                for position in &searched {
                    if let Some(price) = known[*position].searched {
                        answers[*position] = [Some((price, day)), answers[*position][0]];
                    }
                }
                let right_dates = self.right_dates(&answers, day);
                let shown = show(&known, &end, searched.len(), right_dates);
                pass_night(&mut known, &answers, day + 1, strategy.doubts);
                shown
            })
            .collect();
        self.score(strategy.name, &shown)
    }

    /// The share of dates whose newest answer is the price of the day.
    fn right_dates(&self, answers: &[[Answer; 2]], day: usize) -> f64 {
        let is_right = |(position, newest): (usize, Answer)| {
            let fare = self.fare(position, day);
            match (newest.and_then(|(price, _)| price), fare) {
                (Some(price), Some(fare)) => !is_off(price, Decimal::from(fare.genuine)),
                (price, fare) => newest.is_some() && price.is_none() == fare.is_none(),
            }
        };
        let newest = answers.iter().map(|answers| answers[0]);
        let right = newest.enumerate().filter(|one| is_right(*one)).count();
        ratio(right, answers.len())
    }

    fn score(&self, strategy: &'static str, shown: &[Shown]) -> WatchResult {
        let mut result = WatchResult {
            strategy,
            requests: shown.iter().map(|day| day.requests).sum(),
            most_requests: shown
                .iter()
                .skip(1)
                .map(|day| day.requests)
                .max()
                .unwrap_or(0),
            searches_of_full: self.days * self.dates.len(),
            right: Vec::new(),
            right_below: Vec::new(),
            right_dates: Vec::new(),
            risks: Vec::new(),
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
            let says_below = seen.price.is_some_and(|price| price < self.below);
            let is_below = Decimal::from(cheapest) < self.below;
            result.right_below.push(share(says_below == is_below));
            result.right_dates.push(seen.right_dates);
            if let Some(risk) = seen.risk.filter(|_| day > 0) {
                result.risks.push((risk, regret > TOLERANCE - 1.0));
            }
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

/// An answer, and its day.
type Answer = Option<(Option<Decimal>, usize)>;

fn show(known: &[Candidate], end: &SearchDecision, requests: usize, right_dates: f64) -> Shown {
    let position = end.best.map(|(position, _)| position);
    Shown {
        position,
        price: position.and_then(|position| newest_price(&known[position])),
        searched: known
            .iter()
            .filter_map(|candidate| candidate.searched?)
            .min(),
        risk: end.risk,
        right_dates,
        requests,
    }
}

/// The searched price, else the stored one.
fn newest_price(candidate: &Candidate) -> Option<Decimal> {
    match candidate.searched {
        Some(found) => found,
        None => candidate.stored.and_then(|stored| stored.price),
    }
}

/// What was searched is stored, and everything stored is a day older.
fn pass_night(known: &mut [Candidate], answers: &[[Answer; 2]], today: usize, doubts: bool) {
    for (candidate, answers) in known.iter_mut().zip(answers) {
        candidate.searched = None;
        let ago =
            |day: usize| SignedDuration::from_hours(24 * i64::try_from(today - day).unwrap_or(0));
        let before = answers[1].filter(|_| doubts);
        let goes_by = answers[0].map(|newest| trusted(newest, before));
        candidate.stored = goes_by.map(|(price, day)| StoredPrice {
            price,
            age: ago(day),
        });
        candidate.tried = answers[0].map(|(_, day)| ago(day));
    }
}

fn summarize(
    study: &'static str,
    family: &str,
    strategy: &'static str,
    results: &[&WatchResult],
) -> MonitorRow {
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
    let risks: Vec<_> = results
        .iter()
        .flat_map(|result| result.risks.iter().copied())
        .collect();
    MonitorRow {
        study,
        family: family.to_owned(),
        strategy,
        monitors: results.len(),
        days: regrets.len(),
        requests_per_day: ratio(requests * DATES, of_full),
        share_of_full: ratio(requests, of_full),
        most_requests: results
            .iter()
            .map(|result| result.most_requests)
            .max()
            .unwrap_or(0),
        right: mean(&all(|result| &result.right)),
        wrong_price: mean(&all(|result| &result.wrong_price)),
        right_below: mean(&all(|result| &result.right_below)),
        right_dates: mean(&all(|result| &result.right_dates)),
        regret_p90: percentile(&regrets, 90),
        regret_worst: percentile(&regrets, 100),
        drops,
        drops_seen: ratio(sum(|result| result.seen_drops), drops),
        risks: risk_bins(&risks),
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

/// Prints the figures of watch budgets.
pub fn print_watches(rows: &[MonitorRow], days: u16) {
    let lines: Vec<_> = rows
        .iter()
        .map(|row| {
            vec![
                row.family.clone(),
                row.strategy.to_owned(),
                table::percent(row.share_of_full),
                row.most_requests.to_string(),
                table::percent(row.right),
                table::percent(row.wrong_price),
                row.drops.to_string(),
                table::percent(row.drops_seen),
                table::percent(row.right_below),
                table::percent(row.right_dates),
            ]
        })
        .collect();
    println!("{DATES} dates, watched on {days} days\n");
    table::print(
        &[
            "family",
            "strategy",
            "of full",
            "most",
            "right",
            "wrong price",
            "drops",
            "seen",
            "right below",
            "right dates",
        ],
        &lines,
    );
    println!(
        "\nDeclared risk of a miss, and how often another date was cheaper by more than 1 %\n"
    );
    let lines: Vec<_> = rows
        .iter()
        .filter(|row| row.strategy.starts_with("watch cheapest"))
        .map(|row| {
            let bins = row.risks.iter().map(|bin| match bin.answers {
                0 => "-".to_owned(),
                answers => format!(
                    "{:.1}; {:.1} ({answers})",
                    bin.declared * 100.0,
                    bin.real * 100.0
                ),
            });
            let names = [row.family.clone(), row.strategy.to_owned()];
            names.into_iter().chain(bins).collect()
        })
        .collect();
    table::print(
        &[
            "family",
            "strategy",
            "to 2 %",
            "2 to 5 %",
            "5 to 10 %",
            "10 to 25 %",
            "more",
        ],
        &lines,
    );
}
