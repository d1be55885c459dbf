//! The last known prices by date (history.md, rules 16 and 17): a calendar without upstream
//! requests.

use super::endpoint::Endpoint;
use super::history::ProductFields;
use super::history_query::history_query;
use super::history_verdict::HistoryVerdict;
use super::primitives::{
    Adults, Airport, Children, CountryCode, Currency, Date, FreeText, HotelBookingId, ListFormat,
};
use super::scans::SearchFields;
use super::status::Verdict;
use crate::ids::ItemId;
use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

history_query! {
    /// The query of `GET /v1/history/flights/latest`.
    pub struct FlightLatestQuery for "the query of the latest fares" {
        required {
            ..route;
            ..departure_range;
        }
        optional {
            ..fares;
            ..verdict;
            ..format;
        }
        example { "from_airport": "TLV", "to_airport": "LHR", "departure_from": "2027-01-01", "departure_to": "2027-01-31" }
    }
}

history_query! {
    /// The query of `GET /v1/history/hotels/latest`: exactly one of `hotel_name`, `destination`,
    /// `hotel_booking_id`.
    pub struct HotelLatestQuery for "the query of the latest rates" {
        required {
            ..checkin_range;
        }
        optional {
            ..hotel;
            ..checkout;
            ..rates;
            ..verdict;
            ..format;
        }
        example { "hotel_name": "Grand Hotel", "checkin_from": "2027-01-01", "checkin_to": "2027-01-31" }
    }
}

/// The last known lowest fare of a product on one day of departure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "endpoint": "flights/oneway", "from_airport": "TLV", "to_airport": "LHR",
    "departure_date": "2027-01-14", "return_date": null, "product": {"passengers": [1]},
    "price": 164, "currency": "USD", "carrier": "Example Air",
    "price_insights_low": 180, "price_insights_high": 320, "verdict": "low",
    "observed_at": "2026-12-01T08:00:03Z", "age_seconds": 5400, "item_id": "itm_01970a1b2c3d7e4f8a9b0c1d2e3f4a5c"
})))]
pub struct FlightLatest {
    /// One way or round trip.
    pub endpoint: Endpoint,
    /// Origin IATA code.
    pub from_airport: String,
    /// Destination IATA code.
    pub to_airport: String,
    /// Day of departure.
    pub departure_date: Date,
    /// Round trips: the cheapest day of return.
    pub return_date: Option<Date>,
    /// The other fields of the product: passengers, cabin, filters. Different products are never
    /// mixed.
    #[schema(value_type = SearchFields)]
    pub product: ProductFields,
    /// The lowest fare, in major units.
    #[serde(serialize_with = "crate::money::price")]
    pub price: Decimal,
    /// ISO currency code.
    pub currency: String,
    /// The airline.
    pub carrier: Option<String>,
    /// Bottom of the provider's historical band.
    #[serde(serialize_with = "crate::money::price_if_any")]
    pub price_insights_low: Option<Decimal>,
    /// Top of the provider's historical band.
    #[serde(serialize_with = "crate::money::price_if_any")]
    pub price_insights_high: Option<Decimal>,
    /// The provider's verdict.
    pub verdict: Option<Verdict>,
    /// When it was found.
    pub observed_at: Timestamp,
    /// How long ago that was.
    pub age_seconds: u64,
    /// The item that found it.
    pub item_id: ItemId,
    /// The verdict on the price from your own history, if `history_verdict` asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub history_verdict: Option<HistoryVerdict>,
}

/// The last known lowest rate of a product on one day of check-in, from one market.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "endpoint": "hotels/by-name", "place": "Grand Hotel", "checkin_date": "2027-01-14", "checkout_date": "2027-01-17",
    "proxy_country": "de", "product": {"adults": 2, "children": 0}, "price": 312, "currency": "USD", "hotel": null, "room": "Double Room",
    "observed_at": "2026-12-01T08:00:03Z", "age_seconds": 5400, "item_id": "itm_01970a1b2c3d7e4f8a9b0c1d2e3f4a5c"
})))]
pub struct HotelLatest {
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
    /// The other fields of the product: guests, filters. Different products are never mixed.
    #[schema(value_type = SearchFields)]
    pub product: ProductFields,
    /// The lowest price of the whole stay, in major units.
    #[serde(serialize_with = "crate::money::price")]
    pub price: Decimal,
    /// ISO currency code.
    pub currency: String,
    /// hotels/search: the hotel.
    pub hotel: Option<String>,
    /// hotels/by-name and hotels/rooms: the room.
    pub room: Option<String>,
    /// When it was found.
    pub observed_at: Timestamp,
    /// How long ago that was.
    pub age_seconds: u64,
    /// The item that found it.
    pub item_id: ItemId,
    /// The verdict on the price from your own history, if `history_verdict` asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub history_verdict: Option<HistoryVerdict>,
}

/// A calendar of fares: by day of departure, and by product within a day.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FlightCalendar {
    /// A fare for each day and product that has one.
    pub data: Vec<FlightLatest>,
    /// The response does not contain all of them: narrow the query.
    pub truncated: bool,
}

/// A calendar of rates: by day of check-in, and by product within a day. Each length of stay has
/// its own row.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HotelCalendar {
    /// A rate for each day, length of stay and product that has one.
    pub data: Vec<HotelLatest>,
    /// The response does not contain all of them: narrow the query.
    pub truncated: bool,
}
