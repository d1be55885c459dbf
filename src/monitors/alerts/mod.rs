//! Alerts: what a monitor's rules make of its runs (jobs-api, "Monitors"; docs/decisions/0018).
//!
//! ```text
//!  a run has ended ─► judge, in the transaction that marks its slot: cells ─► sight ─► rules ─► verdicts ─► evidence
//!                        └─ the rules' states, the alerts, one delivery `monitor.alerts`: all of it, or nothing
//!  GET /v1/alerts ─► read
//! ```
//!
//! Pure: what a run shows a rule ([`sight`]), when it fires and is armed again ([`rules`]), all rules of a run ([`verdicts`]), what is told
//! of it ([`evidence`]), which rule is which ([`identity`]), what a type of rules is like ([`kind`]). Not here: when a run is judged (`tick`), how a delivery is sent (`webhooks`).

mod evidence;
mod identity;
mod judge;
mod kind;
pub mod read;
mod rules;
mod sight;
mod standing;
mod state;
mod store;
#[cfg(test)]
mod tests;
mod verdicts;

pub use judge::MOST_TIME;
pub(super) use judge::{changed, judge};
pub(super) use kind::{Kind, Subject};
pub(super) use standing::standing;
pub(super) use verdicts::scope;
