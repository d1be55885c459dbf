//! Opening the callers' keys: one look for all calls that wait for theirs at a time. The calls of a claim are mostly of a few scans, so
//! this is one question to the database and a few keys opened, instead of one each.
//!
//! No key is remembered: what is opened is handed to the calls that waited and dropped, so a key that is wiped, replaced or has expired is
//! not used for a call that asks after that.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use sqlx::PgPool;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::hold::Cause;
use super::retry::{Failed, Until, retry};
use crate::ids::{GrantId, TenantId};
use crate::search::CallerKey;
use crate::tenants::{self, GrantError, Keyring};

/// The most keys in one look.
const LARGEST_BATCH: usize = 100;
/// A batch is tried no longer than this at a time, so that claims that have become too old leave it.
const ROUND: Duration = Duration::from_secs(1);

/// Where calls wait for their callers' keys. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Keys(mpsc::Sender<Waiting>);

/// A call that waits for its caller's key.
#[derive(Debug)]
pub(super) struct Waiting {
    held: (TenantId, GrantId),
    until: Instant,
    answer: oneshot::Sender<Opened>,
}

/// The key, or why its scan cannot go on.
type Opened = Result<CallerKey, Cause>;

impl Keys {
    /// And what is asked, for [`serve`].
    pub(super) fn new() -> (Self, mpsc::Receiver<Waiting>) {
        let (ask, asked) = mpsc::channel(LARGEST_BATCH);
        (Self(ask), asked)
    }

    /// The key that a grant holds; `None`: the database did not say before `until`.
    pub(super) async fn open(
        &self,
        tenant: TenantId,
        grant: GrantId,
        until: Instant,
    ) -> Option<Opened> {
        let (answer, opened) = oneshot::channel();
        self.0
            .send(Waiting {
                held: (tenant, grant),
                until,
                answer,
            })
            .await
            .ok()?;
        opened.await.ok()
    }
}

/// Opens what is asked, until `stop`.
pub(super) async fn serve(
    pool: PgPool,
    ring: Arc<Keyring>,
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
        if batch.is_empty() {
            continue;
        }
        let held: Vec<_> = batch
            .iter()
            .map(|one| one.held)
            .collect::<HashSet<_>>()
            .into_iter()
            .collect();
        let round = Until::Deadline(Instant::now() + ROUND);
        match retry("open_grants", &round, || {
            tenants::store::open_grants(&pool, &ring, &held)
        })
        .await
        {
            Ok(opened) => {
                let opened: HashMap<_, _> = opened
                    .into_iter()
                    .map(|(held, key)| (held, key.map_err(cause)))
                    .collect();
                for one in batch.drain(..) {
                    // A caller that is gone has dropped its ticket, which ends the claim.
                    let _ = one.answer.send(
                        opened
                            .get(&one.held)
                            .cloned()
                            .unwrap_or(Err(Cause::KeyGone)),
                    );
                }
            }
            Err(Failed::Stopped) => {}
            Err(Failed::Refused(error)) => {
                tracing::error!(%error, calls = batch.len(), "keys cannot be opened");
                batch.clear();
            }
        }
    }
}

fn cause(error: GrantError) -> Cause {
    tracing::warn!(%error, "a key cannot be used");
    match error {
        GrantError::NotOpened { nonce, .. } => Cause::KeyUnopened { nonce },
        GrantError::Gone | GrantError::Database(_) => Cause::KeyGone,
    }
}
