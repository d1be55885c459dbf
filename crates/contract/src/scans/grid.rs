//! A scan as a grid: the lowest price for each value of one or two swept fields (scans.md, rules 53
//! to 55).

use super::markets::MarketReport;
use super::state::ItemState;
use crate::SearchReason;
use crate::endpoint::Endpoint;
use crate::ids::{ItemId, ScanId};
use crate::primitives::{CountryCode, text_type};
use crate::query_string::query_string;
use crate::request_body::request_body;
use crate::status::{SearchStatus, Verdict};
use crate::string_enum::string_enum;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

request_body! {
    /// The query of `GET /v1/scans/{id}/grid`.
    pub struct GridQuery for "the query of a grid" {
        required {
            /// The swept field of the rows: a field of the scan's `sweep`, or `nights`.
            rows: SweptField;
        }
        optional {
            /// The swept field of the columns. Without it the grid has one column.
            columns: SweptField;
            /// The market with which the others are compared; only for by-name and rooms scans with
            /// `proxy_country` as rows or columns and every field with several values as an axis.
            baseline: CountryCode;
        }
        example { "rows": "departure_date", "columns": "nights" }
    }
}

query_string!(GridQuery);

/// The longest name of a field, in characters.
const MAX_NAME_CHARS: usize = 50;

text_type! {
    /// The name of a swept field.
    pub struct SweptField {
        expected: "the name of a swept field: 1 to 50 lower-case letters and underscores",
        accepts: |text| (1..=MAX_NAME_CHARS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
        normalize: str::to_owned,
        examples: ["departure_date"],
        schema: { min_length: 1, max_length: MAX_NAME_CHARS, pattern: "^[a-z_]+$" },
    }
}

/// The lowest price for each value of one or two swept fields, over all other swept fields and
/// samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "scan_id": "scn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b", "endpoint": "flights/oneway",
    "rows": {"field": "departure_date", "values": ["2027-01-01", "2027-01-02"]},
    "columns": null,
    "cells": [
        {"row": "2027-01-01", "column": null, "state": "done", "search_status": "ok", "reason": null, "price": 164, "currency": "USD",
         "price_insights_low": 180, "price_insights_high": 320, "verdict": "low",
         "item_id": "itm_01970a1b2c3d7e4f8a9b0c1d2e3f4a5c", "buy_link": "https://example.com/fare?curr=USD"},
        {"row": "2027-01-02", "column": null, "state": "pending", "search_status": null, "reason": null, "price": null, "currency": null,
         "item_id": "itm_01970a1b2c3d7e4f8a9b0c1d2e3f4a5d"}
    ]
})))]
pub struct Grid {
    /// The scan.
    pub scan_id: ScanId,
    /// The endpoint of the scan.
    pub endpoint: Endpoint,
    /// The rows.
    pub rows: GridAxis,
    /// The columns; null if the grid has one column.
    pub columns: Option<GridAxis>,
    /// Every combination that the scan has, row by row.
    pub cells: Vec<GridCell>,
    /// Of a grid with a `baseline`: each other market over all of its stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub markets: Option<MarketReport>,
}

/// One axis of a grid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GridAxis {
    /// The swept field.
    pub field: String,
    /// Its values in the order of the scan.
    pub values: Vec<Value>,
}

/// One cell: its cheapest price, or why there is none.
///
/// `empty` only if every search of the cell was empty: one that did not complete or has not run may
/// have a price.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GridCell {
    /// The row's value.
    pub row: Value,
    /// The column's value.
    pub column: Option<Value>,
    /// The state of the shown item. With `pending` and `running` there may be a price later.
    pub state: ItemState,
    /// Its search status; null if it has not been searched.
    pub search_status: Option<SearchStatus>,
    /// Why there is no price, or why the search is incomplete.
    #[schema(value_type = Option<SearchReason>)]
    pub reason: Option<String>,
    /// The lowest price, in major units.
    #[serde(serialize_with = "crate::money::price_if_any")]
    pub price: Option<Decimal>,
    /// Its currency. Prices of another currency in the same cell are ignored.
    pub currency: Option<String>,
    /// The price is one of the scan's `implausible` ones: the cell has no other.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub implausible: bool,
    /// Flights: bottom of the provider's historical band.
    #[serde(
        default,
        serialize_with = "crate::money::price_if_any",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    pub price_insights_low: Option<Decimal>,
    /// Flights: top of the provider's historical band.
    #[serde(
        default,
        serialize_with = "crate::money::price_if_any",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    pub price_insights_high: Option<Decimal>,
    /// Flights: the provider's verdict on the fare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub verdict: Option<Verdict>,
    /// Hotels: the room of the price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub room: Option<String>,
    /// The shown item: the cheapest, or the one that explains the missing price.
    pub item_id: ItemId,
    /// Flights: where the fare is booked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub buy_link: Option<String>,
    /// Hotels: where the stay is booked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub link: Option<String>,
    /// The comparison with the baseline; only with `baseline`, and not in the baseline's own cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub parity: Option<Parity>,
}

/// A market's price against the baseline's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({"difference": -18.5, "difference_percent": -5.9, "samples": 3, "baseline_samples": 3, "verdict": "gap"})))]
pub struct Parity {
    /// The market's lowest price minus the baseline's; null if they cannot be compared.
    #[serde(serialize_with = "crate::money::price_if_any")]
    pub difference: Option<Decimal>,
    /// The same in percent of the baseline's, to two decimals.
    #[serde(serialize_with = "crate::money::price_if_any")]
    pub difference_percent: Option<Decimal>,
    /// Number of prices in the market.
    pub samples: u32,
    /// Number of prices in the baseline market.
    pub baseline_samples: u32,
    /// Whether the difference is significant.
    pub verdict: ParityVerdict,
}

string_enum! {
    /// Whether a difference between two markets is significant.
    pub enum ParityVerdict {
        /// The ranges of the samples, each taken as at least 1 % wide, do not overlap.
        Gap = "gap",
        /// They overlap: the same prices could come from one market.
        Noise = "noise",
        /// Fewer than two samples in a market.
        Insufficient = "insufficient",
        /// Another room type, board or currency.
        NotComparable = "not_comparable",
    }
}
