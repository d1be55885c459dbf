//! An alert: the rule that fired, the trip, the price, and the data on which it fired.

use farescan_contract::history_verdict::HistoryVerdict;
use farescan_contract::ids::AlertId;
use farescan_contract::monitors::relative_dates::resolve_dates;
use farescan_contract::monitors::{
    Alert, BacktestAlert, Monitor, PriceMark, Rule, RuleScope, RuleState, RuleType,
};
use farescan_contract::scans::ParityVerdict;
use farescan_contract::{FieldValue as _, Verdict};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rust_decimal::Decimal;
use serde_json::{Map, Value as Json};

use crate::numbers::{amount, amount_in, counted, percent_of, signed_percent};
use crate::sheet::{
    Cell, Column, Figure, Link, Section, Sheet, Table, TableRow, Tone, Value, cell,
};
use crate::{item, parity, rule, trip, usage};

/// What is known of an alert beside itself.
#[derive(Debug, Clone, Default)]
pub struct Reported {
    /// The name of its monitor.
    pub monitor: Option<String>,
    /// The route or hotel and the dates.
    pub trip: Option<String>,
    /// The fare of its price: airline, times, duration, stops.
    pub fare: Option<String>,
}

impl Reported {
    /// Of a monitor and the swept values of a search of it. One that was deleted has neither.
    pub fn of(monitor: Option<&Monitor>, swept: &Map<String, Json>) -> Self {
        let scan = monitor.and_then(|monitor| monitor.scan.read::<Map<String, Json>>().ok());
        Self {
            monitor: monitor.map(|monitor| monitor.name.clone()),
            trip: scan.and_then(|scan| trip::trip(&scan, swept)),
            fare: None,
        }
    }

    /// Of a monitor and an alert of it, with the dates of the alert's run (monitors.md, rule 5). A monitor
    /// that has changed since the run's slot, a whole second, may look at another trip: that has none.
    pub fn of_alert(monitor: Option<&Monitor>, alert: &Alert) -> Self {
        let is_same = |of: &&Monitor| of.updated_at.as_second() <= alert.slot.as_second();
        let trip = monitor.filter(is_same).and_then(|monitor| {
            let scan: Map<String, Json> = monitor.scan.read().ok()?;
            let zone = TimeZone::get(&monitor.schedule.timezone).ok()?;
            let scan = resolve_dates(&scan, alert.slot.to_zoned(zone).date());
            trip::trip(&scan, &alert.cell)
        });
        Self {
            monitor: monitor.map(|monitor| monitor.name.clone()),
            trip,
            fare: None,
        }
    }
}

/// Stored alerts as rows. One that this program cannot read is still listed.
pub fn table(alerts: &[Json], reported: impl Fn(&Alert) -> Reported) -> Table {
    let columns = [
        Column::text("Fired").rank(1),
        Column::text("Rule"),
        Column::text("Trip"),
        Column::number("Price"),
        Column::text("Compared with").rank(2),
        Column::text("Monitor").rank(3),
    ];
    let rows = alerts.iter().map(|stored| {
        let Ok(alert) = serde_json::from_value::<Alert>(stored.clone()) else {
            let mut cells = <[Cell; 6]>::default();
            cells[0].push(OTHER_VERSION.into());
            return (link(stored), cells);
        };
        let of = reported(&alert);
        let confirmed = alert.confirmed_at;
        let cells = [
            vec![Value::at(alert.fired_at)],
            cell([
                Some(title(&alert).into()),
                confirmed.map(|_| Value::word(Tone::Good, "confirmed")),
            ]),
            vec![of.trip.unwrap_or_else(|| swept(&alert)).into()],
            vec![price(&alert)],
            compared(&alert),
            vec![Value::Link(Link::of(alert.monitor_id), of.monitor)],
        ];
        (Some(Link::of(alert.id)), cells)
    });
    Table::new("Alerts", columns, rows)
}

pub(crate) const OTHER_VERSION: &str = "An alert of another version";

/// The link to a stored alert.
fn link(stored: &Json) -> Option<Link> {
    let id: AlertId = stored.get("id")?.as_str()?.parse().ok()?;
    Some(Link::of(id))
}

