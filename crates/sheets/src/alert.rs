//! An alert: the rule that fired, the trip, the price, and the data on which it fired.

use farescan_contract::monitors::{
    Alert, AlertBaseline, Monitor, PriceMark, Rule, RuleScope, RuleState, RuleType,
};
use farescan_contract::scans::ParityVerdict;
use serde_json::{Map, Value as Json};

use crate::draft::plain;
use crate::numbers::{amount, amount_in, counted, percent_of, signed_percent};
use crate::sheet::{Cell, Column, Figure, Link, Row, Section, Sheet, Table, Tone, Value};
use crate::{item, rule, trip};

/// What is known of the monitor that reports.
#[derive(Debug, Clone, Default)]
pub struct Reported {
    /// Its name.
    pub monitor: Option<String>,
    /// The route or hotel and the dates.
    pub trip: Option<String>,
}

impl Reported {
    /// One that was deleted meanwhile has neither. An alert's `cell` has the swept values of its search.
    pub fn of(monitor: Option<&Monitor>, cell: &Map<String, Json>) -> Self {
        let scan = monitor.and_then(|monitor| monitor.scan.read::<Map<String, Json>>().ok());
        Self {
            monitor: monitor.map(|monitor| monitor.name.clone()),
            trip: scan.and_then(|scan| trip::trip(&scan, cell)),
        }
    }
}

/// Stored alerts as rows. One that this program cannot read is still listed.
pub fn table(alerts: &[Json], reported: impl Fn(&Alert) -> Reported) -> Table {
    let columns = [
        Column::text("Fired").rank(1),
        Column::text("Rule"),
        Column::detail("Condition").rank(4),
        Column::text("Trip"),
        Column::number("Price"),
        Column::number("Before").rank(2),
        Column::text("Monitor").rank(3),
    ];
    let rows = alerts.iter().map(|stored| {
        let Ok(alert) = serde_json::from_value::<Alert>(stored.clone()) else {
            let mut cells = <[Cell; 7]>::default();
            cells[0].push("Of another version".into());
            cells[1].push("an unknown rule".into());
            return (link(stored), cells);
        };
        let of = reported(&alert);
        let before = alert.before.as_ref().map(|mark| money(&alert, mark.price));
        let cells = [
            vec![Value::Time("", alert.fired_at)],
            kind(&alert),
            vec![title(&alert).into()],
            vec![of.trip.unwrap_or_else(|| cell_words(&alert)).into()],
            vec![price(&alert)],
            before.into_iter().collect(),
            vec![Value::Link(Link::Monitor(alert.monitor_id), of.monitor)],
        ];
        (Some(Link::Alert(alert.id)), cells)
    });
    Table::new("Alerts", columns, rows)
}

/// The link to a stored alert.
pub fn link(stored: &Json) -> Option<Link> {
    let id = stored.get("id")?.as_str()?;
    Some(Link::Alert(id.parse().ok()?))
}

/// The rule as a sentence; one of another version by its type alone.
pub fn title(alert: &Alert) -> String {
    Rule::read(&alert.rule).map_or_else(
        |_| trip::words(&alert.rule_type),
        |rule| rule::sentence(&rule, alert.currency.as_deref()),
    )
}

/// The type of the rule, and whether one more search has found the price.
fn kind(alert: &Alert) -> Cell {
    let name = alert.rule_type.parse().map(rule::type_name);
    let name = name.map_or_else(|_| trip::words(&alert.rule_type), str::to_owned);
    let word = Value::Word(Tone::Good, "confirmed".to_owned());
    let confirmed = alert.confirmed_at.map(|_| word);
    std::iter::once(name.into()).chain(confirmed).collect()
}

/// The swept values of the alert's search: `departure date 2027-01-14`.
pub fn cell_words(alert: &Alert) -> String {
    let values = alert.cell.iter();
    let words = values.map(|(name, of)| format!("{} {}", trip::words(name), plain(of)));
    words.collect::<Vec<_>>().join(", ")
}

pub fn price(alert: &Alert) -> Value {
    let price = alert.price.map(|price| money(alert, price));
    price.unwrap_or(Value::Absent("no price"))
}

