//! The circuit breaker of the marketplace: after too many failures only a probe now and then is
//! sent, because a failed call is billed too (engine.md, rule 49).
//!
//! ```text
//!      20 failures in a row, or half of the last minute's calls
//!  closed ───────────────────────────────────────────────────► open
//!     ▲                                                          │ one probe every 10 s
//!     └───────────────────── a probe succeeds ───────────────────┘
//! ```
//!
//! While a circuit is open, scans show `upstream_down` and items wait unbilled.
//!
//! One circuit for each API and database, not for each process: four workers together detect a
//! failure four times as early, and send one probe instead of four. A process writes the row at
//! each failure, and once a second while calls succeed. A refused key or a rate limit says nothing
//! about the marketplace's health, and an answer that an engine marks as degraded is a success.
//!
//! Here: the state machine, pure ([`Circuit`]), and its row ([`HealthReporter`]). The database
//! applies an open circuit to claims and calls (`claim_items`). The gateway has no
//! circuit: its callers decide what they pay for, and it must work without the database.

mod store;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
pub(super) use store::HealthReporter;

use crate::search::{Finding, Incomplete, Outcome};

/// This many failures in a row open the circuit; the share of failures needs as many calls.
const THRESHOLD: u32 = 20;
/// The window of the share of failures, and its buckets.
const WINDOW_LENGTH: SignedDuration = SignedDuration::from_secs(60);
const BUCKET_LENGTH: SignedDuration = SignedDuration::from_secs(10);

/// What one call says about the marketplace's health.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallHealth {
    Success,
    Failure,
}

impl CallHealth {
    /// The health of an outcome; `None`: it says nothing about the marketplace.
    pub(super) fn of(outcome: &Outcome) -> Option<Self> {
        match &outcome.finding {
            Finding::Answer(_)
            | Finding::Nothing { .. }
            | Finding::Refused { .. }
            | Finding::Incomplete(Incomplete::Stated { .. }) => Some(Self::Success),
            Finding::RateLimited(_)
            | Finding::KeyRejected { .. }
            | Finding::NotSubscribed { .. }
            | Finding::Incomplete(Incomplete::Status(400..=499)) => None,
            Finding::Incomplete(_) => Some(Self::Failure),
        }
    }
}

/// The circuit of one API.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Circuit {
    window: FailureWindow,
    is_open: bool,
}

/// The recent calls of a closed circuit. The field names are stored in the database.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct FailureWindow {
    in_a_row: u32,
    /// The last minute, oldest first.
    steps: VecDeque<WindowBucket>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct WindowBucket {
    begin: Timestamp,
    good: u32,
    bad: u32,
}

/// How a batch of calls changed the circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CircuitChange {
    Unchanged,
    Opened,
    Closed,
}

impl Circuit {
    /// Records calls in the order in which they ended, each with whether it was a probe. While the
    /// circuit is open only probes count: the other calls had begun before.
    pub(super) fn record(&mut self, calls: &[(CallHealth, bool)], now: Timestamp) -> CircuitChange {
        if self.is_open {
            if !calls.contains(&(CallHealth::Success, true)) {
                return CircuitChange::Unchanged;
            }
            *self = Self::default();
            return CircuitChange::Closed;
        }
        for (health, _) in calls {
            self.window.count(*health, now);
            if self.window.exceeds_threshold() {
                *self = Self {
                    window: FailureWindow::default(),
                    is_open: true,
                };
                return CircuitChange::Opened;
            }
        }
        CircuitChange::Unchanged
    }
}

impl FailureWindow {
    fn count(&mut self, health: CallHealth, now: Timestamp) {
        // Drops future buckets after the clock was set back.
        self.steps
            .retain(|step| step.begin <= now && now.duration_since(step.begin) < WINDOW_LENGTH);
        if self
            .steps
            .back()
            .is_none_or(|step| now.duration_since(step.begin) >= BUCKET_LENGTH)
        {
            self.steps.push_back(WindowBucket {
                begin: now,
                good: 0,
                bad: 0,
            });
        }
        if let Some(step) = self.steps.back_mut() {
            match health {
                CallHealth::Success => {
                    (self.in_a_row, step.good) = (0, step.good.saturating_add(1));
                }
                CallHealth::Failure => {
                    (self.in_a_row, step.bad) =
                        (self.in_a_row.saturating_add(1), step.bad.saturating_add(1));
                }
            }
        }
    }

    fn exceeds_threshold(&self) -> bool {
        let sum = |of: fn(&WindowBucket) -> u32| {
            self.steps.iter().map(of).fold(0_u32, u32::saturating_add)
        };
        let (good, bad) = (sum(|step| step.good), sum(|step| step.bad));
        self.in_a_row >= THRESHOLD || (good.saturating_add(bad) >= THRESHOLD && bad >= good)
    }
}
