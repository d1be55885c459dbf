//! The price history (history.md, rules 12 to 14): queries and observations.
//!
//! Here: `GET /v1/history/flights` and `/v1/history/hotels`. Not here: which observations form a
//! series (`history`).

use super::endpoint::Endpoint;
use super::history_query::history_query;
use super::primitives::{
    Adults, Airport, Children, CountryCode, Currency, Cursor, Date, FreeText, HotelBookingId,
    ListFormat, PageLimit,
};
use super::reason::SearchReason;
use super::scans::SearchFields;
use super::status::{SearchStatus, Verdict};
use crate::ids::ItemId;
use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use utoipa::ToSchema;

/// The fields of a product that have no field of their own in a row. Rows of one product share
/// them.
pub type ProductFields = Arc<Map<String, Value>>;

history_query! {
    /// The query of `GET /v1/history/flights`.
    pub struct FlightHistoryQuery for "the query of the flight history" {
        required {
            ..route;
        }
        optional {
            ..departures;
            ..fares;
            ..page;
            ..format;
        }
        example { "from_airport": "TLV", "to_airport": "LHR", "departure_date": "2027-01-14" }
    }
}

history_query! {
    /// The query of `GET /v1/history/hotels`: exactly one of `hotel_name`, `destination`,
    /// `hotel_booking_id`.
    pub struct HotelHistoryQuery for "the query of the hotel history" {
        required {}
        optional {
            ..hotel;
            ..checkins;
            ..checkout;
            ..rates;
            ..page;
            ..format;
        }
        example { "hotel_name": "Grand Hotel", "checkin_date": "2027-01-14", "proxy_country": "de" }
    }
}

/// A fare, or its absence, at a time. A degraded search gives one without a price, so that gaps are
/// visible.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "endpoint": "flights/oneway", "from_airport": "TLV", "to_airport": "LHR",
    "departure_date": "2027-01-14", "return_date": null,
    "product": {"passengers": [1]},
    "price": 164, "currency": "USD", "carrier": "Example Air", "results": 12,
    "price_insights_low": 180, "price_insights_high": 320, "verdict": "low",
    "search_status": "ok", "reason": null, "observed_at": "2026-12-01T08:00:03Z",
    "item_id": "itm_01970a1b2c3d7e4f8a9b0c1d2e3f4a5c"
})))]
pub struct FlightObservation {
    /// One way or round trip.
    pub endpoint: Endpoint,
    /// Origin IATA code.
    pub from_airport: String,
    /// Destination IATA code.
    pub to_airport: String,
    /// Day of departure.
    pub departure_date: Date,
    /// Day of return, for round trips.
    pub return_date: Option<Date>,
    /// The other fields of the product: passengers, cabin, filters.
    #[schema(value_type = SearchFields)]
    pub product: ProductFields,
    /// The lowest fare, in major units; null where there was none.
    #[serde(serialize_with = "crate::money::price_if_any")]
    pub price: Option<Decimal>,
    /// ISO currency code. Different currencies are never mixed.
    pub currency: String,
    /// The airline of the lowest fare.
    pub carrier: Option<String>,
    /// Itineraries found.
    pub results: Option<u32>,
    /// Bottom of the provider's historical band.
    #[serde(serialize_with = "crate::money::price_if_any")]
    pub price_insights_low: Option<Decimal>,
    /// Top of the provider's historical band.
    #[serde(serialize_with = "crate::money::price_if_any")]
    pub price_insights_high: Option<Decimal>,
    /// The provider's verdict on the lowest fare.
    pub verdict: Option<Verdict>,
    /// The search status.
    pub search_status: SearchStatus,
    /// Why the search failed.
    #[schema(value_type = Option<SearchReason>)]
    pub reason: Option<String>,
    /// When it was found.
    pub observed_at: Timestamp,
    /// The item that found it.
    pub item_id: ItemId,
}

/// A rate, or its absence, at a time in one market.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "endpoint": "hotels/by-name", "place": "Grand Hotel",
    "checkin_date": "2027-01-14", "checkout_date": "2027-01-17", "proxy_country": "de",
    "product": {"adults": 2, "children": 0},
    "price": 312, "currency": "USD", "hotel": null, "room": "Double Room", "results": 1,
    "search_status": "ok", "reason": null, "observed_at": "2026-12-01T08:00:03Z",
    "item_id": "itm_01970a1b2c3d7e4f8a9b0c1d2e3f4a5c"
})))]
pub struct HotelObservation {
    /// The endpoint of the searches.
    pub endpoint: Endpoint,
    /// The searched hotel name, destination or booking id.
    pub place: String,
    /// First night.
    pub checkin_date: Date,
    /// Day of departure.
    pub checkout_date: Date,
    /// The market; null for the worldwide pool.
    pub proxy_country: Option<String>,
    /// The other fields of the product: guests, filters.
    #[schema(value_type = SearchFields)]
    pub product: ProductFields,
    /// The lowest price of the whole stay, in major units; null where there was none.
    #[serde(serialize_with = "crate::money::price_if_any")]
    pub price: Option<Decimal>,
    /// ISO currency code. Different currencies are never mixed.
    pub currency: String,
    /// hotels/search: the hotel of the lowest rate.
    pub hotel: Option<String>,
    /// hotels/by-name and hotels/rooms: the room of the lowest rate.
    pub room: Option<String>,
    /// Properties or rooms found.
    pub results: Option<u32>,
    /// The search status.
    pub search_status: SearchStatus,
    /// Why the search failed or found nothing.
    #[schema(value_type = Option<SearchReason>)]
    pub reason: Option<String>,
    /// When it was found.
    pub observed_at: Timestamp,
    /// The item that found it.
    pub item_id: ItemId,
}

/// A page of fares, newest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FlightHistoryPage {
    /// The observations.
    pub data: Vec<FlightObservation>,
    /// Where the next page begins; null on the last.
    pub next_cursor: Option<String>,
}

/// A page of rates, newest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HotelHistoryPage {
    /// The observations.
    pub data: Vec<HotelObservation>,
    /// Where the next page begins; null on the last.
    pub next_cursor: Option<String>,
}
