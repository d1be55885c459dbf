//! The tick: slots that are due are decided, and beside that runs that have ended are judged. Any number of processes do it at once.
//!
//! ```text
//!  due, the newest of its slots ─► ran | late | overlap | monthly_ceiling | failed      older ones that nobody was there for ─► missed
//! ```
//!
//! A slot is decided in one transaction under its monitor's lock: its row, its scan and the monitor's next slot are there together or not
//! at all, so a process that dies in it has decided nothing, and the next one finds it due. Slots are calendar times: the time comes as an
//! argument. Every pass is bounded; what is left waits for the next.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, TryFutureExt as _};
use jiff::{SignedDuration, Timestamp};
use sqlx::PgPool;
use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::alerts;
use super::schedule::Schedule;
use super::start::{NotStarted, Start, start};
use super::store::{self, Decision};
use crate::config::PaceConfig;
use crate::contract::monitors::{SlotKind, SlotOutcome};
use crate::db;
use crate::ids::{GrantId, MonitorId, TenantId};
use crate::scans::Desk;
use crate::scans::cancel::cancel_stuck;
use crate::tenants::{self, GrantError, Keyring};

/// The most monitors, and the most runs to judge, of one pass.
const PASS: i64 = 200;
/// How many monitors a process decides at the same time: each takes a connection.
const AT_ONCE: usize = 4;
/// The most missed slots that one transaction records.
const MOST_MISSED: usize = 1_000;
/// A run this long after its slot is late.
const LATE: SignedDuration = SignedDuration::from_mins(5);
/// A slot whose caller has too much underway is looked at again after the tenth part of the time that it has waited, within these bounds.
const AGAIN: RangeInclusive<SignedDuration> = SignedDuration::from_secs(30)..=SignedDuration::from_mins(5);
/// How many monitors' runs it judges at the same time: each takes a connection, and a core while there are many cells.
const JUDGED_AT_ONCE: usize = 2;
/// Why a slot ran that had come before.
const HAD_TO_WAIT: &str = "it waited for room: its caller had as much underway as one may have";
/// Why it did not.
const NO_ROOM: &str = "until the next slot came there was no room: its caller had as much underway as one may have";
/// The longest sleep: what nobody told of is found after it.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);
/// The shortest: a monitor that is due may be locked by another process just now.
const SHORTEST_SLEEP: Duration = Duration::from_millis(20);
/// After a failure.
const AWAY_PAUSE: Duration = Duration::from_secs(1);
/// The longest reason on record, in characters.
const MAX_REASON_CHARS: usize = 2_000;

/// What a tick works with.
#[derive(Debug, Clone)]
pub struct Ticker {
    /// A migrated database.
    pub pool: PgPool,
    /// Opens the monitors' keys, and seals them for their scans.
    pub ring: Arc<Keyring>,
    /// The pace of new lanes.
    pub pace: PaceConfig,
}

/// Ticks until `stop`; a pass that has begun is finished first, so that no transaction is broken off. Runs are judged beside the slots:
/// however long the rules of one caller take, another's slot comes in time.
pub async fn run(ticker: Ticker, stop: CancellationToken) {
    let (slots, runs) = (Notify::new(), Notify::new());
    let deciding =
        again_and_again(&stop, &slots, || ticker.decide_due(Timestamp::now).map_ok(|pass| pass.sleep(Timestamp::now())).boxed());
    let judging = again_and_again(&stop, &runs, || ticker.judge_ended(Timestamp::now).map_ok(|pass| pass.sleep()).boxed());
    tokio::select! {
        ((), ()) = async { tokio::join!(deciding, judging) } => {}
        () = listen(&ticker.pool, [&slots, &runs]) => {}
    }
}

/// Passes until `stop`, each followed by the sleep that it gives, which `wake` ends.
async fn again_and_again<'a>(stop: &CancellationToken, wake: &Notify, pass: impl Fn() -> BoxFuture<'a, sqlx::Result<Duration>>) {
    while !stop.is_cancelled() {
        let sleep = pass().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "monitors are not looked at");
            AWAY_PAUSE
        });
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(sleep) => {}
            () = wake.notified() => {}
        }
    }
}

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
    fn sleep(&self, now: Timestamp) -> Duration {
        if self.failed > 0 {
            return AWAY_PAUSE;
        }
        let until = self.next.map(|next| Duration::try_from(next.duration_since(now)).unwrap_or_default());
        until.unwrap_or(LONGEST_SLEEP).clamp(SHORTEST_SLEEP, LONGEST_SLEEP)
    }
}

/// What a pass over the runs did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judged {
    /// How many runs were judged.
    pub judged: usize,
    /// How many were left alone: another process is at their monitor, or a run before them comes first.
    pub passed_over: usize,
    /// How many monitors could not be looked at; their runs are to be judged still.
    pub failed: usize,
}

