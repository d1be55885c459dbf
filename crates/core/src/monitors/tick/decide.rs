//! The decision of due slots.
//!
//! ```text
//!  the newest slot of a monitor ─► ran | late | overlap | monthly_ceiling | failed
//!  older undecided slots        ─► missed
//! ```
//!
//! One transaction under the monitor's lock writes the slot's row, its scan and the monitor's next
//! slot. A process that dies before the commit has decided nothing, and the slot is still due
//! (docs/decisions/0013).
//!
//! A slot whose previous run has not ended is an `overlap`, unless the service itself was down.
//! That is so while a dead process holds a search of the run, or while a late slot finds a run that
//! still progresses. Then the slot waits and runs once, late.

use std::ops::RangeInclusive;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::{SignedDuration, Timestamp};
use sqlx::PgConnection;

use super::{ERROR_PAUSE, MAX_PER_PASS, PassTally, Ticker, sleep_until};
use crate::commands::RequestContext;
use crate::contract::monitors::{SlotKind, SlotOutcome};
use crate::db;
use crate::ids::{GrantId, MonitorId, TenantId};
use crate::monitors::schedule::Schedule;
use crate::monitors::start_run::{RunContext, StartRunError, start_run};
use crate::monitors::store::{self, Decision, WaitsFor};
use crate::scans::cancel::cancel_if_stuck;
use crate::tenants::{self, GrantError};

/// How many monitors a process decides concurrently: each takes a connection.
const MAX_CONCURRENT: usize = 4;
/// The most missed slots that one transaction records.
const MAX_MISSED: usize = 1_000;
/// A run that starts this long after its slot is late.
const LATE_AFTER: SignedDuration = SignedDuration::from_mins(5);
/// When a tenant's limit delays a slot, the next check comes after a tenth of the time waited so
/// far, within these bounds.
const LIMIT_RECHECK: RangeInclusive<SignedDuration> =
    SignedDuration::from_secs(30)..=SignedDuration::from_mins(5);
/// The interval of checks while a slot waits for the previous run.
const RUN_RECHECK: SignedDuration = SignedDuration::from_secs(2);
/// The reason of a slot that ran after a wait.
const WAITED_FOR_LIMIT: &str =
    "the slot waited because the account was at its limit of unfinished work";
const WAITED_FOR_RUN: &str =
    "the slot waited for the previous run, which was interrupted while the service was down";
/// The reason of a slot that did not run after a wait.
const LIMIT_NOT_CLEARED: &str =
    "the account stayed at its limit of unfinished work until the next slot";
const RUN_NOT_ENDED: &str = "the previous run had not ended by the next slot";
/// The longest stored reason, in characters.
const MAX_REASON_CHARS: usize = 2_000;

/// The result of a pass over the slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotPass {
    /// The number of monitors with decided slots.
    pub decided: usize,
    /// The number of monitors whose decision failed; they are still due.
    pub failed: usize,
    /// The time of the next slot.
    pub next: Option<Timestamp>,
}

impl SlotPass {
    pub(super) fn sleep(&self, now: Timestamp) -> Duration {
        if self.failed > 0 {
            return ERROR_PAUSE;
        }
        sleep_until(self.next, now)
    }
}

impl Ticker {
    /// One pass over the slots that are due by `clock`.
    ///
    /// # Errors
    /// When the database fails. Decisions made before the failure stay.
    pub async fn decide_due_slots(
        &self,
        clock: impl Fn() -> Timestamp + Send + Sync,
    ) -> sqlx::Result<SlotPass> {
        let tally = PassTally::default();
        let due = store::due_monitors(&self.pool, clock(), MAX_PER_PASS).await?;
        let deciding =
            futures::stream::iter(due).for_each_concurrent(MAX_CONCURRENT, async |(tenant, id)| {
                tally.count(self.decide(tenant, id, clock()).await, id);
            });
        deciding.await;
        let next = store::next_due_at(&self.pool).await?;
        Ok(SlotPass {
            decided: tally.done.into_inner(),
            failed: tally.failed.into_inner(),
            next,
        })
    }

    /// Decides the due slots of a monitor. `false`: another process decided them or holds the lock.
    async fn decide(&self, tenant: TenantId, id: MonitorId, now: Timestamp) -> sqlx::Result<bool> {
        let mut tx = db::begin(&self.pool).await?;
        tenants::store::lock_tenant_shared(&mut tx, tenant).await?;
        let Some((mut lock, monitor)) = store::lock_due(&mut tx, tenant, id, now).await? else {
            return Ok(false);
        };
        let Some(first) = monitor.next_slot.map(jiff_sqlx::Timestamp::to_jiff) else {
            return Ok(false);
        };
        let schedule = Schedule::parse(&monitor.cron, &monitor.timezone);
        let last = store::last_decided(lock.conn(), tenant, id).await?;
        let set_back = last.filter(|last| *last >= first);
        let DecidedSlots {
            decisions,
            next,
            waits,
        } = match (&schedule, set_back) {
            // The next slot was set back: a recorded slot is not decided again.
            (_, Some(last)) => DecidedSlots {
                next: schedule.as_ref().and_then(|schedule| schedule.after(last)),
                ..DecidedSlots::default()
            },
            (None, None) => {
                let zone = &monitor.timezone;
                let reason = format!("this service no longer knows the time zone {zone}");
                DecidedSlots {
                    decisions: vec![decision(first, SlotOutcome::Failed, Some(reason))],
                    ..DecidedSlots::default()
                }
            }
            (Some(schedule), None) => {
                let due = RunContext {
                    tenant,
                    id,
                    monitor: &monitor,
                    schedule,
                    slot: first,
                };
                self.decide_from(lock.conn(), &due, now).await?
            }
        };
        store::record_decisions(lock.conn(), tenant, id, &decisions, now).await?;
        store::set_next_slot(lock.conn(), tenant, id, next, waits).await?;
        tx.commit().await?;
        Ok(set_back.is_some() || !decisions.is_empty())
    }

