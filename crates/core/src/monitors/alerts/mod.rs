//! Alerts: the rules of a monitor, evaluated for each of its runs (monitors.md, rules 30 to 51;
//! docs/decisions/0018).
//!
//! ```text
//!  a run has ended ─► evaluate, in one transaction: cells ─► run_snapshot ─► rules ─► evaluation
//!                     ─► alert_builder ─► write the rules' states, the alerts, the slot's record
//!                     and one delivery `monitor.alerts`, or none while its alerts are held
//!  held alerts are due ─► held: one delivery `monitor.digest`
//!  GET /v1/alerts  ─► read
//! ```
//!
//! Pure: the view of a run for a rule ([`run_snapshot`]), when a rule fires and rearms ([`apply_rule`]),
//! all rules of a run ([`evaluation`]), the alerts ([`alert_builder`]), the identity of a rule
//! ([`rule_key`]), the traits of rule types ([`rule_traits`]). [`past`] reads what the stored history
//! says about the prices of a run. Not here: when a run is evaluated
//! (`tick`), how a delivery is sent (`webhooks`).

mod alert_builder;
mod apply_rule;
mod evaluate;
mod evaluation;
mod held;
mod past;
pub mod read;
mod replay;
mod rule_key;
mod rule_traits;
mod run_snapshot;
mod standing;
mod state;
mod store;
#[cfg(test)]
mod tests;

pub use evaluate::MAX_EVALUATION_TIME;
pub(super) use evaluate::{evaluate_slot, rules_changed};
pub(super) use evaluation::rule_scope;
pub(super) use held::{notify_changed, release_all, send_due};
pub(super) use replay::RuleReplay;
pub(super) use rule_traits::{RuleSubject, RuleTraits};
pub(super) use standing::rule_standings;
