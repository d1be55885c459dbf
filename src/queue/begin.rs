//! Records calls before their first byte is sent: all waiting calls in one transaction.

use std::time::Duration;

use jiff::Timestamp;
use sqlx::PgPool;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::Claim;
use super::database_retry::{RetryError, RetryUntil, TRANSACTION_TIMEOUT, retry};
use super::store::{self, BeginVerdict};
use crate::ids::AttemptId;
use crate::metrics;

/// The most calls in one transaction.
const MAX_BATCH_SIZE: usize = 100;
/// How long a batch is retried before claims that are too old leave it.
const BATCH_TIMEOUT: Duration = Duration::from_secs(1);

/// Sends calls to the task that begins them. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct BeginHandle(mpsc::Sender<PendingBegin>);

/// A call that waits to begin.
#[derive(Debug)]
pub(super) struct PendingBegin {
    claim: Claim,
    attempt: AttemptId,
    until: Instant,
    reply: oneshot::Sender<BeginVerdict>,
}

impl BeginHandle {
    /// A handle, and the receiver for [`run`].
    pub(super) fn new() -> (Self, mpsc::Receiver<PendingBegin>) {
        let (sender, receiver) = mpsc::channel(MAX_BATCH_SIZE);
        (Self(sender), receiver)
    }

    /// Begins a claim; `None`: the database did not answer before `until`, so the call must not be
    /// sent.
    pub(super) async fn begin(
        &self,
        claim: Claim,
        attempt: AttemptId,
        until: Instant,
    ) -> Option<BeginVerdict> {
        let (reply, verdict) = oneshot::channel();
        self.0
            .send(PendingBegin {
                claim,
                attempt,
                until,
                reply,
            })
            .await
            .ok()?;
        verdict.await.ok()
    }
}

/// Begins the calls that are received, until `stop`.
pub(super) async fn run(
    pool: PgPool,
    mut requests: mpsc::Receiver<PendingBegin>,
    stop: CancellationToken,
) {
    let mut batch = Vec::new();
    while !stop.is_cancelled() {
        if batch.is_empty() {
            tokio::select! {
                count = requests.recv_many(&mut batch, MAX_BATCH_SIZE) => if count == 0 { return },
                () = stop.cancelled() => return,
            }
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
    let begun_at = Instant::now();
    let batch_until = RetryUntil::Deadline(begun_at + BATCH_TIMEOUT);
    match retry("begin", &batch_until, || {
        store::begin(pool, &claims, Timestamp::now())
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