/// A stored alert in a line.
pub fn line(stored: &Json) -> Cell {
    let link = |name: &str| link(stored).map(|to| Value::Link(to, Some(name.to_owned())));
    let Ok(alert) = serde_json::from_value::<Alert>(stored.clone()) else {
        return cell([link(OTHER_VERSION)]);
    };
    let price = price(&alert);
    let swept = Value::Muted(swept(&alert));
    let fired = Value::at(alert.fired_at);
    cell([link(&title(&alert)), Some(price), Some(swept), Some(fired)])
}

/// The rule as a sentence; one of another version by its type and its other fields.
pub fn title(alert: &Alert) -> String {
    if let Ok(rule) = Rule::read(&alert.rule) {
        return rule::sentence(&rule, alert.currency.as_deref());
    }
    let fields = alert.rule.as_object().into_iter().flatten();
    let fields = fields.filter(|(name, _)| *name != "type");
    let fields = fields.map(|(name, value)| trip::field_text(name, value));
    let words = std::iter::once(trip::words(&alert.rule_type)).chain(fields);
    words.collect::<Vec<_>>().join(", ")
}

/// The swept values of the alert's search.
pub(crate) fn swept(alert: &Alert) -> String {
    let words = alert.cell.iter();
    let words = words.map(|(name, value)| trip::field_text(name, value));
    words.collect::<Vec<_>>().join(", ")
}

fn price(alert: &Alert) -> Value {
    let price = alert.price.map(|price| money(alert, price));
    price.unwrap_or(Value::Absent("no price"))
}

fn money(alert: &Alert, price: Decimal) -> Value {
    Value::Money(price, alert.currency.clone())
}

/// What a price that fired a rule was compared with, in an alert or a backtest.
pub(crate) struct ComparedPrice<'a> {
    pub rule: Option<RuleType>,
    pub price: Option<Decimal>,
    pub currency: Option<&'a str>,
    pub threshold: Option<Decimal>,
    pub reference: Option<&'a PriceMark>,
    pub was_empty_at: Option<Timestamp>,
    pub verdict: Option<&'a HistoryVerdict>,
}

impl<'a> From<&'a BacktestAlert> for ComparedPrice<'a> {
    fn from(alert: &'a BacktestAlert) -> Self {
        Self {
            rule: Some(alert.rule_type),
            price: Some(alert.price),
            currency: Some(&alert.currency),
            threshold: alert.threshold,
            reference: alert.reference.as_ref(),
            was_empty_at: alert.was_empty_at,
            verdict: alert.history_verdict.as_ref(),
        }
    }
}

impl ComparedPrice<'_> {
    /// `200 USD of 3 Nov 2026 (−7.5 %)`: the price or past prices by which the rule decided.
    pub(crate) fn cell(&self) -> Cell {
        let threshold = self.threshold;
        match self.rule {
            Some(RuleType::PercentileAtMost) => {
                let most = threshold.map(|most| format!("percentile {}", most.normalize()).into());
                return cell([self.verdict.cloned().map(Value::Verdict).or(most)]);
            }
            Some(RuleType::Stale) => {
                let runs = threshold.and_then(|runs| u64::try_from(runs).ok());
                return cell([runs.map(|runs| counted(runs, "run").into())]);
            }
            _ => {}
        }
        if let Some(at) = self.was_empty_at {
            return vec![Value::Muted(format!("nothing on offer on {}", day(at)))];
        }
        let money = |price| Value::Money(price, self.currency.map(str::to_owned));
        let base = self.reference.map(|mark| mark.price).or(threshold);
        let of = self.reference.map(|mark| format!("of {}", day(mark.at)));
        let most = threshold.filter(|threshold| base != Some(*threshold));
        let change = self.price.zip(base);
        let change = change.and_then(|(price, base)| percent_of(price, base));
        cell([
            base.map(money),
            of.map(Value::Muted),
            most.map(|most| format!("at most {}", amount_in(most, self.currency)).into()),
            change.map(|change| Value::Muted(format!("({})", signed_percent(change)))),
        ])
    }
}

/// `3 Nov 2026` for the day of UTC.
pub(crate) fn day(at: Timestamp) -> String {
    let date = at.to_zoned(TimeZone::UTC).date();
    date.strftime("%-d %b %Y").to_string()
}

