//! What becomes of the slots that are due.
//!
//! ```text
//!  the newest of a monitor's ─► ran | late | overlap | monthly_ceiling | failed      older ones that nobody was there for ─► missed
//! ```
//!
//! A slot is decided in one transaction under its monitor's lock: its row, its scan and the monitor's next slot are there together or not
//! at all, so a process that dies in it has decided nothing, and the next one finds it due (docs/decisions/0013).
//!
//! A slot that finds the run before it unfinished is an `overlap`, unless that is so because nobody was there: while a search of that run is
//! held by a dead process, and while a slot that is late finds a run that goes on, the slot waits and then runs, once, late.

use std::ops::RangeInclusive;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::{SignedDuration, Timestamp};
use sqlx::PgConnection;

use super::{AWAY_PAUSE, LONGEST_SLEEP, PASS, SHORTEST_SLEEP, Tally, Ticker};
use crate::contract::monitors::{SlotKind, SlotOutcome};
use crate::db;
use crate::ids::{GrantId, MonitorId, TenantId};
use crate::monitors::schedule::Schedule;
use crate::monitors::start::{NotStarted, Start, start};
use crate::monitors::store::{self, Decision, WaitsFor};
use crate::scans::Desk;
use crate::scans::cancel::cancel_stuck;
use crate::tenants::{self, GrantError};

/// How many monitors a process decides at the same time: each takes a connection.
const AT_ONCE: usize = 4;
/// The most missed slots that one transaction records.
const MOST_MISSED: usize = 1_000;
/// A run this long after its slot is late.
const LATE: SignedDuration = SignedDuration::from_mins(5);
/// A slot whose caller has too much underway is looked at again after the tenth part of the time that it has waited, within these bounds.
const AGAIN: RangeInclusive<SignedDuration> =
    SignedDuration::from_secs(30)..=SignedDuration::from_mins(5);
/// A slot that waits for the run before it is looked at again after so long.
const RUN_AGAIN: SignedDuration = SignedDuration::from_secs(2);
/// Why a slot ran that had come before.
const HAD_TO_WAIT: &str = "it waited for room: its caller had as much underway as one may have";
const HAD_TO_WAIT_FOR_RUN: &str =
    "it waited for the run before it, which had not ended because this service was not there";
/// Why it did not.
const NO_ROOM: &str =
    "until the next slot came there was no room: its caller had as much underway as one may have";
const RUN_HAD_NOT_ENDED: &str = "until the next slot came the run before it had not ended";
/// The longest reason on record, in characters.
const MAX_REASON_CHARS: usize = 2_000;

/// What a pass over the slots did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decided {
    /// How many monitors had slots that were decided.
    pub decided: usize,
    /// How many monitors could not be looked at; they are due still.
    pub failed: usize,
    /// When the next slot comes.
    pub next: Option<Timestamp>,
}

impl Decided {
    pub(super) fn sleep(&self, now: Timestamp) -> Duration {
        if self.failed > 0 {
            return AWAY_PAUSE;
        }
        let until = self
            .next
            .map(|next| Duration::try_from(next.duration_since(now)).unwrap_or_default());
        until
            .unwrap_or(LONGEST_SLEEP)
            .clamp(SHORTEST_SLEEP, LONGEST_SLEEP)
    }
}

impl Ticker {
    /// One pass over the slots that are due by `clock`.
    ///
    /// # Errors
    /// When the database does not answer. What was decided before is decided.
    pub async fn decide_due(
        &self,
        clock: impl Fn() -> Timestamp + Send + Sync,
    ) -> sqlx::Result<Decided> {
        let tally = Tally::default();
        let due = store::due(&self.pool, clock(), PASS).await?;
        let deciding =
            futures::stream::iter(due).for_each_concurrent(AT_ONCE, async |(tenant, id)| {
                tally.count(self.decide(tenant, id, clock()).await, id);
            });
        deciding.await;
        let next = store::next(&self.pool).await?;
        Ok(Decided {
            decided: tally.done.into_inner(),
            failed: tally.failed.into_inner(),
            next,
        })
    }

