//! Statements over the history's tables.

use serde_json::value::RawValue;

pub(super) mod daily_pack;
pub(super) mod grid;
pub(super) mod past_prices;
pub(super) mod products;
pub(super) mod select;
pub(super) mod write;

/// A product's JSON, not parsed.
type RawProduct = Box<RawValue>;
