//! A scan as a grid: the cheapest price for each value of one or two swept fields (jobs-api, "Scans").

use super::state::ItemState;
use crate::contract::SearchReason;
use crate::contract::declare::request;
use crate::contract::endpoint::Endpoint;
use crate::contract::primitives::{CountryCode, text};
use crate::contract::query::query;
use crate::contract::status::{SearchStatus, Verdict};
use crate::contract::words::words;
use crate::ids::{ItemId, ScanId};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

request! {
    /// The query of `GET /v1/scans/{id}/grid`.
    pub struct GridQuery for "the query of a grid" {
        required {
            /// The swept field of the rows: a field of the scan's `sweep`, or `nights`.
            rows: SweptField;
        }
        optional {
            /// The swept field of the columns. Without it the grid is one column.
            columns: SweptField;
            /// The market that the others are measured against; only for by-name and rooms scans with `proxy_country` as rows or columns
            /// and every swept field on the grid.
            baseline: CountryCode;
        }
        example { "rows": "departure_date", "columns": "nights" }
    }
}

query!(GridQuery);

/// The longest name of a field, in characters.
const MAX_NAME_CHARS: usize = 50;

text! {
    /// The name of a swept field.
    pub struct SweptField {
        allowed: "the name of a swept field: 1 to 50 lower-case letters and underscores",
        accepts: |text| (1..=MAX_NAME_CHARS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
        forwards: str::to_owned,
        examples: ["departure_date"],
        schema: { min_length: 1, max_length: MAX_NAME_CHARS, pattern: "^[a-z_]+$" },
    }
}

/// The cheapest price for each value of one or two swept fields, over everything else that the scan sweeps and samples.
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
    /// What was searched.
    pub endpoint: Endpoint,
    /// The rows.
    pub rows: GridAxis,
    /// The columns; null where the grid is one column.
    pub columns: Option<GridAxis>,
    /// Every combination that the scan has, row by row.
    pub cells: Vec<GridCell>,
}

/// One side of a grid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GridAxis {
    /// The swept field.
    pub field: String,
    /// Its values in the order of the scan.
    pub values: Vec<Value>,
}

/// One cell: its cheapest price, or why there is none.
///
/// `empty` is said only when every search of the cell was empty; one that did not complete or has not been searched may hide a price.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GridCell {
    /// The row's value.
    pub row: Value,
    /// The column's value.
    pub column: Option<Value>,
    /// Where the item is that the cell shows. `pending` and `running`: no price yet, and one may come.
    pub state: ItemState,
    /// What its search says of itself; null where it has not been searched.
    pub search_status: Option<SearchStatus>,
    /// Why there is no price, or why the search is not whole.
    #[schema(value_type = Option<SearchReason>)]
    pub reason: Option<String>,
    /// The lowest price, in major units.
    #[serde(serialize_with = "crate::contract::money::price_if_any")]
    #[schema(value_type = Option<f64>)]
    pub price: Option<Decimal>,
    /// Its currency. Prices of another currency in the same cell do not compare, and are left out.
    pub currency: Option<String>,
    /// Flights: bottom of the provider's historical band.
    #[serde(
        default,
        serialize_with = "crate::contract::money::price_if_any",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = Option<f64>, nullable = false)]
    pub price_insights_low: Option<Decimal>,
    /// Flights: top of the provider's historical band.
    #[serde(
        default,
        serialize_with = "crate::contract::money::price_if_any",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = Option<f64>, nullable = false)]
    pub price_insights_high: Option<Decimal>,
    /// Flights: the provider's verdict on the fare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub verdict: Option<Verdict>,
    /// Hotels: the room of the price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub room: Option<String>,
    /// The item that the cell shows: the cheapest, or the one that says why there is no price.
    pub item_id: ItemId,
    /// Flights: where the fare is booked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub buy_link: Option<String>,
    /// Hotels: where the stay is booked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub link: Option<String>,
    /// How the market stands to the baseline; only with `baseline`, and not in the baseline's own cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub parity: Option<Parity>,
}

/// A market's price against the baseline's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({"difference": -18.5, "difference_percent": -5.9, "samples": 3, "baseline_samples": 3, "verdict": "gap"})))]
pub struct Parity {
    /// The market's lowest price less the baseline's; null where they do not compare.
    #[serde(serialize_with = "crate::contract::money::price_if_any")]
    #[schema(value_type = Option<f64>)]
    pub difference: Option<Decimal>,
    /// The same in percent of the baseline's, to a hundredth.
    #[serde(serialize_with = "crate::contract::money::price_if_any")]
    #[schema(value_type = Option<f64>)]
    pub difference_percent: Option<Decimal>,
    /// Prices seen from the market.
    pub samples: u32,
    /// Prices seen from the baseline.
    pub baseline_samples: u32,
    /// What the difference is worth.
    pub verdict: ParityVerdict,
}

words! {
    /// What a difference between two markets is worth.
    pub enum ParityVerdict {
        /// The ranges of the samples do not overlap.
        Gap = "gap",
        /// They do: the same prices could have come from one market.
        Noise = "noise",
        /// Fewer than two samples on a side.
        Insufficient = "insufficient",
        /// Another room type, board or currency.
        NotComparable = "not_comparable",
    }
}
