//! Monitors: a scan on a schedule (jobs-api, "Monitors").
//!
//! ```text
//!  create ─► the schedule's slots and the plan of the next one are checked ─► one transaction: grant, monitor
//!  tick   ─► a monitor whose slot is due ─► one transaction: the slot is decided (unique), its scan stored, the next slot set
//!            a run whose scan has ended  ─► one transaction: its alert rules look at it, once
//!  update, control (pause, resume, run, delete) ─► one transaction over the monitor's row
//! ```
//!
//! However many processes tick, a slot is decided once: its row in `monitor_slots` and its scan are of one commit, made under the
//! monitor's lock. Locks come in this order: the tenant's key, the monitor, and then those of an order (`scans`). Pure: when slots come
//! ([`schedule`]), relative dates ([`relative`]) and passed ones (`passed`), what a month takes (`ceiling`, [`forecast`]). Not here: carrying
//! out a scan (`queue`), HTTP (`http`).

pub mod alerts;
mod ceiling;
pub mod control;
pub mod create;
pub mod deliveries;
pub mod forecast;
mod order;
mod passed;
pub mod preview;
pub mod read;
pub mod relative;
pub mod schedule;
mod start;
mod store;
pub mod tick;
pub mod update;

use crate::contract::Faults;
use crate::scans::ScanError;
use crate::webhooks::WebhookError;

/// Why a monitor is not made, changed or found. Nothing was stored then.
#[derive(Debug, thiserror::Error)]
pub enum MonitorError {
    /// There is no such monitor, or it is another caller's.
    #[error("there is no such monitor")]
    NotFound,
    /// As with any order.
    #[error(transparent)]
    Order(ScanError),
}

impl<E: Into<ScanError>> From<E> for MonitorError {
    fn from(error: E) -> Self {
        match error.into() {
            ScanError::NotFound => Self::NotFound,
            other => Self::Order(other),
        }
    }
}

impl From<WebhookError> for MonitorError {
    fn from(error: WebhookError) -> Self {
        match error {
            WebhookError::Database(error) => error.into(),
            WebhookError::NoEndpoint => Self::NotFound,
            other => Self::Order(ScanError::InvalidState(other.to_string())),
        }
    }
}

impl MonitorError {
    fn faults(faults: Faults) -> Self {
        Self::Order(ScanError::Faults(faults))
    }
}
