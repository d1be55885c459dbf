//! A claimed item in this process: from the claim until its call is recorded or it is given back.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::PgPool;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Claim;
use super::give_up::{give_up, give_up_unsent};
use super::retry::{Failed, Until, retry};
use super::store::{Claimed, LaneClaims};
use crate::contract::Api;

/// How long the end of the process waits for calls to be stored.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(20);
/// How long it waits for claims to be given back that were not begun.
const GIVE_BACK_TIMEOUT: Duration = Duration::from_secs(5);

/// The places for calls in this process, and which claims hold them. The backend of a worker cannot see how many of the worker's slots are
/// free, so they are counted here: exactly what is free is claimed.
///
/// A call leaves its place when its answer is there, if there is room among the answers that wait to be stored: so the next call need not
/// wait for the database. There is room for as many as there are calls; while the database is slow, calls keep their places. So does an
/// answer that may stop its lane, until the lane has heard it: no call begins in between.
#[derive(Debug, Clone)]
pub(super) struct Slots {
    free: Arc<Semaphore>,
    storing: Arc<Semaphore>,
    all: u32,
    held: Arc<Mutex<Held>>,
    dropped: UnboundedSender<Dropped>,
}

/// The claims of this process, each an item and a number.
#[derive(Debug, Default)]
struct Held {
    /// Being carried out, or on their way back.
    live: HashSet<(Uuid, i32)>,
    /// Answered, and the answer is in the spool: no place is taken, but nobody may take them for lost.
    parked: HashSet<(Uuid, i32)>,
}

/// A claim that nobody carries on, on its way back to the database. It stays held until it is there.
#[derive(Debug)]
pub(super) struct Dropped {
    claim: Claim,
    lane: Api,
    was_sent: bool,
    slots: Slots,
}

impl Slots {
    /// `count` free places, and where claims end up that were dropped.
    pub(super) fn new(count: u16) -> (Self, UnboundedReceiver<Dropped>) {
        let (dropped, given_up) = unbounded_channel();
        let [free, storing] = [count, count].map(|count| Arc::new(Semaphore::new(count.into())));
        (
            Self {
                free,
                storing,
                all: count.into(),
                held: Arc::default(),
                dropped,
            },
            given_up,
        )
    }

    /// Waits for a free place, and takes up to `most` of those that are free then.
    pub(super) async fn take(&self, most: u32) -> OwnedSemaphorePermit {
        // The semaphore is never closed; an empty permit would only mean an empty visit.
        let Ok(mut taken) = self.free.clone().acquire_owned().await else {
            return std::future::pending().await;
        };
        let more = u32::try_from(self.free.available_permits())
            .unwrap_or(u32::MAX)
            .min(most - 1);
        if let Ok(rest) = self.free.clone().try_acquire_many_owned(more) {
            taken.merge(rest);
        }
        taken
    }

    /// A ticket for a claim, with a place of its own.
    pub(super) fn ticket(
        &self,
        claimed: Claimed,
        asked_at: Instant,
        place: OwnedSemaphorePermit,
    ) -> Ticket {
        self.with_held(|held| {
            held.live
                .insert((claimed.claim.item.uuid(), claimed.claim.number))
        });
        Ticket {
            claimed,
            asked_at,
            slots: self.clone(),
            settled: false,
            was_sent: false,
            place,
        }
    }

    /// The claims that this process has: items and numbers.
    pub(super) fn held_claims(&self) -> Vec<(Uuid, i32)> {
        self.with_held(|held| held.live.iter().chain(&held.parked).copied().collect())
    }

    /// Nothing is carried out, stored or in the spool.
    pub(super) fn hold_nothing(&self) -> bool {
        self.with_held(|held| held.live.is_empty() && held.parked.is_empty())
    }

    /// Nothing of this process's own is in the spool any more.
    pub(super) fn unpark_all(&self) {
        self.with_held(|held| held.parked = HashSet::new());
    }

    /// Waits until every call is stored or in the spool, and then, for less long, until what was claimed and not begun is given back:
    /// the sweep does that too. Not for ever, because the database and the disk may both be away.
    pub(super) async fn wait_until_settled(&self) {
        // In the order in which a call takes them: when all places are free, what is left waits to be stored.
        let calls = async {
            drop(self.free.clone().acquire_many_owned(self.all).await);
            drop(self.storing.clone().acquire_many_owned(self.all).await);
        };
        if timeout(SETTLE_TIMEOUT, calls).await.is_err() {
            let calls = 2 * self.all as usize
                - self.free.available_permits()
                - self.storing.available_permits();
            return tracing::error!(
                calls,
                "the process ends before these could be stored: they will read worker_lost"
            );
        }
        let given_back = async {
            while self.with_held(|held| !held.live.is_empty()) {
                sleep(Duration::from_millis(5)).await;
            }
        };
        if timeout(GIVE_BACK_TIMEOUT, given_back).await.is_err() {
            let claims = self.with_held(|held| held.live.len());
            tracing::warn!(
                claims,
                "the process ends before these could be given back: another gives them up"
            );
        }
    }

