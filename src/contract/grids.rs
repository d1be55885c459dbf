//! The last known prices as grids on the wire (jobs-api, "History"): dates against lengths of stay or markets, at no cost.

use super::declare::request;
use super::endpoint::Endpoint;
use super::fault::{Fault, Faults};
use super::field::FieldValue as _;
use super::history::{Product, one_subject};
use super::latest::short_range;
use super::primitives::{
    Adults, Airport, Children, CountryCode, Currency, Date, FreeText, HotelBookingId,
};
use super::query::query;
use super::reason::SearchReason;
use super::scans::{GridAxis, Nights, SearchFields};
use super::status::{SearchStatus, Verdict};
use super::words::words;
use crate::ids::ItemId;
use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

words! {
    /// A side of a grid of fares.
    pub enum FlightSide {
        /// Every day of departure of the range.
        DepartureDate = "departure_date",
        /// The days from departure to return, of round trips.
        Nights = "nights",
    }
}

words! {
    /// A side of a grid of rates.
    pub enum HotelSide {
        /// Every day of check-in of the range.
        CheckinDate = "checkin_date",
        /// The length of the stay.
        Nights = "nights",
        /// The market that was looked from.
        ProxyCountry = "proxy_country",
    }
}

request! {
    /// The query of `GET /v1/history/flights/grid`.
    pub struct FlightGridQuery for "the query of the grid of fares" {
        required {
            /// Origin IATA code.
            from_airport: Airport;
            /// Destination IATA code.
            to_airport: Airport;
            /// The first day of departure.
            departure_from: Date;
            /// The last day of departure, at most 400 days later.
            departure_to: Date;
            /// What the rows are.
            rows: FlightSide;
        }
        optional {
            /// What the columns are; without it the grid is one column.
            columns: FlightSide;
            /// Only round trips of this length, where `nights` is on no side.
            nights: Nights;
            /// Only prices in this currency.
            currency: Currency;
        }
        order { departure_to not_before departure_from; }
        example {
            "from_airport": "TLV", "to_airport": "LHR", "departure_from": "2027-01-01", "departure_to": "2027-01-31",
            "rows": "departure_date", "columns": "nights"
        }
    }
}

request! {
    /// The query of `GET /v1/history/hotels/grid`: exactly one of `hotel_name`, `destination`, `hotel_booking_id`.
    pub struct HotelGridQuery for "the query of the grid of rates" {
        required {
            /// The first day of check-in.
            checkin_from: Date;
            /// The last day of check-in, at most 400 days later.
            checkin_to: Date;
            /// What the rows are.
            rows: HotelSide;
        }
        optional {
            /// What the columns are; without it the grid is one column.
            columns: HotelSide;
            /// Only stays of this length: needed where `nights` is on no side, since stays of different lengths do not compare.
            nights: Nights;
            /// The hotel's name, as by-name scans asked for it.
            hotel_name: FreeText;
            /// The place, as search scans asked for it.
            destination: FreeText;
            /// The hotel's id, as rooms scans asked for it.
            hotel_booking_id: HotelBookingId;
            /// Only prices for this many adults.
            adults: Adults;
            /// Only prices for this many children.
            children: Children;
            /// Only prices in this currency.
            currency: Currency;
            /// Only prices seen from this market.
            proxy_country: CountryCode;
        }
        order { checkin_to not_before checkin_from; }
        example {
            "hotel_name": "Grand Hotel", "checkin_from": "2027-01-01", "checkin_to": "2027-01-31", "rows": "checkin_date",
            "columns": "proxy_country", "nights": 3
        }
    }
}

query!(FlightGridQuery => spanning, HotelGridQuery => spanning);

impl FlightGridQuery {
    fn spanning(&self) -> Faults {
        let mut faults = short_range("departure_to", self.departure_from, self.departure_to);
        faults.merge(two_sides(
            self.rows.as_str(),
            self.columns.map(FlightSide::as_str),
        ));
        let on_a_side = self.rows == FlightSide::Nights || self.columns == Some(FlightSide::Nights);
        faults.merge(nights(self.nights, on_a_side, false));
        faults
    }
}

impl HotelGridQuery {
    fn spanning(&self) -> Faults {
        let mut faults = one_subject(&self.to_body());
        faults.merge(short_range(
            "checkin_to",
            self.checkin_from,
            self.checkin_to,
        ));
        faults.merge(two_sides(
            self.rows.as_str(),
            self.columns.map(HotelSide::as_str),
        ));
        let on_a_side = self.rows == HotelSide::Nights || self.columns == Some(HotelSide::Nights);
        faults.merge(nights(self.nights, on_a_side, true));
        faults
    }
}

fn two_sides(rows: &str, columns: Option<&str>) -> Faults {
    match columns {
        Some(columns) if columns == rows => {
            Fault::new("columns", &columns.into(), "another field than `rows`").into()
        }
        _ => Faults::default(),
    }
}

