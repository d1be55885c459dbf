//! The connections of one listener, at most a fixed number. When a new one exceeds it, the
//! connection that has waited longest for its client is evicted.
//!
//! A connection waits for its client until a request has arrived completely: before the first byte,
//! between two requests, in the middle of a head or body. From then until its response is written
//! it is busy and never evicted. So idle connections cannot keep active clients out, however many
//! they are.

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

use farescan_core::metrics;

/// The connections of one listener.
#[derive(Debug)]
pub(super) struct ListenerConnections {
    max: usize,
    state: Mutex<ConnectionsState>,
    /// Notified when a slot may be free, or a connection can be evicted.
    changed: Notify,
}

#[derive(Debug, Default)]
struct ConnectionsState {
    open: usize,
    /// Connections that are evicted and not closed yet; `open` includes them.
    closing: usize,
    /// Connections that wait for their client, by the time their wait began.
    waiting: BTreeMap<u64, CancellationToken>,
    /// The logical time of the next wait.
    next: u64,
}

/// The slot of one open connection, released on drop. Close the connection before that.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    activity: Arc<ConnectionActivity>,
    _open: metrics::InFlightGuard,
}

/// Whether a connection is busy or waits for its client.
#[derive(Debug)]
pub(super) struct ConnectionActivity {
    connections: Arc<ListenerConnections>,
    /// When its wait began; `BUSY` while it is busy.
    since: AtomicU64,
    /// Cancelled when the connection is evicted or closed.
    close: CancellationToken,
}

const BUSY: u64 = 0;

impl ListenerConnections {
    pub(super) fn new(max: usize) -> Arc<Self> {
        let state = ConnectionsState {
            next: BUSY + 1,
            ..ConnectionsState::default()
        };
        Arc::new(Self {
            max,
            state: Mutex::new(state),
            changed: Notify::new(),
        })
    }

    /// Waits for a slot. There is none while all connections are busy.
    pub(super) async fn slot(self: &Arc<Self>) -> ConnectionSlot {
        loop {
            if self.has_free_slot() {
                let activity = ConnectionActivity {
                    connections: Arc::clone(self),
                    since: AtomicU64::new(BUSY),
                    close: CancellationToken::new(),
                };
                activity.set_waiting();
                return ConnectionSlot {
                    activity: Arc::new(activity),
                    _open: metrics::connection_opened(),
                };
            }
            self.changed.notified().await;
        }
    }

    /// Takes a free slot, or evicts a connection.
    fn has_free_slot(&self) -> bool {
        let mut state = self.state();
        if state.open < self.max {
            state.open += 1;
            return true;
        }
        if state.closing == 0
            && let Some((_, close)) = state.waiting.pop_first()
        {
            close.cancel();
            state.closing += 1;
            metrics::connection_evicted();
        }
        false
    }

    fn state(&self) -> MutexGuard<'_, ConnectionsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionSlot {
    pub(super) fn activity(&self) -> Arc<ConnectionActivity> {
        Arc::clone(&self.activity)
    }

    /// Completes when the connection is evicted.
    pub(super) async fn evicted(&self) {
        self.activity.close.cancelled().await;
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let activity = &self.activity;
        let mut state = activity.connections.state();
        state
            .waiting
            .remove(&activity.since.load(Ordering::Relaxed));
        state.open -= 1;
        state.closing -= usize::from(activity.close.is_cancelled());
        // A late `set_waiting` must not register the closed connection again.
        activity.close.cancel();
        drop(state);
        activity.connections.changed.notify_one();
    }
}

impl ConnectionActivity {
    /// Marks the connection busy: its request has arrived completely. `false`: it was evicted just
    /// before, so the request must not be processed.
    pub(super) fn set_busy(&self) -> bool {
        let mut state = self.connections.state();
        state
            .waiting
            .remove(&self.since.swap(BUSY, Ordering::Relaxed));
        !self.close.is_cancelled()
    }

    /// Marks the connection as waiting for its client.
    pub(super) fn set_waiting(&self) {
        let mut state = self.connections.state();
        if self.since.load(Ordering::Relaxed) != BUSY || self.close.is_cancelled() {
            return;
        }
        let now = state.next;
        state.next += 1;
        self.since.store(now, Ordering::Relaxed);
        state.waiting.insert(now, self.close.clone());
        let is_full = state.open >= self.connections.max;
        drop(state);
        if is_full {
            self.connections.changed.notify_one();
        }
    }
}

/// The connection was evicted before its request had arrived completely.
#[derive(Debug, thiserror::Error)]
#[error("evicted in favour of a new connection")]
pub(super) struct ConnectionEvicted;

/// A request body that marks its connection busy when it has arrived completely.
pub(super) struct TrackedRequestBody {
    body: Incoming,
    activity: Arc<ConnectionActivity>,
}

impl TrackedRequestBody {
    /// `is_read`: whether the request's handler reads its body.
    ///
    /// # Errors
    /// No body has to arrive, and the connection was evicted.
    pub(super) fn new(
        body: Incoming,
        is_read: bool,
        activity: Arc<ConnectionActivity>,
    ) -> Result<Self, ConnectionEvicted> {
        if (!is_read || body.is_end_stream()) && !activity.set_busy() {
            return Err(ConnectionEvicted);
        }
        Ok(Self { body, activity })
    }
}

impl http_body::Body for TrackedRequestBody {
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
            return Poll::Ready(Some(Err(ConnectionEvicted.into())));
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

/// A response body that marks its connection as waiting when it was sent or dropped.
pub(super) struct TrackedResponseBody {
    body: Body,
    activity: Arc<ConnectionActivity>,
}

impl TrackedResponseBody {
    pub(super) fn new(body: Body, activity: Arc<ConnectionActivity>) -> Self {
        Self { body, activity }
    }
}

impl Drop for TrackedResponseBody {
    fn drop(&mut self) {
        self.activity.set_waiting();
    }
}

impl http_body::Body for TrackedResponseBody {
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
    async fn the_longest_waiting_connection_is_evicted() {
        let connections = ListenerConnections::new(3);
        let busy = connections.slot().await;
        assert!(busy.activity().set_busy());
        let (first, second) = (connections.slot().await, connections.slot().await);
        // It was busy in between, so the other has waited longer.
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
    async fn busy_connections_are_not_evicted() {
        let connections = ListenerConnections::new(1);
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
    async fn a_late_end_of_a_response_registers_no_wait() {
        let connections = ListenerConnections::new(1);
        let slot = connections.slot().await;
        let activity = slot.activity();
        assert!(activity.set_busy());
        drop(slot);
        activity.set_waiting();
        assert_eq!(connections.state().waiting.len(), 0);
    }
}
