//! `/healthz`: the process lives. On both listeners; asks nobody.

use axum::Json;
use serde::Serialize;
use utoipa::ToSchema;

use super::docs::OpenErrors;

/// The process lives.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Health {
    /// Always `ok`.
    #[schema(example = "ok")]
    status: &'static str,
}

impl Health {
    pub(super) const fn ok() -> Self {
        Self { status: "ok" }
    }
}

/// Whether the service lives
///
/// Needs no key and asks nobody.
#[utoipa::path(get, path = "/healthz", operation_id = "check_health", tag = "Service", security(()), responses((status = 200, description = "It lives", body = Health), OpenErrors))]
pub(super) async fn healthz() -> Json<Health> {
    Json(Health::ok())
}