    /// Decides what is due of a monitor; false: another process has, or is at it.
    async fn decide(&self, tenant: TenantId, id: MonitorId, now: Timestamp) -> sqlx::Result<bool> {
        let mut tx = db::begin(&self.pool).await?;
        tenants::store::hold(&mut tx, tenant).await?;
        let Some((mut lock, monitor)) = store::lock_due(&mut tx, tenant, id, now).await? else {
            return Ok(false);
        };
        let Some(first) = monitor.next_slot.map(jiff_sqlx::Timestamp::to_jiff) else {
            return Ok(false);
        };
        let schedule = Schedule::read(&monitor.cron, &monitor.timezone);
        if let Some(last) = store::last_decided(lock.conn(), tenant, id)
            .await?
            .filter(|last| *last >= first)
        {
            // Whatever has set it back: what is on record is not decided again.
            store::set_next(
                lock.conn(),
                tenant,
                id,
                schedule.and_then(|schedule| schedule.after(last)),
                None,
            )
            .await?;
            tx.commit().await?;
            return Ok(true);
        }
        let Some(schedule) = schedule else {
            let reason = format!(
                "the time zone {} is not known to this service any more",
                monitor.timezone
            );
            store::record(
                lock.conn(),
                tenant,
                id,
                &[decision(first, SlotOutcome::Failed, Some(reason))],
                now,
            )
            .await?;
            store::set_next(lock.conn(), tenant, id, None, None).await?;
            tx.commit().await?;
            return Ok(true);
        };
        let mut slots: Vec<_> = schedule.due(first, now).take(MOST_MISSED + 1).collect();
        // What is left of very many waits for the next pass: then the newest runs.
        let newest = slots.pop().unwrap_or(first);
        let mut decisions: Vec<_> = slots
            .iter()
            .map(|slot| decision(*slot, SlotOutcome::Missed, None))
            .collect();
        let waited_for = monitor.waits_for.as_deref().map(WaitsFor::parse);
        if let Some((waited, what)) = decisions.first_mut().zip(waited_for) {
            *waited = match what {
                WaitsFor::Room => decision(first, SlotOutcome::Failed, Some(NO_ROOM.to_owned())),
                WaitsFor::Run => decision(
                    first,
                    SlotOutcome::Overlap,
                    Some(RUN_HAD_NOT_ENDED.to_owned()),
                ),
            };
        }
        let (mut next, mut waits) = (Some(newest), None);
        if decisions.len() < MOST_MISSED {
            let start = Start {
                tenant,
                id,
                monitor: &monitor,
                schedule: &schedule,
                slot: newest,
            };
            match self.decide_newest(lock.conn(), &start, now).await? {
                Newest::Decided(decision) => {
                    decisions.push(decision);
                    next = schedule.after(newest);
                }
                Newest::Waits(WaitsFor::Run) => waits = Some((WaitsFor::Run, now + RUN_AGAIN)),
                Newest::Waits(WaitsFor::Room) => {
                    let again =
                        (now.duration_since(newest) / 10).clamp(*AGAIN.start(), *AGAIN.end());
                    waits = Some((WaitsFor::Room, now + again));
                }
            }
        }
        store::record(lock.conn(), tenant, id, &decisions, now).await?;
        store::set_next(lock.conn(), tenant, id, next, waits).await?;
        tx.commit().await?;
        Ok(!decisions.is_empty())
    }

    /// What becomes of a slot.
    async fn decide_newest(
        &self,
        conn: &mut PgConnection,
        slot: &Start<'_>,
        now: Timestamp,
    ) -> sqlx::Result<Newest> {
        let decided = |outcome, reason| Ok(Newest::Decided(decision(slot.slot, outcome, reason)));
        let failed = |reason: String| decided(SlotOutcome::Failed, Some(reason));
        if let Some(refusal) = store::refusal(conn, slot.tenant, &slot.monitor.api).await? {
            return failed(refusal);
        }
        for run in store::live_runs(conn, slot.tenant, slot.id).await? {
            cancel_stuck(conn, slot.tenant, run.scan, now).await?;
        }
        let is_late = now.duration_since(slot.slot) > LATE;
        if let Some(run) = store::live_runs(conn, slot.tenant, slot.id).await?.first() {
            if run.is_abandoned() || is_late && run.goes_on() {
                return Ok(Newest::Waits(WaitsFor::Run));
            }
            return decided(SlotOutcome::Overlap, Some(run.in_the_way()));
        }
        let grant = GrantId::from(slot.monitor.grant_id);
        let key = match tenants::open_grant(&mut *conn, &self.ring, slot.tenant, grant).await {
            Ok(key) => key,
            Err(GrantError::Database(error)) => return Err(error),
            Err(gone) => {
                return failed(format!(
                    "its key cannot be opened, resume it with the key: {gone}"
                ));
            }
        };
        let desk = Desk {
            pool: &self.pool,
            ring: &self.ring,
            key: &key,
            now,
        };
        match start(conn, desk, &self.pace, slot).await {
            Ok(scan) => {
                let outcome = if is_late {
                    SlotOutcome::Late
                } else {
                    SlotOutcome::Ran
                };
                let reason =
                    slot.monitor
                        .waits_for
                        .as_deref()
                        .map(|what| match WaitsFor::parse(what) {
                            WaitsFor::Room => HAD_TO_WAIT.to_owned(),
                            WaitsFor::Run => HAD_TO_WAIT_FOR_RUN.to_owned(),
                        });
                Ok(Newest::Decided(Decision {
                    scan: Some(scan.id),
                    ..decision(slot.slot, outcome, reason)
                }))
            }
            Err(NotStarted::Database(error)) => Err(error),
            Err(NotStarted::Ceiling(message)) => {
                decided(SlotOutcome::MonthlyCeiling, Some(message))
            }
            Err(NotStarted::TooMuch(_)) => Ok(Newest::Waits(WaitsFor::Room)),
            Err(other) => failed(other.to_string()),
        }
    }
}

/// What becomes of the newest slot of a monitor.
enum Newest {
    Decided(Decision),
    Waits(WaitsFor),
}

fn decision(slot: Timestamp, outcome: SlotOutcome, reason: Option<String>) -> Decision {
    let reason = reason.map(|reason| reason.chars().take(MAX_REASON_CHARS).collect());
    Decision {
        slot,
        kind: SlotKind::Schedule,
        outcome,
        reason,
        scan: None,
    }
}
