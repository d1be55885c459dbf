//! Recorded prices: a real calendar, played as the sandbox's.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;

use jiff::civil::Date;
use serde::Deserialize;

use super::FareRoute;
use super::bounds::check_number;
use super::error::ScenarioError;
use crate::world::money::SandboxCurrency;

/// Highest recorded price, in whole units.
const MAX_PRICE: f64 = 1e9;

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

impl RecordedFile {
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        check_number("recorded.scale", self.scale, 0.01..=1_000.0)
    }
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
        let file = &folder.join(&recorded.file);
        let mut rounding = 0.0_f64;
        let text = std::fs::read(file).map_err(|source| ScenarioError::Unreadable {
            file: file.to_owned(),
            source,
        })?;
        let mut routes = BTreeMap::<_, BTreeMap<_, Observations>>::new();
        let mut currency: Option<&'static SandboxCurrency> = None;
        let mut days: Option<(Date, Date)> = None;
        let mut reader = csv::Reader::from_reader(text.as_slice());
        for (number, row) in (2_u64..).zip(reader.deserialize::<RecordedRow>()) {
            let wrong = |column: &str, found: String, expected: &str| {
                wrong(file, number, column, found, expected)
            };
            let row = row.map_err(|error| unreadable(file, number, &error))?;
            let known = SandboxCurrency::find(&row.currency).ok_or_else(|| {
                let expected = format!("one of {}", SandboxCurrency::codes());
                wrong("currency", row.currency.clone(), &expected)
            })?;
            if let Some(first) = currency.replace(known)
                && first.code != known.code
            {
                let expected = format!("{}, as in the lines before", first.code);
                return Err(wrong("currency", row.currency, &expected));
            }
            if let Some(price) = row.price
                && !(0.0..=MAX_PRICE).contains(&price)
            {
                let expected = "a number from 0 to 1000000000, or nothing for no offer";
                return Err(wrong("price", price.to_string(), expected));
            }
            let price = row.price.map(|price| {
                let scaled = price * recorded.scale;
                if scaled > 0.0 {
                    rounding = rounding.max((scaled.round() / scaled - 1.0).abs());
                }
                whole(scaled)
            });
            let (first, last) = days.unwrap_or((row.observed_on, row.observed_on));
            days = Some((first.min(row.observed_on), last.max(row.observed_on)));
            routes
                .entry(FareRoute::new(&row.origin, &row.destination))
                .or_default()
                .entry(row.departure)
                .or_default()
                .insert(row.observed_on, price);
        }
        let (Some(currency), Some((first, last))) = (currency, days) else {
            let expected = "at least one line below the header \
                            observed_on,origin,destination,departure,price,currency";
            return Err(wrong(
                file,
                1,
                "observed_on",
                "no line".to_owned(),
                expected,
            ));
        };
        Ok(Self {
            routes,
            currency,
            days: first..=last,
            rounding,
        })
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

fn wrong(file: &Path, line: u64, column: &str, found: String, expected: &str) -> ScenarioError {
    ScenarioError::Line {
        file: file.to_owned(),
        line,
        column: column.to_owned(),
        found,
        expected: expected.to_owned(),
    }
}

/// The error of a line that is not a [`RecordedRow`].
fn unreadable(file: &Path, line: u64, error: &csv::Error) -> ScenarioError {
    let expected = "observed_on,origin,destination,departure,price,currency with dates as \
                    2027-01-31, a number or nothing as the price, and an ISO 4217 code";
    wrong(file, line, "line", error.to_string(), expected)
}

/// Prices of the flights engine have no minor units.
#[expect(
    clippy::cast_possible_truncation,
    reason = "at most a thousand times MAX_PRICE"
)]
fn whole(price: f64) -> i64 {
    price.round() as i64
}
