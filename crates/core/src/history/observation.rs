//! An observation, and how the observations of an item are found.

use jiff::Timestamp;
use jiff::civil::Date;
use rust_decimal::Decimal;
use serde_json::{Map, Value};

use super::series_key::{SeriesKey, Subject};
use crate::contract::{Endpoint, Request, SearchStatus, Verdict};
use crate::ids::{ItemId, TenantId};

/// The result of one finished attempt: a price or the absence of one. A degraded attempt has no
/// price, so that gaps are visible.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    pub tenant: TenantId,
    /// Item and attempt number identify the observation.
    pub item: ItemId,
    /// Attempt number.
    pub number: i32,
    /// Product and dates.
    pub subject: Subject,
    /// When the answer arrived.
    pub observed_at: Timestamp,
    /// The best price, if any.
    pub best: Option<ObservedPrice>,
    /// Number of results; `None` if there was no answer.
    pub results: Option<i32>,
    /// Status of the search.
    pub status: SearchStatus,
    /// Reason of the status.
    pub reason: Option<String>,
}

/// A price as the marketplace returned it, in major units of the series' currency.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedPrice {
    /// Total price of the journey or stay.
    pub price: Decimal,
    /// Carrier of a fare; room or hotel of a rate.
    pub seller: Option<String>,
    /// Lower bound of the provider's historical price band.
    pub band_low: Option<Decimal>,
    /// Upper bound of the band.
    pub band_high: Option<Decimal>,
    /// The provider's verdict.
    pub verdict: Option<Verdict>,
}

/// Locates an item's observations.
#[derive(Debug, Clone, Copy)]
pub struct ObservedItem {
    pub(super) item: ItemId,
    pub(super) series: SeriesKey,
    pub(super) first_date: Date,
    /// `first_date` for subjects with one date.
    pub(super) last_date: Date,
}

impl ObservedItem {
    /// `None` if the endpoint rejects the body: such an item was never sent.
    pub fn of(item: ItemId, endpoint: &str, body: &Map<String, Value>) -> Option<Self> {
        let checked = Request::check(Endpoint::parse(endpoint)?, body).ok()?;
        let Subject {
            series,
            first_date,
            last_date,
        } = Subject::of(&checked.request)?;
        Some(Self {
            item,
            series: series.key,
            first_date,
            last_date: last_date.unwrap_or(first_date),
        })
    }
}