fn money(alert: &Alert, price: rust_decimal::Decimal) -> Value {
    Value::Money(price, alert.currency.clone())
}

/// An alert with its data. `Reported` names what it is of.
pub fn sheet(alert: &Alert, reported: Reported) -> Sheet {
    let trip = reported.trip.unwrap_or_else(|| cell_words(alert));
    let monitor = Value::Link(Link::Monitor(alert.monitor_id), reported.monitor);
    let fired = Value::Time("fired", alert.fired_at);
    let facts = [Value::Strong(trip), fired, monitor];
    let is_named = |fact: &Value| *fact != Value::Strong(String::new());
    Sheet {
        title: title(alert),
        facts: facts.into_iter().filter(is_named).collect(),
        figures: figures(alert),
        sections: vec![evidence(alert), state(alert)],
        ..Sheet::default()
    }
}

fn figures(alert: &Alert) -> Vec<Figure> {
    let mut found = Figure::new("Price", price(alert));
    let observed = alert.observed_at.map(|at| Value::Time("found", at));
    found.notes.extend(observed);
    let before = match &alert.before {
        Some(mark) => {
            Figure::new("Before", money(alert, mark.price)).note(Value::Time("", mark.at))
        }
        None => Figure::new("Before", Value::Absent("–")).note("the first price"),
    };
    let base = alert.price.zip(alert.before.as_ref());
    let change = base.and_then(|(price, before)| percent_of(price, before.price));
    let change = change.map(|percent| signed_percent(percent).into());
    let change = Figure::new("Change", change.unwrap_or(Value::Absent("–")));
    let mut compared = Figure::new("Compared with", threshold(alert));
    if let Some(mark) = &alert.reference {
        let from = format!("from {}", amount_in(mark.price, alert.currency.as_deref()));
        compared = compared.note(from).note(Value::Time("", mark.at));
    }
    vec![found, before, change, compared]
}

/// The compared value, in its unit.
fn threshold(alert: &Alert) -> Value {
    let Some(threshold) = alert.threshold else {
        return Value::Absent("–");
    };
    match alert.rule_type.parse() {
        Ok(RuleType::ParityGapPercent) => format!("{} %", threshold.normalize()).into(),
        Ok(RuleType::PercentileAtMost) => format!("percentile {}", threshold.normalize()).into(),
        Ok(RuleType::Stale) => counted(u64::try_from(threshold).unwrap_or_default(), "run").into(),
        _ => money(alert, threshold),
    }
}

fn evidence(alert: &Alert) -> Section {
    fn pair<T>(label: &'static str, of: Option<T>, to: impl Fn(T) -> Value) -> Option<Figure> {
        of.map(|of| Figure::new(label, to(of)))
    }
    let time = |at| Value::Time("", at);
    let link = |link| Value::Link(link, None);
    let search = alert.item_id.map(|item| {
        let mut search = Figure::new("Search", link(Link::Item(item)));
        search.notes.extend(alert.search_status.map(item::status));
        search
    });
    let slot = Figure::new("Slot", time(alert.slot)).note(format!("({})", alert.slot_kind));
    let currency = alert.currency.as_deref();
    let band = alert.price_insights_low.zip(alert.price_insights_high);
    let band = band.map(|(low, high)| format!("{} to {}", amount(low), amount_in(high, currency)));
    let searched = alert.searched.as_ref().map(|of| {
        let complete = format!("{} of {} complete", of.answered, of.searches);
        format!(
            "{complete}, {} partial, {} degraded",
            of.partial, of.degraded
        )
    });
    let offer = alert.buy_link.as_ref().or(alert.link.as_ref());
    let offer = offer.filter(|link| link.starts_with("https://")).cloned();
    let found_first = alert.found_first.as_ref();
    let figures = [
        search,
        pair("Run", alert.scan_id, |scan| link(Link::Scan(scan))),
        Some(slot),
        pair("Room", alert.room.clone(), Value::Text),
        pair("Provider's usual range", band, Value::Text),
        pair("Provider's verdict", alert.verdict, |word| {
            word.as_str().into()
        }),
        pair("Past prices", alert.history_verdict.clone(), Value::Verdict),
        found_first.map(|first| {
            Figure::new("Found first", money(alert, first.price)).note(time(first.at))
        }),
        pair("Confirmed", alert.confirmed_at, |at| {
            Value::Time("by one more search", at)
        }),
        pair("Plan", alert.plan.as_ref(), |plan| plan.sentence().into()),
        pair("Last without offers", alert.was_empty_at, time),
        alert.baseline.as_ref().map(|of| baseline(alert, of)),
        pair("Searches of the run", searched, Value::Text),
        pair("Book", offer, |url| {
            Value::Link(Link::Offer(url), Some("Open the offer".to_owned()))
        }),
        pair("Held", alert.notify_at, |at| Value::Time("until", at)),
        pair("Sent with", alert.delivery_id, |id| {
            link(Link::Delivery(id))
        }),
    ];
    Section {
        title: "Evidence",
        figures: figures.into_iter().flatten().collect(),
        ..Section::default()
    }
}

