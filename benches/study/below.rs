//! `script/study below`: is one of 90 dates below a price now?

use farescan::planner::{Played, SearchPlanner, Wanted};
use farescan::sandbox::scenarios::ScenarioFare;
use rust_decimal::Decimal;
use serde::Serialize;

use crate::cheapest::{DATES, Question, questions};
use crate::families::{StudyFamily, World, Worlds, in_parallel};
use crate::statistics::{RiskBin, ratio, risk_bins};
use crate::table;

/// The prices that are asked for, in percent of the lowest stored one.
const PERCENTS: [i64; 4] = [80, 90, 100, 110];
/// The age of the stored calendar in days.
const AGE: i64 = 7;
/// The accepted risk in percent.
const RISK: u8 = 5;

/// One answer to one question.
struct Answer {
    percent: i64,
    is_below: bool,
    strategies: Vec<StrategyAnswer>,
}

struct StrategyAnswer {
    strategy: &'static str,
    requests: usize,
    says_below: bool,
    risk: Option<f64>,
}

/// A family's figures for one price and one strategy.
#[derive(Debug, Serialize)]
pub struct BelowRow {
    study: &'static str,
    family: String,
    strategy: &'static str,
    percent_of_lowest: i64,
    questions: usize,
    /// The share of the questions whose answer is yes.
    below: f64,
    requests: f64,
    /// The share of the questions that were answered rightly.
    right: f64,
    /// Where none was found: how often one is below.
    risk: Vec<RiskBin>,
}

/// Plays all families.
pub fn run(families: &[StudyFamily], worlds: &Worlds) -> Vec<BelowRow> {
    let mut rows = Vec::new();
    for family in families {
        let play = |world: &World| {
            let asked = questions(world, worlds.starts);
            let answers = asked.iter().flat_map(answers);
            answers.collect()
        };
        let answers: Vec<Answer> = in_parallel(&family.worlds(worlds), play);
        rows.extend(summarize(&family.name, &answers));
    }
    rows
}

/// The answers to a question for each price, which is above 0; none without a stored price.
fn answers(question: &Question) -> Vec<Answer> {
    let dates = 0..question.dates.len();
    let stored = |date| question.fare(date, AGE).and_then(ScenarioFare::found);
    let Some(lowest) = dates.clone().filter_map(stored).min() else {
        return Vec::new();
    };
    let of_price = |percent: i64| {
        // Prices are whole units, and one of the given height counts as below.
        let below = Decimal::new(lowest * percent, 2).floor() + Decimal::new(5, 1);
        let is_below = |price: i64| Decimal::from(price) < below;
        let found = |date| question.fare(date, 0).and_then(ScenarioFare::found);
        let ask = |strategy, planner: &dyn SearchPlanner| {
            let Played { searched, end } = question.played(planner, |_| Some(AGE));
            StrategyAnswer {
                strategy,
                requests: searched.len(),
                says_below: end
                    .best
                    .and_then(|(date, _)| found(date))
                    .is_some_and(is_below),
                risk: end.risk,
            }
        };
        let search = |wanted| question.bound_search(wanted, RISK, |_| Some(AGE));
        Answer {
            percent,
            is_below: dates.clone().filter_map(found).any(is_below),
            strategies: vec![
                ask("find below", &search(Wanted::Below(below))),
                ask("find cheapest", &search(Wanted::Cheapest)),
            ],
        }
    };
    PERCENTS.into_iter().map(of_price).collect()
}

fn summarize(family: &str, answers: &[Answer]) -> Vec<BelowRow> {
    let mut rows = Vec::new();
    for percent in PERCENTS {
        let asked: Vec<_> = answers
            .iter()
            .filter(|answer| answer.percent == percent)
            .collect();
        let strategies = asked.first().map_or(0, |answer| answer.strategies.len());
        for index in 0..strategies {
            let played: Vec<_> = asked
                .iter()
                .map(|answer| (answer.is_below, &answer.strategies[index]))
                .collect();
            let declared = played.iter().filter(|(_, answer)| !answer.says_below);
            let declared: Vec<_> = declared
                .filter_map(|(is_below, answer)| Some((answer.risk?, *is_below)))
                .collect();
            let right = played
                .iter()
                .filter(|(is_below, answer)| *is_below == answer.says_below);
            let strategy = played[0].1.strategy;
            rows.push(BelowRow {
                study: "below",
                family: family.to_owned(),
                strategy,
                percent_of_lowest: percent,
                questions: asked.len(),
                below: ratio(
                    asked.iter().filter(|answer| answer.is_below).count(),
                    asked.len(),
                ),
                requests: ratio(
                    played.iter().map(|(_, answer)| answer.requests).sum(),
                    asked.len(),
                ),
                right: ratio(right.count(), asked.len()),
                risk: if strategy == "find below" {
                    risk_bins(&declared)
                } else {
                    Vec::new()
                },
            });
        }
    }
    rows
}

/// Prints the figures, then the declared risks of a family.
pub fn print(rows: &[BelowRow]) {
    let line = |row: &BelowRow| {
        vec![
            row.family.clone(),
            row.strategy.to_owned(),
            format!("{} %", row.percent_of_lowest),
            row.questions.to_string(),
            table::percent(row.below),
            format!("{:.1}", row.requests),
            table::percent(row.right),
        ]
    };
    println!(
        "Is one of {DATES} dates below a price? It is so much of the lowest price of {AGE} days ago\n"
    );
    let headers = [
        "family",
        "strategy",
        "price",
        "questions",
        "yes",
        "requests",
        "right",
    ];
    table::print(&headers, &rows.iter().map(line).collect::<Vec<_>>());
    let risks: Vec<_> = rows
        .chunk_by(|one, next| one.family == next.family)
        .flat_map(|rows| {
            let bins = RiskBin::together(rows.iter().map(|row| row.risk.as_slice()));
            bins.into_iter().map(|bin| (rows[0].family.clone(), bin))
        })
        .filter(|(_, bin)| bin.answers > 0)
        .map(|(family, bin)| {
            vec![
                family,
                "find below".to_owned(),
                table::percent(bin.up_to),
                bin.answers.to_string(),
                table::percent(bin.declared),
                table::percent(bin.real),
            ]
        })
        .collect();
    println!("\nDeclared risk that one is below although none was found, and how often one was\n");
    let headers = ["family", "strategy", "up to", "answers", "declared", "real"];
    table::print(&headers, &risks);
}
