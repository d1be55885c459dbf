//! The engines' data: airports, airlines, timetables, fares, currencies, filters, seasons.
//!
//! Pure and seeded: a price depends on the seed, the search and the current date only.

pub(super) mod airlines;
pub(super) mod airports;
pub(super) mod fares;
pub(super) mod filters;
pub(super) mod money;
pub(super) mod seasons;
pub(super) mod timetable;

/// The rows of a table of this folder. A test reads every table.
pub(super) fn table<Row: serde::de::DeserializeOwned>(csv: &str) -> Vec<Row> {
    let rows = csv::Reader::from_reader(csv.as_bytes()).into_deserialize();
    rows.collect::<Result<_, _>>().expect("a well-formed table")
}
