//! Strategies of a scan, which search fewer items than it has: their settings, progress and
//! decisions.

use std::borrow::Cow;

use jiff::Timestamp;
use jiff::civil::Date;
use rust_decimal::Decimal;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Number, Value};
use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};

use crate::body_schema::impl_to_schema;
use crate::field::{Components, FieldKind, FieldSpec, FieldValue, invalid_value};
use crate::ids::ItemId;
use crate::request_body::request_body;
use crate::string_enum::string_enum;
use crate::validation::ValidationErrors;

/// The strategy of a scan: a question, or a watch.
#[derive(Debug, Clone, PartialEq)]
pub enum Strategy {
    /// What can still be the answer.
    Find(FindStrategy),
    /// Where the answer may have changed since the runs before, within `max_requests`.
    Watch(WatchStrategy),
}

request_body! {
    /// Find the cheapest of all searches, or one below a price: start from the stored prices, search
    /// what can still be the answer, and stop when the rest hardly can.
    pub struct FindStrategy for "strategy" {
        required {
            /// What to find.
            find: FindGoal;
        }
        optional {
            /// With `find` `below`: the price, in the currency of the request.
            below: PriceLimit;
            /// Search so that at most this share of such questions was missed, as counted: an
            /// unsearched one was cheaper by more than 1 %, or below the price.
            max_risk: MaxRisk = MaxRisk::DEFAULT => max_risk_or_default;
        }
        example { "find": "cheapest", "max_risk": 0.05 }
    }
}

request_body! {
    /// Watch many searches with few requests: spend `max_requests` where the answer may have changed
    /// since they were last searched. For the runs of a monitor, or a scan that is repeated. Needs
    /// the scan's `max_requests`.
    pub struct WatchStrategy for "strategy" {
        required {
            /// What to know on each run.
            watch: WatchGoal;
        }
        optional {
            /// With `watch` `below`: the price, in the currency of the request.
            below: PriceLimit;
        }
        example { "watch": "below", "below": 150 }
    }
}

string_enum! {
    /// What a strategy finds.
    pub enum FindGoal {
        /// The lowest price.
        Cheapest = "cheapest",
        /// One below a price; the search ends with the first.
        Below = "below",
    }
}

string_enum! {
    /// What a watch wants to know.
    pub enum WatchGoal {
        /// Which is the cheapest.
        Cheapest = "cheapest",
        /// Whether one is below a price, and which is the cheapest of those.
        Below = "below",
    }
}

/// The largest price limit: larger numbers are not exact in JSON.
const MAX_PRICE: f64 = 9_007_199_254_740_991.0;

/// A price that a question or a watch compares with, kept as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceLimit(Number);

impl PriceLimit {
    /// The price; one that is too small for `Decimal` counts as 0.
    pub fn get(&self) -> Decimal {
        let text = self.0.to_string();
        text.parse()
            .or_else(|_| Decimal::from_scientific(&text))
            .unwrap_or_default()
    }
}

impl Serialize for PriceLimit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PriceLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Number::deserialize(deserializer).map(Self)
    }
}

impl FieldValue for PriceLimit {
    fn expected() -> Cow<'static, str> {
        "a number above 0, at most 9007199254740991".into()
    }

    fn read(value: &Value) -> Result<Self, ValidationErrors> {
        let is_price = |price: f64| price > 0.0 && price <= MAX_PRICE;
        value
            .as_number()
            .filter(|number| number.as_f64().is_some_and(is_price))
            .map(|number| Self(number.clone()))
            .ok_or_else(|| invalid_value::<Self>(value))
    }

    fn to_value(&self) -> Value {
        Value::Number(self.0.clone())
    }

    fn schema() -> Schema {
        ObjectBuilder::new()
            .schema_type(Type::Number)
            .exclusive_minimum(Some(0_u8))
            .maximum(Some(MAX_PRICE))
            .into()
    }
}

/// A probability below 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MaxRisk(f64);

impl MaxRisk {
    /// The documented default.
    pub const DEFAULT: Self = Self(0.05);

    /// The probability.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl FieldValue for MaxRisk {
    fn expected() -> Cow<'static, str> {
        "a number from 0 to below 1".into()
    }

    fn read(value: &Value) -> Result<Self, ValidationErrors> {
        let number = value.as_number().and_then(Number::as_f64);
        number
            .filter(|risk| (0.0..1.0).contains(risk))
            .map(Self)
            .ok_or_else(|| invalid_value::<Self>(value))
    }

    fn to_value(&self) -> Value {
        self.0.into()
    }

    fn schema() -> Schema {
        ObjectBuilder::new()
            .schema_type(Type::Number)
            .minimum(Some(0_u8))
            .exclusive_maximum(Some(1_u8))
            .into()
    }
}

impl FieldValue for Strategy {
    const KIND: FieldKind = FieldKind::Object;
    const COMPONENT: Option<&'static str> = Some("Strategy");

