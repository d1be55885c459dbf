//! `script/study cheapest`: which of 90 dates is the cheapest now?

use farescan::planner::{
    BoundSearch, Candidate, Ends, Known, Misses, Played, SearchPlanner, StoredPrice, Wanted, play,
};
use farescan::sandbox::scenarios::ScenarioFare;
use jiff::civil::{Date, time};
use jiff::{SignedDuration, ToSpan as _};
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use rust_decimal::Decimal;
use serde::Serialize;

use crate::comparators::{FullSearch, GivenDates, RandomDates, StoredCalendar};
use crate::families::{StudyFamily, World, Worlds, in_parallel};
use crate::statistics::{RiskBin, mean, percentile, ratio, risk_bins};
use crate::table;

/// The dates of a question.
pub const DATES: usize = 90;
/// The days until the first date; of these one is drawn for which enough dates have offers.
const LEADS: [i64; 6] = [1, 8, 15, 30, 60, 90];
/// The share of the dates that must have offers, of those on weekdays with a flight.
const OFFERED: f64 = 0.8;
/// Ages of stored calendars in days, with the number of their cheapest dates that are searched.
const CALENDARS: [(i64, usize); 4] = [(1, 5), (3, 9), (7, 14), (14, 14)];
/// How the names of searches by bounds begin.
const BOUND: &str = "bound";
/// Accepted risks in percent, with ages of stored calendars in days.
const ASKED: [(u8, Option<i64>); 6] = [
    (5, Some(1)),
    (5, Some(3)),
    (5, Some(7)),
    (5, Some(14)),
    (20, Some(7)),
    (5, None),
];
/// Searches with a calendar of 7 days of which so many in a hundred dates, drawn at random, are
/// stored.
const PARTLY_STORED: [usize; 4] = [20, 40, 60, 80];
/// The most searches, in tenths of the dates.
const CEILING: usize = 6;
/// The oldest stored calendar.
const MAX_AGE: i64 = 14;
/// A price within one percent of the cheapest counts as it.
pub const TOLERANCE: f64 = 1.01;

/// One question, with the prices of its dates on the last days, the day of the question last.
pub struct Question {
    pub dates: Vec<Date>,
    fares: Vec<Vec<Option<ScenarioFare>>>,
    flown: usize,
    seed: u64,
}

/// One strategy's answer to one question.
struct Answer {
    strategy: String,
    requests: usize,
    dates: usize,
    /// How much the named date costs above the cheapest, as a share; infinite if none was named.
    regret: f64,
    risk: Option<f64>,
}

/// A family's figures for one strategy.
#[derive(Debug, Serialize)]
pub struct CheapestRow {
    study: &'static str,
    family: String,
    strategy: String,
    questions: usize,
    requests: f64,
    share_of_full: f64,
    within_1_percent: f64,
    /// Shares; null: no date with an offer was found.
    regret_p90: f64,
    regret_worst: f64,
    risk: Vec<RiskBin>,
}

/// Plays all strategies in all worlds of the families.
pub fn run(
    families: &[StudyFamily],
    worlds: &Worlds,
) -> Result<Vec<CheapestRow>, Box<dyn std::error::Error>> {
    let mut rows = Vec::new();
    for family in families {
        let answers = in_parallel(&family.worlds(worlds), |world| {
            questions(world, worlds.starts)
                .iter()
                .flat_map(|question| question.play())
                .collect()
        });
        if answers.is_empty() {
            let name = &family.name;
            return Err(format!(
                "{name}: no day has offers for {OFFERED} of {DATES} dates that begin at most {} days later",
                LEADS[LEADS.len() - 1]
            )
            .into());
        }
        rows.extend(summarize(&family.name, &answers));
    }
    Ok(rows)
}

/// The questions of a world, on evenly spaced days.
pub fn questions(world: &World, starts: usize) -> Vec<Question> {
    let first = world.days.start().saturating_add(MAX_AGE.days());
    let span = i64::from((*world.days.end() - first).get_days());
    if span < 0 {
        return Vec::new();
    }
    let starts = i64::try_from(starts).unwrap_or(1);
    let mut rng = StdRng::seed_from_u64(world.number);
    (0..starts)
        .filter_map(|n| {
            let today = first.saturating_add((span * n / starts).days());
            let mut leads = LEADS;
            leads.shuffle(&mut rng);
            let seed = rng.random();
            leads
                .into_iter()
                .map(|lead| Question::new(world, today, lead, seed))
                .find(Question::has_enough_offers)
        })
        .collect()
}

impl Question {
    fn new(world: &World, today: Date, lead: i64, seed: u64) -> Self {
        let first = today.saturating_add(lead.days());
        let dates: Vec<_> = first.series(1.day()).take(DATES).collect();
        let days = today.saturating_sub(MAX_AGE.days())..=today;
        let fares = dates
            .iter()
            .map(|date| {
                world
                    .prices
                    .oneway_by_day(&world.route, *date, days.clone(), time(12, 0, 0, 0))
            })
            .collect();
        let is_flown = |date: &&Date| world.prices.is_flown(&world.route, **date);
        Self {
            flown: dates.iter().filter(is_flown).count(),
            dates,
            fares,
            seed,
        }
    }

