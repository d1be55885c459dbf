//! Monitors on the wire: a scan on a schedule, with alert rules (jobs-api, "Monitors").
//!
//! Here: what a caller sends and gets back. Not here: when a schedule's slots come and what becomes of them, nor when a rule fires
//! (`monitors`).

mod alert;
mod list;
mod request;
mod resource;
mod rule;
mod scan;
mod schedule;

pub use alert::{
    Alert, AlertBaseline, AlertPage, AlertsQuery, MonitorAlerts, MonitorAlertsQuery, PriceMark,
    RuleStanding, RuleState, SearchedShare,
};
pub use list::{MonitorsQuery, SlotsQuery};
pub use request::{MonitorName, MonitorPatch, MonitorRequest, MonthlyCeiling, WebhookUrl};
pub use resource::{
    Monitor, MonitorForecast, MonitorKey, MonitorPage, MonitorPause, MonitorPreview,
    MonitorRequests, MonitorSchedule, MonitorSlot, MonitorStatus, SlotJudgement, SlotKind,
    SlotOutcome, SlotPage,
};
pub use rule::{
    Amount, Available, DropPercent, NewLow, ParityGapPercent, Percent, PriceBelow, RearmPercent,
    Rule, RuleScope, RuleType, Runs, RunsBack, SoldOut, Stale, VerdictLow,
};
pub use scan::MonitorScan;
pub use schedule::{CronText, ScheduleRequest};
