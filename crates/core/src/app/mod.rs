//! What the two HTTP interfaces share: the service's state ([`AppState`]), and how a request is
//! read, admitted and refused. The crates `api` and `dashboard` stand above it; neither uses the
//! other.
//!
//! Here: API keys (`auth`), request bodies and queries (`extract`), requests for stored work
//! (`api_request`), limits (`rate_limit`, `concurrency`, `admission`, `key_guessing`), the error
//! table (`error`), the calls of synchronous searches (`search_call`, `shared_calls`), the check and
//! the rotation of a key (`key_check`, `key_rotation`), static responses (`assets`).

pub mod accept;
pub mod admission;
pub mod api_request;
pub mod assets;
pub mod auth;
mod backtest;
pub mod client_address;
pub mod compression;
pub mod concurrency;
pub mod error;
pub mod extract;
pub mod key_check;
pub mod key_guessing;
mod key_rotation;
mod network_buckets;
mod rate_limit;
pub mod request_id;
pub mod search_call;
pub mod shared_calls;
pub mod stored_answer;
pub mod upstream_response;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use jiff::Timestamp;
use sqlx::PgPool;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use self::admission::{MAX_LOOKUPS, MAX_SEARCHES};
use self::auth::ApiKey;
use self::concurrency::{ConcurrencyLimits, Permit};
use self::error::ApiError;
use self::key_guessing::UnknownKeys;
use self::rate_limit::RateLimits;
use self::shared_calls::SharedCalls;
use crate::charges::{CallUsage, ChargeRecorder};
use crate::config::{PaceConfig, RateLimitConfig, WebhookConfig};
use crate::contract::ErrorType;
use crate::db::clock::Clock;
use crate::db::{Preparation, RequestPools, SessionHealth};
use crate::scans::watch::ScanWatch;
use crate::search::CallerKey;
use crate::search_recorder::SearchRecorder;
use crate::tenants::Keyring;
use crate::upstream::Client;
use crate::webhooks::Guard;

/// The dependencies of all handlers. A clone costs one reference count: the router clones it for
/// each request.
#[derive(Debug, Clone)]
pub struct AppState(Arc<AppParts>);

/// What [`AppState`] shares.
#[derive(Debug, Clone)]
pub struct AppParts {
    pub upstream: Client,
    /// `None` in a gateway without storage. A pool connects on first use, so searches work without
    /// a database.
    pools: Option<RequestPools>,
    /// Read replica for history queries. `None`: history uses `pools`.
    replica: Option<PgPool>,
    /// Pool of the worker in the same process, for metrics only.
    pub worker_pool: Option<PgPool>,
    pub custody: Option<Custody>,
    /// `None` in tests.
    rate_limits: Option<Arc<RateLimits>>,
    pub concurrency: Arc<ConcurrencyLimits>,
    pub shared_calls: SharedCalls,
    unknown_keys: UnknownKeys,
    /// The proxies whose `X-Forwarded-For` counts.
    pub trusted_proxies: Arc<[IpNet]>,
    /// One permit for each search in flight.
    search_permits: Arc<Semaphore>,
    lookup_permits: Arc<Semaphore>,
    /// Decides which addresses webhooks may use.
    webhook_guard: Guard,
    /// Why new database sessions cannot work, if they cannot. `None` in tests.
    pub session_health: Option<SessionHealth>,
    pub preparation: Option<Preparation>,
    /// Cancelled when the process shuts down.
    pub stop: CancellationToken,
    pub clock: Clock,
}

impl Deref for AppState {
    type Target = AppParts;

    fn deref(&self) -> &AppParts {
        &self.0
    }
}

/// What stored work needs besides the database. A service without master keys has none and refuses
/// stored work.
#[derive(Debug, Clone)]
pub struct Custody {
    /// Encrypts keys and identifies callers.
    pub ring: Arc<Keyring>,
    /// Initial pace of new lanes.
    pub pace: PaceConfig,
    /// Notifies clients of scan changes.
    pub watch: ScanWatch,
    /// Charges synchronous calls to their caller's lane.
    pub charges: ChargeRecorder,
    /// Stores synchronous searches.
    pub recorder: SearchRecorder,
}

