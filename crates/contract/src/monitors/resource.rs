//! Responses with a monitor.

use super::alert::RuleStanding;
use super::notify::NotifySettings;
use super::rule::Rule;
use super::scan::MonitorScan;
use super::slot::MonitorSlot;
use super::webhook::{ShownSecret, Webhook};
use crate::RawJson;
use crate::ids::{ChannelId, MonitorId};
use crate::scans::{PlanCost, RequestRange};
use crate::string_enum::string_enum;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A scan on a schedule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "id": "mon_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b",
    "name": "January fares",
    "schedule": {"cron": "0 6 * * *", "timezone": "Europe/London"}, "schedule_warnings": [],
    "scan": {
        "endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR"},
        "sweep": {"departure_date": {"from": "+7d", "to": "+36d"}}
    },
    "alerts": [{"type": "price_below", "amount": 200}],
    "rule_standings": [{
        "type": "price_below", "scope": "scan", "armed": false, "cells": null, "armed_cells": null, "currency": "USD", "lowest": null,
        "last_fired": {"price": 189, "at": "2026-12-01T06:00:09Z"}
    }],
    "webhook_url": null, "webhook": null, "webhook_secret": null,
    "notify": null, "next_digest_at": null, "held": null, "channels": ["chn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b"],
    "status": "active", "status_reason": null,
    "next_slot": "2026-12-02T06:00:00Z",
    "last_slot": {
        "slot": "2026-12-01T06:00:00Z", "kind": "schedule", "outcome": "ran", "reason": null,
        "scan_id": "scn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b", "decided_at": "2026-12-01T06:00:00.012Z",
        "judged": {"at": "2026-12-01T06:00:12Z", "fired": 1, "alerts": 1, "not_comparable": 0, "implausible": 0, "unconfirmed": 0}
    },
    "requests": {"this_month": 30, "max_per_month": 2000},
    "key_custody": {"until": null},
    "forecast": null,
    "created_at": "2026-11-30T08:00:00Z", "updated_at": "2026-11-30T08:00:00Z"
})))]
pub struct Monitor {
    /// Its id.
    pub id: MonitorId,
    /// Its name.
    pub name: String,
    /// When it runs.
    pub schedule: MonitorSchedule,
    /// Unexpected effects of its cron fields, and a watch for a price whose find no alert rule reports.
    #[serde(default)]
    #[schema(required = true)]
    pub schedule_warnings: Vec<String>,
    /// The scan request of each run, as given.
    #[schema(value_type = MonitorScan)]
    pub scan: RawJson,
    /// When to send an alert.
    pub alerts: Vec<Rule>,
    /// The state of each rule, in the same order; null in lists.
    #[serde(default)]
    pub rule_standings: Option<Vec<RuleStanding>>,
    /// The receiver of alerts.
    pub webhook_url: Option<String>,
    /// The state of its webhook: whether it is disabled and why, and its last successful delivery.
    pub webhook: Option<Webhook>,
    /// The signing secret of its deliveries. Only in the first response to the request that set the
    /// webhook, not when that request is repeated with its `Idempotency-Key`.
    pub webhook_secret: Option<ShownSecret>,
    /// When its alerts are sent to the webhook; null: each run sends its alerts at once.
    #[serde(default)]
    #[schema(required = true)]
    pub notify: Option<NotifySettings>,
    /// The time of its next digest, which is sent if there are alerts for it; null without
    /// `digest_at` or a webhook.
    #[serde(default)]
    #[schema(required = true)]
    pub next_digest_at: Option<Timestamp>,
    /// Its alerts that wait for the end of the quiet hours or for the digest; null if there are
    /// none.
    #[serde(default)]
    #[schema(required = true)]
    pub held: Option<HeldAlerts>,
    /// The channels that hear of its alerts.
    #[serde(default)]
    #[schema(required = true)]
    pub channels: Vec<ChannelId>,
    /// Whether it is active.
    pub status: MonitorStatus,
    /// Why it is paused.
    pub status_reason: Option<MonitorPause>,
    /// The time of its next slot; null while its caller paused it, and for a schedule without
    /// further slots.
    pub next_slot: Option<Timestamp>,
    /// Its newest slot.
    pub last_slot: Option<MonitorSlot>,
    /// Its billed requests.
    pub requests: MonitorRequests,
    /// The caller's key is stored, sealed, for its runs; null while its caller paused it: the
    /// resume request carries a key.
    pub key_custody: Option<MonitorKey>,
    /// Its monthly requests and cost, if it is created, changed or read alone. Null in lists, and
    /// if its scan is no longer valid for the next run.
    pub forecast: Option<MonitorForecast>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its caller last changed it.
    pub updated_at: Timestamp,
}

/// When a monitor runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MonitorSchedule {
    /// Five cron fields.
    pub cron: String,
    /// The IANA time zone of the cron fields.
    pub timezone: String,
}

/// Alerts that wait to be sent together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeldAlerts {
    /// How many times the rules fired.
    pub fired: u64,
    /// When they are sent; if in the past, as soon as a process does it.
    pub notify_at: Timestamp,
}

/// A preview of a monitor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MonitorPreview {
    /// The times of its first slots.
    pub next_slots: Vec<Timestamp>,
    /// Unexpected effects of its cron fields, and a watch for a price whose find no alert rule reports.
    pub schedule_warnings: Vec<String>,
    /// Its monthly requests and cost.
    pub forecast: MonitorForecast,
}

string_enum! {
    /// Whether a monitor is active.
    pub enum MonitorStatus {
        /// Its slots run.
        Active = "active",
        /// Its slots do not run; `status_reason` says why.
        Paused = "paused",
    }
}

string_enum! {
    /// Why a monitor is paused.
    pub enum MonitorPause {
        /// Paused by the caller.
        ByCaller = "by_caller",
        /// The marketplace does not know the key: a resume or a rotation sets another one. Its
        /// slots are recorded as failed.
        KeyRejected = "key_rejected",
        /// The key has no subscription to the API. Its slots are recorded as failed.
        NotSubscribed = "not_subscribed",
    }
}

/// The billed requests of a monitor's runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MonitorRequests {
    /// Requests of the runs in this calendar month of the schedule's time zone.
    pub this_month: u64,
    /// The caller's limit.
    pub max_per_month: Option<u32>,
}

/// The storage of a monitor's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MonitorKey {
    /// Null: until the monitor is paused by its caller or deleted.
    pub until: Option<Timestamp>,
}

/// The monthly requests and cost of a monitor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MonitorForecast {
    /// Number of slots in the month that begins with the next slot.
    pub slots: u32,
    /// The billed requests of one run.
    pub requests_per_run: RequestRange,
    /// The billed requests per month; never above `max_requests_per_month`.
    pub requests_per_month: RequestRange,
    /// Their cost on each of the marketplace's plans, for a full month.
    pub plans: Vec<PlanCost>,
}

/// A page of monitors, newest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MonitorPage {
    /// The monitors.
    pub data: Vec<Monitor>,
    /// Where the next page begins; null on the last.
    pub next_cursor: Option<String>,
}
