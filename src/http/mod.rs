//! The HTTP API. `routes` lists every route.
//!
//! A handler extracts its inputs, calls one function and returns the result. Here and below: API
//! keys (`auth`), request bodies (`extract`), synchronous searches (`gateway`), requests for stored
//! work (`api_request`), the error table (`error`), and one file for each resource. Not here: the
//! meaning of a marketplace response (`upstream`), SQL (`store.rs` files).

mod account;
mod admin;
mod admission;
mod alerts;
mod api_request;
pub(crate) mod assets;
pub mod auth;
mod cache_control;
mod client_address;
pub(crate) mod concurrency;
mod connections;
mod decisions;
mod deliveries;
mod directives;
pub mod error;
pub(crate) mod events;
mod export;
pub mod extract;
mod flights;
mod gateway;
mod grid;
mod health;
mod history;
mod hotels;
pub(crate) mod items;
mod key_guessing;
mod middleware;
mod monitors;
mod network_buckets;
mod openapi;
mod outcome_response;
mod prefer;
mod quota;
mod rate_limit;
mod request_id;
mod scans;
mod search_call;
mod serve;
mod shared_calls;
mod socket;
mod stored_answer;
mod verify;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn;
use axum::routing::get;
use ipnet::IpNet;
use jiff::Timestamp;
use sqlx::PgPool;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::request_id::{PropagateRequestIdLayer, SetRequestIdLayer};
use tower_http::trace::{DefaultOnResponse, TraceLayer};
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::admission::{MAX_LOOKUPS, MAX_SEARCHES};
pub(crate) use self::api_request::{request_context, submit_context};
use self::auth::ApiKey;
use self::concurrency::{ConcurrencyLimits, Permit};
use self::error::ApiError;
pub(crate) use self::export::prefers_html;
pub(crate) use self::history::HistoryFile;
use self::key_guessing::UnknownKeys;
use self::middleware::Listener;
use self::rate_limit::RateLimits;
pub use self::serve::{serve, serve_admin};
use self::shared_calls::SharedCalls;
use crate::charges::{CallUsage, ChargeRecorder};
use crate::config::{PaceConfig, RateLimitConfig, WebhookConfig};
use crate::contract::ErrorType;
use crate::db::clock::Clock;
use crate::db::{Preparation, RequestPools, SessionHealth};
use crate::metrics;
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
    pub(crate) upstream: Client,
    /// `None` in a gateway without storage. A pool connects on first use, so searches work without
    /// a database.
    pools: Option<RequestPools>,
    /// Read replica for history queries. `None`: history uses `pools`.
    replica: Option<PgPool>,
    /// Pool of the worker in the same process, for metrics only.
    worker_pool: Option<PgPool>,
    custody: Option<Custody>,
    /// `None` in tests.
    rate_limits: Option<Arc<RateLimits>>,
    concurrency: Arc<ConcurrencyLimits>,
    shared_calls: SharedCalls,
    unknown_keys: UnknownKeys,
    /// The proxies whose `X-Forwarded-For` counts.
    trusted_proxies: Arc<[IpNet]>,
    /// One permit for each search in flight.
    search_permits: Arc<Semaphore>,
    lookup_permits: Arc<Semaphore>,
    /// Decides which addresses webhooks may use.
    webhook_guard: Guard,
    /// Why new database sessions cannot work, if they cannot. `None` in tests.
    session_health: Option<SessionHealth>,
    preparation: Option<Preparation>,
    /// Cancelled when the process shuts down.
    pub(crate) stop: CancellationToken,
    clock: Clock,
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
    pub(crate) fn now(&self) -> Result<Timestamp, ApiError> {
        self.clock
            .now()
            .map_err(|apart| ApiError::new(ErrorType::Unavailable, apart.to_string()))
    }

    /// Takes a token from the caller's rate limit.
    ///
    /// # Errors
    /// 429 `too_many_requests` with the time to wait.
    fn check_rate_limit(&self, key: &CallerKey) -> Result<(), ApiError> {
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
    pub(crate) async fn admit_caller(
        &self,
        key: CallerKey,
        is_write: bool,
    ) -> Result<ApiKey, ApiError> {
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
    pub(crate) async fn heavy_read_permits(
        &self,
        key: &CallerKey,
    ) -> Result<[Permit; 2], ApiError> {
        self.concurrency.heavy(key).await
    }

    /// The permits of a submission or its preview. Hold them until it is stored.
    ///
    /// # Errors
    /// 429 or 503 while all are taken.
    pub(crate) async fn submission_permits(
        &self,
        key: &CallerKey,
    ) -> Result<[Permit; 2], ApiError> {
        self.concurrency.submission(key).await
    }

    /// Whether searches go to this process's own sandbox.
    pub(crate) fn is_sandbox(&self) -> bool {
        self.upstream.marketplace().is_sandbox()
    }

    /// The dependencies of stored work.
    ///
    /// # Errors
    /// 503 `key_custody_disabled` when this service has no master keys.
    pub(crate) fn custody(&self) -> Result<&Custody, ApiError> {
        self.custody
            .as_ref()
            .ok_or_else(ApiError::key_custody_disabled)
    }

    /// Charges a synchronous call to its caller's lane, if there is one. The response does not wait
    /// for this.
    fn charge(&self, key: &CallerKey, spent: CallUsage) {
        if let Some(custody) = &self.custody {
            custody.charges.record(key, spent);
        }
    }

    /// Waits until the searches that no request waits for have ended and are stored. No request may
    /// come any more.
    pub(crate) async fn finish_searches(&self) {
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

    fn pools(&self) -> Result<&RequestPools, ApiError> {
        self.pools.as_ref().ok_or_else(ApiError::unavailable)
    }
}

/// Every route, with its description.
fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(openapi::base_description())
        // The seven specified endpoints.
        .routes(routes!(verify::verify))
        .routes(routes!(flights::oneway))
        .routes(routes!(flights::roundtrip))
        .routes(routes!(hotels::by_place))
        .routes(routes!(hotels::by_name))
        .routes(routes!(hotels::rooms))
        .routes(routes!(hotels::resolve))
        // Scans: one request with some fields swept.
        .routes(routes!(scans::submit, scans::list))
        .routes(routes!(scans::preview::preview))
        .routes(routes!(scans::read, scans::control::delete))
        .routes(routes!(scans::control::retry))
        .routes(routes!(scans::control::pause))
        .routes(routes!(scans::control::resume))
        .routes(routes!(scans::control::cancel))
        .routes(routes!(grid::grid))
        .routes(routes!(grid::compare))
        .routes(routes!(events::events))
        .routes(routes!(items::list))
        .routes(routes!(items::read))
        .routes(routes!(items::attempts))
        .routes(routes!(decisions::list))
        // Monitors: a scan on a schedule.
        .routes(routes!(monitors::create, monitors::list))
        .routes(routes!(monitors::preview))
        .routes(routes!(monitors::backtest))
        .routes(routes!(
            monitors::read,
            monitors::update,
            monitors::control::delete
        ))
        .routes(routes!(monitors::control::run))
        .routes(routes!(monitors::control::pause))
        .routes(routes!(monitors::control::resume))
        .routes(routes!(monitors::slots))
        .routes(routes!(alerts::of_monitor))
        .routes(routes!(alerts::list))
        .routes(routes!(alerts::read))
        // History.
        .routes(routes!(history::flights))
        .routes(routes!(history::hotels))
        .routes(routes!(history::latest_flights))
        .routes(routes!(history::latest_hotels))
        .routes(routes!(history::series::flights))
        .routes(routes!(history::series::hotels))
        .routes(routes!(history::grid::flights))
        .routes(routes!(history::grid::hotels))
        // Webhooks.
        .routes(routes!(deliveries::list))
        .routes(routes!(deliveries::detail))
        .routes(routes!(deliveries::resend))
        .routes(routes!(deliveries::test))
        .routes(routes!(deliveries::rotate_secret))
        .routes(routes!(deliveries::enable))
        // The account.
        .routes(routes!(account::usage))
        .routes(routes!(quota::read))
        .routes(routes!(account::rotate_key))
        .routes(routes!(account::settings, account::set_settings))
        .routes(routes!(quota::set_lane_bounds, quota::update_lane_bounds))
        // The service itself, without a key.
        .routes(routes!(openapi::openapi_json))
        .routes(routes!(health::healthz))
}

/// OpenAPI 3.1 description of every route, as served at `/openapi.json`.
pub fn openapi_description() -> OpenApi {
    openapi::complete_description(routes().into_openapi())
}

/// The API, with the pages of the dashboard (`web::router` serves both).
pub fn router(app: AppState, pages: Router<AppState>) -> Router {
    let (router, _) = routes().split_for_parts();
    let router = router
        .merge(openapi::reference_page_routes())
        .merge(pages)
        .fallback(middleware::unknown_path);
    with_middleware(router, app, Listener::Api)
}

/// Health, readiness and metrics on the admin listener. Starts metrics collection.
pub fn admin_router(app: AppState) -> Router {
    metrics::start();
    let router = Router::new()
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(admin::readyz))
        .route("/metrics", get(admin::metrics))
        .fallback(middleware::unknown_admin_path);
    with_middleware(router, app, Listener::Admin)
}

