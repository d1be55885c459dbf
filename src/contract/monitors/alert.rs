//! Alerts on the wire (jobs-api, "Monitors"): what a rule went by when it fired, and lists of them.

use super::resource::SlotKind;
use super::rule::{Rule, RuleScope, RuleType};
use crate::contract::declare::request;
use crate::contract::fault::Faults;
use crate::contract::primitives::{Cursor, PageLimit};
use crate::contract::query::query;
use crate::contract::scans::{CellValues, ParityVerdict};
use crate::contract::series::in_order;
use crate::contract::status::{SearchStatus, Verdict};
use crate::ids::{AlertId, ItemId, MonitorId, ScanId};
use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

request! {
    /// The query of `GET /v1/alerts`.
    pub struct AlertsQuery for "the query of alerts" {
        required {}
        optional {
            /// Only alerts of this monitor.
            monitor_id: MonitorId;
            /// Only alerts of rules of this type.
            r#type: RuleType;
            /// Only what fired at or after this time.
            since: Timestamp;
            /// Only what fired before this time.
            until: Timestamp;
            /// The most alerts of a page.
            limit: PageLimit = PageLimit::FIFTY => limit_or_default;
            /// Where the page begins: the `next_cursor` of the page before.
            cursor: Cursor;
        }
        example { "type": "price_below", "limit": 50 }
    }
}

request! {
    /// The query of `GET /v1/monitors/{id}/alerts`.
    pub struct MonitorAlertsQuery for "the query of a monitor's alerts" {
        required {}
        optional {
            /// Only alerts of rules of this type.
            r#type: RuleType;
            /// Only what fired at or after this time.
            since: Timestamp;
            /// Only what fired before this time.
            until: Timestamp;
            /// The most alerts of a page.
            limit: PageLimit = PageLimit::FIFTY => limit_or_default;
            /// Where the page begins: the `next_cursor` of the page before.
            cursor: Cursor;
        }
        example { "type": "price_below", "limit": 50 }
    }
}

query!(AlertsQuery => spanning, MonitorAlertsQuery => spanning);

impl AlertsQuery {
    /// The rules that span fields: a range of time ends after it begins.
    fn spanning(&self) -> Faults {
        in_order(self.since, self.until)
    }
}

impl MonitorAlertsQuery {
    /// The rules that span fields: a range of time ends after it begins.
    fn spanning(&self) -> Faults {
        in_order(self.since, self.until)
    }

    /// The same question of all alerts, about this monitor's.
    #[must_use]
    pub fn of(self, monitor: MonitorId) -> AlertsQuery {
        let Self {
            r#type,
            since,
            until,
            limit,
            cursor,
        } = self;
        AlertsQuery {
            monitor_id: Some(monitor),
            r#type,
            since,
            until,
            limit,
            cursor,
        }
    }
}

/// A rule that fired, with all that it went by.
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
    /// The slot whose run it has seen.
    pub slot: Timestamp,
    /// Where the slot came from.
    pub slot_kind: SlotKind,
    /// The run's scan; null where the slot made none (`stale`).
    pub scan_id: Option<ScanId>,
    /// The rule's type.
    #[serde(rename = "type")]
    pub rule_type: RuleType,
    /// The rule as it was then.
    pub rule: Rule,
    /// What it looks at.
    pub scope: RuleScope,
    /// The swept values of the search that it is about; empty where it is about none.
    #[schema(value_type = CellValues)]
    pub cell: Map<String, Value>,
    /// The price, in major units; null where it is about the lack of one.
    #[serde(serialize_with = "crate::contract::money::price_if_any")]
    #[schema(value_type = Option<f64>)]
    pub price: Option<Decimal>,
    /// The currency of its prices.
    pub currency: Option<String>,
    /// The item that has the price.
    pub item_id: Option<ItemId>,
    /// When the item's answer came.
    pub observed_at: Option<Timestamp>,
    /// What the item's search says of itself.
    pub search_status: Option<SearchStatus>,
    /// The price before this run, as the rule last saw one.
    pub before: Option<PriceMark>,
    /// What was compared with: `price_below` its amount, `drop_percent` the price at which it fires, `new_low` the lowest so far,
    /// `parity_gap_percent` its percentage, `stale` its runs; null for the others.
    #[serde(serialize_with = "crate::contract::money::price_if_any")]
    #[schema(value_type = Option<f64>)]
    pub threshold: Option<Decimal>,
    /// Where the threshold comes from: the lowest of the last runs, or of all; of a further `drop_percent`, the price that it last told.
    pub reference: Option<PriceMark>,
    /// The market that it was compared with.
    pub baseline: Option<AlertBaseline>,
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
    /// Flights: where the fare is booked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub buy_link: Option<String>,
    /// Hotels: where the stay is booked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub link: Option<String>,
    /// How much of the run was searched; null where the slot made no scan.
    pub searched: Option<SearchedShare>,
    /// What the rule knew before.
    pub state_before: RuleState,
    /// And after.
    pub state_after: RuleState,
    /// When the run was judged.
    pub fired_at: Timestamp,
}

