//! Alerts (monitors.md, rules 47 to 51): the data on which a rule fired, and lists of alerts.

use super::rule::{Rule, RuleScope, RuleType};
use super::slot::SlotKind;
use crate::history_verdict::HistoryVerdict;
use crate::ids::{AlertId, DeliveryId, ItemId, MonitorId, ScanId};
use crate::primitives::{Cursor, PageLimit};
use crate::query_string::query_string;
use crate::request_body::{field_groups, grouped_body, request_body};
use crate::scans::MarketReport;
use crate::scans::{CellValues, ParityVerdict};
use crate::status::{SearchStatus, Verdict};
use crate::time_range::time_range_errors;
use crate::usage::PlanForecast;
use crate::validation::ValidationErrors;
use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

// The fields of queries of several alerts.
field_groups! { $ alerts_fields {
    ..filters {
        /// Only alerts of rules of this type.
        r#type: RuleType;
        /// Only alerts fired at or after this time.
        since: Timestamp;
        /// Only alerts fired before this time.
        until: Timestamp;
        /// Whether each alert about a price has `history_verdict`: how the price compares with
        /// your own past prices. Of at most 100 products of a page.
        history_verdict: bool = false => history_verdict_or_default;
        /// The maximum alerts of a page.
        limit: PageLimit = PageLimit::FIFTY => limit_or_default;
        /// Where the page begins: the `next_cursor` of the previous page.
        cursor: Cursor;
    }
} }

grouped_body! {
    { alerts_fields }
    /// The query of `GET /v1/alerts`.
    pub struct AlertsQuery for "the query of alerts" {
        required {}
        optional {
            /// Only alerts of this monitor.
            monitor_id: MonitorId;
            ..filters;
        }
        example { "type": "price_below", "limit": 50 }
    }
}

grouped_body! {
    { alerts_fields }
    /// The query of `GET /v1/monitors/{id}/alerts`.
    pub struct MonitorAlertsQuery for "the query of a monitor's alerts" {
        required {}
        optional {
            ..filters;
        }
        example { "type": "price_below", "limit": 50 }
    }
}

request_body! {
    /// The query of `GET /v1/alerts/{id}`.
    pub struct AlertQuery for "the query of an alert" {
        required {}
        optional {
            /// Whether an alert about a price has `history_verdict`: how the price compares with
            /// your own past prices.
            history_verdict: bool = false => history_verdict_or_default;
        }
        example { "history_verdict": true }
    }
}

query_string!(AlertQuery);
query_string!(AlertsQuery => cross_field_errors, MonitorAlertsQuery => cross_field_errors);

impl AlertsQuery {
    /// Rules across fields: a time range ends after it begins.
    fn cross_field_errors(&self) -> ValidationErrors {
        time_range_errors(self.since, self.until)
    }
}

impl MonitorAlertsQuery {
    /// Rules across fields: a time range ends after it begins.
    fn cross_field_errors(&self) -> ValidationErrors {
        time_range_errors(self.since, self.until)
    }

    /// The same query over all alerts, restricted to this monitor.
    pub fn for_monitor(self, monitor: MonitorId) -> AlertsQuery {
        AlertsQuery {
            monitor_id: Some(monitor),
            r#type: self.r#type,
            since: self.since,
            until: self.until,
            history_verdict: self.history_verdict,
            limit: self.limit,
            cursor: self.cursor,
        }
    }
}

