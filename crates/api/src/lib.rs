//! The HTTP API. `routes` lists every route.
//!
//! A handler extracts its inputs, calls one function and returns the result. Here and below:
//! synchronous searches (`gateway`), one file for each resource, files of lists (`export`), the
//! description (`openapi`), the middleware and the listeners. Not here: keys, bodies, limits and
//! errors (`app`), the meaning of a marketplace response (`upstream`), SQL (`store.rs` files).

mod account;
mod admin;
mod alerts;
mod cache_control;
mod channels;
mod connections;
mod decisions;
mod deliveries;
mod directives;
mod events;
mod export;
mod flights;
mod gateway;
mod grid;
mod health;
mod history;
mod hotels;
mod items;
mod middleware;
mod monitors;
mod openapi;
mod outcome_response;
mod prefer;
mod quota;
mod scans;
mod serve;
mod socket;
mod verify;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn;
use axum::routing::get;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::request_id::{PropagateRequestIdLayer, SetRequestIdLayer};
use tower_http::trace::{DefaultOnResponse, TraceLayer};
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::middleware::Listener;
pub use self::serve::{serve, serve_admin};
use farescan_core::app::compression::compression;
use farescan_core::app::{AppState, auth, request_id};
use farescan_core::metrics;

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
        .routes(routes!(monitors::parity))
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
        // Channels.
        .routes(routes!(channels::create, channels::list))
        .routes(routes!(channels::read, channels::update, channels::delete))
        .routes(routes!(channels::confirm))
        .routes(routes!(channels::test))
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

/// Every route of the API, without middleware.
pub fn api_routes() -> Router<AppState> {
    routes().split_for_parts().0
}

/// The public listener: [`api_routes`] and other routes of the service, with the middleware of all.
pub fn router(app: AppState, routes: Router<AppState>) -> Router {
    let router = routes
        .merge(openapi::reference_page_routes())
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
                .layer(compression())
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
    use farescan_core::upstream::{Client, UpstreamConfig};

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
            let response = router(app.clone(), api_routes())
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