fn nights(given: Option<Nights>, on_a_side: bool, needed: bool) -> Faults {
    match given {
        Some(given) if on_a_side => Fault::new(
            "nights",
            &given.to_value(),
            "nothing where `nights` is a side of the grid",
        )
        .into(),
        None if needed && !on_a_side => {
            let allowed = "an integer from 1 to 366, or `nights` as `rows` or `columns`: stays of different lengths do not compare";
            Fault::missing("nights", allowed).into()
        }
        _ => Faults::default(),
    }
}

/// The last known prices of one product as a grid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "endpoint": "hotels/by-name", "place": "Grand Hotel", "product": {"adults": 2, "children": 0}, "currency": "USD",
    "rows": {"field": "checkin_date", "values": ["2027-01-14", "2027-01-15", "2027-01-16"]},
    "columns": {"field": "proxy_country", "values": ["de"]},
    "cells": [
        {"row": "2027-01-14", "column": "de", "price": 312, "first_date": "2027-01-14", "last_date": "2027-01-17", "seller": "Double Room",
         "observed_at": "2026-12-01T08:00:03Z", "age_seconds": 5400, "item_id": "itm_01970a1b2c3d7e4f8a9b0c1d2e3f4a5c",
         "looked_at": "2026-12-01T09:00:02Z", "search_status": "degraded", "reason": "blocked_page"},
        {"row": "2027-01-15", "column": "de", "price": null, "first_date": "2027-01-15", "last_date": "2027-01-18", "seller": null,
         "observed_at": null, "age_seconds": null, "item_id": null,
         "looked_at": "2026-12-01T08:00:04Z", "search_status": "empty", "reason": "sold_out"},
        {"row": "2027-01-16", "column": "de", "price": null, "first_date": null, "last_date": null, "seller": null,
         "observed_at": null, "age_seconds": null, "item_id": null, "looked_at": null, "search_status": null, "reason": null}
    ]
})))]
pub struct HistoryGrid {
    /// Which kind of search saw it.
    pub endpoint: Endpoint,
    /// Flights: origin IATA code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub from_airport: Option<String>,
    /// Destination IATA code; the hotel name, destination or booking id that was asked for.
    pub place: String,
    /// Hotels: the market, where it is on no side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub proxy_country: Option<String>,
    /// The other fields that name the product. Products never mix.
    #[schema(value_type = SearchFields)]
    pub product: Product,
    /// ISO currency code of every price.
    pub currency: String,
    /// The rows: of dates every one of the range, of lengths and markets those that were looked at, in their order.
    pub rows: GridAxis,
    /// The columns; null where the grid is one column.
    pub columns: Option<GridAxis>,
    /// Every combination, row by row.
    pub cells: Vec<HistoryCell>,
}

/// One cell: its last known price with its age, and what the last look came to. Never looked at: `search_status` is null.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HistoryCell {
    /// The row's value.
    pub row: Value,
    /// The column's value.
    pub column: Option<Value>,
    /// The last known price, in major units; null where none was ever seen. Where several lengths of a journey fall into the cell, the
    /// lowest of their last known prices.
    #[serde(serialize_with = "crate::contract::money::price_if_any")]
    #[schema(value_type = Option<f64>)]
    pub price: Option<Decimal>,
    /// Departure or check-in of what the cell shows.
    #[schema(value_type = Option<String>, format = Date)]
    pub first_date: Option<Date>,
    /// Return or check-out of what the cell shows.
    #[schema(value_type = Option<String>, format = Date)]
    pub last_date: Option<Date>,
    /// The airline, or the room or hotel.
    pub seller: Option<String>,
    /// Flights: bottom of the provider's historical band.
    #[serde(
        default,
        serialize_with = "crate::contract::money::price_if_any",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = Option<f64>, nullable = false)]
    pub price_insights_low: Option<Decimal>,
    /// Flights: top of the band.
    #[serde(
        default,
        serialize_with = "crate::contract::money::price_if_any",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = Option<f64>, nullable = false)]
    pub price_insights_high: Option<Decimal>,
    /// Flights: the provider's verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub verdict: Option<Verdict>,
    /// When the price was seen.
    pub observed_at: Option<Timestamp>,
    /// How long ago that is.
    pub age_seconds: Option<u64>,
    /// The item that saw it.
    pub item_id: Option<ItemId>,
    /// When it was last looked at, whatever that came to.
    pub looked_at: Option<Timestamp>,
    /// What the last look came to: with `empty` or `degraded` the price, if there is one, is an older look's.
    pub search_status: Option<SearchStatus>,
    /// Why the last look brought no price.
    #[schema(value_type = Option<SearchReason>)]
    pub reason: Option<String>,
}

/// A grid for each product.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HistoryGrids {
    /// The grids, each whole.
    pub data: Vec<HistoryGrid>,
    /// There are more than fit an answer: narrow the query.
    pub truncated: bool,
}