/// A price and when it was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PriceMark {
    /// The price, in the currency of what it stands in.
    #[serde(serialize_with = "crate::contract::money::price")]
    #[schema(value_type = f64)]
    pub price: Decimal,
    /// When it was seen.
    pub at: Timestamp,
}

/// The other side of a rate parity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AlertBaseline {
    /// The market.
    pub proxy_country: String,
    /// Its lowest price.
    #[serde(serialize_with = "crate::contract::money::price_if_any")]
    #[schema(value_type = Option<f64>)]
    pub price: Option<Decimal>,
    /// The item that has it.
    pub item_id: Option<ItemId>,
    /// The alert's price less this one.
    #[serde(serialize_with = "crate::contract::money::price_if_any")]
    #[schema(value_type = Option<f64>)]
    pub difference: Option<Decimal>,
    /// The same in percent of this one.
    #[serde(serialize_with = "crate::contract::money::price_if_any")]
    #[schema(value_type = Option<f64>)]
    pub difference_percent: Option<Decimal>,
    /// Prices seen from the alert's market.
    pub samples: u32,
    /// Prices seen from this one.
    pub baseline_samples: u32,
    /// What the difference is worth.
    pub verdict: ParityVerdict,
}

/// How much of a run was searched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SearchedShare {
    /// The searches of the run.
    pub searches: u32,
    /// Those that had a whole answer, a price or none.
    pub answered: u32,
    /// Those that had a part of one.
    pub partial: u32,
    /// Those that did not complete or were refused.
    pub degraded: u32,
    /// Answered whole or in part, of all (0 to 1).
    pub share: f64,
}

/// What a rule remembers from run to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RuleState {
    /// It can fire.
    pub armed: bool,
    /// `new_low`: the lowest price so far; `drop_percent`: that of the last runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub lowest: Option<PriceMark>,
    /// The price at which it last fired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub last_fired: Option<PriceMark>,
    /// `available`, `sold_out`: whether there was a price when that was last known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub had_price: Option<bool>,
    /// `stale`: runs in a row without an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub runs_without_answer: Option<u32>,
}

/// How a rule stands now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RuleStanding {
    /// The rule's type; its place is that of the rule in `alerts`.
    #[serde(rename = "type")]
    pub rule_type: RuleType,
    /// What it looks at.
    pub scope: RuleScope,
    /// It can fire; of a rule over cells, for one of them at least. Null before its first run.
    pub armed: Option<bool>,
    /// Of a rule over cells: how many it remembers.
    pub cells: Option<u32>,
    /// Of a rule over cells: for how many of them it can fire.
    pub armed_cells: Option<u32>,
    /// The currency of its prices; null where there is none, and where its cells have several.
    pub currency: Option<String>,
    /// `new_low`: the lowest price so far; `drop_percent`: that of the last runs. Of a rule over cells the lowest of all.
    pub lowest: Option<PriceMark>,
    /// The price at which it last fired.
    pub last_fired: Option<PriceMark>,
}

/// A page of alerts, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AlertPage {
    /// The alerts as they were put on record; those of one run the strongest first.
    #[schema(value_type = Vec<Alert>)]
    pub data: Vec<Value>,
    /// Where the next page begins; null on the last.
    pub next_cursor: Option<String>,
}

/// What is sent to a monitor's webhook when rules have fired: one event `monitor.alerts` a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MonitorAlerts {
    /// The monitor.
    pub monitor_id: MonitorId,
    /// What people call it.
    pub name: String,
    /// The slot whose run was judged.
    pub slot: Timestamp,
    /// Where it came from.
    pub slot_kind: SlotKind,
    /// The run's scan.
    pub scan_id: Option<ScanId>,
    /// How often its rules fired.
    pub fired: u32,
    /// `alerts` are not all of them: the others are at `GET /v1/monitors/{id}/alerts`, a thousand of a run at most.
    pub truncated: bool,
    /// The strongest.
    pub alerts: Vec<Alert>,
}
