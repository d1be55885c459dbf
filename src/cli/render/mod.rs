//! Tables for the terminal: a month of fares as a calendar, one stay from several markets.
//!
//! Pure functions from cells to a table. Colour only repeats what the text shows; a search that
//! found nothing, one that did not complete and one not yet made have different marks.

mod calendar;
mod markets;

pub use calendar::{Calendar, CalendarDay};
pub use markets::{MarketRow, MarketTable};

use rust_decimal::Decimal;

/// The result of one cell's search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellValue {
    /// The cheapest price, in major units.
    Price(Decimal),
    /// The search completed and found nothing.
    Nothing,
    /// The search did not complete: whether there is a price is unknown.
    Unknown,
    /// Not yet searched.
    Waiting,
}

impl CellValue {
    /// The text of the cell: prices in whole units.
    fn text(self) -> String {
        match self {
            Self::Price(price) => price.round().normalize().to_string(),
            Self::Nothing => "–".to_owned(),
            Self::Unknown => "?".to_owned(),
            Self::Waiting => "·".to_owned(),
        }
    }

    fn price(self) -> Option<Decimal> {
        match self {
            Self::Price(price) => Some(price),
            Self::Nothing | Self::Unknown | Self::Waiting => None,
        }
    }
}

/// Explains the marks and, with `colour`, the colours. Each line fits 80 columns.
pub fn legend(colour: bool) -> String {
    let marks = "   * cheapest   – nothing offered   ? did not complete   · not searched yet";
    let colours = "\n   green: the cheapest fifth   red: the dearest fifth   yellow: incomplete";
    format!("{marks}{}", if colour { colours } else { "" })
}

/// Makes `colour` decide on styling, not the table's own detection of a terminal.
fn set_styling(table: &mut comfy_table::Table, colour: bool) {
    if colour {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
}

#[cfg(test)]
mod tests;
