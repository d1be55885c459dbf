//! Who of the synchronous callers may ask the marketplace now: the bound of searches in flight, and of keys that nobody knows (`guesses`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::AppState;
use super::error::ApiError;
use super::guesses::{Pass, Verdict};
use crate::search::CallerKey;
use crate::tenants;
use crate::tenants::store::acceptance;

/// The most searches and checks of keys that this process has in flight for synchronous callers.
pub(super) const SEARCHES_IN_FLIGHT: usize = 1_000;
/// When it is worth asking again while all of them are taken.
const SEARCHES_WAIT: Duration = Duration::from_secs(5);
/// The most look-ups at once of keys that the bucket for unknown keys would refuse, and how long one may take.
pub(super) const LOOK_UPS: usize = 4;
const LOOK_UP_TIMEOUT: Duration = Duration::from_millis(500);

/// Leave to ask the marketplace for a synchronous caller.
#[derive(Debug)]
pub(super) struct SearchPass {
    guess: Pass,
    _permit: OwnedSemaphorePermit,
}

impl SearchPass {
    /// What the marketplace said of the key.
    pub(super) fn learn(self, verdict: Verdict) {
        self.guess.learn(verdict);
    }
}

impl AppState {
    /// Leave to ask the marketplace with this key.
    ///
    /// # Errors
    /// 503 when as many searches are in flight as this process has; 429 while too many unknown keys are tried, for a key that is not known
    /// as accepted.
    pub(super) async fn admit_search(&self, key: &CallerKey) -> Result<SearchPass, ApiError> {
        let permit = Arc::clone(&self.searches)
            .try_acquire_owned()
            .map_err(|_| {
                ApiError::overloaded(
                    "as many searches are in flight as this process has; wait as Retry-After says",
                    SEARCHES_WAIT,
                )
            })?;
        let guess = match self.guesses.admit(key, Instant::now()) {
            Ok(guess) => guess,
            Err(wait) => {
                if self.is_accepted(key).await {
                    return Ok(SearchPass {
                        guess: self.guesses.admit_accepted(key),
                        _permit: permit,
                    });
                }
                let message = "the marketplace refuses too many keys that this service does not know, so no further one is passed on now; \
                               wait as Retry-After says";
                return Err(ApiError::too_many_requests(message, wait));
            }
        };
        Ok(SearchPass {
            guess,
            _permit: permit,
        })
    }

    /// Whether the database knows the key as accepted. Asked only where a request would be refused otherwise; a database that is away
    /// says no.
    async fn is_accepted(&self, key: &CallerKey) -> bool {
        let (Some(pools), Some(custody), Ok(now)) = (&self.pools, &self.custody, self.now()) else {
            return false;
        };
        let pool = &pools.reads;
        let look_up = async {
            let _turn = self
                .look_ups
                .acquire()
                .await
                .map_err(|_| sqlx::Error::PoolClosed)?;
            let (mut conn, tenant) =
                tenants::store::find_connected(pool, &custody.ring, key, now).await?;
            match tenant {
                Some(tenant) => acceptance::is_accepted(&mut *conn, tenant).await,
                None => Ok(false),
            }
        };
        matches!(timeout(LOOK_UP_TIMEOUT, look_up).await, Ok(Ok(true)))
    }

    /// Has the database know that the marketplace accepted this key, where this process has seen it and has not told yet: an order
    /// that comes right after a search or a check is not refused. Best effort; who may not order is told by the order itself.
    pub(super) async fn record_acceptance(&self, key: &CallerKey) {
        let (Some(pools), Some(custody), Ok(now)) = (&self.pools, &self.custody, self.now()) else {
            return;
        };
        if !self.guesses.is_unrecorded(key) {
            return;
        }
        match acceptance::record_key(&pools.writes, &custody.ring, key, now).await {
            Ok(()) => self.guesses.recorded(key),
            Err(error) => tracing::debug!(%error, "an accepted key could not be recorded"),
        }
    }
}
