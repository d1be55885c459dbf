//! The slots of a monitor.

use crate::ids::{ItemId, ScanId};
use crate::string_enum::string_enum;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A slot of a monitor and its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MonitorSlot {
    /// Its time.
    pub slot: Timestamp,
    /// What created it.
    pub kind: SlotKind,
    /// Its outcome.
    pub outcome: SlotOutcome,
    /// Details of an outcome without a run; and which rules could not be evaluated, and why.
    pub reason: Option<String>,
    /// Its scan; null if it has none or the scan was deleted.
    pub scan_id: Option<ScanId>,
    /// When its outcome was decided.
    pub decided_at: Timestamp,
    /// The evaluation of the alert rules; null until its scan has ended, and for slots without a
    /// scan.
    pub judged: Option<SlotJudgement>,
    /// The prices that are searched once more before rules with `confirm` fire, or were; absent if
    /// there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub confirmation: Option<SlotConfirmation>,
}

/// The searches that a run makes once more, because rules with `confirm` would fire on what they
/// found. The run is evaluated when they have ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SlotConfirmation {
    /// When they were ordered.
    pub began_at: Timestamp,
    /// Their items; what was found first is among the attempts of each.
    pub items: Vec<ItemId>,
}

/// The evaluation of the alert rules for a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SlotJudgement {
    /// When it was evaluated.
    pub at: Timestamp,
    /// How many times rules fired, each cell counted.
    pub fired: u32,
    /// Number of recorded alerts: at most a thousand.
    pub alerts: u32,
    /// Number of rules, each cell counted, whose prices have another currency than before, or
    /// about which the stored history says too little (`new_low`,
    /// `percentile_at_most`, `back_in_stock`). For `parity_gap_percent`: number of markets with fewer than two prices on a side (`insufficient`
    /// in the scan's grid with a `baseline`), or with other rooms, boards or currencies than the
    /// baseline (`not_comparable` there).
    pub not_comparable: u32,
    /// Number of prices that rules about prices left out, because they are far off their own history. 0 also
    /// where that was not looked up: without a rule about prices, and where `reason` says so.
    pub implausible: u32,
    /// Number of times that a rule with `confirm` did not fire, because its price was not found by a
    /// second search: that did not complete, or was not made. The rule stays as it was; `reason` may
    /// say more.
    pub unconfirmed: u32,
}

string_enum! {
    /// What created a slot.
    pub enum SlotKind {
        /// The schedule.
        Schedule = "schedule",
        /// The caller, with a manual run.
        Manual = "manual",
    }
}

string_enum! {
    /// The outcome of a slot.
    pub enum SlotOutcome {
        /// It started a scan on time.
        Ran = "ran",
        /// It started a scan more than five minutes late.
        Late = "late",
        /// No worker ran at its time, and a newer slot ran instead.
        Missed = "missed",
        /// The previous run had not ended.
        Overlap = "overlap",
        /// `max_requests_per_month` has fewer requests left than a run has searches.
        MonthlyCeiling = "monthly_ceiling",
        /// Its scan could not be created; `reason` says why.
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