impl AppState {
    /// The state of a service that calls `upstream` and stores its work in `pools`.
    pub fn new(upstream: Client, pools: Option<RequestPools>) -> Self {
        Self(Arc::new(AppParts {
            upstream,
            pools,
            replica: None,
            worker_pool: None,
            custody: None,
            rate_limits: None,
            concurrency: Arc::default(),
            shared_calls: SharedCalls::default(),
            unknown_keys: UnknownKeys::default(),
            trusted_proxies: Arc::default(),
            search_permits: Arc::new(Semaphore::new(MAX_SEARCHES)),
            lookup_permits: Arc::new(Semaphore::new(MAX_LOOKUPS)),
            webhook_guard: Guard::new(&WebhookConfig::default()),
            session_health: None,
            preparation: None,
            stop: CancellationToken::new(),
            clock: Clock::default(),
        }))
    }

    fn with(mut self, change: impl FnOnce(&mut AppParts)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// Reads history from a replica.
    #[must_use]
    pub fn with_replica(self, replica: PgPool) -> Self {
        self.with(|app| app.replica = Some(replica))
    }

    /// Adds the pool of a worker in the same process to the metrics.
    #[must_use]
    pub fn with_worker_pool(self, worker_pool: PgPool) -> Self {
        self.with(|app| app.worker_pool = Some(worker_pool))
    }

    /// Enables stored work: scans, monitors, quotas.
    #[must_use]
    pub fn with_custody(self, custody: Custody) -> Self {
        self.with(|app| app.custody = Some(custody))
    }

    /// Takes the client's address from `X-Forwarded-For` of these proxies.
    #[must_use]
    pub fn with_trusted_proxies(self, proxies: Vec<IpNet>) -> Self {
        self.with(|app| app.trusted_proxies = proxies.into())
    }

    /// Limits the request rate of each caller.
    #[must_use]
    pub fn with_rate_limits(self, config: &RateLimitConfig) -> Self {
        self.with(|app| app.rate_limits = Some(Arc::new(RateLimits::new(config))))
    }

    /// Sets how long a request waits for a concurrency permit.
    #[must_use]
    pub fn with_permit_timeout(self, permit_timeout: Duration) -> Self {
        self.with(|app| app.concurrency = Arc::new(ConcurrencyLimits::with_timeout(permit_timeout)))
    }

    /// Sets the maximum number of searches in flight.
    #[must_use]
    pub fn with_search_limit(self, most: usize) -> Self {
        self.with(|app| app.search_permits = Arc::new(Semaphore::new(most)))
    }

    /// Sets which addresses webhooks may use.
    #[must_use]
    pub fn with_webhook_guard(self, guard: Guard) -> Self {
        self.with(|app| app.webhook_guard = guard)
    }

    /// Adds the preparation of the database to `/readyz`.
    #[must_use]
    pub fn with_preparation(self, preparation: Preparation) -> Self {
        self.with(|app| app.preparation = Some(preparation))
    }

    /// Adds the health of new database sessions to `/readyz`.
    #[must_use]
    pub fn with_session_health(self, session_health: SessionHealth) -> Self {
        self.with(|app| app.session_health = Some(session_health))
    }

    /// Stops with `stop`.
    #[must_use]
    pub fn with_stop(self, stop: CancellationToken) -> Self {
        self.with(|app| app.stop = stop)
    }

    /// Uses `clock`.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        self.with(|app| app.clock = clock)
    }

    /// The current time, for stored values.
    ///
    /// # Errors
    /// 503 `unavailable` while this process's clock is wrong.
    pub fn now(&self) -> Result<Timestamp, ApiError> {
        self.clock
            .now()
            .map_err(|apart| ApiError::new(ErrorType::Unavailable, apart.to_string()))
    }

