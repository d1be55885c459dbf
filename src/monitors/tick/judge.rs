//! Which runs are judged, and when: those that have ended, each once (docs/decisions/0018). Not here: what the rules say (`alerts`).

use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;

use super::{AWAY_PAUSE, LONGEST_SLEEP, PASS, SHORTEST_SLEEP, Tally, Ticker};
use crate::db;
use crate::monitors::{alerts, store};

/// How many monitors' runs a process judges at the same time: each takes a connection, and a core while there are many cells.
const AT_ONCE: usize = 2;

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
    pub(super) fn sleep(&self) -> Duration {
        match self {
            // There may be more than one pass takes.
            Self {
                judged: 1..,
                failed: 0,
                ..
            } => SHORTEST_SLEEP,
            Self {
                passed_over: 0,
                failed: 0,
                ..
            } => LONGEST_SLEEP,
            _ => AWAY_PAUSE,
        }
    }
}

impl Ticker {
    /// One pass over the runs that have ended. Those of one monitor in their order, because its rules look at the runs before; those of
    /// several beside each other, and each at its own time by `clock`.
    ///
    /// # Errors
    /// When the database does not answer. What was judged before is judged.
    pub async fn judge_ended(
        &self,
        clock: impl Fn() -> Timestamp + Send + Sync,
    ) -> sqlx::Result<Judged> {
        let tally = Tally::default();
        let runs = by_monitor(store::to_judge(&self.pool, PASS).await?);
        let judging = futures::stream::iter(runs).for_each_concurrent(AT_ONCE, async |runs| {
            for run in runs {
                tally.count(self.judge(&run, clock()).await, run.monitor);
            }
        });
        judging.await;
        Ok(Judged {
            judged: tally.done.into_inner(),
            passed_over: tally.passed_over.into_inner(),
            failed: tally.failed.into_inner(),
        })
    }

    /// Judges a slot; false: it was judged meanwhile, another process is at its monitor, or its scan runs again.
    async fn judge(&self, run: &store::Run, now: Timestamp) -> sqlx::Result<bool> {
        let mut tx = db::begin(&self.pool).await?;
        let Some(mut lock) = store::take_run(&mut tx, run).await? else {
            return Ok(false);
        };
        let judged = alerts::judge(&mut lock, run, self.judging, now).await?;
        tx.commit().await?;
        Ok(judged)
    }
}

/// The runs of each monitor, in the order in which they came.
fn by_monitor(runs: Vec<store::Run>) -> Vec<Vec<store::Run>> {
    let mut monitors = Vec::<Vec<store::Run>>::new();
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
