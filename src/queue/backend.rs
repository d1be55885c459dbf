//! The apalis backend: it yields tickets that the claimer has put into the inbox, and nothing else.
//!
//! Its stream never fails: the claimer tries the database again by itself, so the worker never dies of it.

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

use super::Ticket;

/// Tickets between the claimer and the worker: never more than there are slots, because each has its place.
#[derive(Debug, Default)]
pub struct Inbox {
    tickets: Mutex<VecDeque<Ticket>>,
    waker: AtomicWaker,
}

impl Inbox {
    pub(super) fn put(&self, tickets: impl IntoIterator<Item = Ticket>) {
        self.with_tickets(|queue| queue.extend(tickets));
        self.waker.wake();
    }

    /// Takes everything out: dropped, the tickets go back.
    pub(super) fn empty(&self) -> VecDeque<Ticket> {
        self.with_tickets(std::mem::take)
    }

    fn with_tickets<T>(&self, look: impl FnOnce(&mut VecDeque<Ticket>) -> T) -> T {
        look(&mut self.tickets.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn poll<T>(
        &self,
        cx: &Context<'_>,
        look: impl Fn(&mut VecDeque<Ticket>) -> Option<T>,
    ) -> Poll<T> {
        // Registered before the look: what is put in after it wakes.
        self.waker.register(cx.waker());
        self.with_tickets(look).map_or(Poll::Pending, Poll::Ready)
    }
}

/// The inbox as apalis sees it.
#[derive(Debug)]
pub struct ScanItems(pub Arc<Inbox>);

impl Backend for ScanItems {
    type Task = Task<Ticket>;
    type Error = Infallible;

    fn poll_ready(
        &mut self,
        cx: &mut Context<'_>,
        _: &WorkerContext,
    ) -> Poll<Result<(), Infallible>> {
        self.0
            .poll(cx, |tickets| (!tickets.is_empty()).then_some(Ok(())))
    }

    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        _: &WorkerContext,
    ) -> Poll<Option<Result<Task<Ticket>, Infallible>>> {
        self.0
            .poll(cx, VecDeque::pop_front)
            .map(|ticket| Some(Ok(TaskBuilder::new(ticket).build())))
    }

    fn poll_close(
        &mut self,
        _: &mut Context<'_>,
        _: &WorkerContext,
    ) -> Poll<Result<(), Infallible>> {
        drop(self.0.empty());
        Poll::Ready(Ok(()))
    }
}

impl BackendConfig for ScanItems {
    type Args = Ticket;
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
