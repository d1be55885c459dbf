//! `/v1/monitors`: create, list, read, update, and the slots of a monitor (monitors.md, rules 1 to
//! 29). Not here: run, pause, resume, delete (`control`).

pub(super) mod control;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};

use super::AppState;
use super::auth::ApiKey;
use super::error::ApiError;
use super::extract::{QueryPairs, SubmissionBody, parse_id};
use super::openapi::{
    BacktestErrors, IdempotencyHeader, ListErrors, MonitorErrors, PreviewErrors, ReadErrors,
};
use super::scans::{
    find_tenant, idempotency_key, next_page_link, replayable_response, request_context,
    submit_context,
};
use crate::commands::{CommandError, RequestContext};
use crate::contract::monitors::{
    Backtest, BacktestQuery, Monitor, MonitorPage, MonitorPatch, MonitorPreview, MonitorRequest,
    MonitorsQuery, SlotPage, SlotsQuery,
};
use crate::ids::MonitorId;
use crate::monitors::{self, read as query_monitors};

/// The monitor id of a path.
pub(super) fn monitor_id(text: &str) -> Result<MonitorId, ApiError> {
    parse_id("monitor", text)
}

pub(super) fn no_such_monitor() -> ApiError {
    CommandError::NoMonitor.into()
}

/// Create a monitor
///
/// A scan on a schedule. Its scan is validated for the next slot. Only this response shows the
/// webhook's secret.
#[utoipa::path(
    post, path = "/v1/monitors", operation_id = "create_monitor", tag = "Monitors", request_body = MonitorRequest,
    params(IdempotencyHeader),
    responses((status = 201, description = "The monitor; `Location` names it", body = Monitor), MonitorErrors)
)]
pub(super) async fn create(
    State(app): State<AppState>,
    caller: ApiKey,
    headers: HeaderMap,
    SubmissionBody { body, .. }: SubmissionBody,
) -> Result<Response, ApiError> {
    let context = submit_context(&app, &caller).await?;
    let key = idempotency_key(&headers)?;
    let answered =
        monitors::create::create(context, app.webhook_guard(), &body, key.as_ref()).await?;
    let location = [(LOCATION, format!("/v1/monitors/{}", answered.response.id))];
    Ok((
        StatusCode::CREATED,
        location,
        replayable_response(&answered),
    )
        .into_response())
}

/// Preview a monitor
///
/// Takes the body of a new monitor and returns its next slots and the requests of a month. Makes no
/// call and stores nothing.
#[utoipa::path(
    post, path = "/v1/monitors/preview", operation_id = "preview_monitor", tag = "Monitors", request_body = MonitorRequest,
    responses((status = 200, description = "What the monitor would be", body = MonitorPreview), PreviewErrors)
)]
pub(super) async fn preview(
    State(app): State<AppState>,
    caller: ApiKey,
    SubmissionBody { body, .. }: SubmissionBody,
) -> Result<Json<MonitorPreview>, ApiError> {
    let context = request_context(&app, &caller)?;
    Ok(Json(
        monitors::preview::preview(context, app.webhook_guard(), &body).await?,
    ))
}

/// Backtest a monitor
///
/// Takes the body of a new monitor and returns what it would have done in the past days: the alerts
/// that it would have sent, by your own stored prices, and the requests that its runs would have
/// cost. Makes no call and stores nothing.
#[utoipa::path(
    post, path = "/v1/monitors/backtest", operation_id = "backtest_monitor", tag = "Monitors", request_body = MonitorRequest,
    params(BacktestQuery),
    responses((status = 200, description = "What the monitor would have done", body = Backtest), BacktestErrors)
)]
pub(super) async fn backtest(
    State(app): State<AppState>,
    caller: ApiKey,
    pairs: QueryPairs,
    submission: SubmissionBody,
) -> Result<Json<Backtest>, ApiError> {
    // Its permits are for submissions; a backtest submits nothing.
    let body = submission.into_body();
    let context = request_context(&app, &caller)?;
    let query = BacktestQuery::from_query(pairs.iter())?;
    Ok(Json(app.backtest(context, &body, &query).await?))
}