    /// Decides the due slots of a monitor from this one on.
    async fn decide_from(
        &self,
        conn: &mut PgConnection,
        due: &RunContext<'_>,
        now: Timestamp,
    ) -> sqlx::Result<DecidedSlots> {
        let (first, schedule) = (due.slot, due.schedule);
        let slots = schedule.due_slots(first, now).take(MAX_MISSED + 1);
        let mut slots: Vec<_> = slots.collect();
        // Beyond MAX_MISSED slots, the rest waits for the next pass; the newest one runs last.
        let newest = slots.pop().unwrap_or(first);
        let missed = |slot| decision(slot, SlotOutcome::Missed, None);
        let mut decisions: Vec<_> = slots.into_iter().map(missed).collect();
        let waited_for = due.monitor.waits_for.as_deref().map(WaitsFor::parse);
        if let Some((waited, what)) = decisions.first_mut().zip(waited_for) {
            let (outcome, reason) = match what {
                WaitsFor::TenantLimit => (SlotOutcome::Failed, LIMIT_NOT_CLEARED),
                WaitsFor::PreviousRun => (SlotOutcome::Overlap, RUN_NOT_ENDED),
            };
            *waited = decision(first, outcome, Some(reason.to_owned()));
        }
        let (mut next, mut waits) = (Some(newest), None);
        if decisions.len() < MAX_MISSED {
            let due = RunContext {
                slot: newest,
                ..*due
            };
            match self.decide_newest(conn, &due, now).await? {
                NewestSlot::Decided(decision) => {
                    decisions.push(decision);
                    next = schedule.after(newest);
                }
                NewestSlot::Waits(what) => {
                    let delay = match what {
                        WaitsFor::PreviousRun => RUN_RECHECK,
                        WaitsFor::TenantLimit => (now.duration_since(newest) / 10)
                            .clamp(*LIMIT_RECHECK.start(), *LIMIT_RECHECK.end()),
                    };
                    waits = Some((what, now + delay));
                }
            }
        }
        Ok(DecidedSlots {
            decisions,
            next,
            waits,
        })
    }

    /// Decides the newest due slot of a monitor.
    async fn decide_newest(
        &self,
        conn: &mut PgConnection,
        due: &RunContext<'_>,
        now: Timestamp,
    ) -> sqlx::Result<NewestSlot> {
        let decided =
            |outcome, reason| Ok(NewestSlot::Decided(decision(due.slot, outcome, reason)));
        let failed = |reason: String| decided(SlotOutcome::Failed, Some(reason));
        if let Some(refusal) = store::lane_refusal(conn, due.tenant, due.monitor.api, None).await? {
            return failed(refusal);
        }
        for run in store::active_runs(conn, due.tenant, due.id).await? {
            cancel_if_stuck(conn, due.tenant, run.scan, now).await?;
        }
        let is_late = now.duration_since(due.slot) > LATE_AFTER;
        if let Some(run) = store::active_runs(conn, due.tenant, due.id).await?.first() {
            if run.is_abandoned() || is_late && run.is_progressing() {
                return Ok(NewestSlot::Waits(WaitsFor::PreviousRun));
            }
            return decided(SlotOutcome::Overlap, Some(run.description()));
        }
        let grant = GrantId::from(due.monitor.grant_id);
        let key = match tenants::open_grant(&mut *conn, &self.ring, due.tenant, grant).await {
            Ok(key) => key,
            Err(GrantError::Database(error)) => return Err(error),
            Err(gone) => {
                return failed(format!(
                    "the monitor's key cannot be decrypted; resume the monitor with the key: {gone}"
                ));
            }
        };
        let context = RequestContext {
            pool: &self.pool,
            ring: &self.ring,
            key: &key,
            now,
        };
        match start_run(conn, context, &self.pace, due).await {
            Ok(scan) => {
                let outcome = if is_late {
                    SlotOutcome::Late
                } else {
                    SlotOutcome::Ran
                };
                let waited_for = due.monitor.waits_for.as_deref().map(WaitsFor::parse);
                let reason = waited_for.map(|what| match what {
                    WaitsFor::TenantLimit => WAITED_FOR_LIMIT.to_owned(),
                    WaitsFor::PreviousRun => WAITED_FOR_RUN.to_owned(),
                });
                Ok(NewestSlot::Decided(Decision {
                    scan: Some(scan.id),
                    ..decision(due.slot, outcome, reason)
                }))
            }
            Err(StartRunError::Database(error)) => Err(error),
            Err(StartRunError::MonthlyLimit(message)) => {
                decided(SlotOutcome::MonthlyCeiling, Some(message))
            }
            Err(StartRunError::TenantLimit(_)) => Ok(NewestSlot::Waits(WaitsFor::TenantLimit)),
            Err(other) => failed(other.to_string()),
        }
    }
}

/// What was decided of a monitor's due slots.
#[derive(Default)]
struct DecidedSlots {
    decisions: Vec<Decision>,
    /// The slot to decide next.
    next: Option<Timestamp>,
    /// What it waits for, and until when.
    waits: Option<(WaitsFor, Timestamp)>,
}

/// The newest due slot of a monitor: decided, or still waiting.
enum NewestSlot {
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
