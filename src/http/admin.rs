//! The admin listener: health, readiness and metrics, for operators only (security.md). It is not part of the described interface, needs
//! no key, and never asks the marketplace.
//!
//! It stays up while the process drains, so that whoever watches sees a process that ends, not one that hangs.

use axum::Json;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

use super::AppState;
use super::error::ApiError;
use super::health::Health;
use crate::contract::ErrorType;
use crate::{db, measure};

/// The text format of Prometheus.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// `GET /readyz`: it can take stored work. The database answers and its new sessions work, its schema is this program's, the process's clock is
/// right, and it was not told to end. The gateway's searches work without any of that but the last.
pub(super) async fn readyz(State(app): State<AppState>) -> Result<Json<Health>, ApiError> {
    if app.stop.is_cancelled() {
        return Err(ApiError::new(
            ErrorType::Unavailable,
            "this process is ending: it takes no new work",
        ));
    }
    if let Some(why) = app
        .condition
        .as_ref()
        .and_then(|condition| condition.borrow().clone())
    {
        return Err(ApiError::new(ErrorType::Unavailable, &*why));
    }
    if !db::is_migrated(app.reads()?).await? {
        return Err(ApiError::new(
            ErrorType::Unavailable,
            "the database's tables are not this version's yet: `farescan migrate` makes them so",
        ));
    }
    app.now()?;
    Ok(Json(Health::ok()))
}

/// `GET /metrics`: what `crate::measure` holds, and the pools as they are now.
pub(super) async fn metrics(State(app): State<AppState>) -> impl IntoResponse {
    let pools = app.pools().ok();
    let named = [
        ("reads", pools.map(|pools| &pools.reads)),
        ("writes", pools.map(|pools| &pools.writes)),
        ("engine", app.engine.as_ref()),
    ];
    for (name, pool) in named {
        if let Some(pool) = pool {
            measure::pool(
                name,
                pool.size(),
                pool.num_idle(),
                pool.options().get_max_connections(),
            );
        }
    }
    ([(CONTENT_TYPE, PROMETHEUS)], measure::text())
}