    /// The fare of a date, so many days ago.
    pub fn fare(&self, position: usize, age: i64) -> Option<ScenarioFare> {
        let index = usize::try_from(MAX_AGE - age).ok()?;
        *self.fares.get(position)?.get(index)?
    }

    fn has_enough_offers(&self) -> bool {
        let offered = (0..self.dates.len()).filter(|date| self.fare(*date, 0).is_some());
        ratio(offered.count(), self.flown) >= OFFERED
    }

    fn play(&self) -> Vec<Answer> {
        let mut answers = vec![self.answer("full scan", &FullSearch, None)];
        let half = RandomDates {
            searches: self.dates.len() / 2,
            seed: self.seed,
        };
        answers.push(self.answer("half of the dates", &half, None));
        let again = StoredCalendar { searches: 1 };
        answers.push(self.answer("yesterday's cheapest date again", &again, Some(1)));
        for (age, searches) in CALENDARS {
            let name = format!("calendar of {age} d, {searches} live");
            answers.push(self.answer(&name, &StoredCalendar { searches }, Some(age)));
        }
        answers.extend(self.by_bounds());
        let genuine = |position: &usize| Some((self.fare(*position, 0)?.genuine, *position));
        let cheapest = (0..self.dates.len())
            .filter_map(|date| genuine(&date))
            .min();
        let oracle = GivenDates {
            positions: cheapest.into_iter().map(|(_, position)| position).collect(),
        };
        answers.push(self.answer("oracle", &oracle, None));
        answers
    }

    /// Plays searches by bounds, of the same calendars.
    fn by_bounds(&self) -> Vec<Answer> {
        let answer = |name: &str, percent, age: &dyn Fn(usize) -> Option<i64>| {
            let search = self.bound_search(Wanted::Cheapest, percent, age);
            self.answer_from(&format!("{BOUND}, {name}"), &search, age)
        };
        let verified = ASKED.into_iter().map(|(percent, age)| {
            let from = age.map_or("from nothing".to_owned(), |age| format!("{age} d"));
            answer(&format!("risk {percent} %, {from}"), percent, &|_| age)
        });
        let shuffled = self.shuffled_dates();
        let partly = PARTLY_STORED.into_iter().map(|share| {
            let stored = &shuffled[..shuffled.len() * share / 100];
            let age = |position: usize| stored.contains(&position).then_some(7);
            answer(&format!("{share} % stored, 7 d"), 5, &age)
        });
        verified.chain(partly).collect()
    }

    /// The search that the service would begin with prices of these ages, and the prior counts.
    pub fn bound_search(
        &self,
        wanted: Wanted,
        percent: u8,
        age: impl Fn(usize) -> Option<i64>,
    ) -> BoundSearch {
        let candidates = self.candidates(age);
        let misses = Misses {
            has_prior: true,
            ..Misses::default()
        };
        let choice = misses.choose(Known::of(&candidates), f64::from(percent) / 100.0);
        BoundSearch {
            wanted,
            ends: Ends::Answered(choice),
            most: self.dates.len() * CEILING / 10,
        }
    }

    fn shuffled_dates(&self) -> Vec<usize> {
        let mut dates: Vec<_> = (0..self.dates.len()).collect();
        dates.shuffle(&mut StdRng::seed_from_u64(self.seed));
        dates
    }

    /// Plays one strategy, with a stored calendar of this age if there is one.
    fn answer(&self, strategy: &str, planner: &dyn SearchPlanner, age: Option<i64>) -> Answer {
        self.answer_from(strategy, planner, |_| age)
    }

    /// Plays one strategy, with stored prices of the ages of their positions.
    fn answer_from(
        &self,
        strategy: &str,
        planner: &dyn SearchPlanner,
        age: impl Fn(usize) -> Option<i64>,
    ) -> Answer {
        let Played { searched, end } = self.played(planner, age);
        Answer {
            strategy: strategy.to_owned(),
            requests: searched.len(),
            dates: self.dates.len(),
            regret: self.regret(end.best.map(|(position, _)| position)),
            risk: end.risk,
        }
    }

    /// What a strategy searches and finds, with stored prices of the ages of their positions.
    pub fn played(
        &self,
        planner: &dyn SearchPlanner,
        age: impl Fn(usize) -> Option<i64>,
    ) -> Played {
        let mut candidates = self.candidates(age);
        play(planner, &mut candidates, |position| self.shown(position, 0))
    }

    fn shown(&self, position: usize, age: i64) -> Option<Decimal> {
        let found = self.fare(position, age).and_then(ScenarioFare::found);
        found.map(Decimal::from)
    }

