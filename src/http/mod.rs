//! The HTTP face. Every route is on this page.
//!
//! Thin: a handler extracts, calls one function, answers. Here and below: who calls (`auth`), bodies (`extract`), the way of one
//! search (`gateway`), the only table of errors (`error`), one file for each resource. Not here: what an answer means (`upstream`),
//! SQL (`store.rs` files).

mod account;
mod admin;
mod admission;
mod alerts;
mod assets;
pub mod auth;
mod bounds;
mod connections;
mod deliveries;
mod docs;
pub mod error;
mod events;
mod export;
pub mod extract;
mod flights;
mod gateway;
mod grid;
mod guesses;
mod health;
mod history;
mod hotels;
mod items;
mod layers;
mod limits;
mod monitors;
mod prefer;
mod quota;
mod scans;
mod serve;
mod stream;
mod verify;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn;
use axum::routing::get;
use jiff::Timestamp;
use sqlx::PgPool;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::request_id::{PropagateRequestIdLayer, SetRequestIdLayer};
use tower_http::trace::{DefaultOnResponse, TraceLayer};
use tracing::Level;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::admission::{LOOK_UPS, SEARCHES_IN_FLIGHT};
use self::bounds::Bounds;
use self::error::ApiError;
use self::guesses::Guesses;
use self::limits::Limits;
pub use self::serve::{serve, serve_admin};
use crate::config::{LimitConfig, PaceConfig, WebhookConfig};
use crate::contract::ErrorType;
use crate::db::clock::Clock;
use crate::db::{Condition, RequestPools};
use crate::measure;
use crate::queue::charge::{Charges, Spent};
use crate::scans::watch::Watch;
use crate::search::CallerKey;
use crate::tenants::Keyring;
use crate::upstream::Client;
use crate::webhooks::Guard;

/// What handlers reach. Cheap to clone.
#[derive(Debug, Clone)]
pub struct AppState {
    pub(crate) upstream: Client,
    /// Absent in a gateway that keeps nothing. A pool connects when it is used, so a database that is away stops no search.
    pools: Option<RequestPools>,
    /// A replica, for the history alone. Absent: the history is read where everything else is.
    replica: Option<PgPool>,
    /// The pool of the worker beside it, for its metrics.
    engine: Option<PgPool>,
    custody: Option<Custody>,
    /// Absent where nobody limits: in tests.
    limits: Option<Arc<Limits>>,
    bounds: Arc<Bounds>,
    guesses: Guesses,
    /// A permit for each search in flight, and one for each look-up of a key that this process does not know.
    searches: Arc<Semaphore>,
    look_ups: Arc<Semaphore>,
    /// Says where a webhook may be.
    guard: Guard,
    /// Why new sessions of the database cannot work, if they cannot. Absent where nobody looks: in tests.
    condition: Option<Condition>,
    /// Cancelled when the process was told to end.
    pub(crate) stop: CancellationToken,
    clock: Clock,
}

/// What the companion routes need beside the database. A service that may not hold keys has none and takes no orders.
#[derive(Debug, Clone)]
pub struct Custody {
    /// Seals the keys, and tells one caller from another.
    pub ring: Arc<Keyring>,
    /// The pace of new lanes.
    pub pace: PaceConfig,
    /// Hears of what becomes of scans.
    pub watch: Watch,
    /// Counts synchronous calls against their caller's lane.
    pub charges: Charges,
}

impl AppState {
    /// The state of a service that asks `upstream` and keeps its work in the database of `pools`.
    #[must_use]
    pub fn new(upstream: Client, pools: Option<RequestPools>) -> Self {
        Self {
            upstream,
            pools,
            replica: None,
            engine: None,
            custody: None,
            limits: None,
            bounds: Arc::default(),
            guesses: Guesses::default(),
            searches: Arc::new(Semaphore::new(SEARCHES_IN_FLIGHT)),
            look_ups: Arc::new(Semaphore::new(LOOK_UPS)),
            guard: Guard::new(&WebhookConfig::default()),
            condition: None,
            stop: CancellationToken::new(),
            clock: Clock::default(),
        }
    }

