//! `/v1/scans`: submit, list, read (scans.md, rules 5 and 60). Not here: commands on a scan
//! (`control`), previews (`preview`).

pub(super) mod control;
pub(super) mod preview;

use std::time::Duration;

use axum::Json;

use super::openapi::{IdempotencyHeader, ListErrors, SubmissionErrors, WatchErrors};
use farescan_core::app::api_request::{
    ApiRequest, LongPollRequest, accepted_response, find_tenant,
};
use farescan_core::app::error::ApiResult;
use farescan_core::app::extract::SubmissionBody;
use farescan_core::contract::scans::{Scan, ScanPage, ScanQuery, ScanRequest, ScansQuery};
use farescan_core::ids::ScanId;
use farescan_core::scans;

/// Submit a scan
///
/// One request with some fields swept, so many searches; each search costs one request of the plan
/// of the key. All of them are validated before any is stored. `request` plus one value of each
/// swept field is exactly the body of `POST /v1/<endpoint>`.
#[utoipa::path(
    post, path = "/v1/scans", operation_id = "create_scan", tag = "Scans", request_body = ScanRequest,
    params(IdempotencyHeader),
    responses((status = 202, description = "The scan; `Location` names it", body = Scan), SubmissionErrors)
)]
pub(super) async fn submit(
    request: ApiRequest,
    SubmissionBody { body, .. }: SubmissionBody,
) -> ApiResult {
    let context = request.submit_context().await?;
    let key = request.idempotency_key()?;
    let answered = scans::submit::submit(context, request.pace()?, &body, key.as_ref()).await?;
    Ok(accepted_response(answered.response.id, &answered))
}

/// List scans
///
/// Newest first.
#[utoipa::path(
    get, path = "/v1/scans", operation_id = "list_scans", tag = "Scans", params(ScansQuery),
    responses((status = 200, description = "A page; `Link` names the next one", body = ScanPage), ListErrors)
)]
pub(super) async fn list(request: ApiRequest) -> ApiResult {
    let context = request.context()?;
    let query = ScansQuery::from_query(request.pairs.iter())?;
    // No index serves it: all rows of the caller may be read.
    let _permits = match query.text {
        Some(_) => Some(request.heavy_permits().await?),
        None => None,
    };
    let page = match find_tenant(context).await? {
        Some(tenant) => scans::read::scans(context.pool, tenant, &query).await?,
        None => ScanPage::default(),
    };
    Ok(request.page(&page, page.next_cursor.as_deref()))
}

/// Read a scan
///
/// With `wait` the response comes when the scan has ended, or after that many seconds.
#[utoipa::path(
    get, path = "/v1/scans/{id}", operation_id = "get_scan", tag = "Scans", params(("id" = ScanId, Path, description = "The scan"), ScanQuery),
    responses((status = 200, description = "The scan", body = Scan), WatchErrors)
)]
pub(super) async fn read(LongPollRequest(mut request): LongPollRequest) -> ApiResult<Json<Scan>> {
    let query = ScanQuery::from_query(request.pairs.iter())?;
    let wait = u64::from(query.wait_or_default().get());
    if wait == 0 {
        request.caller.acquire_permits(&request.app).await?;
    }
    let (tenant, id) = request.owned().await?;
    let watch = &request.app.custody()?.watch;
    Ok(Json(
        watch.wait(tenant, id, Duration::from_secs(wait)).await?,
    ))
}