/// The baseline market, and whether the difference is more than noise.
fn baseline(alert: &Alert, of: &AlertBaseline) -> Figure {
    let market = of.proxy_country.to_uppercase();
    let price = of.price.map(|price| money(alert, price));
    let prices = alert
        .price
        .zip(of.price)
        .filter(|_| of.difference.is_some());
    let percent = prices.and_then(|(price, base)| percent_of(price, base));
    let difference =
        percent.map(|percent| format!("difference {}", signed_percent(percent)).into());
    let (tone, word) = match of.verdict {
        ParityVerdict::Gap => (Tone::Warn, "gap"),
        ParityVerdict::Noise => (Tone::Plain, "noise"),
        ParityVerdict::Insufficient => (Tone::Plain, "too few prices"),
        ParityVerdict::NotComparable => (Tone::Plain, "not comparable"),
    };
    let verdict = Value::Word(tone, word.to_owned());
    let samples = format!("{} prices against {}", of.samples, of.baseline_samples);
    let mut figure = Figure::new("Baseline market", market);
    let notes = price.into_iter().chain(difference);
    figure
        .notes
        .extend(notes.chain([verdict, Value::Muted(samples)]));
    figure
}

/// What the rule remembered before and after.
fn state(alert: &Alert) -> Section {
    let judged = match alert.scope {
        RuleScope::Cell => "each date or market alone",
        RuleScope::Scan => "the best price of the run",
    };
    let mark = |mark: Option<&PriceMark>| {
        mark.map(|mark| vec![money(alert, mark.price), Value::Time("", mark.at)])
    };
    let word = |is: bool| vec![Value::from(if is { "yes" } else { "no" })];
    let rows = [
        row("Waits for it", alert, |state| Some(word(state.armed))),
        row("Lowest", alert, |state| mark(state.lowest.as_ref())),
        row("Last told at", alert, |state| {
            mark(state.last_fired.as_ref())
        }),
        row("Had a price", alert, |state| state.had_price.map(word)),
        row("Runs without an answer", alert, |state| {
            let runs = state.runs_without_answer?;
            Some(vec![Value::Count(runs.into())])
        }),
    ];
    Section {
        title: "The rule",
        sentence: Some(format!("{}, judged by {judged}", title(alert))),
        table: Some(Table {
            name: "State of the rule",
            columns: ["State", "Before", "After"].map(Column::text).into(),
            rows: rows.into_iter().flatten().collect(),
        }),
        ..Section::default()
    }
}

/// A value of the states before and after; none if neither has it.
fn row(name: &str, alert: &Alert, value: impl Fn(&RuleState) -> Option<Cell>) -> Option<Row> {
    let (before, after) = (value(&alert.state_before), value(&alert.state_after));
    (before.is_some() || after.is_some()).then(|| Row {
        of: None,
        cells: vec![
            vec![name.into()],
            before.unwrap_or_default(),
            after.unwrap_or_default(),
        ],
    })
}
