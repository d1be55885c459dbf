//! Putting calls on record before their first byte: all that wait at a time in one transaction.

use std::time::Duration;

use jiff::Timestamp;
use sqlx::PgPool;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::Claim;
use super::retry::{Failed, MOVE_TIMEOUT, Until, retry};
use super::store::{self, Verdict};
use crate::ids::AttemptId;
use crate::measure;

/// The most calls in one transaction.
const LARGEST_BATCH: usize = 100;
/// A batch is tried no longer than this at a time, so that claims that have become too old leave it.
const ROUND: Duration = Duration::from_secs(1);

/// Where calls wait to be put on record. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Beginner(mpsc::Sender<Waiting>);

/// A call that waits to be put on record.
#[derive(Debug)]
pub(super) struct Waiting {
    claim: Claim,
    attempt: AttemptId,
    until: Instant,
    answer: oneshot::Sender<Verdict>,
}

impl Beginner {
    /// And what it is asked, for [`serve`].
    pub(super) fn new() -> (Self, mpsc::Receiver<Waiting>) {
        let (ask, asked) = mpsc::channel(LARGEST_BATCH);
        (Self(ask), asked)
    }

    /// What becomes of a claim; `None`: the database did not say before `until`, so the call must not be made.
    pub(super) async fn begin(
        &self,
        claim: Claim,
        attempt: AttemptId,
        until: Instant,
    ) -> Option<Verdict> {
        let (answer, verdict) = oneshot::channel();
        self.0
            .send(Waiting {
                claim,
                attempt,
                until,
                answer,
            })
            .await
            .ok()?;
        verdict.await.ok()
    }
}

/// Puts on record what is asked, until `stop`.
pub(super) async fn serve(
    pool: PgPool,
    mut asked: mpsc::Receiver<Waiting>,
    stop: CancellationToken,
) {
    let mut batch = Vec::new();
    while !stop.is_cancelled() {
        if batch.is_empty() {
            tokio::select! {
                count = asked.recv_many(&mut batch, LARGEST_BATCH) => if count == 0 { return },
                () = stop.cancelled() => return,
            }
        }
        batch.retain(|one: &Waiting| Instant::now() < one.until);
        if !batch.is_empty() {
            batch = put_on_record(&pool, batch).await;
        }
    }
}

/// One transaction for all of them; gives those that the database has not decided in time.
async fn put_on_record(pool: &PgPool, mut batch: Vec<Waiting>) -> Vec<Waiting> {
    let claims: Vec<_> = batch.iter().map(|one| (one.claim, one.attempt)).collect();
    let begun_at = Instant::now();
    let round = Until::Deadline(begun_at + ROUND);
    match retry("begin", &round, || {
        store::begin(pool, &claims, Timestamp::now())
    })
    .await
    {
        Ok(verdicts) => {
            measure::batch("begin", claims.len(), begun_at.elapsed());
            for (one, verdict) in batch.into_iter().zip(verdicts) {
                // A caller that is gone has dropped its ticket, which ends the claim.
                let _ = one.answer.send(verdict);
            }
            Vec::new()
        }
        Err(Failed::Stopped) => batch,
        Err(Failed::Refused(error)) if batch.len() == 1 => {
            for one in batch {
                refused(pool, one.claim, &error).await;
            }
            Vec::new()
        }
        // One claim that the database refuses must not take the others with it: it is found by halving.
        Err(Failed::Refused(_)) => {
            let rest = batch.split_off(batch.len() / 2);
            let mut undecided = Box::pin(put_on_record(pool, batch)).await;
            undecided.extend(Box::pin(put_on_record(pool, rest)).await);
            undecided
        }
    }
}

/// Whether an error is about what was to be stored: a value or a constraint (SQLSTATE classes 22 and 23). Any other would refuse every
/// claim alike, and must not fail the items of all callers.
fn is_about_the_claim(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.is_some_and(|code| code.starts_with("22") || code.starts_with("23"))
}

/// Ends the item of a claim that the database refuses: claimed again, it would be refused again, for ever. What is not ended goes back with
/// the drop of its ticket.
async fn refused(pool: &PgPool, claim: Claim, error: &sqlx::Error) {
    if !is_about_the_claim(error) {
        return tracing::error!(item = %claim.item, %error, "a call cannot be put on record: it is not made");
    }
    tracing::error!(item = %claim.item, %error, "a call cannot be put on record: its item fails, and nothing is sent");
    let ended = timeout(
        MOVE_TIMEOUT,
        store::refuse_claim(pool, claim, &error.to_string(), Timestamp::now()),
    )
    .await;
    if let Ok(Err(error)) = ended {
        tracing::error!(item = %claim.item, %error, "the item cannot be ended: it is claimed again");
    }
}
