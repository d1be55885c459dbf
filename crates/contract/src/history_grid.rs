//! The last known prices as grids (history.md, rules 22 to 24): dates against lengths of stay or
//! markets, without upstream requests.

use super::endpoint::Endpoint;
use super::history::ProductFields;
use super::history_query::history_query;
use super::primitives::{
    Adults, Airport, Children, CountryCode, Currency, Date, FreeText, HotelBookingId,
};
use super::reason::SearchReason;
use super::scans::{GridAxis, Nights, SearchFields};
use super::status::{SearchStatus, Verdict};
use super::string_enum::string_enum;
use crate::ids::ItemId;
use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

string_enum! {
    /// An axis of a grid of fares.
    pub enum FlightSide {
        /// Every day of departure of the range.
        DepartureDate = "departure_date",
        /// The days from departure to return, of round trips.
        Nights = "nights",
    }
}

string_enum! {
    /// An axis of a grid of rates.
    pub enum HotelSide {
        /// Every day of check-in of the range.
        CheckinDate = "checkin_date",
        /// The length of the stay.
        Nights = "nights",
        /// The searched market.
        ProxyCountry = "proxy_country",
    }
}

history_query! {
    /// The query of `GET /v1/history/flights/grid`.
    pub struct FlightGridQuery for "the query of the grid of fares" {
        required {
            ..route;
            ..departure_range;
            /// The field of the rows.
            rows: FlightSide;
        }
        optional {
            /// The field of the columns; without it the grid has one column.
            columns: FlightSide;
            /// Only round trips of this length, if `nights` is not an axis.
            nights: Nights;
            /// Only prices in this currency.
            currency: Currency;
        }
        example {
            "from_airport": "TLV", "to_airport": "LHR", "departure_from": "2027-01-01", "departure_to": "2027-01-31",
            "rows": "departure_date", "columns": "nights"
        }
    }
}

history_query! {
    /// The query of `GET /v1/history/hotels/grid`: exactly one of `hotel_name`, `destination`,
    /// `hotel_booking_id`.
    pub struct HotelGridQuery for "the query of the grid of rates" {
        required {
            ..checkin_range;
            /// The field of the rows.
            rows: HotelSide;
        }
        optional {
            /// The field of the columns; without it the grid has one column.
            columns: HotelSide;
            /// Only stays of this length. Required if `nights` is not an axis: stays of different
            /// lengths cannot be compared.
            nights: Nights;
            ..hotel;
            ..rates;
        }
        example {
            "hotel_name": "Grand Hotel", "checkin_from": "2027-01-01", "checkin_to": "2027-01-31", "rows": "checkin_date",
            "columns": "proxy_country", "nights": 3
        }
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
    /// The endpoint of the searches.
    pub endpoint: Endpoint,
    /// Flights: origin IATA code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub from_airport: Option<String>,
    /// Destination IATA code; or the searched hotel name, destination or booking id.
    pub place: String,
    /// Hotels: the market, if it is not an axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub proxy_country: Option<String>,
    /// The other fields of the product. Different products are never mixed.
    #[schema(value_type = SearchFields)]
    pub product: ProductFields,
    /// ISO currency code of every price.
    pub currency: String,
    /// The rows: every date of the range, or the lengths or markets that were searched, in order.
    pub rows: GridAxis,
    /// The columns; null if the grid has one column.
    pub columns: Option<GridAxis>,
    /// Every combination, row by row.
    pub cells: Vec<HistoryCell>,
}

/// One cell: its last known price with its age, and the result of the last search. Never searched:
/// `search_status` is null.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HistoryCell {
    /// The row's value.
    pub row: Value,
    /// The column's value.
    pub column: Option<Value>,
    /// The last known price, in major units; null if there never was one. If the cell contains
    /// several lengths of a journey, the lowest of their last known prices.
    #[serde(serialize_with = "crate::money::price_if_any")]
    pub price: Option<Decimal>,
    /// The price is far off its own history, and lower than every plausible one of its product: the
    /// cell has no other.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub implausible: bool,
    /// Departure or check-in of the shown price or search.
    pub first_date: Option<Date>,
    /// Return or check-out of the shown price or search.
    pub last_date: Option<Date>,
    /// The airline, or the room or hotel.
    pub seller: Option<String>,
    /// Flights: bottom of the provider's historical band.
    #[serde(
        default,
        serialize_with = "crate::money::price_if_any",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    pub price_insights_low: Option<Decimal>,
    /// Flights: top of the band.
    #[serde(
        default,
        serialize_with = "crate::money::price_if_any",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    pub price_insights_high: Option<Decimal>,
    /// Flights: the provider's verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub verdict: Option<Verdict>,
    /// When the price was found.
    pub observed_at: Option<Timestamp>,
    /// How long ago that was.
    pub age_seconds: Option<u64>,
    /// The item that found it.
    pub item_id: Option<ItemId>,
    /// When it was last searched, with any result.
    pub looked_at: Option<Timestamp>,
    /// The status of the last search. With `empty` or `degraded`, the price, if any, is from an
    /// earlier search.
    pub search_status: Option<SearchStatus>,
    /// Why the last search found no price.
    #[schema(value_type = Option<SearchReason>)]
    pub reason: Option<String>,
}

/// A grid for each product.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HistoryGrids {
    /// The grids, each complete.
    pub data: Vec<HistoryGrid>,
    /// The response does not contain all of them: narrow the query.
    pub truncated: bool,
}
