//! `/healthz`: the process lives. `/readyz` (on the admin listener): it can take stored work. Neither asks upstream.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::AppState;
use super::error::ApiError;

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

/// Ready: the database answers and holds the tables of this program. The gateway's searches work without it.
pub(super) async fn readyz(State(app): State<AppState>) -> Result<Response, ApiError> {
    let migrated = sqlx::query_scalar::<_, bool>("select to_regclass('scan_items') is not null").fetch_one(app.pool()?).await?;
    if !migrated {
        return Ok((StatusCode::SERVICE_UNAVAILABLE, Json(Health { status: "not migrated" })).into_response());
    }
    Ok(Json(Health { status: "ok" }).into_response())
}
