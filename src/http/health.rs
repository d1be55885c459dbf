//! `/healthz`: the process lives. `/readyz` (on the admin listener): it can take stored work. Neither asks upstream.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::AppState;
use super::error::ApiError;
use crate::db;

/// The process lives.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Health {
    /// Always `ok`.
    #[schema(example = "ok")]
    status: &'static str,
}

/// Whether the service lives
///
/// Needs no key and asks nobody.
#[utoipa::path(get, path = "/healthz", tag = "Service", security(()), responses((status = 200, description = "It lives", body = Health)))]
pub(super) async fn healthz() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Ready: the database answers and its schema is this program's. The gateway's searches work without it.
pub(super) async fn readyz(State(app): State<AppState>) -> Result<Json<Health>, ApiError> {
    if db::is_migrated(app.pool()?).await? {
        return Ok(Json(Health { status: "ok" }));
    }
    Err(ApiError::unavailable())
}
