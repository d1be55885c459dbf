//! Commands on deliveries, idempotent by `Idempotency-Key`: resend one, send a test. Not here: the
//! sending (`webhooks`).

use serde_json::Map;
use sqlx::PgConnection;

use crate::contract::webhooks::Delivery;
use crate::db;
use crate::ids::{DeliveryId, MonitorId, TenantId};
use crate::scans::{IdempotencyKey, IdempotentRequest, Replayable, RequestContext, ScanError};
use crate::tenants;
use crate::webhooks::{LockFor, MonitorLock, WebhookError, resend};

/// Why nothing was sent.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    /// The webhook or delivery does not exist, or its state does not allow the command.
    #[error(transparent)]
    Webhook(#[from] WebhookError),
    /// The idempotent request failed.
    #[error(transparent)]
    Scan(#[from] ScanError),
}

impl From<sqlx::Error> for DeliveryError {
    fn from(error: sqlx::Error) -> Self {
        Self::Scan(error.into())
    }
}

/// Resends a delivery.
///
/// # Errors
/// As [`resend::resend`]; `IdempotencyMismatch`.
pub async fn resend_delivery(
    context: RequestContext<'_>,
    id: DeliveryId,
    key: Option<&IdempotencyKey>,
) -> Result<Replayable<Delivery>, DeliveryError> {
    let path = format!("/v1/deliveries/{id}/resend");
    let monitor =
        async |conn: &mut PgConnection, tenant| resend::monitor_of(conn, tenant, id).await;
    idempotent(
        context,
        path,
        key,
        WebhookError::NoDelivery,
        monitor,
        async |lock| resend::resend(lock, id, context.now).await,
    )
    .await
}

/// Sends a test event to a monitor's webhook.
///
/// # Errors
/// As [`resend::send_test`]; `IdempotencyMismatch`.
pub async fn send_test(
    context: RequestContext<'_>,
    monitor: MonitorId,
    key: Option<&IdempotencyKey>,
) -> Result<Replayable<Delivery>, DeliveryError> {
    let path = format!("/v1/monitors/{monitor}/test");
    let monitor = async |_: &mut PgConnection, _| Ok(monitor);
    idempotent(
        context,
        path,
        key,
        WebhookError::NoEndpoint,
        monitor,
        async |lock| resend::send_test(lock, context.now).await,
    )
    .await
}

/// Runs `work` under the lock of the monitor, which precedes the row of the `Idempotency-Key` in
/// the lock order. An unknown tenant gets the error `unknown`.
async fn idempotent(
    context: RequestContext<'_>,
    path: String,
    key: Option<&IdempotencyKey>,
    unknown: WebhookError,
    monitor: impl AsyncFnOnce(&mut PgConnection, TenantId) -> Result<MonitorId, WebhookError>,
    work: impl AsyncFnOnce(&mut MonitorLock<'_>) -> Result<Delivery, WebhookError>,
) -> Result<Replayable<Delivery>, DeliveryError> {
    let idempotent = IdempotentRequest::new(path, &Map::new(), key);
    if let Some(response) = idempotent.find_response(context).await? {
        return Ok(Replayable {
            response,
            replayed: true,
        });
    }
    let mut tx = db::begin(context.pool).await?;
    let Some(tenant) =
        tenants::store::find_and_lock(&mut tx, context.ring, context.key, context.now).await?
    else {
        return Err(unknown.into());
    };
    let monitor = monitor(&mut tx, tenant).await?;
    let mut lock = MonitorLock::acquire(&mut tx, tenant, monitor, LockFor::Webhook)
        .await?
        .ok_or(unknown)?;
    if let Some(response) = idempotent.reserve(lock.conn(), tenant, context.now).await? {
        return Ok(Replayable {
            response,
            replayed: true,
        });
    }
    let response = work(&mut lock).await?;
    idempotent
        .store_response(lock.conn(), tenant, &response)
        .await?;
    tx.commit().await?;
    Ok(Replayable {
        response,
        replayed: false,
    })
}
