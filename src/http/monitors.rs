//! `/v1/monitors`: make, list, read, change, and the slots of one (jobs-api, "Monitors"). Not here: the caller's word over one (`control`).

pub(super) mod control;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use super::AppState;
use super::auth::Caller;
use super::docs::{IdempotencyHeader, ListErrors, MonitorErrors, PreviewErrors, ReadErrors};
use super::error::ApiError;
use super::extract::{OrderBody, Pairs, id};
use super::scans::{desk, idempotency_key, next_page, once, order_desk, tenant};
use crate::contract::monitors::{
    Monitor, MonitorPage, MonitorPatch, MonitorPreview, MonitorRequest, MonitorsQuery, SlotPage,
    SlotsQuery,
};
use crate::ids::MonitorId;
use crate::monitors::{self, MonitorError, read as look};

/// The monitor of a path.
pub(super) fn monitor_id(text: &str) -> Result<MonitorId, ApiError> {
    id("monitor", text)
}

pub(super) fn no_such_monitor() -> ApiError {
    MonitorError::NotFound.into()
}

/// Make a monitor
///
/// A scan on a schedule. It is checked as a scan is, for its next slot. The answer alone has the webhook's secret.
#[utoipa::path(
    post, path = "/v1/monitors", operation_id = "create_monitor", tag = "Monitors", request_body = MonitorRequest,
    params(IdempotencyHeader),
    responses((status = 201, description = "The monitor; `Location` names it", body = Monitor), MonitorErrors)
)]
pub(super) async fn create(
    State(app): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    OrderBody { body, .. }: OrderBody,
) -> Result<Response, ApiError> {
    let desk = order_desk(&app, &caller).await?;
    let key = idempotency_key(&headers)?;
    let answered = monitors::create::create(desk, app.guard(), &body, key.as_ref()).await?;
    let location = [(LOCATION, format!("/v1/monitors/{}", answered.answer.id))];
    Ok((StatusCode::CREATED, location, once(&answered)).into_response())
}

/// Preview a monitor
///
/// The same body as for making it: when its slots would come and what a month of it would take. Nothing is asked and nothing stored.
#[utoipa::path(
    post, path = "/v1/monitors/preview", operation_id = "preview_monitor", tag = "Monitors", request_body = MonitorRequest,
    responses((status = 200, description = "What the monitor would be", body = MonitorPreview), PreviewErrors)
)]
pub(super) async fn preview(
    State(app): State<AppState>,
    caller: Caller,
    OrderBody { body, .. }: OrderBody,
) -> Result<Json<MonitorPreview>, ApiError> {
    let desk = desk(&app, &caller)?;
    Ok(Json(
        monitors::preview::preview(desk, app.guard(), &body).await?,
    ))
}

/// List monitors
///
/// Newest first.
#[utoipa::path(
    get, path = "/v1/monitors", operation_id = "list_monitors", tag = "Monitors", params(MonitorsQuery),
    responses((status = 200, description = "A page; `Link` names the next one", body = MonitorPage), ListErrors)
)]
pub(super) async fn list(
    State(app): State<AppState>,
    caller: Caller,
    pairs: Pairs,
) -> Result<Response, ApiError> {
    let desk = desk(&app, &caller)?;
    let query = MonitorsQuery::from_query(pairs.iter())?;
    let page = match tenant(desk).await? {
        Some(tenant) => look::monitors(desk.pool, tenant, &query, desk.now).await?,
        None => MonitorPage {
            data: Vec::new(),
            next_cursor: None,
        },
    };
    Ok((
        next_page("/v1/monitors", &pairs, page.next_cursor.as_deref()),
        Json(page),
    )
        .into_response())
}

/// Read a monitor
///
/// Its schedule, scan and rules, its next and its last slot, how its webhook and its alert rules stand, and what a month of it
/// takes.
#[utoipa::path(
    get, path = "/v1/monitors/{id}", operation_id = "get_monitor", tag = "Monitors", params(("id" = MonitorId, Path, description = "The monitor")),
    responses((status = 200, description = "The monitor", body = Monitor), ReadErrors)
)]
pub(super) async fn read(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Monitor>, ApiError> {
    let desk = desk(&app, &caller)?;
    let id = monitor_id(&id)?;
    let tenant = tenant(desk).await?.ok_or_else(no_such_monitor)?;
    Ok(Json(
        look::monitor(desk.pool, tenant, id, desk.now)
            .await?
            .ok_or_else(no_such_monitor)?,
    ))
}

/// Change a monitor
///
/// What is absent stays; what is there takes the place of what was, whole. `null` takes `webhook_url` and `max_requests_per_month` away.
/// A new schedule holds from its next slot on, a new scan from its next run on.
#[utoipa::path(
    patch, path = "/v1/monitors/{id}", operation_id = "update_monitor", tag = "Monitors", request_body = MonitorPatch,
    params(("id" = MonitorId, Path, description = "The monitor")),
    responses((status = 200, description = "The monitor as it stands now", body = Monitor), MonitorErrors)
)]
pub(super) async fn update(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    OrderBody { body, .. }: OrderBody,
) -> Result<Json<Monitor>, ApiError> {
    let desk = desk(&app, &caller)?;
    Ok(Json(
        monitors::update::update(desk, app.guard(), monitor_id(&id)?, &body).await?,
    ))
}

/// List the slots of a monitor
///
/// What became of each, newest first.
#[utoipa::path(
    get, path = "/v1/monitors/{id}/slots", operation_id = "list_monitor_slots", tag = "Monitors",
    params(("id" = MonitorId, Path, description = "The monitor"), SlotsQuery),
    responses((status = 200, description = "A page; `Link` names the next one", body = SlotPage), ReadErrors)
)]
pub(super) async fn slots(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    pairs: Pairs,
) -> Result<Response, ApiError> {
    let desk = desk(&app, &caller)?;
    let query = SlotsQuery::from_query(pairs.iter())?;
    let id = monitor_id(&id)?;
    let tenant = tenant(desk).await?.ok_or_else(no_such_monitor)?;
    let page = look::slots(desk.pool, tenant, id, &query)
        .await?
        .ok_or_else(no_such_monitor)?;
    let path = format!("/v1/monitors/{id}/slots");
    Ok((
        next_page(&path, &pairs, page.next_cursor.as_deref()),
        Json(page),
    )
        .into_response())
}
