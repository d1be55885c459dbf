//! A price whose past is asked for.

use jiff::Timestamp;
use jiff::civil::Date;
use rust_decimal::Decimal;

use super::series_key::{SeriesKey, Subject};
use crate::contract::Api;

/// A price whose past is asked for. Thousands are in memory at a time, so it holds the key of its
/// product and not the product, which may be long.
#[derive(Debug, Clone, Copy)]
pub struct KnownPrice {
    /// Its product, which names the currency too.
    pub series: SeriesKey,
    /// The API of the product.
    pub api: Api,
    /// Departure or check-in.
    pub first_date: Date,
    /// Return or check-out, if any.
    pub last_date: Option<Date>,
    /// In the currency of the product.
    pub price: Decimal,
    /// When it was found.
    pub seen_at: Timestamp,
    /// What came from this time on is not its past.
    pub before: Timestamp,
}

impl KnownPrice {
    /// A price of a search, about whose past only what came before it is asked; `None` if its
    /// currency is not that of the product: such a price has no history.
    pub fn of(
        subject: &Subject,
        price: Decimal,
        currency: &str,
        seen_at: Timestamp,
    ) -> Option<Self> {
        (subject.series.currency == currency).then_some(Self {
            series: subject.series.key,
            api: subject.series.endpoint.api(),
            first_date: subject.first_date,
            last_date: subject.last_date,
            price,
            seen_at,
            before: seen_at,
        })
    }
}
