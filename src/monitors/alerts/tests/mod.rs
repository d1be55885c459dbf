//! Rules over the runs of a monitor, as tables that a person can read (`tables`, `markets`) and as laws that hold for any runs (`laws`).
//!
//! A run is written as text, a cell for each date: `250 | 199+201 | degraded` are three cells, the second with two samples. What a search
//! comes to: a price (`199`, `199 EUR`, `199 low`, `199 partial`), `empty` (with a reason: `empty sold_out`), `filtered`, `degraded`,
//! `failed`, `cancelled`, `skipped`; `-`: the scan has no such cell.

mod evidence;
mod laws;
mod markets;
mod tables;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::evidence::Firing;
use super::identity::{self, RuleKey};
use super::sight::Run;
use super::state::{State, States};
use super::verdicts::{self, Verdicts, WHOLE_SCAN};
use crate::contract::monitors::Rule;
use crate::contract::scans::ItemState;
use crate::contract::{Endpoint, FieldValue as _, SearchStatus, Verdict};
use crate::ids::ItemId;
use crate::scans::cells::{BestOffer, Cell, Cells, Searched, Seen};

fn rule(value: Value) -> Rule {
    Rule::read(&value).unwrap_or_else(|faults| panic!("{value}: {faults}"))
}

fn keyed(rule: Rule) -> (RuleKey, Rule) {
    (identity::key(&rule), rule)
}

/// A day of 2030 for each cell, from `a` on.
fn date(place: usize) -> String {
    format!("2030-01-{:02}", place + 1)
}

/// What people call the cell of a key.
fn letter(key: &str) -> String {
    let values: Value = serde_json::from_str(key).unwrap_or_default();
    if let Some(market) = values["proxy_country"].as_str() {
        return market.to_owned();
    }
    let day: u8 = values["departure_date"]
        .as_str()
        .and_then(|date| date[8..].parse().ok())
        .unwrap_or_default();
    char::from(b'a' - 1 + day).to_string()
}

/// When the run of this number was.
fn at(number: usize) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + i64::try_from(number).unwrap() * 86_400).unwrap()
}

fn searched(text: &str, position: usize, number: usize) -> Searched {
    let words: Vec<_> = text.split_whitespace().collect();
    let second = words.get(1).copied();
    let done = |status| (ItemState::Done, Some(status), None, None);
    let (state, search_status, reason, price) = match words[0] {
        "empty" => (
            ItemState::Done,
            Some(SearchStatus::Empty),
            second.map(str::to_owned),
            None,
        ),
        "filtered" => (
            ItemState::Done,
            Some(SearchStatus::Ok),
            Some("filtered_out".to_owned()),
            None,
        ),
        "partial" => done(SearchStatus::Partial),
        "degraded" => done(SearchStatus::Degraded),
        "failed" => (
            ItemState::Failed,
            None,
            Some("invalid_request".to_owned()),
            None,
        ),
        "cancelled" => (ItemState::Cancelled, None, None, None),
        "skipped" => (ItemState::Skipped, None, None, None),
        amount => {
            let status = if second == Some("partial") {
                SearchStatus::Partial
            } else {
                SearchStatus::Ok
            };
            let currency = second
                .filter(|word| word.len() == 3 && *word != "low")
                .unwrap_or("USD")
                .to_owned();
            (
                ItemState::Done,
                Some(status),
                None,
                Some((amount.parse().unwrap(), currency)),
            )
        }
    };
    let verdict = second.and_then(Verdict::parse).or(Some(Verdict::Typical));
    let link = format!("https://example.com/{number}/{position}");
    let offer = price.is_some().then(|| BestOffer {
        verdict,
        link: Some(link),
        seller: Some("Double".into()),
        ..BestOffer::default()
    });
    let seen = Seen {
        item: ItemId::new(),
        state,
        search_status,
        reason,
        price,
        offer,
    };
    Searched {
        position: position.try_into().unwrap(),
        observed_at: Some(at(number)),
        seen,
    }
}