    /// The same state of a service that reads the history from a replica.
    #[must_use]
    pub fn with_replica(self, replica: PgPool) -> Self {
        Self {
            replica: Some(replica),
            ..self
        }
    }

    /// The same state of a service that has a worker beside it, which uses this pool.
    #[must_use]
    pub fn with_engine(self, engine: PgPool) -> Self {
        Self {
            engine: Some(engine),
            ..self
        }
    }

    /// The same state of a service that takes orders.
    #[must_use]
    pub fn with_custody(self, custody: Custody) -> Self {
        Self {
            custody: Some(custody),
            ..self
        }
    }

    /// The same state of a service whose callers have so many requests a second on our own routes.
    #[must_use]
    pub fn with_limits(self, config: &LimitConfig) -> Self {
        Self {
            limits: Some(Arc::new(Limits::new(config))),
            ..self
        }
    }

    /// The same state of a service in which requests wait so long for their caller's other requests.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self {
            bounds: Arc::new(Bounds::of_patience(patience)),
            ..self
        }
    }

    /// The same state of a service that has so many searches in flight at most.
    #[must_use]
    pub fn with_searches(self, most: usize) -> Self {
        Self {
            searches: Arc::new(Semaphore::new(most)),
            ..self
        }
    }

    /// The same state of a service whose callers may have webhooks where this says.
    #[must_use]
    pub fn with_guard(self, guard: Guard) -> Self {
        Self { guard, ..self }
    }

    /// The same state of a service that looks after its database.
    #[must_use]
    pub fn with_condition(self, condition: Condition) -> Self {
        Self {
            condition: Some(condition),
            ..self
        }
    }

    /// The same state of a service that ends with `stop`.
    #[must_use]
    pub fn ending_with(self, stop: CancellationToken) -> Self {
        Self { stop, ..self }
    }

    /// The same state of a service that tells the time by `clock`.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// The time, for what is stored.
    ///
    /// # Errors
    /// 503 `unavailable` while this process's clock is wrong.
    fn now(&self) -> Result<Timestamp, ApiError> {
        self.clock
            .now()
            .map_err(|apart| ApiError::new(ErrorType::Unavailable, apart.to_string()))
    }

    /// Counts a request to our own routes against its caller.
    ///
    /// # Errors
    /// 429 `too_many_requests`, with the time to wait.
    fn admit(&self, key: &CallerKey) -> Result<(), ApiError> {
        let Some(limits) = &self.limits else {
            return Ok(());
        };
        limits.admit(key).map_err(|wait| {
            let allowed = limits.allowed();
            ApiError::too_many_requests(
                format!(
                    "too many requests with this key; allowed: {allowed}. Wait as Retry-After says"
                ),
                wait,
            )
        })
    }

    /// What orders need.
    ///
    /// # Errors
    /// 503 `key_custody_disabled` when this service may not hold keys.
    pub(crate) fn custody(&self) -> Result<&Custody, ApiError> {
        self.custody
            .as_ref()
            .ok_or_else(ApiError::key_custody_disabled)
    }

    /// Counts a synchronous call against its caller's lane, if there is one, after the fact: its answer does not wait for it.
    fn charge(&self, key: &CallerKey, spent: Spent) {
        if let Some(custody) = &self.custody {
            custody.charges.note(key, spent);
        }
    }

    /// Says where a caller's webhook may be.
    #[must_use]
    pub fn guard(&self) -> Guard {
        self.guard
    }

    /// Where the history is read. A replica that is away has no stand-in: the primary would get the very load that the replica is to
    /// keep off it.
    ///
    /// # Errors
    /// 503 `unavailable` when this service has no database.
    pub fn history_pool(&self) -> Result<&PgPool, ApiError> {
        self.replica().map_or_else(|| self.reads(), Ok)
    }

    /// The replica that the history is read from, if there is one.
    #[must_use]
    pub fn replica(&self) -> Option<&PgPool> {
        self.replica.as_ref()
    }

    /// The database, for what only reads.
    ///
    /// # Errors
    /// 503 `unavailable` when this service has none.
    pub fn reads(&self) -> Result<&PgPool, ApiError> {
        Ok(&self.pools()?.reads)
    }

    fn pools(&self) -> Result<&RequestPools, ApiError> {
        self.pools.as_ref().ok_or_else(ApiError::unavailable)
    }
}