/// A rule that fired, with the data on which it fired.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "id": "alr_01970a1b2c3d7e4f8a9b0c1d2e3f4a60",
    "monitor_id": "mon_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b",
    "slot": "2026-12-01T06:00:00Z", "slot_kind": "schedule", "scan_id": "scn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b",
    "type": "price_below", "rule": {"type": "price_below", "amount": 200, "rearm_percent": 5}, "scope": "scan",
    "cell": {"departure_date": "2027-01-14"},
    "price": 199, "currency": "USD", "item_id": "itm_01970a1b2c3d7e4f8a9b0c1d2e3f4a5c", "observed_at": "2026-12-01T06:00:09Z",
    "search_status": "ok", "before": {"price": 211, "at": "2026-11-30T06:00:08Z"},
    "threshold": 200, "reference": null, "baseline": null,
    "price_insights_low": 180, "price_insights_high": 320, "verdict": "typical",
    "buy_link": "https://example.com/fare?curr=USD",
    "searched": {"searches": 30, "answered": 28, "partial": 1, "degraded": 1, "share": 0.9667},
    "state_before": {"armed": true},
    "state_after": {"armed": false, "last_fired": {"price": 199, "at": "2026-12-01T06:00:09Z"}},
    "fired_at": "2026-12-01T06:00:12Z"
})))]
pub struct Alert {
    /// Its id.
    pub id: AlertId,
    /// The monitor whose rule it is.
    pub monitor_id: MonitorId,
    /// The slot of the evaluated run.
    pub slot: Timestamp,
    /// What created the slot.
    pub slot_kind: SlotKind,
    /// The run's scan; null if the slot has none (`stale`).
    pub scan_id: Option<ScanId>,
    /// The rule's type. Alerts of older versions may have one that no rule has any more.
    #[serde(rename = "type")]
    pub rule_type: String,
    /// The rule at that time, as in `alerts` of a monitor. Of a type that no rule has any more it is
    /// as it was.
    #[schema(value_type = Rule)]
    pub rule: Value,
    /// What the rule evaluates.
    pub scope: RuleScope,
    /// The swept values of the search of the alert; empty if there is none.
    #[schema(value_type = CellValues)]
    pub cell: Map<String, Value>,
    /// The price, in major units; null if the alert is about a missing price.
    #[serde(serialize_with = "crate::money::price_if_any")]
    pub price: Option<Decimal>,
    /// The currency of its prices.
    pub currency: Option<String>,
    /// The item that has the price.
    pub item_id: Option<ItemId>,
    /// When the item's response arrived.
    pub observed_at: Option<Timestamp>,
    /// The search status of the item.
    pub search_status: Option<SearchStatus>,
    /// The last price that the rule evaluated before this run.
    pub before: Option<PriceMark>,
    /// The compared value. `price_below`: its amount; `drop_percent`: the price at which it fires;
    /// `new_low`: the lowest of its days; `parity_gap_percent`: its percentage;
    /// `percentile_at_most`: its percentile; `stale`: its runs; null for the others.
    #[serde(serialize_with = "crate::money::price_if_any")]
    pub threshold: Option<Decimal>,
    /// The price from which the threshold follows: the lowest of the last runs or days; for a
    /// repeated `drop_percent`, the price at which it last fired.
    pub reference: Option<PriceMark>,
    /// The baseline market.
    pub baseline: Option<AlertBaseline>,
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
    /// Flights: where the fare is booked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub buy_link: Option<String>,
    /// Hotels: where the stay is booked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub link: Option<String>,
    /// The verdict from the caller's own history on the day of the price. `percentile_at_most`
    /// always has it; the others with `history_verdict=true`, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub history_verdict: Option<HistoryVerdict>,
    /// `back_in_stock`: when the last complete answer, without offers, arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub was_empty_at: Option<Timestamp>,
    /// Rules with `confirm`: when the price was found by one more search. `price` is that of this
    /// search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub confirmed_at: Option<Timestamp>,
    /// Rules with `confirm`: the price as it was found first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub found_first: Option<PriceMark>,
    /// `plan_ends_before_reset`: when the plan ends, and what uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub plan: Option<PlanForecast>,
    /// `every_run` of a monitor that compares the markets of one hotel: its markets in this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub markets: Option<MarketReport>,
    /// The completed searches of the run; null if the slot has no scan.
    pub searched: Option<SearchedShare>,
    /// The state of the rule before.
    pub state_before: RuleState,
    /// The state of the rule after.
    pub state_after: RuleState,
    /// When the run was evaluated.
    pub fired_at: Timestamp,
    /// When it will be sent to the webhook, while `notify` of its monitor holds it. Never in events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub notify_at: Option<Timestamp>,
    /// The delivery that reported it, with the other alerts of its run or digest. Never in events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub delivery_id: Option<DeliveryId>,
}

/// A price and its time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PriceMark {
    /// The price, in the currency of the surrounding object.
    #[serde(serialize_with = "crate::money::price")]
    pub price: Decimal,
    /// When it was found.
    pub at: Timestamp,
}

