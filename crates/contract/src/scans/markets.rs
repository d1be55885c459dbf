//! Markets of one hotel against one of them, over all stays of a scan.

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The markets of a scan, compared with one of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MarketReport {
    /// The market with which the others are compared, in lower case.
    pub baseline: String,
    /// Each other market, in the order of the scan.
    pub markets: Vec<MarketParity>,
}

/// A market against the baseline, stay by stay. A stay is one combination of the other swept values.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MarketParity {
    /// The market, in lower case.
    pub market: String,
    /// Stays with a `gap` below the baseline's price.
    pub cheaper: u32,
    /// Stays with a `gap` above it.
    pub dearer: u32,
    /// Stays whose difference is `noise`.
    pub same: u32,
    /// Stays that say nothing: `insufficient` or `not_comparable`.
    pub unknown: u32,
    /// The share of `same` among the stays that say something, in percent; null if there are none.
    #[serde(serialize_with = "crate::money::price_if_any")]
    pub same_percent: Option<Decimal>,
    /// The differences in percent of the baseline's price, of the stays that say something.
    pub difference_percent: Option<DifferenceRange>,
    /// The most by which prices of one market differ from each other, in the cheaper of this market and
    /// the baseline, in percent of the baseline's lowest price, of the stays that say something; at least 1.
    #[serde(serialize_with = "crate::money::price_if_any")]
    pub noise_percent: Option<Decimal>,
}

/// Differences in percent, to two decimals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DifferenceRange {
    /// The lowest.
    #[serde(serialize_with = "crate::money::price")]
    pub lowest: Decimal,
    /// The median; of an even number the mean of the middle two.
    #[serde(serialize_with = "crate::money::price")]
    pub median: Decimal,
    /// The highest.
    #[serde(serialize_with = "crate::money::price")]
    pub highest: Decimal,
}