/// By which price or market the rule decided.
fn compared(alert: &Alert) -> Cell {
    if let Some(gap) = gap(alert).or_else(|| alert.markets.as_ref().map(parity::summary)) {
        return vec![gap.into()];
    }
    let compared = ComparedPrice {
        rule: alert.rule_type.parse().ok(),
        price: alert.price,
        currency: alert.currency.as_deref(),
        threshold: alert.threshold,
        reference: alert.reference.as_ref(),
        was_empty_at: alert.was_empty_at,
        verdict: alert.history_verdict.as_ref(),
    };
    compared.cell()
}

/// How far the price of a market is from that of the baseline market: `DE is 12.5 % below US, 200 USD`.
pub fn gap(alert: &Alert) -> Option<String> {
    let of = alert.baseline.as_ref()?;
    let (price, base) = (alert.price?, of.price?);
    let percent = percent_of(price, base).filter(|_| of.difference.is_some())?;
    let market = alert.cell.get("proxy_country").and_then(Json::as_str);
    let market = market.map_or_else(|| "Its market".to_owned(), str::to_uppercase);
    let side = if price < base { "below" } else { "above" };
    let percent = signed_percent(percent.abs());
    let percent = percent.trim_start_matches('+');
    let baseline = of.proxy_country.to_uppercase();
    let base = amount_in(base, alert.currency.as_deref());
    Some(format!("{market} is {percent} {side} {baseline}, {base}"))
}

/// An alert with its data. What it found is the title, where the trip is known: `TLV → LHR, 27 Jan 2027: 142 USD`.
pub fn sheet(alert: &Alert, reported: Reported) -> Sheet {
    let monitor = Value::Link(Link::of(alert.monitor_id), reported.monitor.clone());
    let fired = Value::Time("fired", alert.fired_at);
    let found = Figure::new("Price", price(alert));
    let observed = alert.observed_at.map(|at| Value::Time("found", at));
    let mut compared = compared(alert).into_iter();
    let base = compared.next().unwrap_or(Value::Absent("–"));
    let compared = Figure::new("Compared with", base).notes(compared);
    // A report is of all dates and markets of its monitor.
    let subject = match (&alert.markets, reported.trip) {
        (Some(_), _) => reported.monitor.clone(),
        (None, trip) => trip,
    };
    let (title, about) = match subject {
        Some(subject) if alert.price.is_some() || alert.markets.is_some() => {
            (format!("{subject}: {}", outcome(alert)), title(alert))
        }
        Some(subject) => (title(alert), subject),
        None => (title(alert), swept(alert)),
    };
    let about = Some(about).filter(|about| !about.is_empty());
    Sheet {
        title,
        facts: cell([about.map(Value::Strong), Some(fired), Some(monitor)]),
        figures: vec![found.notes(observed), compared],
        sections: alert
            .markets
            .as_ref()
            .map(parity::section)
            .into_iter()
            .chain([evidence(alert, reported.fare)])
            .chain((!is_report(alert)).then(|| state(alert)))
            .collect(),
        ..Sheet::default()
    }
}

/// What a report says, the price, or what happened without one.
pub fn outcome(alert: &Alert) -> String {
    if let Some(report) = &alert.markets {
        return parity::summary(report);
    }
    match alert.price {
        Some(price) => amount_in(price, alert.currency.as_deref()),
        None if is_report(alert) => "no price".to_owned(),
        None => title(alert),
    }
}

/// Where the trip of an alert is booked.
pub fn offer(alert: &Alert) -> Option<&str> {
    let offer = alert.buy_link.as_deref().or(alert.link.as_deref());
    offer.filter(|link| link.starts_with("https://"))
}

/// Whether it says what a run found, and not that something happened: its rule has no state that changes.
pub fn is_report(alert: &Alert) -> bool {
    alert.rule_type == RuleType::EveryRun.as_str()
}

