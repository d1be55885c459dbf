//! Commands on deliveries, idempotent by `Idempotency-Key`: resend one, send a test. Not here: the
//! sending (`webhooks`).

use serde_json::Map;
use sqlx::PgConnection;

use crate::commands::{
    CommandError, IdempotencyKey, IdempotentRequest, Replayable, RequestContext,
};
use crate::contract::webhooks::Delivery;
use crate::ids::{DeliveryId, Kind, MonitorId};
use crate::webhooks::{EndpointLock, LockFor, MonitorLock, resend};

/// Resends a delivery.
///
/// # Errors
/// As [`resend::resend`]; `IdempotencyMismatch`.
pub async fn resend_delivery(
    context: RequestContext<'_>,
    id: DeliveryId,
    key: Option<&IdempotencyKey>,
) -> Result<Replayable<Delivery>, CommandError> {
    let path = format!("/v1/deliveries/{id}/resend");
    let idempotent = IdempotentRequest::new(path, &Map::new(), key);
    if let Some(replay) = idempotent.find_response(context).await? {
        return Ok(replay);
    }
    let (tx, tenant) = context.begin_locked(Kind::Delivery).await?;
    let work = async |conn: &mut PgConnection| {
        let owner = resend::owner_of(conn, tenant, id).await?;
        let mut lock = EndpointLock::acquire(conn, tenant, owner, LockFor::Webhook)
            .await?
            .ok_or(Kind::Delivery)?;
        resend::resend(&mut lock, id, context.now).await
    };
    idempotent.run(context, tx, tenant, work).await
}

/// Sends a test event to a monitor's webhook.
///
/// # Errors
/// As [`resend::send_test`]; `IdempotencyMismatch`.
pub async fn send_test(
    context: RequestContext<'_>,
    monitor: MonitorId,
    key: Option<&IdempotencyKey>,
) -> Result<Replayable<Delivery>, CommandError> {
    let path = format!("/v1/monitors/{monitor}/test");
    let idempotent = IdempotentRequest::new(path, &Map::new(), key);
    if let Some(replay) = idempotent.find_response(context).await? {
        return Ok(replay);
    }
    let (tx, tenant) = context.begin_locked(CommandError::NoWebhook).await?;
    let work = async |conn: &mut PgConnection| {
        let mut lock = MonitorLock::acquire(conn, tenant, monitor, LockFor::Webhook)
            .await?
            .ok_or(CommandError::NoWebhook)?;
        resend::send_test(&mut lock, context.now).await
    };
    idempotent.run(context, tx, tenant, work).await
}
