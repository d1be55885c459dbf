//! The price history on the wire (jobs-api, "History"): what it can be asked for and what it tells.
//!
//! Here: `GET /v1/history/flights` and `/v1/history/hotels`. Not here: which observations form a series (`history`).

use super::declare::request;
use super::endpoint::Endpoint;
use super::fault::{Fault, Faults};
use super::primitives::{
    Adults, Airport, Children, CountryCode, Currency, Cursor, Date, FreeText, HotelBookingId,
    ListFormat, PageLimit,
};
use super::query::query;
use super::reason::SearchReason;
use super::scans::SearchFields;
use super::series::in_order;
use super::status::{SearchStatus, Verdict};
use super::words::listed;
use crate::ids::ItemId;
use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use utoipa::ToSchema;

/// The fields that name a product beside those that a row shows by themselves: rows of one product share them.
pub type Product = Arc<Map<String, Value>>;

request! {
    /// The query of `GET /v1/history/flights`.
    pub struct FlightHistoryQuery for "the query of the flight history" {
        required {
            /// Origin IATA code.
            from_airport: Airport;
            /// Destination IATA code.
            to_airport: Airport;
        }
        optional {
            /// Only journeys that depart on this day. Not beside `departure_from` or `departure_to`.
            departure_date: Date;
            /// Only journeys that depart on or after this day.
            departure_from: Date;
            /// Only journeys that depart on or before this day.
            departure_to: Date;
            /// Only round trips that return on this day.
            return_date: Date;
            /// Only prices in this currency.
            currency: Currency;
            /// Only what was seen at or after this time.
            since: Timestamp;
            /// Only what was seen before this time.
            until: Timestamp;
            /// The most observations of a page.
            limit: PageLimit = PageLimit::FIFTY => limit_or_default;
            /// Where the page begins: the `next_cursor` of the page before.
            cursor: Cursor;
            /// The form: a page of JSON, or all rows as a file. It goes before the header `Accept`; without both it is JSON.
            format: ListFormat;
        }
        order { departure_to not_before departure_from; }
        example { "from_airport": "TLV", "to_airport": "LHR", "departure_date": "2027-01-14" }
    }
}

request! {
    /// The query of `GET /v1/history/hotels`: exactly one of `hotel_name`, `destination`, `hotel_booking_id`.
    pub struct HotelHistoryQuery for "the query of the hotel history" {
        required {}
        optional {
            /// The hotel's name, as by-name scans asked for it.
            hotel_name: FreeText;
            /// The place, as search scans asked for it.
            destination: FreeText;
            /// The hotel's id, as rooms scans asked for it.
            hotel_booking_id: HotelBookingId;
            /// Only stays that begin on this day. Not beside `checkin_from` or `checkin_to`.
            checkin_date: Date;
            /// Only stays that begin on or after this day.
            checkin_from: Date;
            /// Only stays that begin on or before this day.
            checkin_to: Date;
            /// Only stays that end on this day.
            checkout_date: Date;
            /// Only prices for this many adults.
            adults: Adults;
            /// Only prices for this many children.
            children: Children;
            /// Only prices in this currency.
            currency: Currency;
            /// Only prices seen from this market.
            proxy_country: CountryCode;
            /// Only what was seen at or after this time.
            since: Timestamp;
            /// Only what was seen before this time.
            until: Timestamp;
            /// The most observations of a page.
            limit: PageLimit = PageLimit::FIFTY => limit_or_default;
            /// Where the page begins: the `next_cursor` of the page before.
            cursor: Cursor;
            /// The form: a page of JSON, or all rows as a file. It goes before the header `Accept`; without both it is JSON.
            format: ListFormat;
        }
        order { checkin_to not_before checkin_from; }
        example { "hotel_name": "Grand Hotel", "checkin_date": "2027-01-14", "proxy_country": "de" }
    }
}

query!(FlightHistoryQuery => spanning, HotelHistoryQuery => spanning);

impl FlightHistoryQuery {
    /// The rules that span fields: one day or a range of days, not both; a range of time that ends after it begins.
    fn spanning(&self) -> Faults {
        let mut faults = one_day_or_range(
            "departure",
            self.departure_date,
            self.departure_from.or(self.departure_to),
        );
        faults.merge(in_order(self.since, self.until));
        faults
    }
}

impl HotelHistoryQuery {
    /// The rules that span fields: exactly one subject; one day or a range of days, not both; a range of time that ends after it begins.
    fn spanning(&self) -> Faults {
        let mut faults = one_subject(&self.to_body());
        faults.merge(one_day_or_range(
            "checkin",
            self.checkin_date,
            self.checkin_from.or(self.checkin_to),
        ));
        faults.merge(in_order(self.since, self.until));
        faults
    }
}

