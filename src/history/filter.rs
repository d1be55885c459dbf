//! The filter of a history query: one type for flights and hotels and for all history routes.

use jiff::Timestamp;
use jiff::civil::Date;

use super::sample::DateFilter;
use crate::contract::Endpoint;
use crate::contract::history::{FlightHistoryQuery, HotelHistoryQuery};
use crate::contract::history_grid::{FlightGridQuery, FlightSide, HotelGridQuery};
use crate::contract::latest::{FlightLatestQuery, HotelLatestQuery};
use crate::contract::primitives::{Airport, FreeText, HotelBookingId};
use crate::contract::series::{FlightSeriesQuery, HotelSeriesQuery};

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

    /// Flights of a route. A return date selects round trips only.
    fn route(from: &Airport, to: &Airport, return_date: Option<Date>) -> Self {
        let endpoints = match return_date {
            None => vec![Endpoint::FlightsOneway, Endpoint::FlightsRoundtrip],
            Some(_) => vec![Endpoint::FlightsRoundtrip],
        };
        let (origin, place) = (Some(from.as_str().to_owned()), to.as_str().to_owned());
        Self {
            endpoints,
            origin,
            place,
            last_date: return_date,
            ..Self::default()
        }
    }

    /// Hotel stays. The contract guarantees exactly one subject.
    fn stays(
        name: Option<&FreeText>,
        destination: Option<&FreeText>,
        id: Option<&HotelBookingId>,
    ) -> Self {
        let (endpoint, place) = match (name, destination, id) {
            (Some(name), ..) => (Endpoint::HotelsByName, name_key(name)),
            (None, Some(destination), _) => (Endpoint::HotelsSearch, name_key(destination)),
            (None, None, Some(id)) => (Endpoint::HotelsRooms, id.as_str().to_owned()),
            (None, None, None) => return Self::default(),
        };
        Self {
            endpoints: vec![endpoint],
            place,
            ..Self::default()
        }
    }
}

/// Normalizes a name as the SQL function `place_key` does.
fn name_key(name: &FreeText) -> String {
    name.as_str().trim_matches(' ').to_ascii_lowercase()
}

impl From<&FlightHistoryQuery> for Filter {
    fn from(query: &FlightHistoryQuery) -> Self {
        Self {
            currency: query
                .currency
                .as_ref()
                .map(|currency| currency.as_str().to_owned()),
            first_from: query.departure_date.or(query.departure_from),
            first_to: query.departure_date.or(query.departure_to),
            since: query.since,
            until: query.until,
            ..Self::route(&query.from_airport, &query.to_airport, query.return_date)
        }
    }
}

impl From<&FlightLatestQuery> for Filter {
    fn from(query: &FlightLatestQuery) -> Self {
        Self {
            currency: query
                .currency
                .as_ref()
                .map(|currency| currency.as_str().to_owned()),
            first_from: Some(query.departure_from),
            first_to: Some(query.departure_to),
            ..Self::route(&query.from_airport, &query.to_airport, query.return_date)
        }
    }
}

impl From<&HotelHistoryQuery> for Filter {
    fn from(query: &HotelHistoryQuery) -> Self {
        Self {
            currency: query
                .currency
                .as_ref()
                .map(|currency| currency.as_str().to_owned()),
            market: query
                .proxy_country
                .as_ref()
                .map(|country| country.as_str().to_owned()),
            adults: query.adults.map(|adults| adults.get().into()),
            children: query.children.map(|children| children.get().into()),
            first_from: query.checkin_date.or(query.checkin_from),
            first_to: query.checkin_date.or(query.checkin_to),
            last_date: query.checkout_date,
            since: query.since,
            until: query.until,
            ..Self::stays(
                query.hotel_name.as_ref(),
                query.destination.as_ref(),
                query.hotel_booking_id.as_ref(),
            )
        }
    }
}

impl From<&HotelLatestQuery> for Filter {
    fn from(query: &HotelLatestQuery) -> Self {
        Self {
            currency: query
                .currency
                .as_ref()
                .map(|currency| currency.as_str().to_owned()),
            market: query
                .proxy_country
                .as_ref()
                .map(|country| country.as_str().to_owned()),
            adults: query.adults.map(|adults| adults.get().into()),
            children: query.children.map(|children| children.get().into()),
            first_from: Some(query.checkin_from),
            first_to: Some(query.checkin_to),
            last_date: query.checkout_date,
            ..Self::stays(
                query.hotel_name.as_ref(),
                query.destination.as_ref(),
                query.hotel_booking_id.as_ref(),
            )
        }
    }
}

impl From<&FlightSeriesQuery> for Filter {
    fn from(query: &FlightSeriesQuery) -> Self {
        Self {
            currency: query
                .currency
                .as_ref()
                .map(|currency| currency.as_str().to_owned()),
            first_from: query.departure_date.or(query.departure_from),
            first_to: query.departure_date.or(query.departure_to),
            ..Self::route(&query.from_airport, &query.to_airport, query.return_date)
        }
    }
}

impl From<&HotelSeriesQuery> for Filter {
    fn from(query: &HotelSeriesQuery) -> Self {
        Self {
            currency: query
                .currency
                .as_ref()
                .map(|currency| currency.as_str().to_owned()),
            market: query
                .proxy_country
                .as_ref()
                .map(|country| country.as_str().to_owned()),
            adults: query.adults.map(|adults| adults.get().into()),
            children: query.children.map(|children| children.get().into()),
            first_from: query.checkin_date.or(query.checkin_from),
            first_to: query.checkin_date.or(query.checkin_to),
            last_date: query.checkout_date,
            ..Self::stays(
                query.hotel_name.as_ref(),
                query.destination.as_ref(),
                query.hotel_booking_id.as_ref(),
            )
        }
    }
}

impl From<&FlightGridQuery> for Filter {
    fn from(query: &FlightGridQuery) -> Self {
        let mut filter = Self {
            currency: query
                .currency
                .as_ref()
                .map(|currency| currency.as_str().to_owned()),
            first_from: Some(query.departure_from),
            first_to: Some(query.departure_to),
            ..Self::route(&query.from_airport, &query.to_airport, None)
        };
        // One-way flights have no nights.
        if query.nights.is_some()
            || query.rows == FlightSide::Nights
            || query.columns == Some(FlightSide::Nights)
        {
            filter.endpoints = vec![Endpoint::FlightsRoundtrip];
        }
        filter
    }
}

impl From<&HotelGridQuery> for Filter {
    fn from(query: &HotelGridQuery) -> Self {
        Self {
            currency: query
                .currency
                .as_ref()
                .map(|currency| currency.as_str().to_owned()),
            market: query
                .proxy_country
                .as_ref()
                .map(|country| country.as_str().to_owned()),
            adults: query.adults.map(|adults| adults.get().into()),
            children: query.children.map(|children| children.get().into()),
            first_from: Some(query.checkin_from),
            first_to: Some(query.checkin_to),
            ..Self::stays(
                query.hotel_name.as_ref(),
                query.destination.as_ref(),
                query.hotel_booking_id.as_ref(),
            )
        }
    }
}
