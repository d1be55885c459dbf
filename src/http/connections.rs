//! The connections of one listener: never more than a fixed number, and when a new one comes above it, the connection that has waited longest
//! for its client is evicted.
//!
//! A connection waits for its client while no request has arrived whole: before the first byte, between two requests, in the middle of a
//! head or a body. From then until its answer has been written to the connection it is busy, and never evicted. So connections that send
//! nothing cannot keep out those that do, however many they are.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use axum::BoxError;
use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::measure;

/// The connections of one listener.
#[derive(Debug)]
pub(super) struct Connections {
    most: usize,
    state: Mutex<State>,
    /// A slot may be free, or a connection that can be evicted.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    open: usize,
    /// Those of `open` that are evicted and not closed yet.
    closing: usize,
    /// Those that wait for their client, by when they began to.
    waiting: BTreeMap<u64, CancellationToken>,
    /// When the next one begins to wait.
    next: u64,
}

/// The right to one open connection, given back when it is dropped. The connection has to be closed before that.
#[derive(Debug)]
pub(super) struct Slot {
    activity: Arc<Activity>,
    _open: measure::Open,
}

/// What a connection is doing.
#[derive(Debug)]
pub(super) struct Activity {
    connections: Arc<Connections>,
    /// When it began to wait for its client; `BUSY` while it does not.
    since: AtomicU64,
    /// Cancelled when it is evicted, or closed.
    close: CancellationToken,
}

const BUSY: u64 = 0;

impl Connections {
    pub(super) fn new(most: usize) -> Arc<Self> {
        let state = State {
            next: BUSY + 1,
            ..State::default()
        };
        Arc::new(Self {
            most,
            state: Mutex::new(state),
            changed: Notify::new(),
        })
    }

    /// The slot of one more connection. Waits while there are as many as there may be, all of them busy.
    pub(super) async fn slot(self: &Arc<Self>) -> Slot {
        loop {
            if self.has_free_slot() {
                let activity = Activity {
                    connections: Arc::clone(self),
                    since: AtomicU64::new(BUSY),
                    close: CancellationToken::new(),
                };
                activity.set_waiting();
                return Slot {
                    activity: Arc::new(activity),
                    _open: measure::connection(),
                };
            }
            self.changed.notified().await;
        }
    }

    /// Takes a slot if one is free, else evicts a connection.
    fn has_free_slot(&self) -> bool {
        let mut state = self.state();
        if state.open < self.most {
            state.open += 1;
            return true;
        }
        if state.closing == 0
            && let Some((_, close)) = state.waiting.pop_first()
        {
            close.cancel();
            state.closing += 1;
            measure::connection_evicted();
        }
        false
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    pub(super) fn activity(&self) -> Arc<Activity> {
        Arc::clone(&self.activity)
    }

    /// Until it is evicted.
    pub(super) async fn evicted(&self) {
        self.activity.close.cancelled().await;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let activity = &self.activity;
        let mut state = activity.connections.state();
        state
            .waiting
            .remove(&activity.since.load(Ordering::Relaxed));
        state.open -= 1;
        state.closing -= usize::from(activity.close.is_cancelled());
        // So that it never waits again, whatever of it is left.
        activity.close.cancel();
        drop(state);
        activity.connections.changed.notify_one();
    }
}

impl Activity {
    /// Its request has arrived whole: it is not evicted before the answer. `false`: it was evicted just before, so the request must not be
    /// processed.
    #[must_use]
    pub(super) fn set_busy(&self) -> bool {
        let mut state = self.connections.state();
        state
            .waiting
            .remove(&self.since.swap(BUSY, Ordering::Relaxed));
        !self.close.is_cancelled()
    }

    /// It waits for its client from now on.
    pub(super) fn set_waiting(&self) {
        let mut state = self.connections.state();
        if self.since.load(Ordering::Relaxed) != BUSY || self.close.is_cancelled() {
            return;
        }
        let now = state.next;
        state.next += 1;
        self.since.store(now, Ordering::Relaxed);
        state.waiting.insert(now, self.close.clone());
        let is_full = state.open >= self.connections.most;
        drop(state);
        if is_full {
            self.connections.changed.notify_one();
        }
    }
}

/// The connection was evicted before its request had arrived whole.
#[derive(Debug, thiserror::Error)]
#[error("evicted in favour of a new connection")]
pub(super) struct Evicted;

/// The body of a request. When it has arrived whole, its connection is busy.
pub(super) struct Received {
    body: Incoming,
    activity: Arc<Activity>,
}

impl Received {
    /// # Errors
    /// The request has no body, and its connection was evicted.
    pub(super) fn new(body: Incoming, activity: Arc<Activity>) -> Result<Self, Evicted> {
        if body.is_end_stream() && !activity.set_busy() {
            return Err(Evicted);
        }
        Ok(Self { body, activity })
    }
}

impl http_body::Body for Received {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let is_whole = match &frame {
            Some(Ok(_)) => self.body.is_end_stream(),
            Some(Err(_)) => false,
            None => true,
        };
        if is_whole && !self.activity.set_busy() {
            return Poll::Ready(Some(Err(Evicted.into())));
        }
        Poll::Ready(frame.map(|frame| frame.map_err(BoxError::from)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of an answer. When the connection has taken all of it, it waits for its client.
pub(super) struct Sent {
    body: Body,
    activity: Arc<Activity>,
}

impl Sent {
    pub(super) fn new(body: Body, activity: Arc<Activity>) -> Self {
        Self { body, activity }
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        self.activity.set_waiting();
    }
}

impl http_body::Body for Sent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn the_one_that_waited_longest_is_evicted() {
        let connections = Connections::new(3);
        let busy = connections.slot().await;
        assert!(busy.activity().set_busy());
        let (first, second) = (connections.slot().await, connections.slot().await);
        // It was busy for a while, so the other has waited longer.
        assert!(first.activity().set_busy());
        first.activity().set_waiting();
        let mut next = std::pin::pin!(connections.slot());
        assert!(
            next.as_mut().now_or_never().is_none(),
            "no slot is free yet"
        );
        assert!(
            second.evicted().now_or_never().is_some() && first.evicted().now_or_never().is_none()
        );
        drop(second);
        let next = next.await;
        assert!(
            busy.evicted().now_or_never().is_none() && first.evicted().now_or_never().is_none()
        );
        drop((busy, first, next));
        let state = connections.state();
        assert_eq!((state.open, state.closing, state.waiting.len()), (0, 0, 0));
    }

    #[tokio::test]
    async fn busy_ones_are_not_evicted_and_the_next_waits() {
        let connections = Connections::new(1);
        let busy = connections.slot().await;
        assert!(busy.activity().set_busy());
        let mut next = std::pin::pin!(connections.slot());
        assert!(next.as_mut().now_or_never().is_none());
        assert!(busy.evicted().now_or_never().is_none());
        busy.activity().set_waiting();
        assert!(next.as_mut().now_or_never().is_none());
        assert!(
            busy.evicted().now_or_never().is_some(),
            "its answer is sent"
        );
        assert!(
            !busy.activity().set_busy(),
            "a request that arrives now is not processed"
        );
        drop(busy);
        next.await;
    }

    #[tokio::test]
    async fn a_late_end_of_an_answer_leaves_nothing_behind() {
        let connections = Connections::new(1);
        let slot = connections.slot().await;
        let activity = slot.activity();
        assert!(activity.set_busy());
        drop(slot);
        activity.set_waiting();
        assert_eq!(connections.state().waiting.len(), 0);
    }
}