    fn expected() -> Cow<'static, str> {
        format!(
            "{}, or {}",
            FindStrategy::expected(),
            WatchStrategy::expected()
        )
        .into()
    }

    fn read(value: &Value) -> Result<Self, ValidationErrors> {
        let fields = value
            .as_object()
            .ok_or_else(|| invalid_value::<Self>(value))?;
        let has = |name: &str| fields.contains_key(name);
        let has_any = |of: &[FieldSpec]| of.iter().any(|field| has(field.name));
        // Fields of several are a fault of the first of these, which names those that it does not
        // have. `below` belongs to two of them: alone it is taken for that of a watch.
        if has("watch") || !has("find") && has_any(WatchStrategy::FIELDS) {
            WatchStrategy::from_body(fields).map(Self::Watch)
        } else {
            FindStrategy::from_body(fields).map(Self::Find)
        }
    }

    fn to_value(&self) -> Value {
        match self {
            Self::Find(strategy) => strategy.to_value(),
            Self::Watch(strategy) => strategy.to_value(),
        }
    }

    fn schema() -> Schema {
        OneOfBuilder::new()
            .description(Some("Which of a scan's searches are made."))
            .item(FindStrategy::schema_ref())
            .item(WatchStrategy::schema_ref())
            .into()
    }

    fn nested_components(components: &mut Components) {
        FindStrategy::components(components);
        WatchStrategy::components(components);
    }
}

impl_to_schema!(Strategy);

/// The progress of a scan's strategy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum StrategyProgress {
    /// Of a question.
    Find(FindProgress),
    /// Of a watch.
    Watch(WatchProgress),
}

impl StrategyProgress {
    /// Items that will not be searched.
    pub const fn not_searched(&self) -> u32 {
        match self {
            Self::Find(progress) => progress.unsearched,
            Self::Watch(progress) => progress.unsearched,
        }
    }

    /// Whether its last decision is made, after which nothing more is searched.
    pub const fn is_decided(&self) -> bool {
        match self {
            Self::Find(progress) => progress.ended_by.is_some(),
            Self::Watch(progress) => progress.ended_by.is_some(),
        }
    }

    /// The strategy as it was requested.
    pub fn request(&self) -> Value {
        match self {
            Self::Find(progress) => {
                let mut request =
                    serde_json::json!({"find": progress.find, "max_risk": progress.max_risk});
                if let Some(below) = &progress.below {
                    request["below"] = below.to_value();
                }
                request
            }
            Self::Watch(progress) => {
                let mut request = serde_json::json!({"watch": progress.watch});
                if let Some(below) = &progress.below {
                    request["below"] = below.to_value();
                }
                request
            }
        }
    }
}

/// The progress and the answer of a scan that finds the cheapest, or one below a price.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "find": "cheapest", "max_risk": 0.05,
    "best": {"item": "itm_01970a1b2c3d7e4f8a9b0c1d2e3f4a5c", "date": "2027-01-14", "price": 164, "currency": "USD"},
    "risk_of_cheaper": 0.0379, "counted": {"questions": 1188, "missed": 45}, "stored_prices": 90, "searched": 9, "reused": 0, "unsearched": 81, "decisions": 6,
    "ended_by": "nothing_below"
})))]
pub struct FindProgress {
    /// As requested.
    pub find: FindGoal,
    /// As requested, with `find` `below`; otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    pub below: Option<PriceLimit>,
    /// As requested, or the default.
    pub max_risk: f64,
    /// The cheapest that a search returned so far, in the currency of the request.
    pub best: Option<FoundBest>,
    /// How often another item was cheaper than the answer to such a question by more than 1 %. Null
    /// until the last decision, and if that was not counted often enough. Always null with `find`
    /// `below`.
    #[schema(minimum = 0, maximum = 1)]
    pub risk_of_cheaper: Option<f64>,
    /// With `find` `below`: how often the answer to such a question missed an item, although none was
    /// found; 0 if one was. Absent until the last decision, and if that was not counted often enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1)]
    pub risk_of_miss: Option<f64>,
    /// The items with a stored price when the first decision was made; null before it.
    pub stored_prices: Option<u32>,
    /// What was counted of such questions, of the caller's own once these are 30; null before the
    /// first decision, and where too few were counted.
    pub counted: Option<MissedQuestions>,
    /// Items that were searched and have ended.
    pub searched: u32,
    /// Items that took an answer that is young enough for `max_age_seconds`.
    pub reused: u32,
    /// Items that will not be searched: their state is `skipped`, and `items` does not count them.
    pub unsearched: u32,
    /// The number of its decisions.
    pub decisions: u32,
    /// The reason of the last decision, after which nothing more is searched.
    pub ended_by: Option<DecisionReason>,
}