impl AppState {
    /// Replays a monitor, for the API and the dashboard.
    ///
    /// # Errors
    /// Those of [`monitors::backtest`]; 429 or 503 while other backtests hold the permits.
    pub(crate) async fn backtest(
        &self,
        context: RequestContext<'_>,
        body: &Map<String, Value>,
        query: &BacktestQuery,
    ) -> Result<Backtest, ApiError> {
        self.record_acceptance(context.key).await;
        // First, because anybody can invent a key.
        let tenant = monitors::backtest::accepted_tenant(context).await?;
        let _permits = self.concurrency.backtest(context.key).await?;
        let (history, days) = (self.history_pool()?, query.days_or_default());
        let guard = self.webhook_guard();
        let caller = (context, tenant);
        Ok(monitors::backtest::backtest(caller, history, guard, body, days).await?)
    }
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
    caller: ApiKey,
    pairs: QueryPairs,
) -> Result<Response, ApiError> {
    let context = request_context(&app, &caller)?;
    let query = MonitorsQuery::from_query(pairs.iter())?;
    let page = match find_tenant(context).await? {
        Some(tenant) => {
            query_monitors::monitors(context.pool, context.ring, tenant, &query, context.now)
                .await?
        }
        None => MonitorPage::default(),
    };
    Ok((
        next_page_link("/v1/monitors", &pairs, page.next_cursor.as_deref()),
        Json(page),
    )
        .into_response())
}

/// Read a monitor
///
/// Its schedule, scan and rules, its next and last slot, the state of its webhook and alert rules,
/// and the requests of a month.
#[utoipa::path(
    get, path = "/v1/monitors/{id}", operation_id = "get_monitor", tag = "Monitors", params(("id" = MonitorId, Path, description = "The monitor")),
    responses((status = 200, description = "The monitor", body = Monitor), ReadErrors)
)]
pub(super) async fn read(
    State(app): State<AppState>,
    caller: ApiKey,
    Path(id): Path<String>,
) -> Result<Json<Monitor>, ApiError> {
    let context = request_context(&app, &caller)?;
    let id = monitor_id(&id)?;
    let tenant = find_tenant(context).await?.ok_or_else(no_such_monitor)?;
    Ok(Json(
        query_monitors::monitor(context.pool, context.ring, tenant, id, context.now)
            .await?
            .ok_or_else(no_such_monitor)?,
    ))
}

/// Update a monitor
///
/// Absent fields stay; present fields replace the old value completely. `null` removes
/// `webhook_url` and `max_requests_per_month`. A new schedule applies from its next slot on, a new
/// scan from the next run on.
#[utoipa::path(
    patch, path = "/v1/monitors/{id}", operation_id = "update_monitor", tag = "Monitors", request_body = MonitorPatch,
    params(("id" = MonitorId, Path, description = "The monitor")),
    responses((status = 200, description = "The updated monitor", body = Monitor), MonitorErrors)
)]
pub(super) async fn update(
    State(app): State<AppState>,
    caller: ApiKey,
    Path(id): Path<String>,
    SubmissionBody { body, .. }: SubmissionBody,
) -> Result<Json<Monitor>, ApiError> {
    let context = request_context(&app, &caller)?;
    Ok(Json(
        monitors::update::update(context, app.webhook_guard(), monitor_id(&id)?, &body).await?,
    ))
}

/// List the slots of a monitor
///
/// With the result of each, newest first.
#[utoipa::path(
    get, path = "/v1/monitors/{id}/slots", operation_id = "list_monitor_slots", tag = "Monitors",
    params(("id" = MonitorId, Path, description = "The monitor"), SlotsQuery),
    responses((status = 200, description = "A page; `Link` names the next one", body = SlotPage), ReadErrors)
)]
pub(super) async fn slots(
    State(app): State<AppState>,
    caller: ApiKey,
    Path(id): Path<String>,
    pairs: QueryPairs,
) -> Result<Response, ApiError> {
    let context = request_context(&app, &caller)?;
    let query = SlotsQuery::from_query(pairs.iter())?;
    let id = monitor_id(&id)?;
    let tenant = find_tenant(context).await?.ok_or_else(no_such_monitor)?;
    let page = query_monitors::slots(context.pool, tenant, id, &query)
        .await?
        .ok_or_else(no_such_monitor)?;
    let path = format!("/v1/monitors/{id}/slots");
    Ok((
        next_page_link(&path, &pairs, page.next_cursor.as_deref()),
        Json(page),
    )
        .into_response())
}
