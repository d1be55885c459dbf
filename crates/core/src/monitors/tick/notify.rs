//! Sends held alerts when they are due (docs/decisions/0047). Not here: what is held and until when
//! (`alerts`, `notify`).

use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;

use super::{ERROR_PAUSE, MAX_PER_PASS, PassTally, Ticker, sleep_until};
use crate::db;
use crate::ids::{MonitorId, TenantId};
use crate::monitors::alerts;
use crate::monitors::store::held;
use crate::webhooks::MonitorLock;

/// How many monitors a process handles concurrently: each takes a connection.
const MAX_CONCURRENT: usize = 4;

/// The result of a pass over the held alerts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotifyPass {
    /// The number of monitors whose held alerts were sent, or moved to the end of quiet hours.
    pub notified: usize,
    /// The number of skipped monitors: another process holds them or was faster.
    pub skipped: usize,
    /// The number of monitors whose alerts could not be sent; they are still due.
    pub failed: usize,
    /// When the next held alerts are due.
    pub next: Option<Timestamp>,
}

impl NotifyPass {
    pub(super) fn sleep(&self, now: Timestamp) -> Duration {
        match self {
            Self {
                notified: 1..,
                failed: 0,
                ..
            }
            | Self {
                skipped: 0,
                failed: 0,
                ..
            } => sleep_until(self.next, now),
            _ => ERROR_PAUSE,
        }
    }
}

impl Ticker {
    /// One pass over the held alerts that are due by `clock`.
    ///
    /// # Errors
    /// When the database fails. Deliveries committed before the failure stay.
    pub async fn send_held_alerts(
        &self,
        clock: impl Fn() -> Timestamp + Send + Sync,
    ) -> sqlx::Result<NotifyPass> {
        let tally = PassTally::default();
        let due = held::due(&self.pool, clock(), MAX_PER_PASS).await?;
        let sending =
            futures::stream::iter(due).for_each_concurrent(MAX_CONCURRENT, async |(tenant, id)| {
                tally.count(self.send_held(tenant, id, clock()).await, id);
            });
        sending.await;
        let next = held::next_due_at(&self.pool).await?;
        Ok(NotifyPass {
            notified: tally.done.into_inner(),
            skipped: tally.skipped.into_inner(),
            failed: tally.failed.into_inner(),
            next,
        })
    }

    /// Sends the held alerts of a monitor. `false`: another process has sent them or holds the lock.
    async fn send_held(
        &self,
        tenant: TenantId,
        id: MonitorId,
        now: Timestamp,
    ) -> sqlx::Result<bool> {
        let mut tx = db::begin(&self.pool).await?;
        let Some(mut lock) = MonitorLock::try_acquire(&mut tx, tenant, id).await? else {
            return Ok(false);
        };
        let sent = alerts::send_due(&mut lock, now).await?;
        tx.commit().await?;
        Ok(sent)
    }
}
