//! The admin listener: health, readiness and metrics, for operators only (security.md, rule 28). It
//! is not part of the OpenAPI description, needs no key, and never calls the marketplace.
//!
//! It stays up while the process drains, so that monitoring sees a process that ends, not one that
//! hangs.

use axum::Json;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

use super::health::Health;
use farescan_core::app::AppState;
use farescan_core::app::error::ApiError;
use farescan_core::contract::ErrorType;
use farescan_core::{db, metrics};

/// The Prometheus text format.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// `GET /readyz`: ready for stored work. The database answers, its new sessions work, its schema
/// has this version, this process has prepared it (SQL functions, partitions, keys), the clock is
/// right, and the process is not shutting down. Searches depend only on the last condition.
///
/// A newer release may have replaced the functions since: it keeps those of this one working
/// (storage.md, "Migrations"). The reverse does not hold, so a process that could not replace older
/// functions is not ready.
pub(super) async fn readyz(State(app): State<AppState>) -> Result<Json<Health>, ApiError> {
    if app.stop.is_cancelled() {
        return Err(ApiError::new(
            ErrorType::Unavailable,
            "this process is shutting down and accepts no new work",
        ));
    }
    if let Some(why) = app
        .session_health
        .as_ref()
        .and_then(|session_health| session_health.borrow().clone())
    {
        return Err(ApiError::new(ErrorType::Unavailable, &*why));
    }
    if !db::is_migrated(app.read_pool()?).await? {
        return Err(ApiError::new(
            ErrorType::Unavailable,
            "the database schema is not of this version; run `farescan migrate`",
        ));
    }
    let unprepared = app.preparation.as_ref().and_then(|it| it.borrow().clone());
    if let Some(why) = unprepared {
        return Err(ApiError::new(
            ErrorType::Unavailable,
            format!("this process has not prepared the database yet, and tries again: {why}"),
        ));
    }
    app.now()?;
    Ok(Json(Health::ok()))
}

/// `GET /metrics`: the collected metrics and the current pool sizes.
pub(super) async fn metrics(State(app): State<AppState>) -> impl IntoResponse {
    let pools = app.pools().ok();
    let named = [
        ("reads", pools.map(|pools| &pools.reads)),
        ("writes", pools.map(|pools| &pools.writes)),
        ("engine", app.worker_pool.as_ref()),
    ];
    for (name, pool) in named {
        if let Some(pool) = pool {
            metrics::pool(
                name,
                pool.size(),
                pool.num_idle(),
                pool.options().get_max_connections(),
            );
        }
    }
    ([(CONTENT_TYPE, PROMETHEUS)], metrics::render())
}
