//! `/v1/deliveries`, and a monitor's webhook (jobs-api, "Monitors").

use axum::Json;
use axum::extract::{Path, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use super::AppState;
use super::auth::Caller;
use super::docs::{IdempotencyHeader, ReadErrors, WebhookErrors, WordErrors};
use super::error::ApiError;
use super::extract::{self, NoBody, Pairs};
use super::monitors::{monitor_id, no_such_monitor};
use super::scans::{desk, idempotency_key, next_page, once, tenant};
use crate::contract::webhooks::{
    DeliveriesQuery, Delivery, DeliveryDetail, DeliveryPage, RotatedSecret, Webhook,
};
use crate::db;
use crate::ids::{DeliveryId, MonitorId};
use crate::monitors::deliveries::{send_again, send_test};
use crate::scans::Answered;
use crate::webhooks::{LockFor, MonitorLock, WebhookError, endpoint, read};

fn accepted(answered: &Answered<Delivery>) -> Response {
    let location = [(LOCATION, format!("/v1/deliveries/{}", answered.answer.id))];
    (StatusCode::ACCEPTED, location, once(answered)).into_response()
}

/// List deliveries
///
/// What was sent to the webhooks of monitors, newest first. Kept 90 days after its end.
#[utoipa::path(
    get, path = "/v1/deliveries", operation_id = "list_deliveries", tag = "Webhooks", params(DeliveriesQuery),
    responses((status = 200, description = "A page; `Link` names the next one", body = DeliveryPage), ReadErrors)
)]
pub(super) async fn list(
    State(app): State<AppState>,
    caller: Caller,
    pairs: Pairs,
) -> Result<Response, ApiError> {
    let desk = desk(&app, &caller)?;
    let query = DeliveriesQuery::from_query(pairs.iter())?;
    let page = match tenant(desk).await? {
        Some(tenant) => read::deliveries(desk.pool, tenant, &query)
            .await?
            .ok_or_else(no_such_monitor)?,
        None if query.monitor_id.is_some() => return Err(no_such_monitor()),
        None => DeliveryPage {
            data: Vec::new(),
            next_cursor: None,
        },
    };
    Ok((
        next_page("/v1/deliveries", &pairs, page.next_cursor.as_deref()),
        Json(page),
    )
        .into_response())
}

/// Read a delivery
///
/// With what was sent, and each try with what the receiver answered.
#[utoipa::path(
    get, path = "/v1/deliveries/{id}", operation_id = "get_delivery", tag = "Webhooks", params(("id" = DeliveryId, Path, description = "The delivery")),
    responses((status = 200, description = "The delivery", body = DeliveryDetail), ReadErrors)
)]
pub(super) async fn detail(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<DeliveryDetail>, ApiError> {
    let desk = desk(&app, &caller)?;
    let id = extract::id("delivery", &id)?;
    let tenant = tenant(desk).await?.ok_or(WebhookError::NoDelivery)?;
    Ok(Json(
        read::detail(desk.pool, tenant, id)
            .await?
            .ok_or(WebhookError::NoDelivery)?,
    ))
}

/// Send a delivery again
///
/// At once, and after a failure as often and as long as the first time. It keeps its `webhook-id`, so that a receiver which took it before
/// can tell. One that still waits for its next try is tried now.
#[utoipa::path(
    post, path = "/v1/deliveries/{id}/resend", operation_id = "resend_delivery", tag = "Webhooks",
    params(
        ("id" = DeliveryId, Path, description = "The delivery"),
        IdempotencyHeader
    ),
    responses((status = 202, description = "The delivery; `Location` names it", body = Delivery), WebhookErrors)
)]
pub(super) async fn resend(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    NoBody: NoBody,
) -> Result<Response, ApiError> {
    let desk = desk(&app, &caller)?;
    let key = idempotency_key(&headers)?;
    Ok(accepted(
        &send_again(desk, extract::id("delivery", &id)?, key.as_ref()).await?,
    ))
}

/// Send a test to a monitor's webhook
///
/// An event `monitor.test`, in one try; its delivery tells how it went.
#[utoipa::path(
    post, path = "/v1/monitors/{id}/test", operation_id = "test_webhook", tag = "Webhooks",
    params(
        ("id" = MonitorId, Path, description = "The monitor"),
        IdempotencyHeader
    ),
    responses((status = 202, description = "The delivery; `Location` names it", body = Delivery), WebhookErrors)
)]
pub(super) async fn test(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    NoBody: NoBody,
) -> Result<Response, ApiError> {
    let desk = desk(&app, &caller)?;
    let key = idempotency_key(&headers)?;
    Ok(accepted(
        &send_test(desk, monitor_id(&id)?, key.as_ref()).await?,
    ))
}

/// Give a webhook a new secret
///
/// Shown in this answer and never again. For 24 hours each try is signed with the old one too, both signatures in one header.
#[utoipa::path(
    post, path = "/v1/monitors/{id}/rotate-secret", operation_id = "rotate_webhook_secret", tag = "Webhooks", params(("id" = MonitorId, Path, description = "The monitor")),
    responses((status = 200, description = "The new secret", body = RotatedSecret), WebhookErrors)
)]
pub(super) async fn rotate_secret(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    NoBody: NoBody,
) -> Result<Json<RotatedSecret>, ApiError> {
    let desk = desk(&app, &caller)?;
    let id = monitor_id(&id)?;
    let tenant = tenant(desk).await?.ok_or(WebhookError::NoEndpoint)?;
    let mut tx = db::begin(desk.pool).await?;
    let mut lock = MonitorLock::acquire(&mut tx, tenant, id, LockFor::Webhook)
        .await?
        .ok_or(WebhookError::NoEndpoint)?;
    let (webhook_secret, old_secret_until) =
        endpoint::rotate_secret(&mut lock, desk.ring, desk.now).await?;
    tx.commit().await?;
    Ok(Json(RotatedSecret {
        webhook_secret,
        old_secret_until,
    }))
}

/// Switch a webhook on again
///
/// One that was switched off because its receiver answered 410 or failed for five days. What failed meanwhile is sent again only if it is
/// ordered. On one that is on it changes nothing.
#[utoipa::path(
    post, path = "/v1/monitors/{id}/enable-webhook", operation_id = "enable_webhook", tag = "Webhooks", params(("id" = MonitorId, Path, description = "The monitor")),
    responses((status = 200, description = "The webhook", body = Webhook), WordErrors)
)]
pub(super) async fn enable(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    NoBody: NoBody,
) -> Result<Json<Webhook>, ApiError> {
    let desk = desk(&app, &caller)?;
    let id = monitor_id(&id)?;
    let tenant = tenant(desk).await?.ok_or(WebhookError::NoEndpoint)?;
    let mut tx = db::begin(desk.pool).await?;
    let mut lock = MonitorLock::acquire(&mut tx, tenant, id, LockFor::Webhook)
        .await?
        .ok_or(WebhookError::NoEndpoint)?;
    endpoint::enable(&mut lock).await?;
    let webhook = endpoint::show(lock.conn(), tenant, id)
        .await?
        .ok_or(WebhookError::NoEndpoint)?;
    tx.commit().await?;
    Ok(Json(webhook))
}
