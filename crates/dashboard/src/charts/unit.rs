//! What a number of a chart counts, and how it is written.

use farescan_sheets::numbers;
use rust_decimal::Decimal;

/// What a chart shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit<'a> {
    /// Prices in this ISO currency.
    Money(&'a str),
    /// Differences in percent.
    Percent,
    /// Whole numbers of something.
    Count,
}

impl<'a> Unit<'a> {
    /// A number with its currency, as in a table.
    pub fn label(self, number: Decimal) -> String {
        match self {
            Self::Money(currency) => numbers::price(number, currency),
            Self::Percent => numbers::signed_percent(number),
            Self::Count => numbers::amount(number),
        }
    }

    /// What stands above the vertical axis; its numbers have no currency of their own.
    pub(super) fn name(self) -> Option<&'a str> {
        match self {
            Self::Money(currency) => Some(currency),
            Self::Percent => Some("%"),
            Self::Count => None,
        }
    }

    /// The smallest useful distance between two lines of an axis.
    pub(super) fn smallest_step(self) -> Decimal {
        match self {
            Self::Money(_) => Decimal::new(1, 2),
            Self::Percent => Decimal::new(1, 1),
            Self::Count => Decimal::ONE,
        }
    }
}
