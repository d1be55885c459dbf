//! The world that the engines look at: airports, airlines, timetables, fares, currencies, the calendar.
//!
//! Pure and seeded: a price depends on the seed, on what is asked and on the day that "today" is. No requests, keys
//! or faults here; hotels have their own folder beside this one.

pub(super) mod airlines;
pub(super) mod airports;
pub(super) mod fares;
pub(super) mod money;
pub(super) mod seasons;
pub(super) mod timetable;
