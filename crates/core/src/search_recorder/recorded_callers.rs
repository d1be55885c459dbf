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
use tokio::time::{Interval, interval, timeout};
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
struct CallerChanges {
    due: Mutex<Changed>,
    wake: Notify,
}

impl CallerChanges {
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

    /// Waits until something is to be read: callers that have changed, or all of them (`None`), which is so at each
    /// tick of `reload`, however many notifications arrive.
    async fn next(&self, reload: &mut Interval) -> Vec<Option<TenantId>> {
        tokio::select! {
            biased;
            _ = reload.tick() => self.due().all = true,
            () = self.wake.notified() => {}
        }
        let due = std::mem::take(&mut *self.due());
        if due.all {
            return vec![None];
        }
        due.callers.into_iter().map(Some).collect()
    }
}

/// The callers whose searches are stored. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct RecordedCallers {
    pool: PgPool,
    known: Arc<RwLock<HashMap<Fingerprint, TenantId>>>,
    /// What was read is what is known: a later read is never overwritten by an earlier one.
    reading: Arc<tokio::sync::Mutex<()>>,
    changes: Arc<CallerChanges>,
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
            Ok::<_, sqlx::Error>(())
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
        let reading = async {
            let mut reload = interval(RELOAD_INTERVAL);
            loop {
                for only in self.changes.next(&mut reload).await {
                    self.refresh(only).await;
                }
            }
        };
        tokio::join!(listening, stop.run_until_cancelled(reading));
    }
}

#[cfg(test)]
mod tests {
    use sqlx::postgres::PgPoolOptions;
    use tokio::time::{Instant, sleep};

    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);

    fn notify(changes: &CallerChanges, caller: TenantId) {
        changes.note(ListenEvent::Notified(&caller.uuid().to_string()));
    }

    fn callers() -> RecordedCallers {
        let pool = PgPoolOptions::new().connect_lazy("postgres://localhost:1/none");
        RecordedCallers::new(pool.unwrap())
    }

    #[tokio::test]
    async fn all_are_read_again_however_many_notifications_arrive() {
        let (changes, caller) = (CallerChanges::default(), TenantId::new());
        let mut reload = interval(Duration::from_millis(20));
        let (began, mut reloads, mut others) = (Instant::now(), 0, 0);
        // There is a notification before each read, so that the reader never waits.
        while reloads < 4 || others == 0 {
            notify(&changes, caller);
            match changes.next(&mut reload).await[..] {
                [None] => reloads += 1,
                [Some(one)] if one == caller => others += 1,
                ref other => panic!("{other:?}"),
            }
            assert!(began.elapsed() < Duration::from_secs(30), "{reloads}");
            sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test]
    async fn after_a_read_that_failed_all_are_read_with_the_next_change() {
        let (callers, caller) = (callers(), TenantId::new());
        callers.pool.close().await;
        let mut reload = interval(LONG);
        assert_eq!(
            callers.changes.next(&mut reload).await,
            [None],
            "at the start"
        );
        notify(&callers.changes, caller);
        let changed = callers.changes.next(&mut reload).await;
        assert_eq!(changed, [Some(caller)]);
        for only in changed {
            callers.refresh(only).await;
        }
        notify(&callers.changes, caller);
        assert_eq!(callers.changes.next(&mut reload).await, [None]);
    }

    #[tokio::test]
    async fn a_read_waits_for_the_one_before_it_within_its_time() {
        let callers = callers();
        let reading = callers.reading.lock().await;
        let read = callers.read(None, Duration::from_millis(10));
        let ended = timeout(Duration::from_secs(30), read).await;
        assert_eq!(ended, Ok(false));
        drop(reading);
    }
}