fn evidence(alert: &Alert, fare: Option<String>) -> Section {
    let mark = |label, mark: &Option<PriceMark>| {
        let mark = mark.as_ref()?;
        Some(Figure::new(label, money(alert, mark.price)).note(Value::at(mark.at)))
    };
    let link = |to| Value::Link(to, None);
    let search = Figure::of("Search", alert.item_id.map(|item| link(Link::of(item))));
    let status = alert.search_status;
    let status = status.map(|status| Value::word(item::search_tone(status), status.as_str()));
    let slot = Figure::new("Slot", Value::at(alert.slot)).note(alert.slot_kind.as_str());
    let band = alert.price_insights_low.zip(alert.price_insights_high);
    let currency = alert.currency.as_deref();
    let band = band.map(|(low, high)| format!("{} to {}", amount(low), amount_in(high, currency)));
    let searched = alert.searched.as_ref().map(|of| {
        let complete = format!("{} of {} complete", of.answered, of.searches);
        format!(
            "{complete}, {} partial, {} degraded",
            of.partial, of.degraded
        )
    });
    let offer = offer(alert).map(|url| Link::Offer(url.to_owned()));
    let offer = offer.map(|to| Value::Link(to, Some("Open the offer".to_owned())));
    let past = alert.history_verdict.clone().map(Value::Verdict);
    let confirmed = alert.confirmed_at;
    let confirmed = confirmed.map(|at| Value::Time("by one more search", at));
    let figures = [
        search.map(|search| search.notes(status)),
        Figure::of("Run", alert.scan_id.map(|scan| link(Link::of(scan)))),
        Some(slot),
        mark("The run before", &alert.before),
        Figure::of("Room", alert.room.clone()),
        Figure::of("Flight", fare),
        Figure::of("Provider's usual range", band),
        Figure::of("Provider's verdict", alert.verdict.map(Verdict::as_str)),
        Figure::of("Past prices", past),
        mark("Found first", &alert.found_first),
        Figure::of("Confirmed", confirmed),
        Figure::of("Plan", alert.plan.as_ref().map(usage::forecast)),
        Figure::of("Last without offers", alert.was_empty_at.map(Value::at)),
        parity(alert),
        Figure::of("Searches of the run", searched),
        Figure::of("Book", offer),
        Figure::of("Held", alert.notify_at.map(|at| Value::Time("until", at))),
        Figure::of("Sent with", alert.delivery_id.map(|id| link(Link::of(id)))),
    ];
    Section {
        figures: figures.into_iter().flatten().collect(),
        ..Section::new("Evidence")
    }
}

/// The baseline market, and whether the difference is more than noise.
fn parity(alert: &Alert) -> Option<Figure> {
    let of = alert.baseline.as_ref()?;
    let (tone, word) = match of.verdict {
        ParityVerdict::Gap => (Tone::Warn, "gap"),
        ParityVerdict::Noise => (Tone::Plain, "noise"),
        ParityVerdict::Insufficient => (Tone::Plain, "too few prices"),
        ParityVerdict::NotComparable => (Tone::Plain, "not comparable"),
    };
    let figure = Figure::new("Baseline market", of.proxy_country.to_uppercase());
    let samples = format!("{} prices against {}", of.samples, of.baseline_samples);
    Some(figure.notes(cell([
        of.price.map(|price| money(alert, price)),
        Some(Value::word(tone, word)),
        Some(samples.into()),
    ])))
}

/// What the rule remembered before and after.
fn state(alert: &Alert) -> Section {
    let judged = match alert.scope {
        RuleScope::Cell => "each date or market alone",
        RuleScope::Scan => "the best price of the run",
    };
    let mark = |mark: Option<&PriceMark>| {
        mark.map(|mark| vec![money(alert, mark.price), Value::at(mark.at)])
    };
    let word = |is: bool| vec![Value::from(if is { "yes" } else { "no" })];
    // A value of the states before and after; none if neither has it.
    let row = |name: &str, value: &dyn Fn(&RuleState) -> Option<Cell>| {
        let cells = [&alert.state_before, &alert.state_after].map(value);
        let [before, after] = &cells;
        before.as_ref().or(after.as_ref())?;
        let [before, after] = cells.map(Option::unwrap_or_default);
        Some(TableRow {
            of: None,
            cells: vec![vec![name.into()], before, after],
        })
    };
    let runs = |state: &RuleState| state.runs_without_answer.map(u64::from);
    let rows = [
        row("Ready to alert", &|state| Some(word(state.armed))),
        row("Lowest", &|state| mark(state.lowest.as_ref())),
        row("Price of its last alert", &|state| {
            mark(state.last_fired.as_ref())
        }),
        row("Had a price", &|state| state.had_price.map(word)),
        row("Runs without an answer", &|state| {
            Some(vec![Value::Count(runs(state)?)])
        }),
    ];
    Section {
        sentence: Some(format!("{}, judged by {judged}.", title(alert))),
        table: Some(Table {
            name: "State of the rule",
            columns: ["State", "Before", "After"].map(Column::text).into(),
            rows: rows.into_iter().flatten().collect(),
        }),
        ..Section::new("The rule")
    }
}
