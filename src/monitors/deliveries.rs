//! A caller's word over deliveries, taken once for each `Idempotency-Key`: send one again, send a test. What is sent is `webhooks`'.

use serde_json::Map;
use sqlx::PgConnection;

use crate::contract::webhooks::Delivery;
use crate::db;
use crate::ids::{DeliveryId, MonitorId, TenantId};
use crate::scans::{Answered, Desk, IdempotencyKey, Post, ScanError};
use crate::tenants;
use crate::webhooks::{WebhookError, resend};

/// Why nothing is sent.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    /// No such webhook or delivery, or it is in no state for it.
    #[error(transparent)]
    Webhook(#[from] WebhookError),
    /// As with any order.
    #[error(transparent)]
    Order(#[from] ScanError),
}

impl From<sqlx::Error> for DeliveryError {
    fn from(error: sqlx::Error) -> Self {
        Self::Order(error.into())
    }
}

/// Has a delivery sent again.
///
/// # Errors
/// As [`resend::resend`]; a key that was used before with another body.
pub async fn send_again(
    desk: Desk<'_>,
    id: DeliveryId,
    key: Option<&IdempotencyKey>,
) -> Result<Answered<Delivery>, DeliveryError> {
    let path = format!("/v1/deliveries/{id}/resend");
    once(desk, path, key, WebhookError::NoDelivery, async |conn, tenant| resend::resend(conn, tenant, id).await).await
}

/// Sends a test event to a monitor's webhook.
///
/// # Errors
/// As [`resend::test`]; a key that was used before with another body.
pub async fn send_test(
    desk: Desk<'_>,
    monitor: MonitorId,
    key: Option<&IdempotencyKey>,
) -> Result<Answered<Delivery>, DeliveryError> {
    let path = format!("/v1/monitors/{monitor}/test");
    once(desk, path, key, WebhookError::NoEndpoint, async |conn, tenant| resend::test(conn, tenant, monitor, desk.now).await)
        .await
}

/// A caller that nobody knows has no webhook: `unknown`.
async fn once(
    desk: Desk<'_>,
    path: String,
    key: Option<&IdempotencyKey>,
    unknown: WebhookError,
    work: impl AsyncFnOnce(&mut PgConnection, TenantId) -> Result<Delivery, WebhookError>,
) -> Result<Answered<Delivery>, DeliveryError> {
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
