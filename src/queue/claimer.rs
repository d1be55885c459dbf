//! Claiming: as many items as there are free places, whenever a lane is due.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::WorkerId;
use super::backend::Inbox;
use super::keep::Room;
use super::lease::Lease;
use super::retry::MOVE_TIMEOUT;
use super::store::{self, Claimed, Visit};
use super::ticket::Slots;
use crate::measure;

/// The most that one visit takes: beyond it one transaction would hold its lanes too long.
const LARGEST_VISIT: u32 = 100;
/// The time between visits that brought nothing although a lane is due: somebody has it locked just now. It doubles with each of them.
const SHORTEST_WAIT: Duration = Duration::from_millis(2);
/// Between two looks whether all is stored after a promotion, in milliseconds.
const PROMOTED_PAUSE_MS: u64 = 500;
const LONGEST_LOCKED_WAIT: Duration = Duration::from_millis(50);
/// Between two tries to reach a database that is away.
const AWAY_PAUSE: Duration = Duration::from_millis(500);

pub(super) struct Claimer {
    pub(super) pool: PgPool,
    pub(super) lease: Arc<Lease>,
    pub(super) slots: Slots,
    pub(super) inbox: Arc<Inbox>,
    pub(super) room: Arc<Room>,
    /// Of the database that was claimed from last.
    pub(super) timeline: Option<i32>,
}

impl Claimer {
    /// Claims until `stop`; what the worker has not taken by then goes back.
    pub(super) async fn run(mut self, wake: Arc<Notify>, stop: CancellationToken) {
        let mut locked = 0;
        while !stop.is_cancelled() {
            let Some(visited) = stop.run_until_cancelled(self.visit()).await else {
                break;
            };
            let wait = match visited {
                Next::Wait(wait) => {
                    locked = 0;
                    wait
                }
                Next::Locked => {
                    locked += 1;
                    locked_wait(locked)
                }
            };
            tokio::select! {
                () = sleep(wait) => {}
                () = wake.notified() => {}
                () = stop.cancelled() => {}
            }
        }
        drop(self.inbox.empty());
    }

    /// One visit to the due lanes.
    ///
    /// Dropped halfway, its claim may stand in the database all the same: the lease's keeper or the sweep finds it.
    async fn visit(&mut self) -> Next {
        let mut places = self.slots.take(LARGEST_VISIT).await;
        let Some(worker) = self.lease.worker().filter(|_| self.room.is_there()) else {
            return Next::Wait(AWAY_PAUSE);
        };
        let (asked_at, asked_for) = (Instant::now(), places.num_permits());
        let (claims, wait_ms) = match timeout(MOVE_TIMEOUT, self.claim(worker, asked_for)).await {
            Ok(Ok(Visit::Claims(claims, wait_ms))) => (claims, wait_ms),
            Ok(Ok(Visit::Fenced)) => {
                self.lease.lost(worker);
                return Next::Wait(AWAY_PAUSE);
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "nothing can be claimed");
                return Next::Wait(AWAY_PAUSE);
            }
            Err(_) => {
                tracing::warn!("nothing can be claimed: the database does not answer");
                return Next::Wait(AWAY_PAUSE);
            }
        };
        let got = claims.len();
        let claims = in_turn(claims);
        measure::batch("claim", got, asked_at.elapsed());
        self.inbox.put(
            claims
                .into_iter()
                .filter_map(|claimed| Some(self.slots.ticket(claimed, asked_at, places.split(1)?))),
        );
        match got {
            0 if wait_ms == 0 => Next::Locked,
            _ if got == asked_for => Next::Wait(Duration::ZERO),
            _ => Next::Wait(Duration::from_millis(wait_ms).max(SHORTEST_WAIT)),
        }
    }
}

impl Claimer {
    /// Claims, unless a standby has been promoted: it may not have heard of calls that are on record, and offers their items again. First
    /// all that this process holds is stored.
    async fn claim(&mut self, worker: WorkerId, slots: usize) -> sqlx::Result<Visit> {
        let mut connection = self.pool.acquire().await?;
        // Where the server does not say, nothing can be known of it.
        let timeline = store::timeline(&mut connection).await.ok();
        let is_new = timeline.is_some() && self.timeline.is_some() && timeline != self.timeline;
        if is_new && !self.slots.hold_nothing() {
            tracing::warn!(
                ?timeline,
                "a standby was promoted: nothing is claimed until all that this process holds is stored"
            );
            return Ok(Visit::Claims(Vec::new(), PROMOTED_PAUSE_MS));
        }
        self.timeline = timeline.or(self.timeline);
        store::claim(&mut *connection, worker, slots).await
    }
}

/// When the next visit is of use.
enum Next {
    /// After this time, or when somebody wakes the claimer.
    Wait(Duration),
    /// A lane is due, but this visit could not have it.
    Locked,
}

/// How long to wait after so many visits in a row that could not have a lane that is due.
fn locked_wait(visits: u32) -> Duration {
    SHORTEST_WAIT
        .saturating_mul(1 << visits.clamp(1, 6).saturating_sub(1))
        .min(LONGEST_LOCKED_WAIT)
}

/// The claims of a visit, one of each lane after the other: who has five is not behind all that another has.
fn in_turn(claims: Vec<Claimed>) -> Vec<Claimed> {
    let mut taken = HashMap::new();
    let mut placed: Vec<_> = claims
        .into_iter()
        .map(|claimed| {
            let place = taken
                .entry((claimed.claim.tenant, claimed.lane))
                .or_insert(0_usize);
            *place += 1;
            (*place, claimed)
        })
        .collect();
    // Stable: inside a lane they stay in the order of their turns.
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, claimed)| claimed).collect()
}

/// Wakes the claimer when a lane is armed, on a connection of its own. While it cannot listen, the claimer's own timer (a second at most) must do.
pub(super) async fn listen(pool: PgPool, wake: Arc<Notify>, stop: CancellationToken) {
    let own = PgPoolOptions::new()
        .max_connections(1)
        .connect_lazy_with((*pool.connect_options()).clone());
    let listening = async {
        loop {
            if let Err(error) = listen_once(&own, &wake).await {
                tracing::debug!(%error, "not listening for new work");
            }
            sleep(AWAY_PAUSE).await;
        }
    };
    stop.run_until_cancelled(listening).await;
}

async fn listen_once(pool: &PgPool, wake: &Notify) -> sqlx::Result<()> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen("farescan_lane").await?;
    wake.notify_one();
    // None: the connection was lost, so something may have been missed.
    while listener.try_recv().await?.is_some() {
        wake.notify_one();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locked_lane_is_asked_for_less_and_less() {
        let waits: Vec<_> = (1..=8)
            .chain([u32::MAX])
            .map(|visits| locked_wait(visits).as_millis())
            .collect();
        assert_eq!(waits, [2, 4, 8, 16, 32, 50, 50, 50, 50]);
    }
}
