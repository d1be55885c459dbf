//! What each family and effect does, measured in deterministic samples, and faults of files.

mod faults;
mod properties;
mod recorded;

use std::path::Path;
use std::sync::Arc;

use jiff::ToSpan as _;
use jiff::civil::{Date, DateTime, Time, date};

use super::{FareRoute, PriceProcess, Scenario};

const TODAY: Date = date(2027, 3, 1);

fn process(text: &str) -> PriceProcess {
    let scenario = Scenario::parse(text, Path::new(""));
    PriceProcess::new(
        Arc::new(scenario.unwrap_or_else(|error| panic!("{text}: {error}"))),
        1,
    )
}

fn route() -> FareRoute {
    FareRoute::new("STN", "BGY")
}

fn noon(day: Date) -> DateTime {
    day.at(12, 0, 0, 0)
}

fn after(day: Date, days: i64) -> Date {
    day.saturating_add(days.days())
}

/// The shown prices of a departure at noon of consecutive days.
fn series(prices: &PriceProcess, departure: Date, first: Date, count: i64) -> Vec<Option<i64>> {
    let days = first..=after(first, count - 1);
    prices
        .oneway_by_day(&route(), departure, days, Time::midnight() + 12.hours())
        .into_iter()
        .map(|fare| fare.map(|fare| fare.shown))
        .collect()
}