/// Every route, with its description.
fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(docs::shared())
        // The specified seven.
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
        // Monitors: a scan on a schedule.
        .routes(routes!(monitors::create, monitors::list))
        .routes(routes!(monitors::preview))
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
        // What was seen.
        .routes(routes!(history::flights))
        .routes(routes!(history::hotels))
        .routes(routes!(history::latest_flights))
        .routes(routes!(history::latest_hotels))
        .routes(routes!(history::series::flights))
        .routes(routes!(history::series::hotels))
        .routes(routes!(history::grid::flights))
        .routes(routes!(history::grid::hotels))
        // Webhooks: what monitors tell.
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
        .routes(routes!(quota::bound))
        // The service itself, without a key.
        .routes(routes!(docs::openapi))
        .routes(routes!(health::healthz))
}

/// OpenAPI 3.1 of every route, as `/openapi.json` shows it.
#[must_use]
pub fn description() -> OpenApi {
    docs::completed(routes().into_openapi())
}

/// The service on its public listener.
pub fn router(app: AppState) -> Router {
    let (router, _) = routes().split_for_parts();
    let router = router
        .merge(docs::page())
        .route("/", get(docs::front))
        .fallback(layers::no_such_path);
    surrounded(router, app, Level::INFO).layer(from_fn(layers::measured))
}

/// Health, readiness and metrics, on the admin listener. Metrics are kept from here on.
pub fn admin_router(app: AppState) -> Router {
    measure::start();
    let router = Router::new()
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(admin::readyz))
        .route("/metrics", get(admin::metrics))
        .fallback(layers::no_such_admin_path);
    surrounded(router, app, Level::DEBUG)
}

/// The layers, outer first. Keys are lifted off before the first line is logged; `level` is that of an answer's line.
fn surrounded(router: Router<AppState>, app: AppState, level: Level) -> Router {
    let trace = TraceLayer::new_for_http()
        .make_span_with(layers::span)
        .on_response(DefaultOnResponse::new().level(level));
    router
        .method_not_allowed_fallback(layers::no_such_method)
        .layer(
            ServiceBuilder::new()
                .layer(from_fn(auth::lift_key))
                .layer(from_fn(layers::forget_request_id))
                .layer(SetRequestIdLayer::new(
                    layers::REQUEST_ID,
                    layers::OurRequestId,
                ))
                .layer(from_fn(layers::identified))
                .layer(trace)
                .layer(PropagateRequestIdLayer::new(layers::REQUEST_ID))
                .layer(from_fn(layers::guarded))
                .layer(layers::compression())
                .layer(CatchPanicLayer::custom(layers::panicked)),
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

    /// Contract 10: an error is always in the specified form, a panic included, and never shows its cause.
    #[tokio::test]
    async fn contract_10_a_panic_is_an_answer() {
        async fn broken() {
            panic!("the secret cause");
        }
        let nowhere: reqwest::Url = "http://127.0.0.1:9".parse().unwrap();
        let app = AppState::new(
            Client::new(&UpstreamConfig::at(nowhere.clone(), nowhere)).unwrap(),
            None,
        );
        let router = surrounded(Router::new().route("/", get(broken)), app, Level::INFO);
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

    /// A path is logged as its route alone: a key may stand in it by mistake.
    #[tokio::test]
    async fn a_key_in_a_path_is_not_logged() {
        let log = tempfile::NamedTempFile::new().unwrap();
        let writer = Arc::new(log.reopen().unwrap());
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(Level::TRACE)
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
            let response = router(app.clone()).oneshot(request).await.unwrap();
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
