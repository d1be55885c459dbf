//! Rules over the runs of a monitor: as tables (`tables`, `markets`, `past`) and as properties of any runs
//! (`properties`).
//!
//! A run is written as text with a cell for each date: `250 | 199+201 | degraded` are three cells,
//! the second with two samples. The result of a search is a price (`199`, `199 EUR`, `199 low`,
//! `199 partial`, `199 implausible`), `empty` (with a reason: `empty sold_out`), `filtered`, `degraded`, `unpriced` (offers
//! without a price), `failed`,
//! `cancelled` or `skipped`. `-` means that the scan lacks the cell.

mod alert_builder;
mod confirm;
mod markets;
mod past;
mod properties;
mod tables;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;
use serde_json::{Map, Value, json};

use super::alert_builder::Firing;
use super::rule_key::{self, RuleKey};
use super::run_firings::{RunFirings, WHOLE_SCAN};
use super::run_snapshot::RunSnapshot;
use super::state::{ScopeState, ScopeStates};
use crate::contract::history_verdict::{HistoryVerdict, PriceClass};
use crate::contract::monitors::Rule;
use crate::contract::scans::ItemState;
use crate::contract::{Endpoint, FieldValue as _, SearchStatus, Verdict};
use crate::history::past_prices::{LastAnswer, PastOfPrice};
use crate::ids::ItemId;
use crate::scans::cells::{BestOffer, CellItem, ItemObservation, ScanCell, ScanCells};

fn rule(value: Value) -> Rule {
    Rule::read(&value).unwrap_or_else(|faults| panic!("{value}: {faults}"))
}

fn with_key(rule: Rule) -> (RuleKey, Rule) {
    (rule_key::rule_key(&rule), rule)
}

/// The date of a cell: a day of January 2030.
fn date(place: usize) -> String {
    format!("2030-01-{:02}", place + 1)
}

/// The short name of the cell with this key: `a` for the first date, or the market.
fn cell_name(key: &str) -> String {
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

/// The time of the run with this number.
fn at(number: usize) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + i64::try_from(number).unwrap() * 86_400).unwrap()
}

fn searched(text: &str, position: usize, number: usize) -> CellItem {
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
        "unpriced" => done(SearchStatus::Ok),
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
    let observation = ItemObservation {
        is_implausible: false,
        item: ItemId::new(),
        state,
        search_status,
        reason,
        price,
        offer,
    };
    CellItem {
        position: position.try_into().unwrap(),
        observed_at: Some(at(number)),
        observation,
        is_implausible: second == Some("implausible"),
    }
}

/// A run of a scan over dates.
fn run(text: &str, number: usize) -> RunSnapshot {
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
        ScanCell {
            key: Value::Object(values.clone()).to_string(),
            values,
            items: items.collect(),
        }
    });
    let request = json!({"from_airport": "TLV", "to_airport": "LHR", "currency": "usd"});
    snapshot(ScanCells {
        searched_known_low: true,
        created_at: Timestamp::UNIX_EPOCH,
        endpoint: Endpoint::FlightsOneway,
        request: request.as_object().unwrap().clone(),
        all: cells.collect(),
    })
}

/// A run whose prices have a past that follows from them: the percentile is the price less 150,
/// and the lowest of 30 days was 200; above 1,000 nothing is known. The last complete answer before
/// a price of 300 was empty, before 301 it was not, and before 302 it was empty before all runs.
fn snapshot(cells: ScanCells) -> RunSnapshot {
    let mut run = RunSnapshot::new(cells);
    let items = run.cells.all.iter().flat_map(|cell| &cell.items);
    let past: Vec<_> = items
        .filter_map(|item| {
            let (price, currency) = item.observation.price.as_ref()?;
            let known = currency == "USD" && *price < Decimal::ONE_THOUSAND;
            let past = known.then(|| past_of(*price, item.observed_at?)).flatten();
            Some((item.observation.item, past.unwrap_or_default()))
        })
        .collect();
    run.set_past(past);
    run
}

