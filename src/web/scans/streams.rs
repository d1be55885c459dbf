//! `/scans/{id}/events` and `/scans/{id}/export`: what the API has under `/v1/scans`, for a browser
//! that has a session instead of a key.

use axum::Router;
use axum::extract::Path;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::get;

use super::own_scan;
use crate::contract::scans::ItemsQuery;
use crate::http::{AppState, events, items};
use crate::web::failure::PageFailure;
use crate::web::form::FormFields;
use crate::web::session::Session;

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/scans/{id}/events", get(follow))
        .route("/scans/{id}/export", get(export))
}

/// The session is dropped before the stream begins, so a stream holds no concurrency permit.
async fn follow(
    session: Session,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, PageFailure> {
    let (tenant, id) = own_scan(&session, &id)?;
    let after = events::last_event_id(&headers)?;
    Ok(events::follow(session.app(), tenant, id, after).await?)
}

async fn export(
    session: Session,
    Path(id): Path<String>,
    filters: FormFields,
) -> Result<Response, PageFailure> {
    let scan = own_scan(&session, &id)?;
    let query = ItemsQuery::from_query(filters.pairs())?;
    Ok(items::export_file(session.app(), session.caller(), scan, &query).await?)
}
