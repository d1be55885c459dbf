//! Opens the callers' keys: one query for all calls that wait. The calls of a claim mostly belong
//! to a few scans, so this opens a few keys instead of one for each call.
//!
//! Keys are not cached: a key that was wiped, replaced or has expired is not used for a later call.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use sqlx::PgPool;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::database_retry::{RetryError, RetryUntil, retry};
use super::pause_scan::PauseCause;
use crate::ids::{GrantId, TenantId};
use crate::search::CallerKey;
use crate::tenants::{self, GrantError, Keyring};

/// The most calls of one query.
const MAX_BATCH_SIZE: usize = 100;
/// How long a batch is retried before claims that are too old leave it.
const BATCH_TIMEOUT: Duration = Duration::from_secs(1);

/// Sends calls to the task that opens their keys. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct KeyHandle(mpsc::Sender<PendingKey>);

/// A call that waits for its caller's key.
#[derive(Debug)]
pub(super) struct PendingKey {
    grant: (TenantId, GrantId),
    until: Instant,
    reply: oneshot::Sender<OpenResult>,
}

/// The key, or why its scan pauses.
type OpenResult = Result<CallerKey, PauseCause>;

impl KeyHandle {
    /// A handle, and the receiver for [`run`].
    pub(super) fn new() -> (Self, mpsc::Receiver<PendingKey>) {
        let (sender, receiver) = mpsc::channel(MAX_BATCH_SIZE);
        (Self(sender), receiver)
    }

    /// The key of a grant; `None`: the database did not answer before `until`.
    pub(super) async fn open(
        &self,
        tenant: TenantId,
        grant: GrantId,
        until: Instant,
    ) -> Option<OpenResult> {
        let (reply, opened) = oneshot::channel();
        self.0
            .send(PendingKey {
                grant: (tenant, grant),
                until,
                reply,
            })
            .await
            .ok()?;
        opened.await.ok()
    }
}

/// Opens the keys of the calls that are received, until `stop`.
pub(super) async fn run(
    pool: PgPool,
    ring: Arc<Keyring>,
    mut requests: mpsc::Receiver<PendingKey>,
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
        batch.retain(|pending: &PendingKey| Instant::now() < pending.until);
        if batch.is_empty() {
            continue;
        }
        let grant: Vec<_> = batch
            .iter()
            .map(|pending| pending.grant)
            .collect::<HashSet<_>>()
            .into_iter()
            .collect();
        let batch_until = RetryUntil::Deadline(Instant::now() + BATCH_TIMEOUT);
        match retry("open_grants", &batch_until, || {
            tenants::store::open_grants(&pool, &ring, &grant)
        })
        .await
        {
            Ok(opened) => {
                let opened: HashMap<_, _> = opened
                    .into_iter()
                    .map(|(grant, key)| (grant, key.map_err(pause_cause)))
                    .collect();
                for pending in batch.drain(..) {
                    // If the receiver is gone, its claimed item was dropped, which closes the
                    // claim.
                    let _ = pending.reply.send(
                        opened
                            .get(&pending.grant)
                            .cloned()
                            .unwrap_or(Err(PauseCause::KeyGone)),
                    );
                }
            }
            Err(RetryError::Stopped) => {}
            Err(RetryError::Permanent(error)) => {
                tracing::error!(%error, calls = batch.len(), "opening keys failed");
                batch.clear();
            }
        }
    }
}

fn pause_cause(error: GrantError) -> PauseCause {
    tracing::warn!(%error, "key unusable");
    match error {
        GrantError::NotOpened { nonce, .. } => PauseCause::KeyUnopened { nonce },
        GrantError::Gone | GrantError::Database(_) => PauseCause::KeyGone,
    }
}
