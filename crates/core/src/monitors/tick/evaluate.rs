//! Evaluates the rules of ended runs, each run once (docs/decisions/0018). Not here: the rules
//! (`alerts`).

use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;

use super::{ERROR_PAUSE, LONGEST_SLEEP, MAX_PER_PASS, PassTally, SHORTEST_SLEEP, Ticker};
use crate::db;
use crate::monitors::confirm::{self, KeyAccess};
use crate::monitors::{alerts, store};
use crate::tenants;

/// How many monitors a process evaluates concurrently: each takes a connection, and a core for
/// large runs.
const MAX_CONCURRENT: usize = 2;

/// The result of a pass over the runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvaluationPass {
    /// The number of evaluated runs.
    pub evaluated: usize,
    /// The number of skipped runs: another process holds the monitor, or an earlier run comes
    /// first.
    pub skipped: usize,
    /// The number of runs whose evaluation failed; a later pass retries them.
    pub failed: usize,
}

impl EvaluationPass {
    pub(super) fn sleep(&self) -> Duration {
        match self {
            // There may be more than one pass can take.
            Self {
                evaluated: 1..,
                failed: 0,
                ..
            } => SHORTEST_SLEEP,
            Self {
                skipped: 0,
                failed: 0,
                ..
            } => LONGEST_SLEEP,
            _ => ERROR_PAUSE,
        }
    }
}

impl Ticker {
    /// One pass over the runs that have ended. Runs of one monitor go in order, because its rules
    /// compare with earlier runs; several monitors go concurrently.
    ///
    /// # Errors
    /// When the database fails. Evaluations committed before the failure stay.
    pub async fn evaluate_ended_runs(
        &self,
        clock: impl Fn() -> Timestamp + Send + Sync,
    ) -> sqlx::Result<EvaluationPass> {
        let tally = PassTally::default();
        let runs = by_monitor(store::unevaluated_slots(&self.pool, MAX_PER_PASS, clock()).await?);
        let evaluating =
            futures::stream::iter(runs).for_each_concurrent(MAX_CONCURRENT, async |runs| {
                for run in runs {
                    tally.count(self.lock_and_report(&run, clock()).await, run.monitor);
                }
            });
        evaluating.await;
        Ok(EvaluationPass {
            evaluated: tally.done.into_inner(),
            skipped: tally.skipped.into_inner(),
            failed: tally.failed.into_inner(),
        })
    }

    /// Reports a slot. `false`: that was done meanwhile, another process holds the monitor, its scan
    /// runs again, or was ended first because its key is refused.
    async fn lock_and_report(
        &self,
        run: &store::UnevaluatedSlot,
        now: Timestamp,
    ) -> sqlx::Result<bool> {
        let mut tx = db::begin(&self.pool).await?;
        // A second search seals the monitor's key, so a rotation has to wait; its lock comes first.
        tenants::store::lock_tenant_shared(&mut tx, run.tenant).await?;
        let Some((mut lock, confirmation)) = store::lock_unevaluated(&mut tx, run).await? else {
            return Ok(false);
        };
        if run.is_refused {
            confirm::end_refused(&mut lock, run, confirmation.as_ref(), now).await?;
            tx.commit().await?;
            return Ok(false);
        }
        let access = KeyAccess {
            pool: &self.pool,
            ring: &self.ring,
            public_url: self.public_url.as_deref(),
        };
        let max_time = self.evaluation_timeout;
        let reported =
            alerts::report_slot(&mut lock, run, access, confirmation, max_time, now).await?;
        tx.commit().await?;
        Ok(reported)
    }
}

/// Groups the runs by monitor, in their order.
fn by_monitor(runs: Vec<store::UnevaluatedSlot>) -> Vec<Vec<store::UnevaluatedSlot>> {
    let mut monitors = Vec::<Vec<store::UnevaluatedSlot>>::new();
    for run in runs {
        match monitors
            .iter_mut()
            .find(|runs| runs.iter().any(|other| other.monitor == run.monitor))
        {
            Some(runs) => runs.push(run),
            None => monitors.push(vec![run]),
        }
    }
    monitors
}
