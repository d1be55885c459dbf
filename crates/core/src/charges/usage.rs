//! What a synchronous call has used, and the sums of such calls that wait to be written. Pure.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::contract::{Api, Endpoint, SearchStatus};
use crate::queue::lanes;
use crate::search::outcome_status::{self, ItemDisposition, LanePause};
use crate::search::{Outcome, PlanQuota, Search};
use crate::tenants::Fingerprint;
use crate::tenants::acceptance::means_accepted;
use crate::upstream::{Probe, probe_endpoint};

/// The most sums that wait while the database is unavailable: one takes under 400 bytes.
const MAX_SUMS: usize = 10_000;

/// Calls as the bill counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ChargedCalls {
    pub(super) attempts: u32,
    pub(super) billed: u32,
    /// Searches that took an answer instead.
    pub(super) reused: u32,
    /// By search status: `ok`, `empty`, `partial`, `degraded`.
    pub(super) by_status: [u32; 4],
}

impl ChargedCalls {
    fn of_call(billed: u16, status: Option<SearchStatus>) -> Self {
        let mut by_status = [0; 4];
        let place = status.map(|status| match status {
            SearchStatus::Ok => 0,
            SearchStatus::Empty => 1,
            SearchStatus::Partial => 2,
            SearchStatus::Degraded => 3,
        });
        if let Some(count) = place.and_then(|place: usize| by_status.get_mut(place)) {
            *count = 1;
        }
        Self {
            attempts: 1,
            billed: billed.into(),
            reused: 0,
            by_status,
        }
    }

    fn add(&mut self, other: Self) {
        let sum = |one: &mut u32, other: u32| *one = one.saturating_add(other);
        sum(&mut self.attempts, other.attempts);
        sum(&mut self.billed, other.billed);
        sum(&mut self.reused, other.reused);
        for (one, other) in self.by_status.iter_mut().zip(other.by_status) {
            sum(one, other);
        }
    }
}

/// The usage of a synchronous call.
#[derive(Debug, Clone, Copy)]
pub struct CallUsage {
    pub(super) endpoint: Endpoint,
    pub(super) counts: ChargedCalls,
    /// What its lane is charged with.
    pub(super) charged: u32,
    pub(super) plan: PlanQuota,
    pub(super) limited: Option<Duration>,
    /// The marketplace accepted the key.
    pub(super) accepted: bool,
    /// A key check, which stores what is left of the plan even if no scan has used the API yet.
    pub(super) is_check: bool,
    /// When it began, if the clock was right: before a rotation of its key it is of the caller who
    /// had the key then.
    pub(super) began_at: Option<Timestamp>,
}

impl CallUsage {
    /// The usage of a search.
    pub fn from_search(search: &Search, outcome: &Outcome, began_at: Option<Timestamp>) -> Self {
        let disposition = outcome_status::of(search, outcome);
        let status = match disposition.item {
            ItemDisposition::Done { status, .. } => Some(status),
            _ => None,
        };
        Self {
            endpoint: search.endpoint(),
            counts: ChargedCalls::of_call(outcome.billed_requests, status),
            charged: outcome.billed_requests.into(),
            plan: outcome.plan,
            limited: match disposition.lane {
                Some(LanePause::RateLimited(time)) => Some(time),
                _ => None,
            },
            accepted: outcome.http_status.is_some_and(means_accepted),
            is_check: false,
            began_at,
        }
    }

    /// The usage of a search that took an answer instead of a request.
    pub fn from_reuse(search: &Search, at: Option<Timestamp>) -> Self {
        Self {
            endpoint: search.endpoint(),
            counts: ChargedCalls {
                reused: 1,
                ..ChargedCalls::default()
            },
            charged: 0,
            plan: PlanQuota::default(),
            limited: None,
            accepted: false,
            is_check: false,
            began_at: at,
        }
    }

    /// The usage of a key check.
    pub fn from_probe(api: Api, probe: &Probe, began_at: Option<Timestamp>) -> Self {
        Self {
            endpoint: probe_endpoint(api),
            counts: ChargedCalls::of_call(probe.billed_requests, None),
            charged: probe.billed_requests.into(),
            plan: probe.plan,
            limited: None,
            accepted: probe.verdict.as_ref().is_ok_and(|reason| reason.is_ok()),
            is_check: true,
            began_at,
        }
    }

    pub(super) fn says_nothing(&self) -> bool {
        self.counts.billed == 0
            && self.counts.reused == 0
            && self.plan == PlanQuota::default()
            && !self.accepted
    }

    /// The UTC day on which it began.
    pub(super) fn day(&self) -> Option<Date> {
        Some(self.began_at?.to_zoned(TimeZone::UTC).date())
    }