    /// The dates with stored prices of these ages.
    fn candidates(&self, age: impl Fn(usize) -> Option<i64>) -> Vec<Candidate> {
        let candidate = |(position, date): (usize, &Date)| Candidate {
            stored: age(position).map(|age| StoredPrice {
                price: self.shown(position, age),
                age: SignedDuration::from_hours(24 * age),
            }),
            ..Candidate::unknown(*date)
        };
        self.dates.iter().enumerate().map(candidate).collect()
    }

    fn regret(&self, best: Option<usize>) -> f64 {
        let genuine = |position| self.fare(position, 0).map(|fare| fare.genuine);
        let cheapest = (0..self.dates.len()).filter_map(genuine).min();
        match (best.and_then(genuine), cheapest) {
            (Some(named), Some(cheapest)) => above(named, cheapest),
            _ => f64::INFINITY,
        }
    }
}

/// How much one price is above another, as a share.
#[expect(clippy::cast_precision_loss, reason = "prices are small")]
pub fn above(price: i64, cheapest: i64) -> f64 {
    price as f64 / (cheapest as f64).max(1.0) - 1.0
}

fn summarize(family: &str, answers: &[Answer]) -> Vec<CheapestRow> {
    let mut strategies: Vec<&str> = Vec::new();
    for answer in answers {
        if !strategies.contains(&answer.strategy.as_str()) {
            strategies.push(&answer.strategy);
        }
    }
    strategies
        .into_iter()
        .map(|strategy| {
            let of_it: Vec<_> = answers
                .iter()
                .filter(|answer| answer.strategy == strategy)
                .collect();
            let within = |answer: &Answer| answer.regret <= TOLERANCE - 1.0;
            let regrets: Vec<_> = of_it.iter().map(|answer| answer.regret).collect();
            let declared: Vec<_> = of_it
                .iter()
                .filter_map(|answer| Some((answer.risk?, !within(answer))))
                .collect();
            let requests: usize = of_it.iter().map(|answer| answer.requests).sum();
            let dates = of_it.iter().map(|answer| answer.dates).sum();
            CheapestRow {
                study: "cheapest",
                family: family.to_owned(),
                strategy: strategy.to_owned(),
                questions: of_it.len(),
                requests: ratio(requests, of_it.len()),
                share_of_full: ratio(requests, dates),
                within_1_percent: mean(
                    &of_it
                        .iter()
                        .map(|answer| f64::from(u8::from(within(answer))))
                        .collect::<Vec<_>>(),
                ),
                regret_p90: percentile(&regrets, 90),
                regret_worst: percentile(&regrets, 100),
                risk: risk_bins(&declared),
            }
        })
        .collect()
}

/// Prints the figures, then the declared risks.
pub fn print(rows: &[CheapestRow]) {
    let lines: Vec<_> = rows
        .iter()
        .map(|row| {
            vec![
                row.family.clone(),
                row.strategy.clone(),
                row.questions.to_string(),
                format!("{:.1}", row.requests),
                table::percent(row.share_of_full),
                table::percent(row.within_1_percent),
                table::percent(row.regret_p90),
                table::percent(row.regret_worst),
            ]
        })
        .collect();
    println!("The cheapest of {DATES} dates, asked once\n");
    table::print(
        &[
            "family",
            "strategy",
            "questions",
            "requests",
            "of full",
            "within 1 %",
            "regret p90",
            "worst",
        ],
        &lines,
    );
    print_risks(rows);
}

/// Prints the declared risks of each strategy, and of all searches by bounds of a family together.
fn print_risks(rows: &[CheapestRow]) {
    let mut groups: Vec<_> = rows
        .iter()
        .map(|row| (row.family.as_str(), row.strategy.as_str(), row.risk.clone()))
        .collect();
    for of_family in rows.chunk_by(|one, next| one.family == next.family) {
        let rows = of_family
            .iter()
            .filter(|row| row.strategy.starts_with(BOUND));
        let together = RiskBin::together(rows.map(|row| row.risk.as_slice()));
        groups.push((of_family[0].family.as_str(), "all bounds", together));
    }
    let risks: Vec<_> = groups
        .iter()
        .flat_map(|(family, strategy, bins)| bins.iter().map(move |bin| (family, strategy, bin)))
        .filter(|(_, _, bin)| bin.answers > 0)
        .map(|(family, strategy, bin)| {
            vec![
                (*family).to_owned(),
                (*strategy).to_owned(),
                table::percent(bin.up_to),
                bin.answers.to_string(),
                table::percent(bin.declared),
                table::percent(bin.real),
            ]
        })
        .collect();
    println!("\nDeclared risk that a date is cheaper by more than 1 %, and how often one was\n");
    table::print(
        &["family", "strategy", "up to", "answers", "declared", "real"],
        &risks,
    );
}
