//! Statements over the history's tables.

pub(super) mod daily_pack;
pub(super) mod grid;
pub(super) mod past_prices;
pub(super) mod products;
pub(super) mod select;
pub(super) mod write;