    /// Adds another call of the same caller, endpoint and day.
    fn add(&mut self, other: &Self) {
        self.counts.add(other.counts);
        self.charged = self.charged.saturating_add(other.charged);
        self.plan = lanes::least_plan(self.plan, other.plan);
        self.limited = self.limited.max(other.limited);
        self.accepted |= other.accepted;
        self.is_check |= other.is_check;
        self.began_at = self.began_at.min(other.began_at);
    }
}

/// Calls of one caller, endpoint and day that are not written yet.
#[derive(Debug)]
pub(super) struct PendingCharge {
    pub(super) fingerprints: Vec<Fingerprint>,
    pub(super) usage: CallUsage,
}

/// What is summed up.
type SumKey = (Option<Fingerprint>, Endpoint, Option<Date>);

impl PendingCharge {
    fn key(&self) -> SumKey {
        let caller = self.fingerprints.first().cloned();
        (caller, self.usage.endpoint, self.usage.day())
    }
}

/// All that is not written yet, in sums.
#[derive(Debug, Default)]
pub(super) struct WaitingSums {
    sums: HashMap<SumKey, PendingCharge>,
    /// Billed requests that found no place.
    lost: u64,
}

impl WaitingSums {
    pub(super) fn add(&mut self, charge: PendingCharge) {
        let key = charge.key();
        if let Some(sum) = self.sums.get_mut(&key) {
            sum.usage.add(&charge.usage);
        } else if self.sums.len() < MAX_SUMS {
            self.sums.insert(key, charge);
        } else {
            self.lost += u64::from(charge.usage.counts.billed);
        }
    }

    /// Takes sums back that could not be written. What they say of plans is old by the time at which
    /// they are, and later calls say it anew.
    pub(super) fn put_back(&mut self, batch: Vec<PendingCharge>) {
        for mut charge in batch {
            charge.usage.plan = PlanQuota::default();
            (charge.usage.limited, charge.usage.charged) = (None, 0);
            self.add(charge);
        }
    }

    pub(super) fn take(&mut self) -> Vec<PendingCharge> {
        std::mem::take(&mut self.sums).into_values().collect()
    }

    /// How many billed requests were lost since this was asked last.
    pub(super) fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charge(caller: u32, day: i8, billed: u32) -> PendingCharge {
        let mut digest = [0; 16];
        digest[..4].copy_from_slice(&caller.to_be_bytes());
        let began_at = jiff::civil::date(2026, 11, day).to_zoned(TimeZone::UTC);
        PendingCharge {
            fingerprints: vec![Fingerprint {
                key_id: "one".into(),
                digest,
            }],
            usage: CallUsage {
                endpoint: Endpoint::FlightsOneway,
                counts: ChargedCalls {
                    billed,
                    ..ChargedCalls::default()
                },
                charged: billed,
                plan: PlanQuota::default(),
                limited: Some(Duration::from_secs(9)),
                accepted: false,
                is_check: false,
                began_at: Some(began_at.unwrap().timestamp()),
            },
        }
    }

    #[test]
    fn calls_are_summed_up_by_caller_and_day() {
        let mut waiting = WaitingSums::default();
        for (caller, day) in [(1, 1), (1, 1), (1, 2), (2, 1), (1, 1)] {
            waiting.add(charge(caller, day, 2));
        }
        let mut billed: Vec<_> = waiting
            .take()
            .iter()
            .map(|sum| sum.usage.counts.billed)
            .collect();
        billed.sort_unstable();
        assert_eq!(billed, [2, 2, 6]);
        assert!(waiting.take().is_empty());
    }

    #[test]
    fn what_is_put_back_is_counted_and_paces_nothing() {
        let mut waiting = WaitingSums::default();
        waiting.add(charge(1, 1, 2));
        let batch = waiting.take();
        waiting.add(charge(1, 1, 5));
        waiting.put_back(batch);
        let sums = waiting.take();
        let usage = sums.first().unwrap().usage;
        assert_eq!(
            (
                sums.len(),
                usage.counts.billed,
                usage.charged,
                usage.limited
            ),
            (1, 7, 5, Some(Duration::from_secs(9)))
        );
    }

    #[test]
    fn a_bounded_number_of_sums_waits_and_what_is_lost_is_known() {
        let mut waiting = WaitingSums::default();
        let most = u32::try_from(MAX_SUMS).unwrap();
        for caller in 0..most + 3 {
            waiting.add(charge(caller, 1, 2));
        }
        waiting.add(charge(0, 1, 2));
        assert_eq!((waiting.take_lost(), waiting.take_lost()), (6, 0));
        assert_eq!(waiting.take().len(), MAX_SUMS);
    }
}
