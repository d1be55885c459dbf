//! Records calls before their first byte is sent: all waiting calls in one transaction.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use sqlx::PgPool;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::Claim;
use super::database_retry::{RetryError, RetryUntil, TRANSACTION_TIMEOUT, retry};
use super::store::{self, BeginVerdict};
use crate::ids::AttemptId;
use crate::metrics;

/// The most calls in one transaction.
const MAX_BATCH_SIZE: usize = 100;
/// How long the first call of a batch waits for the other calls of its claim. They come within a
/// millisecond, one after the other.
const COLLECT_TIMEOUT: Duration = Duration::from_millis(2);
/// How long a batch is retried before claims that are too old leave it.
const BATCH_TIMEOUT: Duration = Duration::from_secs(1);

/// Sends calls to the task that begins them. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct BeginHandle {
    pending: mpsc::Sender<PendingBegin>,
    expected: Arc<AtomicUsize>,
}

/// The calls for [`run`].
#[derive(Debug)]
pub(super) struct BeginQueue {
    pending: mpsc::Receiver<PendingBegin>,
    expected: Arc<AtomicUsize>,
}

/// A claim whose begin is not decided yet; a batch waits for those that are not in it. Dropping it
/// ends the expectation.
#[derive(Debug)]
pub(super) struct ExpectedBegin(Arc<AtomicUsize>);

impl Drop for ExpectedBegin {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A call that waits to begin.
#[derive(Debug)]
struct PendingBegin {
    claim: Claim,
    attempt: AttemptId,
    /// It may take the answer of an equal search.
    shares: bool,
    until: Instant,
    reply: oneshot::Sender<BeginVerdict>,
    _expected: Option<ExpectedBegin>,
}

impl BeginHandle {
    /// A handle, and the queue for [`run`].
    pub(super) fn new() -> (Self, BeginQueue) {
        let (sender, receiver) = mpsc::channel(MAX_BATCH_SIZE);
        let expected = Arc::new(AtomicUsize::new(0));
        (
            Self {
                pending: sender,
                expected: expected.clone(),
            },
            BeginQueue {
                pending: receiver,
                expected,
            },
        )
    }

    /// Announces the begin of a claim.
    pub(super) fn expect(&self) -> ExpectedBegin {
        self.expected.fetch_add(1, Ordering::Relaxed);
        ExpectedBegin(self.expected.clone())
    }

    /// Begins a claim; `None`: the database did not answer before `until`, so the call must not be
    /// sent.
    pub(super) async fn begin(
        &self,
        claim: Claim,
        attempt: AttemptId,
        shares: bool,
        expected: Option<ExpectedBegin>,
        until: Instant,
    ) -> Option<BeginVerdict> {
        let (reply, verdict) = oneshot::channel();
        self.pending
            .send(PendingBegin {
                claim,
                attempt,
                shares,
                until,
                reply,
                _expected: expected,
            })
            .await
            .ok()?;
        verdict.await.ok()
    }
}

impl BeginQueue {
    /// Adds calls to a batch that is not empty, until all that are expected are in it.
    async fn collect(&mut self, batch: &mut Vec<PendingBegin>) {
        let collect_until = Instant::now() + COLLECT_TIMEOUT;
        while batch.len() < self.expected.load(Ordering::Relaxed).min(MAX_BATCH_SIZE) {
            let room = MAX_BATCH_SIZE - batch.len();
            match timeout_at(collect_until, self.pending.recv_many(batch, room)).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }
}

/// Begins the calls that are received, until `stop`.
pub(super) async fn run(pool: PgPool, mut queue: BeginQueue, stop: CancellationToken) {
    let mut batch = Vec::new();
    while !stop.is_cancelled() {
        if batch.is_empty() {
            tokio::select! {
                count = queue.pending.recv_many(&mut batch, MAX_BATCH_SIZE) => if count == 0 { return },
                () = stop.cancelled() => return,
            }
            queue.collect(&mut batch).await;
        }
        batch.retain(|pending: &PendingBegin| Instant::now() < pending.until);
        if !batch.is_empty() {
            batch = begin_batch(&pool, batch).await;
        }
    }
}

/// Begins a batch in one transaction; returns the claims that the database did not decide in time.
async fn begin_batch(pool: &PgPool, mut batch: Vec<PendingBegin>) -> Vec<PendingBegin> {
    let claims: Vec<_> = batch
        .iter()
        .map(|pending| (pending.claim, pending.attempt))
        .collect();
    let sharing: Vec<_> = batch
        .iter()
        .filter(|pending| pending.shares)
        .map(|pending| pending.claim.item.uuid())
        .collect();
    let begun_at = Instant::now();
    let batch_until = RetryUntil::Deadline(begun_at + BATCH_TIMEOUT);
    match retry("begin", &batch_until, || {
        store::begin(pool, &claims, &sharing, Timestamp::now())
    })
    .await
    {
        Ok(verdicts) => {
            metrics::batch_finished("begin", claims.len(), begun_at.elapsed());
            for (pending, verdict) in batch.into_iter().zip(verdicts) {
                // If the receiver is gone, its claimed item was dropped, which closes the claim.
                let _ = pending.reply.send(verdict);
            }
            Vec::new()
        }
        Err(RetryError::Stopped) => batch,
        Err(RetryError::Permanent(error)) if batch.len() == 1 => {
            for pending in batch {
                fail_item(pool, pending.claim, &error).await;
            }
            Vec::new()
        }
        // One claim that the database rejects must not fail the others: halving isolates it.
        Err(RetryError::Permanent(_)) => {
            let rest = batch.split_off(batch.len() / 2);
            let mut undecided = Box::pin(begin_batch(pool, batch)).await;
            undecided.extend(Box::pin(begin_batch(pool, rest)).await);
            undecided
        }
    }
}

/// Whether an error is about the data of this claim: a value or a constraint (SQLSTATE classes 22
/// and 23). Any other error would affect every claim, and must not fail the items of all callers.
fn is_data_error(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.is_some_and(|code| code.starts_with("22") || code.starts_with("23"))
}

/// Fails the item of a claim that the database rejects: claimed again, it would be rejected again.
/// Otherwise the claim is released when its item is dropped.
async fn fail_item(pool: &PgPool, claim: Claim, error: &sqlx::Error) {
    if !is_data_error(error) {
        return tracing::error!(item = %claim.item, %error, "begin failed; the claim is released");
    }
    tracing::error!(item = %claim.item, %error, "begin rejected by the database; the item fails without a call");
    let failed = timeout(
        TRANSACTION_TIMEOUT,
        store::fail_claim(pool, claim, &error.to_string(), Timestamp::now()),
    )
    .await;
    if let Ok(Err(error)) = failed {
        tracing::error!(item = %claim.item, %error, "failing the item failed; it is claimed again");
    }
}
