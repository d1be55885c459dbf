//! A caller's word over deliveries: send one again, send a test.

use jiff::Timestamp;
use serde_json::{Map, json};
use sqlx::PgConnection;

use super::{WebhookError, enqueue_with, read, store};
use crate::contract::webhooks::{Delivery, DeliveryStatus};
use crate::db;
use crate::ids::{DeliveryId, MonitorId, TenantId};
use crate::scans::{Answered, Desk, IdempotencyKey, Post};
use crate::tenants;

/// The type of a test's event.
pub const TEST: &str = "monitor.test";

/// Has a delivery tried again from the beginning: at once, and then as the schedule has it. It keeps its id, so a receiver that took it
/// before can tell.
///
/// # Errors
/// [`WebhookError::NoDelivery`]; `InvalidState` while its webhook is switched off or is no more; `Order` for a key that was used before.
pub async fn resend(desk: Desk<'_>, id: DeliveryId, key: Option<&IdempotencyKey>) -> Result<Answered<Delivery>, WebhookError> {
    let path = format!("/v1/deliveries/{id}/resend");
    once(desk, path, key, WebhookError::NoDelivery, async |conn, tenant| again(conn, tenant, id).await).await
}

/// The same in a transaction of the caller's.
///
/// # Errors
/// As [`resend`].
pub async fn again(conn: &mut PgConnection, tenant: TenantId, id: DeliveryId) -> Result<Delivery, WebhookError> {
    let monitor = store::monitor_of(conn, tenant, id).await?.ok_or(WebhookError::NoDelivery)?;
    match store::is_on(conn, tenant, monitor).await? {
        None => return Err(WebhookError::InvalidState("the monitor of this delivery has no webhook any more".to_owned())),
        Some(false) => return Err(switched_off()),
        Some(true) => {}
    }
    store::begin_again(conn, tenant, id).await?;
    store::arm(conn, tenant, monitor).await?;
    read::delivery(conn, tenant, id).await?.ok_or(WebhookError::NoDelivery)
}

/// Sends a test event, in one try: the delivery tells how it went.
///
/// # Errors
/// [`WebhookError::NoEndpoint`]; `InvalidState` while the webhook is switched off; `Order` for a key that was used before.
pub async fn test(desk: Desk<'_>, monitor: MonitorId, key: Option<&IdempotencyKey>) -> Result<Answered<Delivery>, WebhookError> {
    let path = format!("/v1/monitors/{monitor}/test");
    once(desk, path, key, WebhookError::NoEndpoint, async |conn, tenant| tell_test(conn, tenant, monitor, desk.now).await).await
}

/// The same in a transaction of the caller's, which has to be given up when it fails.
///
/// # Errors
/// As [`test`].
pub async fn tell_test(
    conn: &mut PgConnection,
    tenant: TenantId,
    monitor: MonitorId,
    now: Timestamp,
) -> Result<Delivery, WebhookError> {
    let data = json!({"monitor_id": monitor, "message": "This is a test. Nothing has happened."});
    let id = enqueue_with(conn, tenant, monitor, TEST, &data, now, 1).await?.ok_or(WebhookError::NoEndpoint)?;
    let delivery = read::delivery(conn, tenant, id).await?.ok_or(WebhookError::NoDelivery)?;
    if delivery.status == DeliveryStatus::Failed {
        return Err(switched_off());
    }
    Ok(delivery)
}

/// Does it for the caller, once for each `Idempotency-Key`. A caller that nobody knows has no webhook: `unknown`.
async fn once(
    desk: Desk<'_>,
    path: String,
    key: Option<&IdempotencyKey>,
    unknown: WebhookError,
    work: impl AsyncFnOnce(&mut PgConnection, TenantId) -> Result<Delivery, WebhookError>,
) -> Result<Answered<Delivery>, WebhookError> {
    let post = Post::new(path, &Map::new(), key);
    if let Some(answer) = post.repeated(desk).await? {
        return Ok(Answered { answer, replayed: true });
    }
    let mut tx = db::begin(desk.pool).await?;
    let tenant = tenants::store::find_and_hold(&mut tx, desk.ring, desk.key, desk.now).await?.ok_or(unknown)?;
    if let Some(answer) = post.take(&mut tx, tenant, desk.now).await? {
        return Ok(Answered { answer, replayed: true });
    }
    let answer = work(&mut tx, tenant).await?;
    post.keep(&mut tx, tenant, &answer).await?;
    tx.commit().await?;
    Ok(Answered { answer, replayed: false })
}

fn switched_off() -> WebhookError {
    let message =
        "this monitor's webhook is switched off: switch it on with POST /v1/monitors/{id}/enable-webhook, or give it another URL";
    WebhookError::InvalidState(message.to_owned())
}
