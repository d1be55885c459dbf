//! What a person reads in the terminal: a month of fares as a calendar, one stay over several markets as a table.
//!
//! Pure: from cells to a table. Numbers stand in the cells and colour is a second signal only; a search that found nothing, one that
//! did not complete and one not yet made have three different marks. Nothing here asks the service or prints.

mod calendar;
mod markets;

pub use calendar::{Calendar, Day};
pub use markets::{Market, Markets};

use rust_decimal::Decimal;

/// What is known of one cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// The cheapest price, in major units.
    Price(Decimal),
    /// The search completed and found nothing.
    Nothing,
    /// The search did not complete: whether there is a price is unknown.
    Unknown,
    /// Not yet searched.
    Waiting,
}

impl Seen {
    /// As it stands in a cell: whole units, as fares are quoted.
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

/// What the marks mean, and the colours where there are some, to print beneath; each line fits a terminal of 80 columns.
pub fn legend(colour: bool) -> String {
    let marks = "   * cheapest   – nothing offered   ? did not complete   · not searched yet";
    let colours = "\n   green: the cheapest fifth   red: the dearest fifth   yellow: incomplete";
    format!("{marks}{}", if colour { colours } else { "" })
}

/// Whether a table may carry colours: the terminal, `NO_COLOR` and the like decide, not the table.
fn styled(table: &mut comfy_table::Table, colour: bool) {
    if colour {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
}

#[cfg(test)]
mod tests;
