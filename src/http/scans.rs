//! `/v1/scans`: order, list, read (jobs-api, "Scans").
//!
//! Here too: what the rooms of this resource share. Not here: the caller's word over a scan (`control`), previews (`preview`).

pub(super) mod control;
pub(super) mod preview;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::header::{LINK, LOCATION};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use std::time::Duration;

use super::AppState;
use super::auth::{Caller, Waiting};
use super::docs::{IdempotencyHeader, ListErrors, OrderErrors, WatchErrors};
use super::error::ApiError;
use super::extract::{OrderBody, Pairs, id};
use crate::contract::scans::{Scan, ScanPage, ScanQuery, ScanRequest, ScansQuery};
use crate::ids::{ScanId, TenantId};
use crate::scans::{self, Answered, Desk, IdempotencyKey};
use crate::tenants;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// Where the caller's orders are taken.
pub(super) fn desk<'a>(app: &'a AppState, caller: &'a Caller) -> Result<Desk<'a>, ApiError> {
    let custody = app.custody()?;
    let pools = app.pools()?;
    let pool = if caller.writes {
        &pools.writes
    } else {
        &pools.reads
    };
    Ok(Desk {
        pool,
        ring: &custody.ring,
        key: &caller.key,
        now: app.now()?,
    })
}

/// The same for an order, before which the database knows whether the key was accepted here.
pub(super) async fn order_desk<'a>(
    app: &'a AppState,
    caller: &'a Caller,
) -> Result<Desk<'a>, ApiError> {
    let desk = desk(app, caller)?;
    app.record_acceptance(&caller.key).await;
    Ok(desk)
}

/// The caller as a tenant; `None`: nothing was ever ordered with this key.
pub(super) async fn tenant(desk: Desk<'_>) -> Result<Option<TenantId>, ApiError> {
    Ok(
        tenants::store::find_connected(desk.pool, desk.ring, desk.key, desk.now)
            .await?
            .1,
    )
}

/// The scan of a path.
pub(super) fn scan_id(text: &str) -> Result<ScanId, ApiError> {
    id("scan", text)
}

pub(super) fn no_such_scan() -> ApiError {
    scans::ScanError::NotFound.into()
}

/// A `Link` to the next page: the same query with its cursor.
pub(super) fn next_page(path: &str, pairs: &Pairs, cursor: Option<&str>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Some(cursor) = cursor {
        let kept = pairs.iter().filter(|(name, _)| *name != "cursor");
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(kept)
            .append_pair("cursor", cursor)
            .finish();
        // Form-encoded text is a header's.
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

pub(super) fn accepted<T: serde::Serialize>(scan: ScanId, answered: &Answered<T>) -> Response {
    let location = [(LOCATION, format!("/v1/scans/{scan}"))];
    (StatusCode::ACCEPTED, location, once(answered)).into_response()
}

/// The answer, marked where it was given before.
pub(super) fn once<T: serde::Serialize>(answered: &Answered<T>) -> impl IntoResponse {
    (mark_replayed(answered.replayed), Json(&answered.answer)).into_response()
}

/// The mark of an answer that was given before.
pub(super) fn mark_replayed(replayed: bool) -> HeaderMap {
    replayed
        .then_some((REPLAYED, HeaderValue::from_static("true")))
        .into_iter()
        .collect()
}

/// Order a scan
///
/// One request with some fields swept, so many searches; each is one request against the plan of the key that it is ordered with. All
/// of it is checked before any is stored. `request` plus one value from each swept field is exactly the body of `POST /v1/<endpoint>`.
#[utoipa::path(
    post, path = "/v1/scans", operation_id = "create_scan", tag = "Scans", request_body = ScanRequest,
    params(IdempotencyHeader),
    responses((status = 202, description = "The scan; `Location` names it", body = Scan), OrderErrors)
)]
pub(super) async fn submit(
    State(app): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    OrderBody { body, .. }: OrderBody,
) -> Result<Response, ApiError> {
    let desk = order_desk(&app, &caller).await?;
    let key = idempotency_key(&headers)?;
    let answered = scans::submit::submit(desk, &app.custody()?.pace, &body, key.as_ref()).await?;
    Ok(accepted(answered.answer.id, &answered))
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
    caller: Caller,
    pairs: Pairs,
) -> Result<Response, ApiError> {
    let desk = desk(&app, &caller)?;
    let query = ScansQuery::from_query(pairs.iter())?;
    let page = match tenant(desk).await? {
        Some(tenant) => scans::read::scans(desk.pool, tenant, &query).await?,
        None => ScanPage {
            data: Vec::new(),
            next_cursor: None,
        },
    };
    Ok((
        next_page("/v1/scans", &pairs, page.next_cursor.as_deref()),
        Json(page),
    )
        .into_response())
}

/// Read a scan
///
/// With `wait` the answer comes when the scan has ended, or after that many seconds.
#[utoipa::path(
    get, path = "/v1/scans/{id}", operation_id = "get_scan", tag = "Scans", params(("id" = ScanId, Path, description = "The scan"), ScanQuery),
    responses((status = 200, description = "The scan", body = Scan), WatchErrors)
)]
pub(super) async fn read(
    State(app): State<AppState>,
    Waiting(mut caller): Waiting,
    Path(id): Path<String>,
    pairs: Pairs,
) -> Result<Json<Scan>, ApiError> {
    let query = ScanQuery::from_query(pairs.iter())?;
    if query.wait_or_default().get() == 0 {
        caller.enter(&app).await?;
    }
    let desk = desk(&app, &caller)?;
    let id = scan_id(&id)?;
    let tenant = tenant(desk).await?.ok_or_else(no_such_scan)?;
    let wait = Duration::from_secs(u64::from(query.wait_or_default().get()));
    Ok(Json(app.custody()?.watch.wait(tenant, id, wait).await?))
}
