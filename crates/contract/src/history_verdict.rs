//! The verdict on a price from the caller's own price history (history.md, rules 33 to 46). Not
//! here: the marketplace's verdict on a fare (`status`), and how a verdict is computed
//! (`history::verdict`).

use jiff::civil::Date;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::string_enum::string_enum;
use super::validation::{ValidationError, ValidationErrors};

string_enum! {
    /// A price among the past prices of the same product, seen the same number of days ahead.
    pub enum PriceClass {
        /// Percentile up to 20.
        Low = "low",
        /// Percentile over 20, up to 40.
        Below = "below",
        /// Percentile over 40, up to 60.
        Typical = "typical",
        /// Percentile over 60, up to 80.
        Above = "above",
        /// Percentile over 80.
        High = "high",
        /// There are fewer than 20 prices to compare with, or most of them are the same price.
        Insufficient = "insufficient",
        /// So far off the usual price of its departure or stay that it is taken for an error.
        Implausible = "implausible",
    }
}

/// A verdict from the caller's own history: only prices of the same product and the same length of
/// stay, seen on earlier days. It says how a price compares with the past, not what the price will
/// do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "class": "low", "percentile": 18.3, "n": 214, "lower": 34, "higher": 178, "bin": {"from_days": 31, "to_days": 60},
    "since": "2026-06-01", "sentence": "cheaper than 83 % of 214 prices seen 31 to 60 days before departure since 1 June 2026",
    "became_cheaper": {"n": 39, "count": 11, "percent": 28.2, "percent_from": 16.5, "percent_to": 43.8}
})))]
pub struct HistoryVerdict {
    /// Low, typical, high …
    pub class: PriceClass,
    /// From 0, the cheapest, to 100, to one decimal. Where there are few prices, prices of other
    /// numbers of days ahead also count. Null with `insufficient` and `implausible`.
    pub percentile: Option<f64>,
    /// Number of prices that it is compared with: one for each departure or stay and day.
    pub n: u32,
    /// Number of them that are lower.
    pub lower: u32,
    /// Number of them that are higher; the others are equal.
    pub higher: u32,
    /// The days before departure or check-in at which these prices were seen; null for a price
    /// that was seen later.
    pub bin: Option<LeadBin>,
    /// The day in UTC on which the first of these prices was seen; null if there is none.
    pub since: Option<Date>,
    /// The same in English.
    pub sentence: String,
    /// How many prices like this one became 10 % cheaper; absent with fewer than 20.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub became_cheaper: Option<BecameCheaper>,
    /// What the departure or stay cost lately; absent unless the price is `implausible`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub usual: Option<UsualPrice>,
}

impl HistoryVerdict {
    /// The class and the sentence, which names `implausible` itself.
    pub fn in_words(&self) -> String {
        match self.class {
            PriceClass::Implausible => self.sentence.clone(),
            class => format!("{class}, {}", self.sentence),
        }
    }
}

/// The median of the last prices of three earlier days of a departure or stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsualPrice {
    /// In the currency of the surrounding object.
    #[serde(serialize_with = "crate::money::price")]
    pub price: Decimal,
    /// The first of these days, in UTC.
    pub since: Date,
}

/// A range of days before departure or check-in, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeadBin {
    /// The fewest days.
    pub from_days: u32,
    /// The most days; null if there is no end.
    pub to_days: Option<u32>,
}

/// Past prices of the same class and bin, and how many of them were followed, within 14 days, by a
/// price of the same departure or stay that was at least 10 % lower. A count of the past, not a
/// forecast.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BecameCheaper {
    /// Number of past prices like this one that were looked at again within 14 days.
    pub n: u32,
    /// Number of them that became at least 10 % cheaper.
    pub count: u32,
    /// `count` of `n` in percent, to one decimal.
    pub percent: f64,
    /// Lower end of the 95 % Wilson interval of `percent`.
    pub percent_from: f64,
    /// Upper end of the interval.
    pub percent_to: f64,
}

/// Rejects `history_verdict=true` for a file.
///
/// # Errors
/// If a verdict is asked for.
pub fn no_verdict_in_files(is_asked: bool, media_type: &str) -> Result<(), ValidationErrors> {
    if is_asked {
        let expected = format!("false, since {media_type} has no verdicts; application/json has");
        return Err(ValidationError::new("history_verdict", &true.into(), expected).into());
    }
    Ok(())
}
