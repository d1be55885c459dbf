//! `/v1/deliveries`, and commands on a monitor's webhook (monitors.md, rules 53 to 72).

use axum::Json;

use super::openapi::{CommandErrors, IdempotencyHeader, ReadErrors, WebhookErrors};
use farescan_core::app::api_request::{ApiRequest, accepted_response, find_tenant};
use farescan_core::app::error::ApiResult;
use farescan_core::app::extract::NoBody;
use farescan_core::commands::CommandError;
use farescan_core::contract::monitors::Webhook;
use farescan_core::contract::webhooks::{
    DeliveriesQuery, Delivery, DeliveryDetail, DeliveryPage, RotatedSecret,
};
use farescan_core::ids::{DeliveryId, Kind, MonitorId};
use farescan_core::monitors::deliveries::{
    enable_webhook, resend_delivery, rotate_secret as rotate_secret_of, send_test,
};
use farescan_core::webhooks::{endpoint, read};

/// List deliveries
///
/// Deliveries to the webhooks of monitors, and messages to channels, newest first. Stored for 90 days after their end.
#[utoipa::path(
    get, path = "/v1/deliveries", operation_id = "list_deliveries", tag = "Webhooks", params(DeliveriesQuery),
    responses((status = 200, description = "A page; `Link` names the next one", body = DeliveryPage), ReadErrors)
)]
pub(super) async fn list(request: ApiRequest) -> ApiResult {
    let context = request.context()?;
    let query = DeliveriesQuery::from_query(request.pairs.iter())?;
    let page = match find_tenant(context).await? {
        Some(tenant) => read::deliveries(context.pool, tenant, &query)
            .await?
            .ok_or(query.owner_kind())?,
        None if query.monitor_id.is_some() || query.channel_id.is_some() => {
            return Err(query.owner_kind().into());
        }
        None => DeliveryPage::default(),
    };
    Ok(request.page(&page, page.next_cursor.as_deref()))
}

/// Read a delivery
///
/// With the payload, and each attempt with the receiver's response.
#[utoipa::path(
    get, path = "/v1/deliveries/{id}", operation_id = "get_delivery", tag = "Webhooks", params(("id" = DeliveryId, Path, description = "The delivery")),
    responses((status = 200, description = "The delivery", body = DeliveryDetail), ReadErrors)
)]
pub(super) async fn detail(request: ApiRequest) -> ApiResult<Json<DeliveryDetail>> {
    let (tenant, id) = request.owned::<DeliveryId>().await?;
    read::detail(request.context()?.pool, tenant, id)
        .await?
        .map(Json)
        .ok_or_else(|| Kind::Delivery.into())
}

/// Send a delivery again
///
/// Immediately, with the same retries as the first time. It keeps its `webhook-id`, so the receiver
/// can detect a duplicate. A delivery that waits for its next attempt is sent now.
#[utoipa::path(
    post, path = "/v1/deliveries/{id}/resend", operation_id = "resend_delivery", tag = "Webhooks",
    params(
        ("id" = DeliveryId, Path, description = "The delivery"),
        IdempotencyHeader
    ),
    responses((status = 202, description = "The delivery; `Location` names it", body = Delivery), WebhookErrors)
)]
pub(super) async fn resend(request: ApiRequest, _: NoBody) -> ApiResult {
    let context = request.context()?;
    let key = request.idempotency_key()?;
    let answered = resend_delivery(context, request.id()?, key.as_ref()).await?;
    Ok(accepted_response(answered.response.id, &answered))
}

/// Send a test to a monitor's webhook
///
/// An event `monitor.test`, sent once without retries; its delivery shows the result.
#[utoipa::path(
    post, path = "/v1/monitors/{id}/test", operation_id = "test_webhook", tag = "Webhooks",
    params(
        ("id" = MonitorId, Path, description = "The monitor"),
        IdempotencyHeader
    ),
    responses((status = 202, description = "The delivery; `Location` names it", body = Delivery), WebhookErrors)
)]
pub(super) async fn test(request: ApiRequest, _: NoBody) -> ApiResult {
    let context = request.context()?;
    let key = request.idempotency_key()?;
    let answered = send_test(context, request.id()?, key.as_ref()).await?;
    Ok(accepted_response(answered.response.id, &answered))
}

/// Give a webhook a new secret
///
/// Only this response shows it. For 24 hours each attempt is also signed with the old secret, both
/// signatures in one header.
#[utoipa::path(
    post, path = "/v1/monitors/{id}/rotate-secret", operation_id = "rotate_webhook_secret", tag = "Webhooks", params(("id" = MonitorId, Path, description = "The monitor")),
    responses((status = 200, description = "The new secret", body = RotatedSecret), WebhookErrors)
)]
pub(super) async fn rotate_secret(
    request: ApiRequest,
    _: NoBody,
) -> ApiResult<Json<RotatedSecret>> {
    let rotated = rotate_secret_of(request.context()?, request.id()?).await?;
    Ok(Json(rotated))
}

/// Re-enable a webhook
///
/// For a webhook that was disabled because its receiver answered 410 or failed for five days.
/// Failed deliveries are sent again only on request. No effect on an enabled webhook.
#[utoipa::path(
    post, path = "/v1/monitors/{id}/enable-webhook", operation_id = "enable_webhook", tag = "Webhooks", params(("id" = MonitorId, Path, description = "The monitor")),
    responses((status = 200, description = "The webhook", body = Webhook), CommandErrors)
)]
pub(super) async fn enable(request: ApiRequest, _: NoBody) -> ApiResult<Json<Webhook>> {
    let (context, id) = (request.context()?, request.id()?);
    let tenant = enable_webhook(context, id).await?;
    let mut conn = context.pool.acquire().await?;
    let webhook = endpoint::show(&mut conn, context.ring, tenant, id, context.now).await?;
    Ok(Json(webhook.ok_or(CommandError::NoWebhook)?))
}
