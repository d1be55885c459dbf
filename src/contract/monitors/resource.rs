//! A monitor and its slots as their caller sees them.

use super::alert::RuleStanding;
use super::rule::Rule;
use super::scan::MonitorScan;
use crate::contract::AsWritten;
use crate::contract::scans::{PlanCost, RequestRange};
use crate::contract::webhooks::{ShownSecret, Webhook};
use crate::contract::words::words;
use crate::ids::{MonitorId, ScanId};
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
    "status": "active", "status_reason": null,
    "next_slot": "2026-12-02T06:00:00Z",
    "last_slot": {
        "slot": "2026-12-01T06:00:00Z", "kind": "schedule", "outcome": "ran", "reason": null,
        "scan_id": "scn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b", "decided_at": "2026-12-01T06:00:00.012Z",
        "judged": {"at": "2026-12-01T06:00:12Z", "fired": 1, "alerts": 1, "not_comparable": 0}
    },
    "requests": {"this_month": 30, "max_per_month": 2000},
    "key_custody": {"until": null},
    "forecast": null,
    "created_at": "2026-11-30T08:00:00Z", "updated_at": "2026-11-30T08:00:00Z"
})))]
pub struct Monitor {
    /// Its id.
    pub id: MonitorId,
    /// What people call it.
    pub name: String,
    /// When it runs.
    pub schedule: MonitorSchedule,
    /// What its cron fields mean that they do not seem to say.
    #[serde(default)]
    #[schema(required = true)]
    pub schedule_warnings: Vec<String>,
    /// The order of each run, as given.
    #[schema(value_type = MonitorScan)]
    pub scan: AsWritten,
    /// When to tell.
    pub alerts: Vec<Rule>,
    /// How each of them stands, in the same order; null in lists.
    #[serde(default)]
    pub rule_standings: Option<Vec<RuleStanding>>,
    /// Whom to tell.
    pub webhook_url: Option<String>,
    /// How its webhook stands: whether it is switched off and why, when it last took a delivery.
    pub webhook: Option<Webhook>,
    /// What its deliveries are signed with: in the answer that opened the webhook, and never again, not even where that request is
    /// repeated with its `Idempotency-Key`.
    pub webhook_secret: Option<ShownSecret>,
    /// Whether its slots come.
    pub status: MonitorStatus,
    /// Why it is paused.
    pub status_reason: Option<MonitorPause>,
    /// When its next slot comes; null while it is paused by its caller, and for a schedule that has come to its end.
    pub next_slot: Option<Timestamp>,
    /// What became of its newest slot.
    pub last_slot: Option<MonitorSlot>,
    /// Its billed requests.
    pub requests: MonitorRequests,
    /// The caller's key is kept, sealed, for its runs; null while it is paused by its caller's word: a resume brings a key.
    pub key_custody: Option<MonitorKey>,
    /// What a month of it takes and costs: where it is made, changed or read alone. Null in lists, and where its next run could not be made
    /// as its scan stands.
    pub forecast: Option<MonitorForecast>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its caller last changed it.
    pub updated_at: Timestamp,
}

/// When a monitor runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MonitorSchedule {
    /// Five cron fields.
    pub cron: String,
    /// The IANA time zone in whose wall-clock time they are.
    pub timezone: String,
}

/// What a monitor would be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MonitorPreview {
    /// When its first slots would come.
    pub next_slots: Vec<Timestamp>,
    /// What its cron fields mean that they do not seem to say.
    pub schedule_warnings: Vec<String>,
    /// What a month of it would take and cost.
    pub forecast: MonitorForecast,
}

words! {
    /// Whether a monitor's slots come.
    pub enum MonitorStatus {
        /// They come.
        Active = "active",
        /// They do not; `status_reason` says why.
        Paused = "paused",
    }
}

words! {
    /// Why a monitor is paused.
    pub enum MonitorPause {
        /// The caller said so.
        ByCaller = "by_caller",
        /// The marketplace does not know the key: a resume or a rotation brings a good one. Its slots are on record as failed.
        KeyRejected = "key_rejected",
        /// The key has no subscription to the API. Its slots are on record as failed.
        NotSubscribed = "not_subscribed",
    }
}

/// The billed requests of a monitor's runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MonitorRequests {
    /// Of the runs whose slots are in this calendar month of the schedule's time zone.
    pub this_month: u64,
    /// The caller's ceiling.
    pub max_per_month: Option<u32>,
}

/// Until when the key of a monitor is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MonitorKey {
    /// Null: until the monitor is paused by its caller or deleted.
    pub until: Option<Timestamp>,
}

/// What a month of a monitor takes and costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MonitorForecast {
    /// The slots of the month that begins with the next one.
    pub slots: u32,
    /// The billed requests of one run.
    pub requests_per_run: RequestRange,
    /// Those of the month; never over `max_requests_per_month`.
    pub requests_per_month: RequestRange,
    /// What they cost on each of the marketplace's plans, a whole month of each.
    pub plans: Vec<PlanCost>,
}

/// A page of monitors, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MonitorPage {
    /// The monitors.
    pub data: Vec<Monitor>,
    /// Where the next page begins; null on the last.
    pub next_cursor: Option<String>,
}

/// A slot of a monitor and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MonitorSlot {
    /// Its time.
    pub slot: Timestamp,
    /// Where it came from.
    pub kind: SlotKind,
    /// What became of it.
    pub outcome: SlotOutcome,
    /// Why it did not run, where `outcome` alone does not say it; and what of its rules could not be judged, and why.
    pub reason: Option<String>,
    /// The scan that it made; null where it made none, and once that is deleted.
    pub scan_id: Option<ScanId>,
    /// When it was decided.
    pub decided_at: Timestamp,
    /// What the alert rules made of it; null until its scan has ended, and where it was to have none.
    pub judged: Option<SlotJudgement>,
}

/// What the alert rules made of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SlotJudgement {
    /// When.
    pub at: Timestamp,
    /// How often rules fired, cells counted apart.
    pub fired: u32,
    /// How many alerts of that are on record: a thousand at most.
    pub alerts: u32,
    /// How many rules, cells counted apart, saw prices in a currency that does not compare with those before; of `parity_gap_percent`,
    /// how many markets had fewer than two prices on a side (`insufficient` in the scan's grid with a `baseline`), or prices for other
    /// rooms, boards or currencies than the baseline's (`not_comparable` there).
    pub not_comparable: u32,
}

words! {
    /// Where a slot came from.
    pub enum SlotKind {
        /// The schedule.
        Schedule = "schedule",
        /// The caller, who ran the monitor now.
        Manual = "manual",
    }
}

words! {
    /// What became of a slot.
    pub enum SlotOutcome {
        /// It made a scan in its time.
        Ran = "ran",
        /// It made a scan, more than five minutes after its time.
        Late = "late",
        /// Nobody was there in its time, and a newer slot has run instead.
        Missed = "missed",
        /// The run before it had not ended.
        Overlap = "overlap",
        /// What is left of `max_requests_per_month` is less than a request for each search of a run.
        MonthlyCeiling = "monthly_ceiling",
        /// Its scan could not be made; `reason` says why.
        Failed = "failed",
    }
}

/// A page of slots, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SlotPage {
    /// The slots.
    pub data: Vec<MonitorSlot>,
    /// Where the next page begins; null on the last.
    pub next_cursor: Option<String>,
}
