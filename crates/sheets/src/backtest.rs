//! What a monitor would have reported, alert by alert.

use farescan_contract::monitors::{Backtest, BacktestAlert};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::numbers::{percent_of, price, signed_percent};
use crate::rule;
use crate::sheet::{Cell, Column, Table, Value};

/// Each alert, with its run in the zone of the schedule.
pub fn table(backtest: &Backtest, zone: &str) -> Table {
    let columns = [
        Column::text("Run"),
        Column::text("Rule").rank(2),
        Column::detail("Condition").rank(4),
        Column::text("Dates"),
        Column::detail("Search").rank(3),
        Column::number("Price"),
        Column::text("Compared with").rank(1),
    ];
    let rows = backtest.alerts.iter().map(|alert| {
        let currency = Some(alert.currency.clone());
        let others = alert.other_values().join(", ");
        let others = (!others.is_empty()).then_some(Value::Text(others));
        let cells = [
            vec![Value::Zoned(alert.slot, zone.to_owned())],
            vec![rule::type_name(alert.rule_type).into()],
            vec![rule::sentence(&alert.rule, currency.as_deref()).into()],
            vec![dates(alert).into()],
            others.into_iter().collect(),
            vec![Value::Money(alert.price, currency)],
            compared_with(alert),
        ];
        (None, cells)
    });
    Table::new("Alerts that would have been sent", columns, rows)
}

fn dates(alert: &BacktestAlert) -> String {
    let first = weekday(alert.first_date);
    let last = alert.last_date.map(weekday);
    last.map_or(first.clone(), |last| format!("{first} – {last}"))
}

fn weekday(date: Date) -> String {
    date.strftime("%a %-d %b %Y").to_string()
}

fn day(at: Timestamp) -> String {
    let date = at.to_zoned(TimeZone::UTC).date();
    date.strftime("%-d %b %Y").to_string()
}

/// The price or the past prices with which the rule compared.
fn compared_with(alert: &BacktestAlert) -> Cell {
    if let Some(verdict) = &alert.history_verdict {
        return vec![Value::Verdict(verdict.clone())];
    }
    if let Some(at) = alert.was_empty_at {
        return vec![Value::Muted(format!("nothing on offer on {}", day(at)))];
    }
    let money = |price| Value::Money(price, Some(alert.currency.clone()));
    let from = alert.reference.as_ref();
    let threshold = alert.threshold;
    let mut cell = match from {
        Some(mark) => vec![
            money(mark.price),
            Value::Muted(format!("of {}", day(mark.at))),
        ],
        None => threshold.map(money).into_iter().collect(),
    };
    let limit = from
        .and(threshold)
        .filter(|limit| from.is_none_or(|mark| mark.price != *limit));
    cell.extend(limit.map(|limit| format!("at most {}", price(limit, &alert.currency)).into()));
    let base = from.map(|mark| mark.price).or(threshold);
    let change = base.and_then(|base| percent_of(alert.price, base));
    cell.extend(change.map(|change| Value::Muted(format!("({})", signed_percent(change)))));
    cell
}
