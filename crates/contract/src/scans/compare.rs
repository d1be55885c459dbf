//! The comparison of two scans: which cells became cheaper, dearer, new or gone.

use super::search_fields::CellValues;
use crate::endpoint::Endpoint;
use crate::ids::{ItemId, ScanId};
use crate::string_enum::string_enum;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Two scans of one endpoint, cell by cell; a cell is one combination of swept values, with the
/// lowest price of its samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "endpoint": "flights/oneway",
    "before": "scn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b", "after": "scn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5c",
    "counts": {"cheaper": 1, "dearer": 0, "unchanged": 0, "new": 0, "gone": 0, "not_comparable": 0, "unknown": 0, "no_price": 0},
    "cells": [{
        "cell": {"departure_date": "2027-01-01"}, "change": "cheaper",
        "before": {"price": 180, "currency": "USD", "item_id": "itm_01970a1b2c3d7e4f8a9b0c1d2e3f4a5d"},
        "after": {"price": 164, "currency": "USD", "item_id": "itm_01970a1b2c3d7e4f8a9b0c1d2e3f4a5e"},
        "difference": -16, "difference_percent": -8.89
    }]
})))]
pub struct Comparison {
    /// The endpoint of both scans.
    pub endpoint: Endpoint,
    /// The scan of the path.
    pub before: ScanId,
    /// The scan that it is compared with.
    pub after: ScanId,
    /// How many cells of each kind there are.
    pub counts: ChangeCounts,
    /// The cells in the order of `before`; then those that only `after` has.
    pub cells: Vec<ComparedCell>,
}

string_enum! {
    /// The change of a cell. An empty or degraded search has no price.
    pub enum Change {
        /// Its price fell.
        Cheaper = "cheaper",
        /// Its price rose.
        Dearer = "dearer",
        /// The same price.
        Unchanged = "unchanged",
        /// A price now; before, the search was empty or there was no such cell.
        New = "new",
        /// A price before; now the search is empty or there is no such cell.
        Gone = "gone",
        /// Prices of different currencies.
        NotComparable = "not_comparable",
        /// A search of one side did not complete or has not run.
        Unknown = "unknown",
        /// Both searches completed without a price.
        NoPrice = "no_price",
    }
}

/// Numbers of cells by change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChangeCounts {
    /// `cheaper`.
    pub cheaper: u32,
    /// `dearer`.
    pub dearer: u32,
    /// `unchanged`.
    pub unchanged: u32,
    /// `new`.
    pub new: u32,
    /// `gone`.
    pub gone: u32,
    /// `not_comparable`.
    pub not_comparable: u32,
    /// `unknown`.
    pub unknown: u32,
    /// `no_price`.
    pub no_price: u32,
}

impl ChangeCounts {
    /// Counts one cell.
    pub fn add(&mut self, change: Change) {
        let count = match change {
            Change::Cheaper => &mut self.cheaper,
            Change::Dearer => &mut self.dearer,
            Change::Unchanged => &mut self.unchanged,
            Change::New => &mut self.new,
            Change::Gone => &mut self.gone,
            Change::NotComparable => &mut self.not_comparable,
            Change::Unknown => &mut self.unknown,
            Change::NoPrice => &mut self.no_price,
        };
        *count += 1;
    }
}

/// One cell of two scans.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ComparedCell {
    /// The swept fields of both scans, and fields in which their requests differ, with this cell's
    /// values.
    #[schema(value_type = CellValues)]
    pub cell: Map<String, Value>,
    /// Its change.
    pub change: Change,
    /// Its lowest price before; null if there was none.
    pub before: Option<SeenPrice>,
    /// Its lowest price after; null if there was none.
    pub after: Option<SeenPrice>,
    /// `after` minus `before`; null if the two cannot be compared.
    #[serde(serialize_with = "crate::money::price_if_any")]
    pub difference: Option<Decimal>,
    /// The same in percent of `before`, to two decimals.
    #[serde(serialize_with = "crate::money::price_if_any")]
    pub difference_percent: Option<Decimal>,
}

/// A price and its item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SeenPrice {
    /// In major units.
    #[serde(serialize_with = "crate::money::price")]
    pub price: Decimal,
    /// ISO currency code.
    pub currency: String,
    /// The item that found it.
    pub item_id: ItemId,
    /// It is one of its scan's `implausible` prices: the cell has no other.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub implausible: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_counted_under_its_own_name() {
        for change in Change::ALL {
            let mut counts = ChangeCounts::default();
            counts.add(*change);
            counts.add(*change);
            let counted = serde_json::to_value(counts).unwrap();
            for (name, count) in counted.as_object().unwrap() {
                assert_eq!(
                    count,
                    if name == change.as_str() { 2 } else { 0 },
                    "{change} counts as {name}"
                );
            }
        }
    }
}