impl Judged {
    fn sleep(&self) -> Duration {
        match self {
            // There may be more than one pass takes.
            Self { judged: 1.., failed: 0, .. } => SHORTEST_SLEEP,
            Self { passed_over: 0, failed: 0, .. } => LONGEST_SLEEP,
            _ => AWAY_PAUSE,
        }
    }
}

impl Ticker {
    /// One pass over the slots that are due by `clock`.
    ///
    /// # Errors
    /// When the database does not answer. What was decided before is decided.
    pub async fn decide_due(&self, clock: impl Fn() -> Timestamp + Send + Sync) -> sqlx::Result<Decided> {
        let (decided, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let due = store::due(&self.pool, clock(), PASS).await?;
        let deciding = futures::stream::iter(due).for_each_concurrent(AT_ONCE, async |(tenant, id)| {
            count(self.decide(tenant, id, clock()).await, &decided, &AtomicUsize::new(0), &failed, id);
        });
        deciding.await;
        let next = store::next(&self.pool).await?;
        Ok(Decided { decided: decided.into_inner(), failed: failed.into_inner(), next })
    }

    /// One pass over the runs that have ended. Those of one monitor in their order, because its rules look at the runs before; those of
    /// several beside each other, and each at its own time by `clock`.
    ///
    /// # Errors
    /// When the database does not answer. What was judged before is judged.
    pub async fn judge_ended(&self, clock: impl Fn() -> Timestamp + Send + Sync) -> sqlx::Result<Judged> {
        let (judged, passed_over, failed) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        let runs = by_monitor(store::to_judge(&self.pool, PASS).await?);
        let judging = futures::stream::iter(runs).for_each_concurrent(JUDGED_AT_ONCE, async |runs| {
            for run in runs {
                count(self.judge(&run, clock()).await, &judged, &passed_over, &failed, run.monitor);
            }
        });
        judging.await;
        Ok(Judged { judged: judged.into_inner(), passed_over: passed_over.into_inner(), failed: failed.into_inner() })
    }

    /// Decides what is due of a monitor; false: another process has, or is at it.
    async fn decide(&self, tenant: TenantId, id: MonitorId, now: Timestamp) -> sqlx::Result<bool> {
        let mut tx = db::begin(&self.pool).await?;
        tenants::store::hold(&mut tx, tenant).await?;
        let Some(monitor) = store::lock_due(&mut tx, tenant, id, now).await? else { return Ok(false) };
        let Some(first) = monitor.next_slot.map(jiff_sqlx::Timestamp::to_jiff) else { return Ok(false) };
        let schedule = Schedule::read(&monitor.cron, &monitor.timezone);
        if let Some(last) = store::last_decided(&mut tx, tenant, id).await?.filter(|last| *last >= first) {
            // Whatever has set it back: what is on record is not decided again.
            store::set_next(&mut tx, tenant, id, schedule.and_then(|schedule| schedule.after(last)), None).await?;
            tx.commit().await?;
            return Ok(true);
        }
        let Some(schedule) = schedule else {
            let reason = format!("the time zone {} is not known to this service any more", monitor.timezone);
            store::record(&mut tx, tenant, id, &[decision(first, SlotOutcome::Failed, Some(reason))], now).await?;
            store::set_next(&mut tx, tenant, id, None, None).await?;
            tx.commit().await?;
            return Ok(true);
        };
        let mut slots: Vec<_> = schedule.due(first, now).take(MOST_MISSED + 1).collect();
        // What is left of very many waits for the next pass: then the newest runs.
        let newest = slots.pop().unwrap_or(first);
        let mut decisions: Vec<_> = slots.iter().map(|slot| decision(*slot, SlotOutcome::Missed, None)).collect();
        if let Some(waited) = decisions.first_mut().filter(|_| monitor.waits) {
            *waited = decision(first, SlotOutcome::Failed, Some(NO_ROOM.to_owned()));
        }
        let (mut next, mut not_before) = (Some(newest), None);
        if decisions.len() < MOST_MISSED {
            let start = Start { tenant, id, monitor: &monitor, schedule: &schedule, slot: newest };
            match self.decide_newest(&mut tx, &start, now).await? {
                Some(decision) => {
                    decisions.push(decision);
                    next = schedule.after(newest);
                }
                None => not_before = Some(now + (now.duration_since(newest) / 10).clamp(*AGAIN.start(), *AGAIN.end())),
            }
        }
        store::record(&mut tx, tenant, id, &decisions, now).await?;
        store::set_next(&mut tx, tenant, id, next, not_before).await?;
        tx.commit().await?;
        Ok(!decisions.is_empty())
    }

    /// What becomes of a slot; `None`: its caller has too much underway, and it is looked at again.
    async fn decide_newest(
        &self,
        conn: &mut sqlx::PgConnection,
        slot: &Start<'_>,
        now: Timestamp,
    ) -> sqlx::Result<Option<Decision>> {
        let decided = |outcome, reason| Ok(Some(decision(slot.slot, outcome, reason)));
        let failed = |reason: String| decided(SlotOutcome::Failed, Some(reason));
        if let Some(refusal) = store::refusal(conn, slot.tenant, &slot.monitor.api).await? {
            return failed(refusal);
        }
        for run in store::live_runs(conn, slot.tenant, slot.id).await? {
            cancel_stuck(conn, slot.tenant, run.scan, now).await?;
        }
        if let Some(run) = store::live_runs(conn, slot.tenant, slot.id).await?.first() {
            return decided(SlotOutcome::Overlap, Some(run.in_the_way()));
        }
        let grant = GrantId::from(slot.monitor.grant_id);
        let key = match tenants::open_grant(&mut *conn, &self.ring, slot.tenant, grant).await {
            Ok(key) => key,
            Err(GrantError::Database(error)) => return Err(error),
            Err(gone) => return failed(format!("its key cannot be opened, resume it with the key: {gone}")),
        };
        let desk = Desk { pool: &self.pool, ring: &self.ring, key: &key, now };
        match start(conn, desk, &self.pace, slot).await {
            Ok(scan) => {
                let outcome = if now.duration_since(slot.slot) > LATE { SlotOutcome::Late } else { SlotOutcome::Ran };
                let reason = slot.monitor.waits.then(|| HAD_TO_WAIT.to_owned());
                Ok(Some(Decision { scan: Some(scan.id), ..decision(slot.slot, outcome, reason) }))
            }
            Err(NotStarted::Database(error)) => Err(error),
            Err(NotStarted::Ceiling(message)) => decided(SlotOutcome::MonthlyCeiling, Some(message)),
            Err(NotStarted::TooMuch(_)) => Ok(None),
            Err(other) => failed(other.to_string()),
        }
    }

    /// Judges a slot; false: it was judged meanwhile, another process is at its monitor, or its scan runs again.
    async fn judge(&self, run: &store::Run, now: Timestamp) -> sqlx::Result<bool> {
        let mut tx = db::begin(&self.pool).await?;
        if !store::take_run(&mut tx, run).await? {
            return Ok(false);
        }
        let judged = alerts::judge(&mut tx, run, now).await?;
        tx.commit().await?;
        Ok(judged)
    }
}

fn decision(slot: Timestamp, outcome: SlotOutcome, reason: Option<String>) -> Decision {
    let reason = reason.map(|reason| reason.chars().take(MAX_REASON_CHARS).collect());
    Decision { slot, kind: SlotKind::Schedule, outcome, reason, scan: None }
}

/// One monitor that cannot be looked at is not in the way of the others.
fn count(done: sqlx::Result<bool>, counted: &AtomicUsize, passed_over: &AtomicUsize, failed: &AtomicUsize, monitor: MonitorId) {
    let one = match done {
        Ok(true) => counted,
        Ok(false) => passed_over,
        Err(error) => {
            tracing::warn!(%monitor, %error, "a monitor was not looked at; the next pass goes on");
            failed
        }
    };
    one.fetch_add(1, Ordering::Relaxed);
}

/// The runs of each monitor, in the order in which they came.
fn by_monitor(runs: Vec<store::Run>) -> Vec<Vec<store::Run>> {
    let mut monitors = Vec::<Vec<store::Run>>::new();
    for run in runs {
        match monitors.iter_mut().find(|runs| runs.iter().any(|other| other.monitor == run.monitor)) {
            Some(runs) => runs.push(run),
            None => monitors.push(vec![run]),
        }
    }
    monitors
}

/// Wakes the tick when a slot comes sooner than it knew, or a run has ended. While it cannot listen, the tick's own sleep must do.
async fn listen(pool: &PgPool, wake: [&Notify; 2]) {
    let own = PgPoolOptions::new().max_connections(1).connect_lazy_with((*pool.connect_options()).clone());
    loop {
        if let Err(error) = listen_once(&own, wake).await {
            tracing::debug!(%error, "not listening for monitors");
        }
        tokio::time::sleep(AWAY_PAUSE).await;
    }
}

async fn listen_once(pool: &PgPool, wake: [&Notify; 2]) -> sqlx::Result<()> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen("farescan_monitor").await?;
    wake.iter().for_each(|wake| wake.notify_one());
    // None: the connection was lost, so something may have been missed.
    while listener.try_recv().await?.is_some() {
        wake.iter().for_each(|wake| wake.notify_one());
    }
    Ok(())
}
