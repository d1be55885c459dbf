//! A caller's word over deliveries: send one again, send a test.

use jiff::Timestamp;
use serde_json::json;
use sqlx::PgPool;

use super::{WebhookError, enqueue_with, read, store};
use crate::contract::webhooks::{Delivery, DeliveryStatus};
use crate::db;
use crate::ids::{DeliveryId, MonitorId, TenantId};

/// The type of a test's event.
pub const TEST: &str = "monitor.test";

/// Has a delivery tried again from the beginning: at once, and then as the schedule has it. It keeps its id, so a receiver that took it
/// before can tell.
///
/// # Errors
/// [`WebhookError::NoDelivery`]; `InvalidState` while its webhook is switched off or is no more.
pub async fn resend(pool: &PgPool, tenant: TenantId, id: DeliveryId) -> Result<Delivery, WebhookError> {
    let mut tx = db::begin(pool).await?;
    let monitor = store::monitor_of(&mut tx, tenant, id).await?.ok_or(WebhookError::NoDelivery)?;
    match store::is_on(&mut tx, tenant, monitor).await? {
        None => return Err(WebhookError::InvalidState("the monitor of this delivery has no webhook any more".to_owned())),
        Some(false) => return Err(switched_off()),
        Some(true) => {}
    }
    store::begin_again(&mut tx, tenant, id).await?;
    store::arm(&mut tx, tenant, monitor).await?;
    let delivery = read::delivery(&mut tx, tenant, id).await?.ok_or(WebhookError::NoDelivery)?;
    tx.commit().await?;
    Ok(delivery)
}

/// Sends a test event, in one try: the delivery tells how it went.
///
/// # Errors
/// [`WebhookError::NoEndpoint`]; `InvalidState` while the webhook is switched off.
pub async fn test(pool: &PgPool, tenant: TenantId, monitor: MonitorId, now: Timestamp) -> Result<Delivery, WebhookError> {
    let mut tx = db::begin(pool).await?;
    let data = json!({"monitor_id": monitor, "message": "This is a test. Nothing has happened."});
    let id = enqueue_with(&mut tx, tenant, monitor, TEST, &data, now, 1).await?.ok_or(WebhookError::NoEndpoint)?;
    let delivery = read::delivery(&mut tx, tenant, id).await?.ok_or(WebhookError::NoDelivery)?;
    if delivery.status == DeliveryStatus::Failed {
        return Err(switched_off());
    }
    tx.commit().await?;
    Ok(delivery)
}

fn switched_off() -> WebhookError {
    let message =
        "this monitor's webhook is switched off: switch it on with POST /v1/monitors/{id}/enable-webhook, or give it another URL";
    WebhookError::InvalidState(message.to_owned())
}
