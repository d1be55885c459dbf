//! `/v1/monitors`: create, list, read, update, and the slots of a monitor (monitors.md, rules 1 to
//! 29). Not here: run, pause, resume, delete (`control`).

pub(super) mod control;

use axum::Json;

use super::openapi::{
    BacktestErrors, IdempotencyHeader, ListErrors, MonitorErrors, PreviewErrors, ReadErrors,
};
use farescan_core::app::api_request::{ApiRequest, created_response, find_tenant};
use farescan_core::app::error::ApiResult;
use farescan_core::app::extract::SubmissionBody;
use farescan_core::contract::monitors::{
    Backtest, BacktestQuery, Monitor, MonitorPage, MonitorPatch, MonitorPreview, MonitorRequest,
    MonitorsQuery, ParityHistory, ParityQuery, SlotPage, SlotsQuery,
};
use farescan_core::ids::{Kind, MonitorId};
use farescan_core::monitors::{self, read as query_monitors};

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
    request: ApiRequest,
    SubmissionBody { body, .. }: SubmissionBody,
) -> ApiResult {
    let context = request.submit_context().await?;
    let key = request.idempotency_key()?;
    let guard = request.app.webhook_guard();
    let answered = monitors::create::create(context, guard, &body, key.as_ref()).await?;
    Ok(created_response(answered.response.id, &answered))
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
    request: ApiRequest,
    SubmissionBody { body, .. }: SubmissionBody,
) -> ApiResult<Json<MonitorPreview>> {
    let (context, guard) = (request.context()?, request.app.webhook_guard());
    Ok(Json(
        monitors::preview::preview(context, guard, &body).await?,
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
    request: ApiRequest,
    submission: SubmissionBody,
) -> ApiResult<Json<Backtest>> {
    // Its permits are for submissions; a backtest submits nothing.
    let body = submission.into_body();
    let context = request.context()?;
    let query = BacktestQuery::from_query(request.pairs.iter())?;
    Ok(Json(request.app.backtest(context, &body, &query).await?))
}

/// List monitors
///
/// Newest first.
#[utoipa::path(
    get, path = "/v1/monitors", operation_id = "list_monitors", tag = "Monitors", params(MonitorsQuery),
    responses((status = 200, description = "A page; `Link` names the next one", body = MonitorPage), ListErrors)
)]
pub(super) async fn list(request: ApiRequest) -> ApiResult {
    let context = request.context()?;
    let query = MonitorsQuery::from_query(request.pairs.iter())?;
    // No index serves it: all rows of the caller may be read.
    let _permits = match query.text {
        Some(_) => Some(request.heavy_permits().await?),
        None => None,
    };
    let page = match find_tenant(context).await? {
        Some(tenant) => {
            query_monitors::monitors(context.pool, context.ring, tenant, &query, context.now)
                .await?
        }
        None => MonitorPage::default(),
    };
    Ok(request.page(&page, page.next_cursor.as_deref()))
}

/// Read a monitor
///
/// Its schedule, scan and rules, its next and last slot, the state of its webhook and alert rules,
/// and the requests of a month.
#[utoipa::path(
    get, path = "/v1/monitors/{id}", operation_id = "get_monitor", tag = "Monitors", params(("id" = MonitorId, Path, description = "The monitor")),
    responses((status = 200, description = "The monitor", body = Monitor), ReadErrors)
)]
pub(super) async fn read(request: ApiRequest) -> ApiResult<Json<Monitor>> {
    let (tenant, id) = request.owned::<MonitorId>().await?;
    let context = request.context()?;
    query_monitors::monitor(context.pool, context.ring, tenant, id, context.now)
        .await?
        .map(Json)
        .ok_or_else(|| Kind::Monitor.into())
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
    request: ApiRequest,
    SubmissionBody { body, .. }: SubmissionBody,
) -> ApiResult<Json<Monitor>> {
    let (context, guard) = (request.context()?, request.app.webhook_guard());
    Ok(Json(
        monitors::update::update(context, guard, request.id()?, &body).await?,
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
pub(super) async fn slots(request: ApiRequest) -> ApiResult {
    let context = request.context()?;
    let query = SlotsQuery::from_query(request.pairs.iter())?;
    let (tenant, id) = request.owned::<MonitorId>().await?;
    let page = query_monitors::slots(context.pool, tenant, id, &query)
        .await?
        .ok_or(Kind::Monitor)?;
    Ok(request.page(&page, page.next_cursor.as_deref()))
}

/// Compare the markets of a monitor over its runs
///
/// For a monitor of one hotel in several markets: how often each market is cheaper or dearer than
/// the baseline, run by run. A difference counts only if the samples of both markets do not overlap.
#[utoipa::path(
    get, path = "/v1/monitors/{id}/parity", operation_id = "get_monitor_parity", tag = "Monitors",
    params(("id" = MonitorId, Path, description = "The monitor"), ParityQuery),
    responses((status = 200, description = "The markets, run by run", body = ParityHistory), ReadErrors)
)]
pub(super) async fn parity(request: ApiRequest) -> ApiResult<Json<ParityHistory>> {
    let context = request.context()?;
    let query = ParityQuery::from_query(request.pairs.iter())?;
    let id = request.id()?;
    let _permits = request.heavy_permits().await?;
    let tenant = request.tenant::<MonitorId>().await?;
    let (pool, ring, now) = (context.pool, context.ring, context.now);
    Ok(Json(
        monitors::parity::history(pool, ring, tenant, id, &query, now).await?,
    ))
}
