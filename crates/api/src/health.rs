//! `/healthz`: liveness of the process, on both listeners. Makes no call.

use axum::Json;
use serde::Serialize;
use utoipa::ToSchema;

use super::openapi::PublicErrors;

/// The process is alive.
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

/// Check liveness
///
/// Needs no key and makes no call.
#[utoipa::path(get, path = "/healthz", operation_id = "check_health", tag = "Service", security(()), responses((status = 200, description = "The process is alive", body = Health), PublicErrors))]
pub(super) async fn healthz() -> Json<Health> {
    Json(Health::ok())
}
