//! A caller's word over deliveries, taken once for each `Idempotency-Key`: send one again, send a test. What is sent is `webhooks`'.

use serde_json::Map;
use sqlx::PgConnection;

use crate::contract::webhooks::Delivery;
use crate::db;
use crate::ids::{DeliveryId, MonitorId, TenantId};
use crate::scans::{Answered, Desk, IdempotencyKey, Post, ScanError};
use crate::tenants;
use crate::webhooks::{LockFor, MonitorLock, WebhookError, resend};

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
    let monitor =
        async |conn: &mut PgConnection, tenant| resend::monitor_of(conn, tenant, id).await;
    once(
        desk,
        path,
        key,
        WebhookError::NoDelivery,
        monitor,
        async |lock| resend::resend(lock, id, desk.now).await,
    )
    .await
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
    let monitor = async |_: &mut PgConnection, _| Ok(monitor);
    once(
        desk,
        path,
        key,
        WebhookError::NoEndpoint,
        monitor,
        async |lock| resend::test(lock, desk.now).await,
    )
    .await
}

/// Does `work` under the lock of the monitor, which comes before the row of the `Idempotency-Key` as everywhere. A caller that nobody
/// knows has no webhook: `unknown`.
async fn once(
    desk: Desk<'_>,
    path: String,
    key: Option<&IdempotencyKey>,
    unknown: WebhookError,
    monitor: impl AsyncFnOnce(&mut PgConnection, TenantId) -> Result<MonitorId, WebhookError>,
    work: impl AsyncFnOnce(&mut MonitorLock<'_>) -> Result<Delivery, WebhookError>,
) -> Result<Answered<Delivery>, DeliveryError> {
    let post = Post::new(path, &Map::new(), key);
    if let Some(answer) = post.repeated(desk).await? {
        return Ok(Answered {
            answer,
            replayed: true,
        });
    }
    let mut tx = db::begin(desk.pool).await?;
    let Some(tenant) =
        tenants::store::find_and_hold(&mut tx, desk.ring, desk.key, desk.now).await?
    else {
        return Err(unknown.into());
    };
    let monitor = monitor(&mut tx, tenant).await?;
    let mut lock = MonitorLock::acquire(&mut tx, tenant, monitor, LockFor::Webhook)
        .await?
        .ok_or(unknown)?;
    if let Some(answer) = post.take(lock.conn(), tenant, desk.now).await? {
        return Ok(Answered {
            answer,
            replayed: true,
        });
    }
    let answer = work(&mut lock).await?;
    post.keep(lock.conn(), tenant, &answer).await?;
    tx.commit().await?;
    Ok(Answered {
        answer,
        replayed: false,
    })
}
