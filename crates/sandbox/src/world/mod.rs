//! The engines' data: airports, airlines, timetables, fares, currencies, seasons.
//!
//! Pure and seeded: a price depends on the seed, the search and the current date only.

pub(super) mod airlines;
pub(super) mod airports;
pub(super) mod fares;
pub(super) mod money;
pub(super) mod seasons;
pub(super) mod timetable;
