//! `/v1/scans/{id}/grid` and `/v1/scans/{id}/compare/{other}` (scans.md, rules 53 to 57).

use axum::Json;

use super::export::JsonOnly;
use super::openapi::{NotAcceptable, ReadErrors};
use farescan_core::app::api_request::ApiRequest;
use farescan_core::app::error::{ApiError, ApiResult};
use farescan_core::contract::scans::{Comparison, Grid, GridQuery};
use farescan_core::ids::ScanId;
use farescan_core::scans;

/// Read a scan as a grid
///
/// The cheapest price for each value of one or two swept fields, also while the scan runs. A cell
/// says whether it is empty, incomplete or not searched yet. With `baseline`, by-name and rooms
/// scans compare each market with one of them.
#[utoipa::path(
    get, path = "/v1/scans/{id}/grid", operation_id = "get_scan_grid", tag = "Scans", params(("id" = ScanId, Path, description = "The scan"), GridQuery),
    responses((status = 200, description = "The grid", body = Grid), ReadErrors, NotAcceptable)
)]
pub(super) async fn grid(request: ApiRequest, _: JsonOnly) -> ApiResult<Json<Grid>> {
    let context = request.context()?;
    let query = GridQuery::from_query(request.pairs.iter())?;
    let id = request.id()?;
    let _permits = request.heavy_permits().await?;
    let tenant = request.tenant::<ScanId>().await?;
    Ok(Json(
        scans::grid::grid(context.pool, tenant, id, &query).await?,
    ))
}

/// Compare two scans
///
/// Which cells became cheaper, more expensive, new or gone from the first scan to the second. An
/// empty or degraded search is never a price, and prices in different currencies are never
/// compared.
#[utoipa::path(
    get, path = "/v1/scans/{id}/compare/{other}", operation_id = "compare_scans", tag = "Scans",
    params(("id" = ScanId, Path, description = "The earlier scan"), ("other" = ScanId, Path, description = "The later scan, of the same endpoint")),
    responses((status = 200, description = "The comparison", body = Comparison), ReadErrors, NotAcceptable)
)]
pub(super) async fn compare(request: ApiRequest, _: JsonOnly) -> ApiResult<Json<Comparison>> {
    let pool = request.context()?.pool.clone();
    let (before, after) = (request.id()?, request.id_in("other")?);
    let permits = request.heavy_permits().await?;
    let tenant = request.tenant::<ScanId>().await?;
    // In a task of its own: part of the work continues when the client disconnects, and holds its
    // permits.
    let comparing = tokio::spawn(async move {
        let _held = (permits, request);
        scans::compare::compare(&pool, tenant, before, after).await
    });
    match comparing.await {
        Ok(compared) => Ok(Json(compared?)),
        Err(ended) => Err(ApiError::internal(ended)),
    }
}
