//! Stores synchronous searches after their response was sent (gateway.md, rules 57 and 59).
//!
//! A search waits for nothing here: its record is a task of its own. A record is dropped, and counted,
//! if too many wait or the database does not store it within seconds. Only history and later answers
//! miss it then: the caller has its answer. The key is reduced to fingerprints at once.

mod recorded_callers;
mod store;

use std::sync::Arc;

use jiff::Timestamp;
use sqlx::PgPool;
use sqlx::postgres::PgConnectOptions;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::PaceConfig;
use crate::db::truncate_to_micros;
use crate::ids::TenantId;
use crate::metrics;
use crate::queue::TRANSACTION_TIMEOUT;
use crate::queue::recorded_search::{FinishedSearch, Recorded, WantedBy, record_search};
use crate::search::{CallerKey, Finding, Outcome, Search};
use crate::tenants::{Fingerprint, Keyring};

use recorded_callers::RecordedCallers;

/// The most records that wait or are being written.
const MAX_WAITING: usize = 1_000;
/// The most bytes of their answers.
const MAX_WAITING_BYTES: usize = 64 << 20;
/// The most records that are written at once: each takes one of a few connections that requests
/// need, too.
const MAX_WRITERS: usize = 2;

/// Stores searches. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SearchRecorder {
    pool: PgPool,
    ring: Arc<Keyring>,
    pace: PaceConfig,
    waiting: Arc<Semaphore>,
    waiting_bytes: Arc<Semaphore>,
    writers: Arc<Semaphore>,
    tasks: TaskTracker,
    callers: RecordedCallers,
}

impl SearchRecorder {
    /// Records with connections of `pool`; a caller's first search creates its lane at `pace`.
    pub fn new(pool: PgPool, ring: Arc<Keyring>, pace: PaceConfig) -> Self {
        Self {
            callers: RecordedCallers::new(pool.clone()),
            pool,
            ring,
            pace,
            waiting: Arc::new(Semaphore::new(MAX_WAITING)),
            waiting_bytes: Arc::new(Semaphore::new(MAX_WAITING_BYTES)),
            writers: Arc::new(Semaphore::new(MAX_WRITERS)),
            tasks: TaskTracker::new(),
        }
    }

    /// Whether this caller has all its searches stored, as far as this process knows.
    pub fn stores_all_of(&self, key: &CallerKey) -> bool {
        self.callers.contains(&self.ring, key)
    }

    /// Reads again whether this caller has all its searches stored.
    pub async fn refresh(&self, caller: TenantId) {
        self.callers.refresh(Some(caller)).await;
    }

    /// Learns until `stop` which callers have all their searches stored. Returns once its connection
    /// is closed.
    pub async fn follow_settings(self, options: PgConnectOptions, stop: CancellationToken) {
        self.callers.follow(options, &stop).await;
    }

    /// Stores a search that began and ended at these times. Never waits and never fails.
    /// The task ends when it is stored or dropped; `None` if nothing is to be stored.
    pub fn record(
        &self,
        key: &CallerKey,
        search: &Search,
        outcome: &Outcome,
        wanted_by: WantedBy,
        (started_at, ended_at): (Timestamp, Timestamp),
    ) -> Option<JoinHandle<()>> {
        if !searched(outcome) {
            return None;
        }
        let Some(permits) = self.reserve(&outcome.finding) else {
            metrics::search_record_dropped();
            return None;
        };
        let finished = FinishedSearch {
            wanted_by,
            caller: Fingerprint::all(&self.ring, key),
            search: search.clone(),
            outcome: outcome.clone(),
            stored: outcome.to_stored(key),
            started_at: truncate_to_micros(started_at),
            ended_at: truncate_to_micros(ended_at),
        };
        let recorder = self.clone();
        Some(self.tasks.spawn(async move {
            recorder.write(&finished).await;
            drop(permits);
        }))
    }

    /// Waits until everything that was recorded is stored or dropped. Nothing may be recorded any
    /// more.
    pub async fn finish(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// The permits of a record, if there are enough.
    fn reserve(&self, finding: &Finding) -> Option<[OwnedSemaphorePermit; 2]> {
        let bytes = match finding {
            Finding::Answer(answer) => answer.body.text().len(),
            _ => 0,
        };
        let one = Arc::clone(&self.waiting).try_acquire_owned().ok()?;
        let bytes = u32::try_from(bytes).ok()?;
        let bytes = Arc::clone(&self.waiting_bytes)
            .try_acquire_many_owned(bytes)
            .ok()?;
        Some([one, bytes])
    }

    async fn write(&self, finished: &FinishedSearch) {
        let written = async {
            let _permit = self.writers.acquire().await;
            record_search(&self.pool, &self.pace, finished).await
        };
        match timeout(TRANSACTION_TIMEOUT, written).await {
            Ok(Ok(Recorded::Stored)) => metrics::search_recorded(),
            Ok(Ok(Recorded::NotAccepted)) => metrics::search_record_dropped(),
            Ok(Ok(Recorded::Unwanted)) => {}
            Ok(Err(error)) => {
                metrics::search_record_dropped();
                tracing::debug!(%error, "a synchronous search was not stored");
            }
            Err(_) => {
                metrics::search_record_dropped();
                tracing::debug!("storing a synchronous search timed out");
            }
        }
    }
}

/// Whether the marketplace searched, or tried to: what it refused, or never got, leaves no
/// observation.
const fn searched(outcome: &Outcome) -> bool {
    outcome.billed_requests > 0
        && matches!(
            outcome.finding,
            Finding::Answer(_) | Finding::Nothing { .. } | Finding::Incomplete(_)
        )
}
