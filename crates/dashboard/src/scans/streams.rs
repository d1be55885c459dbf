//! `/scans/{id}/events` and `/scans/{id}/export`: what the API has under `/v1/scans`.

use axum::extract::{Path, RawQuery};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};

use crate::api_answer::ApiRoutes;
use crate::failure::PageFailure;
use crate::session::Session;
use farescan_core::app::AppState;
use farescan_core::ids::ScanId;

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/scans/{id}/events", get(follow))
        .route("/scans/{id}/export", get(export))
}

async fn follow(
    session: Session,
    Extension(api): Extension<ApiRoutes>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, PageFailure> {
    let (_, id) = session.owned::<ScanId>(&id)?;
    let path = format!("/v1/scans/{id}/events");
    api.get(session, &path, "", &headers).await
}

async fn export(
    session: Session,
    Extension(api): Extension<ApiRoutes>,
    Path(id): Path<String>,
    RawQuery(filters): RawQuery,
    headers: HeaderMap,
) -> Result<Response, PageFailure> {
    let (_, id) = session.owned::<ScanId>(&id)?;
    let path = format!("/v1/scans/{id}/items");
    let filters = filters.unwrap_or_default();
    api.get(session, &path, &filters, &headers).await
}
