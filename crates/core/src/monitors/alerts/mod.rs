//! Alerts: the rules of a monitor, evaluated for each of its runs (monitors.md, rules 30 to 51;
//! docs/decisions/0018).
//!
//! ```text
//!  a run has ended ─► report, in one transaction: cells ─► run_snapshot ─► rules ─► run_firings
//!                     ─► alert_builder ─► write the rules' states, the alerts, the slot's record
//!                     and one delivery `monitor.alerts`, or none while its alerts are held
//!  held alerts are due ─► held: one delivery `monitor.digest`
//!  GET /v1/alerts  ─► read
//! ```
//!
//! Pure: the view of a run for a rule ([`run_snapshot`]), the types of rules, each with when it fires
//! and rearms ([`rules`]), all rules of a run ([`run_firings`]), the alerts ([`alert_builder`]), the
//! identity of a rule ([`rule_key`]). [`past`] reads what the stored history says about the prices of a
//! run. Not here: when a run is reported (`tick`), how a delivery is sent (`webhooks`).

mod alert_builder;
mod channels;
mod held;
mod past;
pub mod read;
mod replay;
mod report;
mod rule_key;
mod rules;
mod run_firings;
mod run_snapshot;
mod standing;
mod state;
mod store;
#[cfg(test)]
mod tests;

pub(super) use held::{notify_changed, release_all, send_due};
pub(super) use replay::RuleReplay;
pub use report::MAX_EVALUATION_TIME;
pub(super) use report::{report_slot, rules_changed};
pub(super) use rules::{rule_conflicts, rule_scope};
pub(super) use standing::rule_standings;
