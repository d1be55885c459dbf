//! `/v1/scans/{id}/grid` and `/compare/{other}`: a scan as a grid, and beside another (jobs-api, "Scans").

use axum::Json;
use axum::extract::{Path, State};

use super::AppState;
use super::auth::Caller;
use super::docs::{NotAcceptable, ReadErrors};
use super::error::ApiError;
use super::export::JsonOnly;
use super::extract::Pairs;
use super::scans::{desk, no_such_scan, scan_id, tenant};
use crate::contract::scans::{Comparison, Grid, GridQuery};
use crate::ids::ScanId;
use crate::scans;

/// Read a scan as a grid
///
/// The cheapest price for each value of one or two swept fields, also while it runs. A cell says whether it is empty, did not complete or
/// has not been searched. With `baseline`, by-name and rooms scans tell how each market stands to one of them.
#[utoipa::path(
    get, path = "/v1/scans/{id}/grid", operation_id = "get_scan_grid", tag = "Scans", params(("id" = ScanId, Path, description = "The scan"), GridQuery),
    responses((status = 200, description = "The grid", body = Grid), ReadErrors, NotAcceptable)
)]
pub(super) async fn grid(
    State(app): State<AppState>,
    caller: Caller,
    _: JsonOnly,
    Path(id): Path<String>,
    pairs: Pairs,
) -> Result<Json<Grid>, ApiError> {
    let desk = desk(&app, &caller)?;
    let query = GridQuery::from_query(pairs.iter())?;
    let id = scan_id(&id)?;
    let _permits = app.bounds.heavy(&caller.key).await?;
    let tenant = tenant(desk).await?.ok_or_else(no_such_scan)?;
    Ok(Json(
        scans::grid::grid(desk.pool, tenant, id, &query).await?,
    ))
}

/// Compare two scans
///
/// What became cheaper, dearer, new or gone from the first to the second, cell by cell. An empty or degraded search is never a price,
/// and prices of different currencies are never compared.
#[utoipa::path(
    get, path = "/v1/scans/{id}/compare/{other}", operation_id = "compare_scans", tag = "Scans",
    params(("id" = ScanId, Path, description = "The scan before"), ("other" = ScanId, Path, description = "The scan after, of the same endpoint")),
    responses((status = 200, description = "The comparison", body = Comparison), ReadErrors, NotAcceptable)
)]
pub(super) async fn compare(
    State(app): State<AppState>,
    caller: Caller,
    _: JsonOnly,
    Path((id, other)): Path<(String, String)>,
) -> Result<Json<Comparison>, ApiError> {
    let desk = desk(&app, &caller)?;
    let (before, after) = (scan_id(&id)?, scan_id(&other)?);
    let permits = app.bounds.heavy(&caller.key).await?;
    let tenant = tenant(desk).await?.ok_or_else(no_such_scan)?;
    let pool = desk.pool.clone();
    // In a task of its own: part of the work goes on when the client has gone, and the permits with it.
    let comparing = tokio::spawn(async move {
        let _held = (permits, caller);
        scans::compare::compare(&pool, tenant, before, after).await
    });
    match comparing.await {
        Ok(compared) => Ok(Json(compared?)),
        Err(ended) => Err(ApiError::internal(ended)),
    }
}