/// A run of a scan over dates.
fn run(text: &str, number: usize) -> Run {
    let cells = text
        .split('|')
        .enumerate()
        .filter(|(_, cell)| cell.trim() != "-");
    let cells = cells.map(|(place, cell)| {
        let values = Map::from_iter([("departure_date".to_owned(), json!(date(place)))]);
        let items = cell
            .split('+')
            .enumerate()
            .map(|(sample, text)| searched(text, sample * 100 + place, number));
        Cell {
            key: Value::Object(values.clone()).to_string(),
            values,
            items: items.collect(),
        }
    });
    let request = json!({"from_airport": "TLV", "to_airport": "LHR", "currency": "usd"});
    Run::new(Cells {
        endpoint: Endpoint::FlightsOneway,
        request: request.as_object().unwrap().clone(),
        all: cells.collect(),
    })
}

/// A monitor with one rule, run by run.
struct Monitor {
    rule: Rule,
    states: States,
    runs: usize,
    not_comparable: usize,
}

impl Monitor {
    fn with(rule: Rule) -> Self {
        Self {
            rule,
            states: States::new(),
            runs: 0,
            not_comparable: 0,
        }
    }

    /// What fires in this run.
    fn sees(&mut self, run: &Run) -> Vec<Firing> {
        self.judge(Some(run))
    }

    /// What fires in a slot without an answer.
    fn has_no_run(&mut self) -> Vec<Firing> {
        self.judge(None)
    }

    fn judge(&mut self, run: Option<&Run>) -> Vec<Firing> {
        let mut verdicts = Verdicts::default();
        self.states = verdicts.judge(0, &self.rule, std::mem::take(&mut self.states), run);
        self.runs += 1;
        self.not_comparable += verdicts.not_comparable;
        verdicts.fired.in_order()
    }

    /// As it is judged.
    fn rules(&self) -> [(RuleKey, Rule); 1] {
        [keyed(self.rule.clone())]
    }

    /// `yes` or `no` for a whole scan, `a:yes b:no` for cells.
    fn armed(&self) -> String {
        let word = |state: &State| if state.armed { "yes" } else { "no" };
        if let Some(state) = self.states.get(WHOLE_SCAN) {
            return word(state).to_owned();
        }
        let cells: BTreeMap<_, _> = self
            .states
            .iter()
            .map(|(key, state)| (letter(key), word(state)))
            .collect();
        cells
            .iter()
            .map(|(letter, word)| format!("{letter}:{word}"))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// What a run of a table is to come to: what it sees, what fires (`fires`, or the cells), what is armed after it.
type Row = (&'static str, &'static str, &'static str);

/// Runs a table, prints it, and holds it to its rows.
fn table(title: &str, of: Value, rows: &[Row]) -> Monitor {
    table_of(title, of, rows, |text, number| Some(run(text, number)))
}

fn table_of(
    title: &str,
    of: Value,
    rows: &[Row],
    run: impl Fn(&str, usize) -> Option<Run>,
) -> Monitor {
    println!(
        "\n{title}: {of}\n{:>4}  {:<44}  {:<16}  {:<7}  armed after",
        "run", "seen", "armed before", "fires"
    );
    let mut monitor = Monitor::with(rule(of));
    let mut wrong = Vec::new();
    for (number, (seen, fires, armed)) in rows.iter().enumerate() {
        let before = if number == 0 {
            "(new)".to_owned()
        } else {
            monitor.armed()
        };
        let fired = match run(seen, number) {
            Some(run) => monitor.sees(&run),
            None => monitor.has_no_run(),
        };
        let name = |firing: &Firing| {
            if firing.key.is_empty() {
                "fires".to_owned()
            } else {
                letter(&firing.key)
            }
        };
        let mut names: Vec<_> = fired.iter().map(name).collect();
        names.sort();
        let (fired, after) = (names.join(" "), monitor.armed());
        println!(
            "{:>4}  {seen:<44}  {before:<16}  {:<7}  {after}",
            number + 1,
            if fired.is_empty() { "no" } else { &fired }
        );
        if (fired.as_str(), after.as_str()) != (*fires, *armed) {
            wrong.push(format!(
                "run {}: {seen}: fires {fired:?}, armed {after:?}; to be {fires:?}, {armed:?}",
                number + 1
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    monitor
}
