//! `/v1/scans/{id}/decisions`: what a scan's strategy has decided, and why.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};

use super::AppState;
use super::auth::ApiKey;
use super::error::ApiError;
use super::extract::QueryPairs;
use super::openapi::ReadErrors;
use super::scans::{find_tenant, next_page_link, no_such_scan, request_context, scan_id};
use crate::contract::scans::{DecisionPage, DecisionsQuery};
use crate::ids::ScanId;
use crate::scans::read;

/// List the decisions of a scan
///
/// What its strategy searched and why, oldest first; none without a strategy. Each was stored before
/// the first of its searches began.
#[utoipa::path(
    get, path = "/v1/scans/{id}/decisions", operation_id = "list_decisions", tag = "Scans",
    params(("id" = ScanId, Path, description = "The scan"), DecisionsQuery),
    responses((status = 200, description = "A page, `Link` names the next one", body = DecisionPage), ReadErrors)
)]
pub(super) async fn list(
    State(app): State<AppState>,
    caller: ApiKey,
    Path(id): Path<String>,
    pairs: QueryPairs,
) -> Result<Response, ApiError> {
    let context = request_context(&app, &caller)?;
    let query = DecisionsQuery::from_query(pairs.iter())?;
    let id = scan_id(&id)?;
    let tenant = find_tenant(context).await?.ok_or_else(no_such_scan)?;
    let page = read::decisions(context.pool, tenant, id, &query)
        .await?
        .ok_or_else(no_such_scan)?;
    let path = format!("/v1/scans/{id}/decisions");
    let next = next_page_link(&path, &pairs, page.next_cursor.as_deref());
    Ok((next, Json(page)).into_response())
}
