//! Tables for the terminal: a month of fares as a calendar, one stay from several markets.
//!
//! Pure functions from cells to a table. Colour only repeats what the text shows; a search that
//! found nothing, one that did not complete and one not yet made have different marks.

mod calendar;
mod list;
mod markets;
mod matrix;
mod sparkline;
mod tone;

pub use calendar::{Calendar, CalendarDay};
pub use list::{Column, ListTable};
pub use markets::{MarketRow, MarketTable};
pub use matrix::{Matrix, MatrixAxis, MatrixCell};
pub use sparkline::sparkline;
pub use tone::{Text, Tone};

use rust_decimal::Decimal;

use farescan_contract::SearchStatus;
use farescan_contract::scans::ItemState;

/// The result of one cell's search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellValue {
    /// The cheapest price, in major units.
    Price(Decimal),
    /// A price far off its own history.
    Implausible(Decimal),
    /// The search completed and found nothing.
    Nothing,
    /// The search did not complete: whether there is a price is unknown.
    Unknown,
    /// Not searched: not yet, or never.
    Waiting,
    /// The marketplace refused the search as invalid.
    Refused,
}

impl CellValue {
    /// The value of an item or of a cell that shows one.
    pub fn of(price: Option<Decimal>, state: ItemState, status: Option<SearchStatus>) -> Self {
        match (price, state, status) {
            (Some(price), ..) => Self::Price(price),
            (None, ItemState::Failed, _) => Self::Refused,
            (None, _, None) => Self::Waiting,
            (None, _, Some(SearchStatus::Ok | SearchStatus::Empty)) => Self::Nothing,
            (None, _, Some(SearchStatus::Partial | SearchStatus::Degraded)) => Self::Unknown,
        }
    }

    /// The same, as an implausible price if it is one.
    #[must_use]
    pub fn marked(self, is_implausible: bool) -> Self {
        match self {
            Self::Price(price) if is_implausible => Self::Implausible(price),
            value => value,
        }
    }

    /// The value of several searches without a price: empty only if all of them are, because one
    /// that did not complete or has not run may have a price.
    pub fn without_price(values: impl Iterator<Item = Self>) -> Self {
        let rank = |value: &Self| match value {
            Self::Nothing | Self::Price(_) | Self::Implausible(_) => 0,
            Self::Refused => 1,
            Self::Unknown => 2,
            Self::Waiting => 3,
        };
        values.max_by_key(rank).unwrap_or(Self::Waiting)
    }

    /// The text with the whole price, for a list.
    pub fn exact_text(self) -> Text {
        match self {
            Self::Price(price) => price.normalize().to_string().into(),
            Self::Implausible(price) => Text::new(format!("({})", price.normalize()), self.tone()),
            other => Text::new(other.text(), other.tone()),
        }
    }

    /// What the colour of the cell repeats.
    fn tone(self) -> Tone {
        match self {
            Self::Price(_) => Tone::Plain,
            Self::Unknown => Tone::Warning,
            Self::Refused => Tone::Bad,
            Self::Nothing | Self::Waiting | Self::Implausible(_) => Tone::Quiet,
        }
    }

    /// The text of the cell: prices in whole units.
    fn text(self) -> String {
        match self {
            Self::Price(price) => price.round().normalize().to_string(),
            Self::Implausible(price) => format!("({})", price.round().normalize()),
            Self::Nothing => "–".to_owned(),
            Self::Unknown => "?".to_owned(),
            Self::Waiting => "·".to_owned(),
            Self::Refused => "x".to_owned(),
        }
    }

    fn price(self) -> Option<Decimal> {
        match self {
            Self::Price(price) => Some(price),
            Self::Implausible(_)
            | Self::Nothing
            | Self::Unknown
            | Self::Waiting
            | Self::Refused => None,
        }
    }
}

/// The prices of a table, ascending.
#[derive(Debug)]
struct PriceFifths(Vec<Decimal>);

impl FromIterator<Decimal> for PriceFifths {
    fn from_iter<I: IntoIterator<Item = Decimal>>(prices: I) -> Self {
        let mut prices: Vec<_> = prices.into_iter().collect();
        prices.sort_unstable();
        Self(prices)
    }
}

impl PriceFifths {
    /// The cheapest fifth is green, the dearest fifth red.
    fn tone(&self, price: Decimal) -> Tone {
        let cheaper = self.0.partition_point(|other| *other < price);
        match cheaper * 5 / self.0.len().max(1) {
            0 => Tone::Good,
            4 => Tone::Bad,
            _ => Tone::Plain,
        }
    }
}

/// Explains the marks and, with `colour`, the colours. Each line fits 80 columns.
pub fn legend(colour: bool) -> String {
    let marks = "   * cheapest   – nothing offered   ? did not complete   · not searched";
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