/// What a hotel price can be looked up by; a query names one of them.
const SUBJECTS: [&str; 3] = ["hotel_name", "destination", "hotel_booking_id"];

/// Exactly one subject in a query.
pub(super) fn one_subject(query: &Map<String, Value>) -> Faults {
    let subjects = SUBJECTS
        .iter()
        .filter_map(|name| query.get(*name).map(|value| (*name, value)));
    let allowed = format!("exactly one of {}", listed(SUBJECTS));
    let mut faults = match subjects.clone().next() {
        None => Fault::missing(SUBJECTS[0], &allowed).into(),
        Some(_) => Faults::default(),
    };
    for (name, value) in subjects.skip(1) {
        faults.push(Fault::new(name, value, &allowed));
    }
    faults
}

pub(super) fn one_day_or_range(what: &str, day: Option<Date>, range: Option<Date>) -> Faults {
    let mut faults = Faults::default();
    if let (Some(day), Some(_)) = (day, range) {
        let allowed = format!("a day without `{what}_from` and `{what}_to`, or the range alone");
        faults.push(Fault::new(
            format!("{what}_date"),
            &day.to_string().into(),
            allowed,
        ));
    }
    faults
}

/// A fare, or its absence, seen at a time. A degraded search leaves one without a price, so that gaps are visible.
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
    #[schema(value_type = String, format = Date)]
    pub departure_date: Date,
    /// Day of return, for round trips.
    #[schema(value_type = Option<String>, format = Date)]
    pub return_date: Option<Date>,
    /// The other fields that name the product: party, cabin, filters.
    #[schema(value_type = SearchFields)]
    pub product: Product,
    /// The lowest fare, in major units; null where there was none.
    #[serde(serialize_with = "crate::contract::money::price_if_any")]
    #[schema(value_type = Option<f64>)]
    pub price: Option<Decimal>,
    /// ISO currency code. Series of different currencies never mix.
    pub currency: String,
    /// The airline of the lowest fare.
    pub carrier: Option<String>,
    /// Itineraries found.
    pub results: Option<u32>,
    /// Bottom of the provider's historical band.
    #[serde(serialize_with = "crate::contract::money::price_if_any")]
    #[schema(value_type = Option<f64>)]
    pub price_insights_low: Option<Decimal>,
    /// Top of the provider's historical band.
    #[serde(serialize_with = "crate::contract::money::price_if_any")]
    #[schema(value_type = Option<f64>)]
    pub price_insights_high: Option<Decimal>,
    /// The provider's verdict on the lowest fare.
    pub verdict: Option<Verdict>,
    /// What the search said of itself.
    pub search_status: SearchStatus,
    /// Why, where something went wrong.
    #[schema(value_type = Option<SearchReason>)]
    pub reason: Option<String>,
    /// When it was seen.
    pub observed_at: Timestamp,
    /// The item that saw it.
    pub item_id: ItemId,
}

/// A rate, or its absence, seen at a time from one market.
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
    /// Which kind of search saw it.
    pub endpoint: Endpoint,
    /// The hotel name, destination or booking id that was asked for.
    pub place: String,
    /// First night.
    #[schema(value_type = String, format = Date)]
    pub checkin_date: Date,
    /// Day of departure.
    #[schema(value_type = String, format = Date)]
    pub checkout_date: Date,
    /// The market; null for the worldwide pool.
    pub proxy_country: Option<String>,
    /// The other fields that name the product: party, filters.
    #[schema(value_type = SearchFields)]
    pub product: Product,
    /// The lowest price of the whole stay, in major units; null where there was none.
    #[serde(serialize_with = "crate::contract::money::price_if_any")]
    #[schema(value_type = Option<f64>)]
    pub price: Option<Decimal>,
    /// ISO currency code. Series of different currencies never mix.
    pub currency: String,
    /// hotels/search: the hotel of the lowest rate.
    pub hotel: Option<String>,
    /// hotels/by-name and hotels/rooms: the room of the lowest rate.
    pub room: Option<String>,
    /// Properties or rooms found.
    pub results: Option<u32>,
    /// What the search said of itself.
    pub search_status: SearchStatus,
    /// Why, where something went wrong or nothing was found.
    #[schema(value_type = Option<SearchReason>)]
    pub reason: Option<String>,
    /// When it was seen.
    pub observed_at: Timestamp,
    /// The item that saw it.
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
