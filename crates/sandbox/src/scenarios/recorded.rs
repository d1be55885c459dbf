//! Recorded prices: a real calendar, played as the sandbox's.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::Path;

use jiff::civil::Date;
use serde::Deserialize;

use super::FareRoute;
use super::bounds::Checked as _;
use super::error::ScenarioError;
use crate::draws::whole;
use crate::world::money::SandboxCurrency;

/// Highest recorded price, in whole units.
const MAX_PRICE: f64 = 1e9;
/// What a line is.
const COLUMNS: &str = "observed_on,origin,destination,departure,price,currency with dates as \
                       2027-01-31, a number or nothing as the price, and an ISO 4217 code";

/// `[recorded]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordedFile {
    /// A CSV file, relative to the scenario's.
    pub(super) file: std::path::PathBuf,
    /// Prices are multiplied by this before they are rounded to whole units.
    #[serde(default = "one")]
    scale: f64,
}

fn one() -> f64 {
    1.0
}

/// Observations of each departure by day, in whole units of one currency; no price: it was looked
/// up and had no offer.
type Observations = BTreeMap<Date, Option<i64>>;

/// Every recorded price.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RecordedPrices {
    routes: BTreeMap<FareRoute, BTreeMap<Date, Observations>>,
    pub(super) currency: &'static SandboxCurrency,
    days: RangeInclusive<Date>,
    /// The greatest relative error of a price that was rounded to whole units.
    pub(super) rounding: f64,
}

/// One line: `observed_on,origin,destination,departure,price,currency`.
#[derive(Deserialize)]
struct RecordedRow {
    observed_on: Date,
    origin: String,
    destination: String,
    departure: Date,
    price: Option<f64>,
    currency: String,
}

impl RecordedPrices {
    /// Reads a CSV file whose header names the columns, in any order; others are ignored. Of two
    /// lines with the same route, departure and day the later one counts.
    pub(super) fn read(recorded: &RecordedFile, folder: &Path) -> Result<Self, ScenarioError> {
        recorded.scale.check("recorded.scale", 0.01..=1_000.0)?;
        let file = &folder.join(&recorded.file);
        let text = std::fs::read(file).map_err(|source| ScenarioError::Unreadable {
            file: file.to_owned(),
            source,
        })?;
        let mut reader = csv::Reader::from_reader(text.as_slice());
        let mut read = None;
        for (number, row) in (2_u64..).zip(reader.deserialize::<RecordedRow>()) {
            let wrong = |column: &str, found: &dyn Display, expected: &str| {
                wrong(file, number, column, found, expected)
            };
            let row = row.map_err(|error| wrong("line", &error, COLUMNS))?;
            let known = SandboxCurrency::find(&row.currency).ok_or_else(|| {
                let expected = format!("one of {}", SandboxCurrency::codes());
                wrong("currency", &row.currency, &expected)
            })?;
            let prices = read.get_or_insert_with(|| Self {
                routes: BTreeMap::new(),
                currency: known,
                days: row.observed_on..=row.observed_on,
                rounding: 0.0,
            });
            if prices.currency != known {
                let expected = format!("{}, as in the lines before", prices.currency.code);
                return Err(wrong("currency", &row.currency, &expected));
            }
            if let Some(price) = row.price
                && !(0.0..=MAX_PRICE).contains(&price)
            {
                let expected = "a number from 0 to 1000000000, or nothing for no offer";
                return Err(wrong("price", &price, expected));
            }
            prices.insert(&row, recorded.scale);
        }
        read.ok_or_else(|| {
            let expected = "at least one line below the header \
                            observed_on,origin,destination,departure,price,currency";
            wrong(file, 1, "observed_on", &"no line", expected)
        })
    }

    fn insert(&mut self, row: &RecordedRow, scale: f64) {
        let price = row.price.map(|price| price * scale);
        if let Some(price) = price.filter(|price| *price > 0.0) {
            self.rounding = self.rounding.max((price.round() / price - 1.0).abs());
        }
        let (first, last) = (*self.days.start(), *self.days.end());
        self.days = first.min(row.observed_on)..=last.max(row.observed_on);
        self.routes
            .entry(FareRoute::new(&row.origin, &row.destination))
            .or_default()
            .entry(row.departure)
            .or_default()
            .insert(row.observed_on, price.map(whole));
    }

    /// The latest observation at or before a day.
    pub(super) fn price(&self, route: &FareRoute, departure: Date, day: Date) -> Option<i64> {
        let observations = self.routes.get(route)?.get(&departure)?;
        *observations.range(..=day).next_back()?.1
    }

    pub(super) fn routes(&self) -> impl Iterator<Item = &FareRoute> {
        self.routes.keys()
    }

    /// The first and the last day with an observation.
    pub(super) fn days(&self) -> RangeInclusive<Date> {
        self.days.clone()
    }
}

fn wrong(
    file: &Path,
    line: u64,
    column: &str,
    found: &dyn Display,
    expected: &str,
) -> ScenarioError {
    ScenarioError::Line {
        file: file.to_owned(),
        line,
        column: column.to_owned(),
        found: found.to_string(),
        expected: expected.to_owned(),
    }
}
