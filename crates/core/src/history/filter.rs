//! The filter of a history query: one type for flights and hotels and for all history routes.

use jiff::Timestamp;
use jiff::civil::Date;

use super::sample::DateFilter;
use crate::contract::Endpoint;

/// Which products and dates a query selects; `None` selects all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// Empty if nothing can match.
    pub(super) endpoints: Vec<Endpoint>,
    /// Destination airport, or name or id of a hotel or place. Names are normalized as by
    /// `place_key`.
    pub(super) place: String,
    /// Departure airport.
    pub(super) origin: Option<String>,
    pub(super) currency: Option<String>,
    pub(super) market: Option<String>,
    pub(super) adults: Option<i64>,
    pub(super) children: Option<i64>,
    /// Range of departure or check-in dates, both ends inclusive.
    pub(super) first_from: Option<Date>,
    pub(super) first_to: Option<Date>,
    /// Return or check-out date.
    pub(super) last_date: Option<Date>,
    /// Range of observation times: `since` inclusive, `until` exclusive.
    pub(super) since: Option<Timestamp>,
    pub(super) until: Option<Timestamp>,
}

impl Filter {
    pub(super) fn endpoints(&self) -> Vec<String> {
        self.endpoints
            .iter()
            .map(|endpoint| endpoint.as_str().to_owned())
            .collect()
    }

    /// The filter on travel or stay dates.
    pub(super) fn dates(&self) -> DateFilter {
        DateFilter::of(self.first_from, self.first_to, self.last_date)
    }
}
