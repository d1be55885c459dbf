//! What a monitor would have reported on past prices.

use farescan_contract::monitors::{Backtest, BacktestAlert, BacktestCeiling};
use jiff::civil::Date;
use serde_json::{Map, Value as Json};

use crate::alert::{ComparedPrice, day};
use crate::numbers::{count, counted, request_range};
use crate::rule;
use crate::sheet::{Column, Figure, Notice, Section, Table, Value, cell};

/// The replay of the monitor that a body describes.
pub fn of_body(found: &Backtest, body: &Map<String, Json>) -> Section {
    let part = |object: &str, name: &str| body.get(object)?.get(name);
    let zone = part("schedule", "timezone").and_then(Json::as_str);
    let rules = body.get("alerts").and_then(Json::as_array);
    let is_watch = part("scan", "strategy").is_some_and(|of| of.get("watch").is_some());
    section(
        found,
        zone.unwrap_or("UTC"),
        rules.map_or(0, Vec::len),
        is_watch,
    )
}

/// The replay of a monitor with so many rules, its runs in the zone of its schedule.
pub fn section(found: &Backtest, zone: &str, rules: usize, is_watch: bool) -> Section {
    let days = count(found.days_with_prices);
    let searches = counted(found.searches, "search");
    let searches = format!(
        "{} of {searches} have one",
        count(found.searches_with_prices)
    );
    let slots = counted(found.slots, "slot");
    let slots = (found.runs < found.slots).then(|| format!("of {slots}"));
    let range = format!("{} to {}", day(found.since), day(found.until));
    let prices = Figure::new("Days with prices", days).note(searches);
    let runs = Figure::new("Runs", count(found.runs)).note(range);
    let mut notices: Vec<_> = found
        .not_replayed
        .iter()
        .map(|rule| {
            let name = rule::type_name(rule.rule_type);
            Notice::warning(
                format!("{name} is not replayed:"),
                format!("{}.", rule.reason),
            )
        })
        .collect();
    let months = found.failed.iter().chain(&found.monthly_ceiling);
    notices.extend(months.map(without_run));
    if is_watch && found.fired > 0 {
        let text = "The watch searches fewer dates in each run, so it may report less.";
        notices.push(Notice::warning(
            "Every date with a stored price is replayed.",
            text,
        ));
    }
    Section {
        sentence: why_none(found, rules)
            .map(str::to_owned)
            .or_else(|| rest(found)),
        notices,
        figures: vec![
            Figure::new("Alerts", count(found.fired)),
            prices.unit(Some(format!("of {}", count(found.days)))),
            runs.unit(slots),
            Figure::new("They would have cost", request_range(found.requests))
                .note("this replay: none"),
        ],
        table: Some(table(&found.alerts, zone)),
        ..Section::new("On past prices")
    }
}

fn without_run(month: &BacktestCeiling) -> Notice {
    let slots = counted(month.slots, "slot");
    let lead = format!("{slots} without a run from {}:", day(month.slot));
    Notice::warning(lead, format!("{}.", month.reason))
}

/// Why there is no alert.
fn why_none(found: &Backtest, rules: usize) -> Option<&'static str> {
    if found.slots == 0 {
        return Some("The schedule has no run in this time.");
    }
    if rules == 0 {
        return Some("The monitor has no rule, so it reports nothing.");
    }
    if found.days_with_prices == 0 {
        return Some(
            "Your history has no price of these searches in this time, so there is nothing to replay. Scans and the runs of monitors fill it; dates relative to a run, such as +7d, need prices of many departures.",
        );
    }
    (found.fired == 0).then_some("No rule would have fired.")
}

/// That the alerts are not all.
fn rest(found: &Backtest) -> Option<String> {
    let shown = found.alerts.len() as u64;
    let (shown, fired) =
        (shown < found.fired.into()).then(|| (count(shown), count(found.fired)))?;
    Some(format!(
        "These are the first {shown} of {fired}. A stricter rule would report less often."
    ))
}

fn table(alerts: &[BacktestAlert], zone: &str) -> Table {
    let columns = [
        Column::text("Run"),
        Column::text("Rule"),
        Column::text("Dates"),
        Column::detail("Search").rank(2),
        Column::number("Price"),
        Column::text("Compared with").rank(1),
    ];
    let rows = alerts.iter().map(|alert| {
        let currency = Some(alert.currency.clone());
        let others = alert.other_values().join(", ");
        let cells = [
            vec![Value::Zoned(alert.slot, zone.to_owned())],
            vec![rule::sentence(&alert.rule, currency.as_deref()).into()],
            vec![dates(alert).into()],
            cell([(!others.is_empty()).then_some(others.into())]),
            vec![Value::Money(alert.price, currency)],
            ComparedPrice::from(alert).cell(),
        ];
        (None, cells)
    });
    Table::new("Alerts that would have been sent", columns, rows)
}

fn dates(alert: &BacktestAlert) -> String {
    let day = |date: Date| date.strftime("%a %-d %b %Y").to_string();
    let dates = std::iter::once(alert.first_date).chain(alert.last_date);
    dates.map(day).collect::<Vec<_>>().join(" – ")
}
