//! Admission of synchronous searches: the limit of searches in flight, and the limit of unknown
//! keys (`key_guessing`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::AppState;
use super::error::ApiError;
use super::key_guessing::{KeyPermit, KeyVerdict};
use super::request_id::current_network;
use crate::search::CallerKey;
use crate::tenants;
use crate::tenants::store::acceptance;

/// The maximum number of synchronous searches and key checks in flight in this process.
pub const MAX_SEARCHES: usize = 1_000;
/// `Retry-After` while all permits are taken.
const SEARCHES_RETRY: Duration = Duration::from_secs(5);
/// The maximum number of concurrent lookups of keys that the token bucket would refuse, and the
/// timeout of each.
pub const MAX_LOOKUPS: usize = 4;
const LOOKUP_TIMEOUT: Duration = Duration::from_millis(500);

/// Permission for one synchronous marketplace call.
#[derive(Debug)]
pub struct SearchPermit {
    key_permit: KeyPermit,
    _permit: OwnedSemaphorePermit,
}

impl SearchPermit {
    /// Records the marketplace's verdict on the key.
    pub fn record_verdict(self, verdict: KeyVerdict) {
        self.key_permit.record_verdict(verdict);
    }
}

impl AppState {
    /// Admits one marketplace call with this key.
    ///
    /// # Errors
    /// 503 when all search permits are taken. 429 while a bucket of unknown keys is
    /// empty and the key is not known as accepted.
    pub async fn admit_search(&self, key: &CallerKey) -> Result<SearchPermit, ApiError> {
        let permit = Arc::clone(&self.search_permits)
            .try_acquire_owned()
            .map_err(|_| {
                ApiError::overloaded(
                    "this process has reached its limit of concurrent searches; retry after the time in Retry-After",
                    SEARCHES_RETRY,
                )
            })?;
        let key_permit = match self
            .unknown_keys
            .admit(key, current_network(), Instant::now())
        {
            Ok(key_permit) => key_permit,
            Err(wait) => {
                // Boxed: a search would keep the memory of this rare step while it waits.
                if Box::pin(self.is_accepted(key)).await {
                    return Ok(SearchPermit {
                        key_permit: self.unknown_keys.admit_accepted(key),
                        _permit: permit,
                    });
                }
                let message = "the marketplace refused too many unknown keys, so unknown keys are not forwarded for now; \
                               retry after the time in Retry-After";
                return Err(ApiError::too_many_requests(message, wait));
            }
        };
        Ok(SearchPermit {
            key_permit,
            _permit: permit,
        })
    }

    /// Admits a submission. Those of callers that are not accepted yet are limited by their network,
    /// so that one network does not use up the callers that may be new within a minute.
    ///
    /// # Errors
    /// 429 with the time to wait.
    pub async fn admit_order(&self, key: &CallerKey) -> Result<(), ApiError> {
        if self.unknown_keys.has_accepted(key) {
            return Ok(());
        }
        if self.is_accepted(key).await {
            drop(self.unknown_keys.admit_accepted(key));
            return Ok(());
        }
        let admitted = self
            .unknown_keys
            .admit_order(current_network(), Instant::now());
        admitted.map_err(|wait| {
            let message = "too many callers whose key the marketplace has not accepted yet submit from this network; \
                           call GET /v1/verify first, or retry after the time in Retry-After";
            ApiError::too_many_requests(message, wait)
        })
    }

    /// Whether the database knows the key as accepted. Called only where the request would be
    /// refused otherwise, and by pages; an unavailable database counts as no.
    pub async fn is_accepted(&self, key: &CallerKey) -> bool {
        let (Some(pools), Some(custody), Ok(now)) = (&self.pools, &self.custody, self.now()) else {
            return false;
        };
        let pool = &pools.reads;
        let lookup = async {
            let _permit = self
                .lookup_permits
                .acquire()
                .await
                .map_err(|_| sqlx::Error::PoolClosed)?;
            let (mut conn, tenant) =
                tenants::store::find_with_connection(pool, &custody.ring, key, now).await?;
            match tenant {
                Some(tenant) => acceptance::is_accepted(&mut *conn, tenant).await,
                None => Ok(false),
            }
        };
        matches!(timeout(LOOKUP_TIMEOUT, lookup).await, Ok(Ok(true)))
    }

    /// Stores that the marketplace accepted this key, if this process has seen that and not stored
    /// it yet. A submission right after a search or check is then not refused. Failures are
    /// ignored: the submission itself returns the error.
    pub async fn record_acceptance(&self, key: &CallerKey) {
        let (Some(pools), Some(custody), Ok(now)) = (&self.pools, &self.custody, self.now()) else {
            return;
        };
        if !self.unknown_keys.is_unrecorded(key) {
            return;
        }
        match acceptance::record_key_accepted(&pools.writes, &custody.ring, key, now).await {
            Ok(()) => self.unknown_keys.mark_recorded(key),
            Err(error) => tracing::debug!(%error, "failed to record an accepted key"),
        }
    }
}
