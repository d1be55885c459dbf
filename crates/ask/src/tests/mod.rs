//! The page `words.md` is run as a test; properties hold for any text.

mod page;
mod properties;
mod watches;

use jiff::civil::{Date, date};

/// The day of the examples: a Tuesday.
const TODAY: Date = date(2026, 11, 24);