/// The baseline of a rate parity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AlertBaseline {
    /// The market.
    pub proxy_country: String,
    /// Its lowest price.
    #[serde(serialize_with = "crate::money::price_if_any")]
    pub price: Option<Decimal>,
    /// The item that has it.
    pub item_id: Option<ItemId>,
    /// The alert's price minus this price.
    #[serde(serialize_with = "crate::money::price_if_any")]
    pub difference: Option<Decimal>,
    /// The same in percent of this price.
    #[serde(serialize_with = "crate::money::price_if_any")]
    pub difference_percent: Option<Decimal>,
    /// Number of prices in the alert's market.
    pub samples: u32,
    /// Number of prices in the baseline market.
    pub baseline_samples: u32,
    /// Whether the difference is significant.
    pub verdict: ParityVerdict,
}

/// The completed searches of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SearchedShare {
    /// The searches of the run.
    pub searches: u32,
    /// Searches with a complete answer, with or without a price.
    pub answered: u32,
    /// Searches with a partial answer.
    pub partial: u32,
    /// Searches that did not complete or were refused.
    pub degraded: u32,
    /// The share with a complete or partial answer (0 to 1).
    pub share: f64,
}

/// The state of a rule between runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RuleState {
    /// The rule can fire.
    pub armed: bool,
    /// `new_low`: the lowest price of its days; `drop_percent`: that of the last runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub lowest: Option<PriceMark>,
    /// The price at which it last fired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub last_fired: Option<PriceMark>,
    /// `available`, `sold_out`: whether the last complete answer had a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub had_price: Option<bool>,
    /// `stale`: consecutive runs without an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub runs_without_answer: Option<u32>,
}

/// The current state of a rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RuleStanding {
    /// The rule's type; the order is that of `alerts`.
    #[serde(rename = "type")]
    pub rule_type: RuleType,
    /// What the rule evaluates.
    pub scope: RuleScope,
    /// The rule can fire; with scope `cell`, for at least one cell. Null before its first run.
    pub armed: Option<bool>,
    /// Scope `cell`: number of cells with a state.
    pub cells: Option<u32>,
    /// Scope `cell`: number of cells for which it can fire.
    pub armed_cells: Option<u32>,
    /// The currency of its prices; null if there is none or its cells have several.
    pub currency: Option<String>,
    /// `new_low`: the lowest price of its days; `drop_percent`: that of the last runs. Scope `cell`:
    /// the lowest of all cells.
    pub lowest: Option<PriceMark>,
    /// The price at which it last fired.
    pub last_fired: Option<PriceMark>,
}

/// A page of alerts, newest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AlertPage {
    /// The alerts as recorded, with what became of them; within one run the strongest first.
    #[schema(value_type = Vec<Alert>)]
    pub data: Vec<Value>,
    /// Where the next page begins; null on the last.
    pub next_cursor: Option<String>,
}

/// The data of the event `monitor.alerts`, sent to a monitor's webhook: one per run in which rules
/// fired.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MonitorAlerts {
    /// The monitor.
    pub monitor_id: MonitorId,
    /// Its name.
    pub name: String,
    /// The slot of the evaluated run.
    pub slot: Timestamp,
    /// What created it.
    pub slot_kind: SlotKind,
    /// The run's scan.
    pub scan_id: Option<ScanId>,
    /// How many times its rules fired.
    pub fired: u32,
    /// `alerts` does not contain all of them: the others are at `GET /v1/monitors/{id}/alerts`, at
    /// most a thousand per run.
    pub truncated: bool,
    /// The strongest alerts.
    pub alerts: Vec<Alert>,
}

/// The data of the event `monitor.digest`, sent to a monitor's webhook: the alerts that `notify`
/// has held, of one or several runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MonitorDigest {
    /// The monitor.
    pub monitor_id: MonitorId,
    /// Its name.
    pub name: String,
    /// When the oldest of its alerts fired, those that are not in `alerts` included.
    pub since: Timestamp,
    /// The time for which they were held: the end of the quiet hours, or that of the digest. The
    /// event is later if no process ran, and earlier if `notify` was changed.
    pub notify_at: Timestamp,
    /// How many times the rules fired.
    pub fired: u32,
    /// `alerts` does not contain all of them: the others are at
    /// `GET /v1/monitors/{id}/alerts?since=…`, at most a thousand per run.
    pub truncated: bool,
    /// The newest alerts; within one run the strongest first. Each has its `slot` and `scan_id`.
    #[schema(value_type = Vec<Alert>)]
    pub alerts: Vec<Value>,
}
