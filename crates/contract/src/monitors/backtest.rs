//! Backtests of a monitor (monitors.md, rules 80 to 83).

use super::rule::{Rule, RuleScope, RuleType};
use crate::history_verdict::HistoryVerdict;
use crate::monitors::{Monitor, MonitorRequest, MonitorSchedule, PriceMark};
use crate::primitives::bounded_integer;
use crate::query_string::query_string;
use crate::request_body::request_body;
use crate::scans::{CellValues, RequestRange};
use jiff::Timestamp;
use jiff::civil::Date;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

bounded_integer! {
    /// The days of a backtest.
    pub struct BacktestDays(u16): 1..=366;
}

impl BacktestDays {
    /// The documented default.
    pub const NINETY: Self = Self(90);
}

request_body! {
    /// The query of `POST /v1/monitors/backtest`.
    pub struct BacktestQuery for "the query of a backtest" {
        required {}
        optional {
            /// How many days back the replay begins.
            days: BacktestDays = BacktestDays::NINETY => days_or_default;
        }
        example { "days": 365 }
    }
}

query_string!(BacktestQuery);

/// What a monitor would have done in the past days, by the caller's own stored prices. It is
/// replayed by days: a run of a day sees the lowest price that a complete search found on that day
/// of UTC, and of several runs of a day only the first is evaluated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Backtest {
    /// Where the replay begins.
    pub since: Timestamp,
    /// Where it ends: now.
    pub until: Timestamp,
    /// Slots of the schedule in that time.
    pub slots: u32,
    /// Of these slots, those that would have started a run.
    pub runs: u32,
    /// The slots whose scan could not be planned, by months, oldest first.
    #[serde(default)]
    #[schema(required)]
    pub failed: Vec<BacktestCeiling>,
    /// The slots that `max_requests_per_month` would have left without a run, by months, oldest
    /// first.
    pub monthly_ceiling: Vec<BacktestCeiling>,
    /// Days with a run.
    pub days: u32,
    /// Of these days, those with a stored price.
    pub days_with_prices: u32,
    /// Searches of the evaluated runs.
    pub searches: u32,
    /// Of these searches, those with a stored price of their day.
    pub searches_with_prices: u32,
    /// The requests that the runs would have cost. A strategy, retries and confirmations make `least`
    /// and `most` differ.
    pub requests: RequestRange,
    /// The requests that the backtest cost.
    pub billed_requests: u32,
    /// How many times rules would have fired.
    pub fired: u32,
    /// The alerts that would have been sent, oldest first, at most a thousand.
    pub alerts: Vec<BacktestAlert>,
    /// Rules that the stored prices cannot replay, and why.
    pub not_replayed: Vec<NotReplayed>,
}

/// The slots of a month, in the zone of the schedule, that would have had no run. For the monthly
/// limit each run of the month counts with the least that it may cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BacktestCeiling {
    /// The first of them.
    pub slot: Timestamp,
    /// How many they are.
    pub slots: u32,
    /// The `reason` that the first one would have had.
    pub reason: String,
}

/// An alert that would have been sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BacktestAlert {
    /// The slot of the run.
    pub slot: Timestamp,
    /// The rule's type.
    #[serde(rename = "type")]
    pub rule_type: RuleType,
    /// The rule.
    pub rule: Rule,
    /// What the rule evaluates.
    pub scope: RuleScope,
    /// The swept values of the search; empty without a sweep.
    #[schema(value_type = CellValues)]
    pub cell: Map<String, Value>,
    /// Departure or check-in.
    pub first_date: Date,
    /// Return or check-out, if any.
    pub last_date: Option<Date>,
    /// The price, in major units.
    #[serde(serialize_with = "crate::money::price")]
    pub price: Decimal,
    /// Its currency.
    pub currency: String,
    /// The compared value, as in an alert.
    #[serde(serialize_with = "crate::money::price_if_any")]
    pub threshold: Option<Decimal>,
    /// The price from which the threshold follows; its time is the begin of its day, or of its run.
    pub reference: Option<PriceMark>,
    /// `back_in_stock`: the day of the last complete answer, without offers; its begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub was_empty_at: Option<Timestamp>,
    /// The verdict that `percentile_at_most` rests on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub history_verdict: Option<HistoryVerdict>,
}

impl BacktestAlert {
    /// The swept values of the search that are no dates: `CDG`, `de`.
    pub fn other_values(&self) -> Vec<String> {
        let is_date = |name: &str| name.ends_with("_date") || name == "nights";
        let others = self.cell.iter().filter(|(name, _)| !is_date(name));
        let text = |value: &Value| value.as_str().map(str::to_owned);
        others
            .map(|(_, value)| text(value).unwrap_or_else(|| value.to_string()))
            .collect()
    }
}

impl Monitor {
    /// The body that backtests it: what decides its slots, its searches and its rules.
    ///
    /// # Errors
    /// When its scan is no object.
    pub fn backtest_body(&self) -> serde_json::Result<Map<String, Value>> {
        let scan: Map<String, Value> = self.scan.read()?;
        let MonitorSchedule { cron, timezone } = &self.schedule;
        let alerts = serde_json::to_value(&self.alerts)?;
        let mut body = MonitorRequest::draft(&self.name, [cron, timezone], scan, alerts);
        let max = self.requests.max_per_month;
        body.insert("max_requests_per_month".to_owned(), max.into());
        Ok(body)
    }
}

/// A rule that was not replayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NotReplayed {
    /// Its index in `alerts`.
    pub index: u32,
    /// Its type.
    #[serde(rename = "type")]
    pub rule_type: RuleType,
    /// Why: mostly what the stored prices lack.
    pub reason: String,
}