    fn with_held<T>(&self, look: impl FnOnce(&mut Held) -> T) -> T {
        // A set is whole between any two of its operations, whatever panicked.
        look(&mut self.held.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A claimed item and its place. Dropped unsettled, before its call is sent it goes back to be claimed again; after that its call counts as
/// lost.
#[derive(Debug)]
pub struct Ticket {
    /// The item and what its call needs.
    pub claimed: Claimed,
    asked_at: Instant,
    slots: Slots,
    settled: bool,
    /// The marketplace may have been asked.
    was_sent: bool,
    place: OwnedSemaphorePermit,
}

impl Ticket {
    /// The claim.
    #[must_use]
    pub fn claim(&self) -> Claim {
        self.claimed.claim
    }

    /// When the claim was asked for: the lease was good then.
    pub(super) fn asked_at(&self) -> Instant {
        self.asked_at
    }

    /// The call is about to be sent: from here on it may have been billed.
    pub(super) fn sends(&mut self) {
        self.was_sent = true;
    }

    /// The place goes to the next call, once there is room among the answers that wait to be stored.
    pub(super) async fn leave_place(&mut self) {
        // The semaphore is never closed; without a permit the ticket keeps its place.
        if let Ok(room) = self.slots.storing.clone().acquire_owned().await {
            self.place = room;
        }
    }

    /// The call is recorded: the claim has ended.
    pub(super) fn settle(mut self) {
        self.settled = true;
        let key = (self.claimed.claim.item.uuid(), self.claimed.claim.number);
        self.slots.with_held(|held| held.live.remove(&key));
    }

    /// The answer is in the spool: the place is free for another call, and the claim stands until the answer is stored.
    pub(super) fn park(mut self) {
        self.settled = true;
        let key = (self.claimed.claim.item.uuid(), self.claimed.claim.number);
        self.slots.with_held(|held| {
            held.live.remove(&key);
            held.parked.insert(key);
        });
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        let (claim, lane, was_sent, slots) = (
            self.claimed.claim,
            self.claimed.lane,
            self.was_sent,
            self.slots.clone(),
        );
        // Nobody listens only when the process is at its end: the sweep finds the claim then.
        drop(self.slots.dropped.send(Dropped {
            claim,
            lane,
            was_sent,
            slots,
        }));
    }
}

/// Gives dropped claims back to the database, lane by lane, as they come.
pub(super) async fn give_up_dropped(
    pool: PgPool,
    mut dropped: UnboundedReceiver<Dropped>,
    stop: CancellationToken,
) {
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            biased;
            count = dropped.recv_many(&mut batch, 1000) => if count == 0 { return },
            () = stop.cancelled() => return,
        }
        let until = Until::Stop(stop.clone());
        for lane in by_lane(batch.iter().filter(|dropped| dropped.was_sent)) {
            report(retry("give_up", &until, || give_up(&pool, &lane)).await);
        }
        for lane in by_lane(batch.iter().filter(|dropped| !dropped.was_sent)) {
            report(retry("give_up", &until, || give_up_unsent(&pool, &lane)).await);
        }
        for Dropped { claim, slots, .. } in batch.drain(..) {
            slots.with_held(|held| held.live.remove(&(claim.item.uuid(), claim.number)));
        }
    }
}

fn report(given_up: Result<usize, Failed>) {
    match given_up {
        Ok(0) => {}
        Ok(lost) => tracing::error!(lost, "calls were lost inside the process"),
        Err(error) => tracing::error!(
            ?error,
            "claims could not be given back; the sweep will find them"
        ),
    }
}

fn by_lane<'a>(batch: impl Iterator<Item = &'a Dropped>) -> Vec<LaneClaims> {
    let mut lanes = Vec::<LaneClaims>::new();
    for Dropped {
        claim, lane: api, ..
    } in batch
    {
        let at = lanes
            .iter()
            .position(|lane| lane.tenant == claim.tenant && lane.api == api.as_str())
            .unwrap_or_else(|| {
                lanes.push(LaneClaims {
                    tenant: claim.tenant,
                    api: api.as_str().to_owned(),
                    items: Vec::new(),
                    numbers: Vec::new(),
                });
                lanes.len() - 1
            });
        lanes[at].items.push(claim.item.uuid());
        lanes[at].numbers.push(claim.number);
    }
    lanes
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use serde_json::Map;

    use super::*;
    use crate::ids::{ItemId, ScanId, TenantId};
    use crate::queue::WorkerId;

    fn claimed() -> Claimed {
        let claim = Claim {
            worker: WorkerId(1),
            tenant: TenantId::new(),
            item: ItemId::new(),
            number: 1,
        };
        Claimed {
            claim,
            lane: Api::Flights,
            scan: ScanId::new(),
            endpoint: String::new(),
            body: Map::new(),
            upstream_filters: false,
            upstream_limit: None,
            grant: None,
        }
    }

    #[tokio::test]
    async fn an_answered_call_leaves_its_place_while_there_is_room_for_answers() {
        let (slots, _dropped) = Slots::new(2);
        let call = async || slots.ticket(claimed(), Instant::now(), slots.take(1).await);
        let (mut one, mut two) = (call().await, call().await);
        assert!(
            slots.take(1).now_or_never().is_none(),
            "two calls are underway"
        );
        one.leave_place().await;
        two.leave_place().await;
        let (mut three, four) = (call().await, call().await);
        assert!(
            three.leave_place().now_or_never().is_none(),
            "two answers wait, so the third call keeps its place"
        );
        assert!(slots.take(1).now_or_never().is_none());
        one.settle();
        three.leave_place().await;
        assert_eq!(slots.take(9).await.num_permits(), 1);
        assert!(
            slots.wait_until_settled().now_or_never().is_none(),
            "answers and a call are not stored"
        );
        for ticket in [two, three, four] {
            ticket.settle();
        }
        assert!(slots.wait_until_settled().now_or_never().is_some());
        assert!(slots.held_claims().is_empty());
    }
}