fn past_of(price: Decimal, seen_at: Timestamp) -> Option<PastOfPrice> {
    let percentile = (price - Decimal::from(150)).clamp(Decimal::ZERO, Decimal::ONE_HUNDRED);
    let verdict = HistoryVerdict {
        class: PriceClass::Typical,
        percentile: percentile.to_f64(),
        n: 100,
        lower: 0,
        higher: 0,
        bin: None,
        since: None,
        sentence: String::new(),
        became_cheaper: None,
        usual: None,
    };
    let hours = |hours| SignedDuration::from_hours(hours);
    let last_answer = match price.to_i64()? {
        300 => Some((seen_at - hours(12), true)),
        301 => Some((seen_at - hours(12), false)),
        302 => Some((at(0) - hours(12), true)),
        _ => None,
    };
    Some(PastOfPrice {
        verdict: Some(verdict),
        lowest: [(30, (Decimal::from(200), at(0)))].into(),
        last_answer: last_answer.map(|(at, is_empty)| LastAnswer { at, is_empty }),
        implausible: None,
    })
}

/// A monitor with one rule, evaluated run by run.
struct TestMonitor {
    rule: Rule,
    states: ScopeStates,
    runs: usize,
    not_comparable: usize,
}

impl TestMonitor {
    fn with(rule: Rule) -> Self {
        Self {
            rule,
            states: ScopeStates::new(),
            runs: 0,
            not_comparable: 0,
        }
    }

    /// The firings of this run.
    fn run(&mut self, run: &RunSnapshot) -> Vec<Firing> {
        self.evaluate(Some(run))
    }

    /// The firings of a slot without a run.
    fn run_missing(&mut self) -> Vec<Firing> {
        self.evaluate(None)
    }

    fn evaluate(&mut self, run: Option<&RunSnapshot>) -> Vec<Firing> {
        let mut firings = RunFirings::default();
        self.states = firings.apply_rule(0, &self.rule, std::mem::take(&mut self.states), run);
        self.runs += 1;
        self.not_comparable += firings.not_comparable;
        firings.fired.in_order()
    }

    /// The rules, as the evaluation takes them.
    fn rules(&self) -> [(RuleKey, Rule); 1] {
        [with_key(self.rule.clone())]
    }

    /// Which states are armed: `yes` or `no` for a whole scan, `a:yes b:no` for cells.
    fn armed(&self) -> String {
        let word = |state: &ScopeState| if state.armed { "yes" } else { "no" };
        if let Some(state) = self.states.get(WHOLE_SCAN) {
            return word(state).to_owned();
        }
        let cells: BTreeMap<_, _> = self
            .states
            .iter()
            .map(|(key, state)| (cell_name(key), word(state)))
            .collect();
        cells
            .iter()
            .map(|(letter, word)| format!("{letter}:{word}"))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// A run of a table: the results, the expected firings (`fires`, or the cells), the armed states
/// after it.
type TableRow = (&'static str, &'static str, &'static str);

/// Runs a table, prints it and asserts its rows.
fn table(title: &str, of: Value, rows: &[TableRow]) -> TestMonitor {
    table_of(title, of, rows, |text, number| Some(run(text, number)))
}

fn table_of(
    title: &str,
    of: Value,
    rows: &[TableRow],
    run: impl Fn(&str, usize) -> Option<RunSnapshot>,
) -> TestMonitor {
    println!(
        "\n{title}: {of}\n{:>4}  {:<44}  {:<16}  {:<7}  armed after",
        "run", "results", "armed before", "fires"
    );
    let mut monitor = TestMonitor::with(rule(of));
    let mut wrong = Vec::new();
    for (number, (seen, fires, armed)) in rows.iter().enumerate() {
        let before = if number == 0 {
            "(new)".to_owned()
        } else {
            monitor.armed()
        };
        let fired = match run(seen, number) {
            Some(run) => monitor.run(&run),
            None => monitor.run_missing(),
        };
        let name = |firing: &Firing| {
            if firing.key.is_empty() {
                "fires".to_owned()
            } else {
                cell_name(&firing.key)
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
