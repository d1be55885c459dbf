//! The apalis backend: it yields the claimed items that the claimer adds to the ready queue.
//!
//! Its stream never fails: the claimer retries the database itself, so the worker never ends by an
//! error.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use apalis_core::backend::finalize::Ephemeral;
use apalis_core::backend::{Backend, BackendConfig};
use apalis_core::task::Task;
use apalis_core::task::builder::TaskBuilder;
use apalis_core::task::task_id::RandomId;
use apalis_core::worker::context::WorkerContext;
use futures::task::AtomicWaker;
use tower::layer::util::Identity;

use super::ClaimedItem;

/// Claimed items between the claimer and the worker; each has a call permit, which bounds the
/// queue.
#[derive(Debug, Default)]
pub struct ReadyQueue {
    items: Mutex<VecDeque<ClaimedItem>>,
    waker: AtomicWaker,
}

impl ReadyQueue {
    pub(super) fn extend(&self, items: impl IntoIterator<Item = ClaimedItem>) {
        self.with_items(|queue| queue.extend(items));
        self.waker.wake();
    }

    /// Removes all items; dropped, they are released.
    pub(super) fn drain(&self) -> VecDeque<ClaimedItem> {
        self.with_items(std::mem::take)
    }

    fn with_items<T>(&self, access: impl FnOnce(&mut VecDeque<ClaimedItem>) -> T) -> T {
        access(&mut self.items.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn poll<T>(
        &self,
        cx: &Context<'_>,
        access: impl Fn(&mut VecDeque<ClaimedItem>) -> Option<T>,
    ) -> Poll<T> {
        // Registered before the check: an item that is added after it wakes the task.
        self.waker.register(cx.waker());
        self.with_items(access).map_or(Poll::Pending, Poll::Ready)
    }
}

/// The ready queue as an apalis backend.
#[derive(Debug)]
pub struct ScanItemBackend(pub Arc<ReadyQueue>);

impl Backend for ScanItemBackend {
    type Task = Task<ClaimedItem>;
    type Error = Infallible;

    fn poll_ready(
        &mut self,
        cx: &mut Context<'_>,
        _: &WorkerContext,
    ) -> Poll<Result<(), Infallible>> {
        self.0
            .poll(cx, |items| (!items.is_empty()).then_some(Ok(())))
    }

    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        _: &WorkerContext,
    ) -> Poll<Option<Result<Task<ClaimedItem>, Infallible>>> {
        self.0
            .poll(cx, VecDeque::pop_front)
            .map(|claimed_item| Some(Ok(TaskBuilder::new(claimed_item).build())))
    }

    fn poll_close(
        &mut self,
        _: &mut Context<'_>,
        _: &WorkerContext,
    ) -> Poll<Result<(), Infallible>> {
        drop(self.0.drain());
        Poll::Ready(Ok(()))
    }
}

impl BackendConfig for ScanItemBackend {
    type Args = ClaimedItem;
    type Id = RandomId;
    type Kind = Ephemeral;
    type Config = ();
    type Layer = Identity;

    fn config(&self) -> &() {
        &()
    }

    fn middleware(&mut self, _: &mut WorkerContext) -> Identity {
        Identity::new()
    }
}