/// Adds middleware, outermost first. Keys are removed before the first log line.
fn with_middleware(router: Router<AppState>, app: AppState, listener: Listener) -> Router {
    let proxies = Arc::clone(&app.trusted_proxies);
    let trace = TraceLayer::new_for_http()
        .make_span_with(middleware::request_span)
        .on_response(DefaultOnResponse::new().level(listener.log_level()));
    router
        .method_not_allowed_fallback(middleware::method_not_allowed)
        .layer(
            ServiceBuilder::new()
                .map_request(auth::extract_api_key)
                .map_request(request_id::remove_request_id)
                .layer(SetRequestIdLayer::new(
                    request_id::REQUEST_ID,
                    request_id::GenerateRequestId,
                ))
                .layer(trace)
                .layer(PropagateRequestIdLayer::new(request_id::REQUEST_ID))
                .map_response(middleware::harden)
                .layer(middleware::compression())
                .layer(from_fn(move |request, next| {
                    middleware::answer(listener, Arc::clone(&proxies), request, next)
                }))
                .layer(CatchPanicLayer::custom(middleware::panic_response)),
        )
        .with_state(app)
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::http::Request;
    use serde_json::Value;
    use tower::ServiceExt as _;

    use super::*;
    use crate::upstream::UpstreamConfig;

    /// gateway.md, rule 10: an error always has the specified form, a panic included, and never
    /// shows its cause.
    #[tokio::test]
    async fn a_panic_is_a_specified_error() {
        async fn broken() {
            panic!("the secret cause");
        }
        let nowhere: reqwest::Url = "http://127.0.0.1:9".parse().unwrap();
        let app = AppState::new(
            Client::new(&UpstreamConfig::at(nowhere.clone(), nowhere)).unwrap(),
            None,
        );
        let router = with_middleware(Router::new().route("/", get(broken)), app, Listener::Api);
        let response = router
            .oneshot(
                Request::get("/")
                    .header("host", "h")
                    .body(Body::empty())
                    .unwrap(),
            )
            .await
            .unwrap();
        assert_eq!(response.status(), 500);
        assert!(response.headers().contains_key("x-request-id"));
        let text = to_bytes(response.into_body(), 10_000).await.unwrap();
        let body: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(body["error"]["type"], "internal");
        assert!(!body.to_string().contains("secret"), "{body}");
    }

    /// Only the route is logged: a caller may put a key into the path by mistake.
    #[tokio::test]
    async fn a_key_in_a_path_is_not_logged() {
        let log = tempfile::NamedTempFile::new().unwrap();
        let writer = Arc::new(log.reopen().unwrap());
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_writer(writer)
            .finish();
        let guard = tracing::subscriber::set_default(subscriber);
        let nowhere: reqwest::Url = "http://127.0.0.1:9".parse().unwrap();
        let app = AppState::new(
            Client::new(&UpstreamConfig::at(nowhere.clone(), nowhere)).unwrap(),
            None,
        );
        for path in [
            "/hunter2-hunter2",
            "/v1/scans/hunter2-hunter2",
            "/v1/hunter2-hunter2/items",
            "/docs/hunter2-hunter2",
        ] {
            let request = Request::get(path)
                .header("host", "h")
                .header("x-api-key", "hunter2-hunter2")
                .body(Body::empty())
                .unwrap();
            let response = router(app.clone(), Router::new())
                .oneshot(request)
                .await
                .unwrap();
            assert!(response.status().is_client_error() || response.status().is_server_error());
        }
        drop(guard);
        let log = std::fs::read_to_string(log.path()).unwrap();
        assert!(
            log.contains("/v1/scans/{id}") && log.contains("none"),
            "{log}"
        );
        assert!(!log.contains("hunter2"), "{log}");
    }
}
