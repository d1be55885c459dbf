//! `/v1/scans`: submit, list, read (scans.md, rules 5 and 60), and helpers that all stored
//! resources share. Not here: commands on a scan (`control`), previews (`preview`).

pub(super) mod control;
pub(super) mod preview;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::header::{LINK, LOCATION};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use std::time::Duration;

use super::AppState;
use super::auth::{ApiKey, LongPollApiKey};
use super::error::ApiError;
use super::extract::{QueryPairs, SubmissionBody, parse_id};
use super::openapi::{IdempotencyHeader, ListErrors, SubmissionErrors, WatchErrors};
use crate::commands::{CommandError, IdempotencyKey, Replayable, RequestContext};
use crate::contract::scans::{Scan, ScanPage, ScanQuery, ScanRequest, ScansQuery};
use crate::ids::{ScanId, TenantId};
use crate::scans;
use crate::tenants;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// The context of a request for stored work.
pub(crate) fn request_context<'a>(
    app: &'a AppState,
    caller: &'a ApiKey,
) -> Result<RequestContext<'a>, ApiError> {
    let custody = app.custody()?;
    let pools = app.pools()?;
    let pool = if caller.is_write {
        &pools.writes
    } else {
        &pools.reads
    };
    Ok(RequestContext {
        pool,
        ring: &custody.ring,
        key: &caller.key,
        now: app.now()?,
    })
}

/// The context of a submission. It first stores that the marketplace accepted the key, if this
/// process knows that.
pub(crate) async fn submit_context<'a>(
    app: &'a AppState,
    caller: &'a ApiKey,
) -> Result<RequestContext<'a>, ApiError> {
    let context = request_context(app, caller)?;
    app.record_acceptance(&caller.key).await;
    app.admit_order(&caller.key).await?;
    Ok(context)
}

/// The caller's tenant; `None` if nothing was ever submitted with this key.
pub(crate) async fn find_tenant(context: RequestContext<'_>) -> Result<Option<TenantId>, ApiError> {
    Ok(
        tenants::store::find_with_connection(context.pool, context.ring, context.key, context.now)
            .await?
            .1,
    )
}

/// The scan id of a path.
pub(super) fn scan_id(text: &str) -> Result<ScanId, ApiError> {
    parse_id("scan", text)
}

pub(super) fn no_such_scan() -> ApiError {
    CommandError::NoScan.into()
}

/// A `Link` to the next page: the same query with the new cursor.
pub(super) fn next_page_link(path: &str, pairs: &QueryPairs, cursor: Option<&str>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Some(cursor) = cursor {
        let kept = pairs.iter().filter(|(name, _)| *name != "cursor");
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(kept)
            .append_pair("cursor", cursor)
            .finish();
        // Form-encoded text is a valid header value.
        headers.extend(
            HeaderValue::try_from(format!("<{path}?{query}>; rel=\"next\""))
                .ok()
                .map(|link| (LINK, link)),
        );
    }
    headers
}

pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, ApiError> {
    Ok(headers
        .get(IDEMPOTENCY_KEY)
        .map(|value| IdempotencyKey::parse(value.as_bytes()))
        .transpose()?)
}

pub(super) fn accepted_response<T: serde::Serialize>(
    scan: ScanId,
    answered: &Replayable<T>,
) -> Response {
    let location = [(LOCATION, format!("/v1/scans/{scan}"))];
    (
        StatusCode::ACCEPTED,
        location,
        replayable_response(answered),
    )
        .into_response()
}

/// The response, with `Idempotent-Replayed` if it was given before.
pub(super) fn replayable_response<T: serde::Serialize>(
    answered: &Replayable<T>,
) -> impl IntoResponse {
    (replayed_header(answered.replayed), Json(&answered.response)).into_response()
}

/// The header `Idempotent-Replayed`, if `replayed`.
pub(super) fn replayed_header(replayed: bool) -> HeaderMap {
    replayed
        .then_some((REPLAYED, HeaderValue::from_static("true")))
        .into_iter()
        .collect()
}

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
    State(app): State<AppState>,
    caller: ApiKey,
    headers: HeaderMap,
    SubmissionBody { body, .. }: SubmissionBody,
) -> Result<Response, ApiError> {
    let context = submit_context(&app, &caller).await?;
    let key = idempotency_key(&headers)?;
    let answered =
        scans::submit::submit(context, &app.custody()?.pace, &body, key.as_ref()).await?;
    Ok(accepted_response(answered.response.id, &answered))
}

/// List scans
///
/// Newest first.
#[utoipa::path(
    get, path = "/v1/scans", operation_id = "list_scans", tag = "Scans", params(ScansQuery),
    responses((status = 200, description = "A page; `Link` names the next one", body = ScanPage), ListErrors)
)]
pub(super) async fn list(
    State(app): State<AppState>,
    caller: ApiKey,
    pairs: QueryPairs,
) -> Result<Response, ApiError> {
    let context = request_context(&app, &caller)?;
    let query = ScansQuery::from_query(pairs.iter())?;
    let page = match find_tenant(context).await? {
        Some(tenant) => scans::read::scans(context.pool, tenant, &query).await?,
        None => ScanPage::default(),
    };
    Ok((
        next_page_link("/v1/scans", &pairs, page.next_cursor.as_deref()),
        Json(page),
    )
        .into_response())
}

/// Read a scan
///
/// With `wait` the response comes when the scan has ended, or after that many seconds.
#[utoipa::path(
    get, path = "/v1/scans/{id}", operation_id = "get_scan", tag = "Scans", params(("id" = ScanId, Path, description = "The scan"), ScanQuery),
    responses((status = 200, description = "The scan", body = Scan), WatchErrors)
)]
pub(super) async fn read(
    State(app): State<AppState>,
    LongPollApiKey(mut caller): LongPollApiKey,
    Path(id): Path<String>,
    pairs: QueryPairs,
) -> Result<Json<Scan>, ApiError> {
    let query = ScanQuery::from_query(pairs.iter())?;
    if query.wait_or_default().get() == 0 {
        caller.acquire_permits(&app).await?;
    }
    let context = request_context(&app, &caller)?;
    let id = scan_id(&id)?;
    let tenant = find_tenant(context).await?.ok_or_else(no_such_scan)?;
    let wait = Duration::from_secs(u64::from(query.wait_or_default().get()));
    Ok(Json(app.custody()?.watch.wait(tenant, id, wait).await?))
}
