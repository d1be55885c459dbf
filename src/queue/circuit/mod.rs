//! Whether the marketplace answers at all: after too many failures nothing new is asked of it but one probe now and then, because a call
//! that fails is billed all the same (engine.md, "Circuit").
//!
//! ```text
//!            20 failures in a row, or half of the last minute's calls
//!  closed ────────────────────────────────────────────────────────────► open: scans say upstream_down, items wait unspent
//!     ▲                                                                   │ one call every 10 s may begin
//!     └────────────────────────── a probe is answered ───────────────────┘
//! ```
//!
//! One for each API and database, not for each process: four workers see a failure together four times as early, and send one probe
//! instead of four. Its row is written only when something fails, and once a second while calls go well. The marketplace's refusals (a
//! key, a limit) say nothing about its health, and neither do pages that an engine calls degraded: those are answers.
//!
//! Here: the state machine, pure ([`Circuit`]), and its row ([`Reporter`]). That an open circuit holds back claims and calls is the
//! database's (`claim_within_circuits` and its neighbours). The gateway asks always: its callers pay for what they ask themselves, and it
//! must work without the database.

mod store;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
pub(super) use store::Reporter;

use crate::search::{Finding, Incomplete, Outcome};

/// So many failures in a row open it; of fewer calls no share is taken.
const ENOUGH: u32 = 20;
/// How far back the share of failures looks, and in which steps.
const WINDOW: SignedDuration = SignedDuration::from_secs(60);
const STEP: SignedDuration = SignedDuration::from_secs(10);

/// What one call says of the marketplace's health.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// It works.
    Good,
    /// It does not.
    Bad,
}

impl Sign {
    /// The sign of an outcome; `None`: it says nothing.
    pub(super) fn of(outcome: &Outcome) -> Option<Self> {
        match &outcome.finding {
            Finding::Answer(_)
            | Finding::Nothing { .. }
            | Finding::Refused { .. }
            | Finding::Incomplete(Incomplete::Stated { .. }) => Some(Self::Good),
            Finding::RateLimited(_)
            | Finding::KeyRejected { .. }
            | Finding::NotSubscribed { .. }
            | Finding::Incomplete(Incomplete::Status(400..=499)) => None,
            Finding::Incomplete(_) => Some(Self::Bad),
        }
    }
}

/// What was seen of one API, and whether its circuit is open.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Circuit {
    tally: Tally,
    is_open: bool,
}

/// What a closed circuit remembers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Tally {
    in_a_row: u32,
    /// The last minute, oldest first.
    steps: VecDeque<Step>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Step {
    begin: Timestamp,
    good: u32,
    bad: u32,
}

/// What seeing some calls did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Stays,
    Opens,
    Closes,
}

impl Circuit {
    /// Takes note of calls in the order in which they ended, each with whether it was a probe. While it is open, only probes count: the
    /// others had begun before.
    pub(super) fn see(&mut self, calls: &[(Sign, bool)], now: Timestamp) -> Turn {
        if self.is_open {
            if !calls.contains(&(Sign::Good, true)) {
                return Turn::Stays;
            }
            *self = Self::default();
            return Turn::Closes;
        }
        for (sign, _) in calls {
            self.tally.count(*sign, now);
            if self.tally.is_too_much() {
                *self = Self {
                    tally: Tally::default(),
                    is_open: true,
                };
                return Turn::Opens;
            }
        }
        Turn::Stays
    }
}

impl Tally {
    fn count(&mut self, sign: Sign, now: Timestamp) {
        // A clock that went back begins anew.
        self.steps
            .retain(|step| step.begin <= now && now.duration_since(step.begin) < WINDOW);
        if self
            .steps
            .back()
            .is_none_or(|step| now.duration_since(step.begin) >= STEP)
        {
            self.steps.push_back(Step {
                begin: now,
                good: 0,
                bad: 0,
            });
        }
        if let Some(step) = self.steps.back_mut() {
            match sign {
                Sign::Good => (self.in_a_row, step.good) = (0, step.good.saturating_add(1)),
                Sign::Bad => {
                    (self.in_a_row, step.bad) =
                        (self.in_a_row.saturating_add(1), step.bad.saturating_add(1))
                }
            }
        }
    }

    fn is_too_much(&self) -> bool {
        let sum = |of: fn(&Step) -> u32| self.steps.iter().map(of).fold(0_u32, u32::saturating_add);
        let (good, bad) = (sum(|step| step.good), sum(|step| step.bad));
        self.in_a_row >= ENOUGH || (good.saturating_add(bad) >= ENOUGH && bad >= good)
    }
}
