//! The callers whose searches are all stored, as this process knows them (gateway.md, rule 60).
//!
//! ```text
//!  PUT /v1/account/settings ─► this process reads the caller's row ─► memory
//!              └─NOTIFY─► every other process reads it
//!  every 30 s, and when notifications arrive again ─► all rows, also after a read that failed
//! ```
//!
//! A search asks this memory, never the database. Memory that is too old stores nothing that is not
//! wanted: the record reads the setting in its transaction (`queue::recorded_search`).

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::PgConnectOptions;
use tokio::sync::Notify;
use tokio::time::{interval, timeout};
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
/// How long a read may take, with its wait for the one before it.
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

/// Callers to read again, and what wakes their reader.
#[derive(Debug, Default)]
struct Changes {
    due: Mutex<Changed>,
    wake: Notify,
}

impl Changes {
    fn due(&self) -> MutexGuard<'_, Changed> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, event: ListenEvent<'_>) {
        let mut due = self.due();
        match event {
            ListenEvent::Notified(caller) if due.callers.len() < MAX_CHANGED => {
                let caller = caller.parse::<Uuid>().map(TenantId::from);
                due.callers.extend(caller);
            }
            ListenEvent::Connected | ListenEvent::Notified(_) => due.all = true,
            ListenEvent::Disconnected => return,
        }
        drop(due);
        self.wake.notify_one();
    }

    /// Has `read` read what has changed, and all after each `reload_interval`, however many
    /// notifications arrive. `false`: it failed, so all are read next.
    async fn follow(
        &self,
        reload_interval: Duration,
        read: impl AsyncFn(Option<TenantId>) -> bool,
    ) {
        let mut reload = interval(reload_interval);
        loop {
            tokio::select! {
                biased;
                _ = reload.tick() => self.due().all = true,
                () = self.wake.notified() => {}
            }
            let due = std::mem::take(&mut *self.due());
            let callers: Vec<_> = if due.all {
                vec![None]
            } else {
                due.callers.into_iter().map(Some).collect()
            };
            for caller in callers {
                if !read(caller).await {
                    self.due().all = true;
                }
            }
        }
    }
}

/// The callers whose searches are stored. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct RecordedCallers {
    pool: PgPool,
    known: Arc<RwLock<HashMap<Fingerprint, TenantId>>>,
    /// What was read is what is known: a later read is never overwritten by an earlier one.
    reading: Arc<tokio::sync::Mutex<()>>,
    changes: Arc<Changes>,
}

impl RecordedCallers {
    pub(super) fn new(pool: PgPool) -> Self {
        Self {
            pool,
            known: Arc::default(),
            reading: Arc::default(),
            changes: Arc::default(),
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

    /// Reads the callers again, or one of them. Where that fails, what is known stays, and all are
    /// read with the next change, or after [`RELOAD_INTERVAL`].
    pub(super) async fn refresh(&self, only: Option<TenantId>) {
        if !self.read(only, READ_TIMEOUT).await {
            self.changes.due().all = true;
        }
    }

    /// `false`: it failed, or took longer than `most`.
    async fn read(&self, only: Option<TenantId>, most: Duration) -> bool {
        let read = async {
            let _reading = self.reading.lock().await;
            let limit = i64::try_from(MAX_FINGERPRINTS).unwrap_or(i64::MAX);
            let read = store::recorded_callers(&self.pool, only, limit).await?;
            self.replace(only, read);
            sqlx::Result::Ok(())
        };
        match timeout(most, read).await {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => tracing::debug!(%error, "account settings could not be read"),
            Err(_) => tracing::debug!("reading account settings timed out"),
        }
        false
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
        let listening = listen(options, CHANNEL, stop, |event| self.changes.note(event));
        let reading = self.changes.follow(RELOAD_INTERVAL, async |only| {
            self.read(only, READ_TIMEOUT).await
        });
        tokio::join!(listening, stop.run_until_cancelled(reading));
    }
}

#[cfg(test)]
mod tests {
    use sqlx::postgres::PgPoolOptions;

    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);

    impl Changes {
        fn notify(&self, caller: TenantId) {
            self.note(ListenEvent::Notified(&caller.uuid().to_string()));
        }
    }

    #[tokio::test]
    async fn all_are_read_again_however_many_notifications_arrive() {
        let (changes, caller) = (Changes::default(), TenantId::new());
        let reloads = Mutex::new(0);
        // Each read is followed by a notification, so that the reader never waits.
        let reading = changes.follow(Duration::from_millis(20), async |only| {
            *reloads.lock().unwrap() += u32::from(only.is_none());
            changes.notify(caller);
            tokio::time::sleep(Duration::from_millis(1)).await;
            true
        });
        let reloaded = async {
            while *reloads.lock().unwrap() < 4 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            () = reading => unreachable!("it never ends"),
            reloaded = timeout(Duration::from_secs(30), reloaded) => reloaded.unwrap(),
        }
    }

    #[tokio::test]
    async fn after_a_read_that_failed_all_are_read() {
        let (changes, caller) = (Changes::default(), TenantId::new());
        let (read, is_over) = (Mutex::new(Vec::new()), Notify::new());
        let reading = changes.follow(LONG, async |only| {
            let mut read = read.lock().unwrap();
            read.push(only);
            if read.len() == 5 {
                is_over.notify_one();
            } else {
                changes.notify(caller);
            }
            ![2, 3].contains(&read.len())
        });
        tokio::select! {
            () = reading => unreachable!("it never ends"),
            over = timeout(Duration::from_secs(30), is_over.notified()) => over.unwrap(),
        }
        let one = Some(caller);
        assert_eq!(read.into_inner().unwrap(), [None, one, None, None, one]);
    }

    #[tokio::test]
    async fn a_read_waits_for_the_one_before_it_within_its_time() {
        let pool = PgPoolOptions::new()
            .connect_lazy("postgres://localhost:1/none")
            .unwrap();
        let callers = RecordedCallers::new(pool);
        let reading = callers.reading.lock().await;
        let read = callers.read(None, Duration::from_millis(10));
        let ended = timeout(Duration::from_secs(30), read).await;
        assert_eq!(ended, Ok(false));
        drop(reading);
    }

    #[tokio::test]
    async fn a_refresh_that_failed_has_all_read_next() {
        let pool = PgPoolOptions::new()
            .connect_lazy("postgres://localhost:1/none")
            .unwrap();
        pool.close().await;
        let callers = RecordedCallers::new(pool);
        callers.refresh(Some(TenantId::new())).await;
        assert!(callers.changes.due().all);
    }
}
