//! Monitors: a scan on a schedule, with alert rules (docs/reference/monitors.md).
//!
//! Here: requests and responses, and what a relative date of a scan is ([`relative_dates`]). Not here: the time and outcome of slots, and the evaluation of
//! rules (`monitors`).

mod alert;
mod backtest;
mod notify;
mod parity;
mod queries;
pub mod relative_dates;
mod request;
mod resource;
mod rule;
mod scan;
mod schedule;
mod slot;
mod webhook;

pub use alert::{
    Alert, AlertBaseline, AlertPage, AlertQuery, AlertsQuery, MonitorAlerts, MonitorAlertsQuery,
    MonitorDigest, PriceMark, RuleStanding, RuleState, SearchedShare,
};
pub use backtest::{
    Backtest, BacktestAlert, BacktestCeiling, BacktestDays, BacktestQuery, NotReplayed,
};
pub use notify::{NotifySettings, QuietHours, WallTime};
pub use parity::{ParityHistory, ParityQuery, ParityRuns, RunParity};
pub use queries::{MonitorsQuery, SlotsQuery};
pub use request::{
    MAX_CHANNELS, MonitorName, MonitorPatch, MonitorRequest, MonthlyCeiling, WebhookUrl,
};
pub use resource::{
    HeldAlerts, Monitor, MonitorForecast, MonitorKey, MonitorPage, MonitorPause, MonitorPreview,
    MonitorRequests, MonitorSchedule, MonitorStatus,
};
pub use rule::{
    Amount, Available, BackInStock, DropPercent, EveryRun, LookbackDays, LookbackRuns, NewLow,
    ParityGapPercent, Percent, Percentile, PercentileAtMost, PlanEndsBeforeReset, PriceBelow,
    RearmPercent, Rule, RuleScope, RuleType, Runs, SoldOut, Stale, VerdictLow,
};
pub use scan::MonitorScan;
pub use schedule::{CronText, ScheduleRequest};
pub use slot::{MonitorSlot, SlotConfirmation, SlotJudgement, SlotKind, SlotOutcome, SlotPage};
pub use webhook::{OffReason, ShownSecret, Webhook};