/// The progress of a run of a watch, and what it says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "watch": "cheapest", "below": null,
    "best": {"item": "itm_01970a1b2c3d7e4f8a9b0c1d2e3f4a5c", "date": "2027-01-14", "price": 164, "currency": "USD"},
    "risk_of_miss": null, "stored_prices": 90, "searched": 9, "reused": 0, "unsearched": 81, "decisions": 6,
    "ended_by": "limit_reached"
})))]
pub struct WatchProgress {
    /// As requested.
    pub watch: WatchGoal,
    /// As requested, with `below`.
    #[schema(value_type = Option<f64>)]
    pub below: Option<PriceLimit>,
    /// The cheapest that a search returned so far, in the currency of the request.
    pub best: Option<FoundBest>,
    /// 0 if nothing can have been missed, because all items were searched. The unsearched share if
    /// stored prices turn out to say nothing. Otherwise null: of runs nothing was counted.
    #[schema(minimum = 0, maximum = 1)]
    pub risk_of_miss: Option<f64>,
    /// The items with a stored price when the first decision was made; null before it.
    pub stored_prices: Option<u32>,
    /// Items that were searched and have ended.
    pub searched: u32,
    /// Items that took an answer that is young enough for `max_age_seconds`.
    pub reused: u32,
    /// Items that will not be searched in this run: their state is `skipped`, and `items` does not
    /// count them.
    pub unsearched: u32,
    /// The number of its decisions.
    pub decisions: u32,
    /// The reason of the last decision, after which nothing more is searched.
    pub ended_by: Option<DecisionReason>,
}

/// How many questions were missed, of those that were counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MissedQuestions {
    /// Questions whose items were all searched afterwards or beside it, played again.
    pub questions: u32,
    /// Those in which another item was cheaper by more than 1 %.
    pub missed: u32,
}

impl MissedQuestions {
    /// Whether a risk is the share of these.
    pub fn is_share(self, risk: f64) -> bool {
        let share = f64::from(self.missed) / f64::from(self.questions.max(1));
        (risk - share).abs() < 1e-4
    }
}

/// The cheapest item that was searched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FoundBest {
    /// The item.
    pub item: ItemId,
    /// Its departure or check-in.
    pub date: Date,
    /// In major units.
    #[serde(serialize_with = "crate::money::price")]
    pub price: Decimal,
    /// ISO currency code.
    pub currency: String,
}

string_enum! {
    /// Why a strategy decided as it did.
    pub enum DecisionReason {
        /// Search again what was the cheapest, until it still is.
        CheapestAgain = "cheapest_again",
        /// Search those that were not searched for the longest time.
        LongestUnseen = "longest_unseen",
        /// Search every fourth date where no date near it is known.
        EveryFourth = "every_fourth",
        /// Search those with the lowest bounds.
        LowestBound = "lowest_bound",
        /// Search on: what was found shows that stored prices say nothing.
        NothingKnown = "nothing_known",
        /// End: one below the price was found.
        Found = "found",
        /// End: no bound is below the best price, or below the asked one.
        NothingBelow = "nothing_below",
        /// End: so many searches in a row found nothing better.
        NothingBetter = "nothing_better",
        /// End: the scan's `max_requests` leaves no further search.
        LimitReached = "limit_reached",
        /// End: every item was searched.
        NothingLeft = "nothing_left",
        /// End, after a retry: the risk is stated anew, and nothing more is searched.
        Retried = "retried",
    }
}

/// A decision of a scan's strategy, stored before its searches begin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "number": 2, "decided_at": "2026-12-01T08:00:04Z", "reason": "lowest_bound", "searches": [41, 47],
    "risk": null, "best": {"position": 44, "price": 164}, "stored_prices": 90, "searched": 2, "may_search": null
})))]
pub struct StrategyDecision {
    /// From 1.
    pub number: u32,
    /// When.
    pub decided_at: Timestamp,
    /// Why.
    pub reason: DecisionReason,
    /// The positions of the items to search, the most promising first; empty: the end.
    pub searches: Vec<u32>,
    /// Of an end: how often such an answer is wrong; null if that was not counted.
    #[schema(minimum = 0, maximum = 1)]
    pub risk: Option<f64>,
    /// The cheapest so far.
    pub best: Option<DecisionBest>,
    /// The items with a stored price.
    pub stored_prices: u32,
    /// The items that had been searched, reused answers included.
    pub searched: u32,
    /// How many searches `max_requests` allowed for the whole scan; null: any number.
    pub may_search: Option<u32>,
}

/// The cheapest item when a decision was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DecisionBest {
    /// Its position.
    pub position: u32,
    /// In major units.
    #[serde(serialize_with = "crate::money::price")]
    pub price: Decimal,
}

/// A page of a strategy's decisions, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DecisionPage {
    /// The decisions.
    pub data: Vec<StrategyDecision>,
    /// Where the next page begins; null on the last.
    pub next_cursor: Option<String>,
}