    /// Takes a token from the caller's rate limit.
    ///
    /// # Errors
    /// 429 `too_many_requests` with the time to wait.
    pub fn check_rate_limit(&self, key: &CallerKey) -> Result<(), ApiError> {
        let Some(limits) = &self.rate_limits else {
            return Ok(());
        };
        limits.admit(key).map_err(|wait| {
            ApiError::too_many_requests(
                format!(
                    "rate limit exceeded: {}; retry after {} s",
                    limits.rate(),
                    wait.as_secs().max(1)
                ),
                wait,
            )
        })
    }

    /// Admits a request of the dashboard as if it carried `key` itself: under the caller's rate
    /// limit and concurrency.
    ///
    /// # Errors
    /// 429 when the caller has reached a limit.
    pub async fn admit_caller(&self, key: CallerKey, is_write: bool) -> Result<ApiKey, ApiError> {
        self.check_rate_limit(&key)?;
        let mut caller = ApiKey::without_permits(key, "session");
        caller.is_write = is_write;
        caller.acquire_permits(self).await?;
        Ok(caller)
    }

    /// The permits of a read of many rows, such as a grid. Hold them until it ends.
    ///
    /// # Errors
    /// 429 or 503 while all are taken.
    pub async fn heavy_read_permits(&self, key: &CallerKey) -> Result<[Permit; 2], ApiError> {
        self.concurrency.heavy(key).await
    }

    /// The permits of a submission or its preview. Hold them until it is stored.
    ///
    /// # Errors
    /// 429 or 503 while all are taken.
    pub async fn submission_permits(&self, key: &CallerKey) -> Result<[Permit; 2], ApiError> {
        self.concurrency.submission(key).await
    }

    /// Whether searches go to this process's own sandbox.
    pub fn is_sandbox(&self) -> bool {
        self.upstream.marketplace().is_sandbox()
    }

    /// The dependencies of stored work.
    ///
    /// # Errors
    /// 503 `key_custody_disabled` when this service has no master keys.
    pub fn custody(&self) -> Result<&Custody, ApiError> {
        self.custody
            .as_ref()
            .ok_or_else(ApiError::key_custody_disabled)
    }

    /// Charges a synchronous call to its caller's lane, if there is one. The response does not wait
    /// for this.
    pub fn charge(&self, key: &CallerKey, spent: CallUsage) {
        if let Some(custody) = &self.custody {
            custody.charges.record(key, spent);
        }
    }

    /// Waits until the searches that no request waits for have ended and are stored. No request may
    /// come any more.
    pub async fn finish_searches(&self) {
        self.shared_calls.finish().await;
        if let Some(custody) = &self.custody {
            custody.recorder.finish().await;
            custody.charges.finish().await;
        }
    }

    /// Decides which addresses webhooks may use.
    pub fn webhook_guard(&self) -> Guard {
        self.webhook_guard
    }

    /// The pool for history queries. An unavailable replica has no fallback: the primary would get
    /// the load that the replica takes off it.
    ///
    /// # Errors
    /// 503 `unavailable` when this service has no database.
    pub fn history_pool(&self) -> Result<&PgPool, ApiError> {
        self.replica().map_or_else(|| self.read_pool(), Ok)
    }

    /// The read replica, if there is one.
    pub fn replica(&self) -> Option<&PgPool> {
        self.replica.as_ref()
    }

    /// The pool for reads.
    ///
    /// # Errors
    /// 503 `unavailable` when this service has no database.
    pub fn read_pool(&self) -> Result<&PgPool, ApiError> {
        Ok(&self.pools()?.reads)
    }

    /// The pools for requests.
    ///
    /// # Errors
    /// 503 `unavailable` when this service has no database.
    pub fn pools(&self) -> Result<&RequestPools, ApiError> {
        self.pools.as_ref().ok_or_else(ApiError::unavailable)
    }
}
