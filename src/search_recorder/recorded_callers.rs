//! The callers whose searches are all stored, as this process knows them (gateway.md, rule 60).
//!
//! ```text
//!  PUT /v1/account/settings ─► this process reads the caller's row ─► memory
//!              └─NOTIFY─► every other process reads it
//!  every 30 s, and when notifications arrive again ─► all rows
//! ```
//!
//! A search asks this memory, never the database. Memory that is too old stores nothing that is not
//! wanted: the record reads the setting in its transaction (`queue::recorded_search`).

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::PgConnectOptions;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::store;
use crate::db::{ListenEvent, listen};
use crate::ids::TenantId;
use crate::search::CallerKey;
use crate::tenants::{Fingerprint, Keyring};

/// The payload of its notifications is a caller.
const CHANNEL: &str = "farescan_account";
/// Between two reads of all callers: how late a change is known where notifications do not arrive.
const RELOAD_INTERVAL: Duration = Duration::from_secs(30);
/// How long a read may take.
const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// The most fingerprints in memory. Searches of further callers are not stored.
const MAX_FINGERPRINTS: usize = 100_000;
/// The most changed callers that wait to be read; beyond that all are read.
const MAX_CHANGED: usize = 100;

/// Callers to read again.
#[derive(Debug, Default)]
struct Changed {
    all: bool,
    callers: HashSet<TenantId>,
}

/// The callers whose searches are stored. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct RecordedCallers {
    pool: PgPool,
    known: Arc<RwLock<HashMap<Fingerprint, TenantId>>>,
    /// What was read is what is known: a later read is never overwritten by an earlier one.
    reading: Arc<tokio::sync::Mutex<()>>,
}

impl RecordedCallers {
    pub(super) fn new(pool: PgPool) -> Self {
        Self {
            pool,
            known: Arc::default(),
            reading: Arc::default(),
        }
    }

    /// Whether this caller's searches are stored.
    pub(super) fn contains(&self, ring: &Keyring, key: &CallerKey) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        // Most services have no such caller: then the key is not even digested.
        !known.is_empty()
            && Fingerprint::all(ring, key)
                .iter()
                .any(|fingerprint| known.contains_key(fingerprint))
    }

    /// Reads the callers again, or one of them. Where that fails, what is known stays.
    pub(super) async fn refresh(&self, only: Option<TenantId>) {
        let _reading = self.reading.lock().await;
        let limit = i64::try_from(MAX_FINGERPRINTS).unwrap_or(i64::MAX);
        let read = store::recorded_callers(&self.pool, only, limit);
        match timeout(READ_TIMEOUT, read).await {
            Ok(Ok(read)) => self.replace(only, read),
            Ok(Err(error)) => tracing::debug!(%error, "account settings could not be read"),
            Err(_) => tracing::debug!("reading account settings timed out"),
        }
    }

    fn replace(&self, only: Option<TenantId>, read: Vec<(Fingerprint, TenantId)>) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        match only {
            None => known.clear(),
            Some(tenant) => known.retain(|_, owner| *owner != tenant),
        }
        let free = MAX_FINGERPRINTS.saturating_sub(known.len());
        if read.len() > free || only.is_none() && read.len() == MAX_FINGERPRINTS {
            tracing::warn!(
                most = MAX_FINGERPRINTS,
                "too many callers store their searches: those of others are not stored"
            );
        }
        known.extend(read.into_iter().take(free));
    }

    /// Keeps what is known up to date until `stop`, with notifications on a connection of its own.
    pub(super) async fn follow(&self, options: PgConnectOptions, stop: &CancellationToken) {
        let (changed, wake) = (Mutex::new(Changed::default()), Notify::new());
        let listening = listen(options, CHANNEL, stop, |event| {
            let mut changed = changed.lock().unwrap_or_else(PoisonError::into_inner);
            match event {
                ListenEvent::Notified(caller) if changed.callers.len() < MAX_CHANGED => {
                    changed
                        .callers
                        .extend(caller.parse::<Uuid>().map(TenantId::from));
                }
                ListenEvent::Connected | ListenEvent::Notified(_) => changed.all = true,
                ListenEvent::Disconnected => return,
            }
            wake.notify_one();
        });
        let reading = async {
            loop {
                if timeout(RELOAD_INTERVAL, wake.notified()).await.is_err() {
                    self.refresh(None).await;
                    continue;
                }
                let changed = {
                    let mut changed = changed.lock().unwrap_or_else(PoisonError::into_inner);
                    std::mem::take(&mut *changed)
                };
                if changed.all {
                    self.refresh(None).await;
                    continue;
                }
                for caller in changed.callers {
                    self.refresh(Some(caller)).await;
                }
            }
        };
        tokio::join!(listening, stop.run_until_cancelled(reading));
    }
}
