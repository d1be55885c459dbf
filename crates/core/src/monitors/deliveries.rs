//! Commands on deliveries, idempotent by `Idempotency-Key`: resend one, send a test; and those on a monitor's
//! webhook. Not here: the sending (`webhooks`).

use serde_json::Map;
use sqlx::PgConnection;

use crate::commands::{
    CommandError, IdempotencyKey, IdempotentRequest, Replayable, RequestContext,
};
use crate::contract::webhooks::{Delivery, RotatedSecret};
use crate::ids::{DeliveryId, Kind, MonitorId, TenantId};
use crate::webhooks::{EndpointLock, LockFor, MonitorLock, endpoint, resend};

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
    let work = async |conn: &mut PgConnection, tenant: TenantId| {
        let owner = resend::owner_of(conn, tenant, id).await?;
        let mut lock = EndpointLock::acquire(conn, tenant, owner, LockFor::Webhook)
            .await?
            .ok_or(Kind::Delivery)?;
        resend::resend(&mut lock, id, context.now).await
    };
    idempotent.carry_out(context, Kind::Delivery, work).await
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
    let work = async |conn: &mut PgConnection, tenant: TenantId| {
        let mut lock = MonitorLock::acquire(conn, tenant, monitor, LockFor::Webhook)
            .await?
            .ok_or(CommandError::NoWebhook)?;
        resend::send_test(&mut lock, context.now).await
    };
    idempotent
        .carry_out(context, CommandError::NoWebhook, work)
        .await
}

/// Switches a monitor's webhook on again, and returns its owner. No effect on one that is on. Its URL is not
/// decrypted: one that cannot be is no reason against the command.
///
/// # Errors
/// `NoWebhook`.
pub async fn enable_webhook(
    context: RequestContext<'_>,
    monitor: MonitorId,
) -> Result<TenantId, CommandError> {
    let (mut tx, tenant) = context.begin(CommandError::NoWebhook).await?;
    let lock = MonitorLock::acquire(&mut tx, tenant, monitor, LockFor::Webhook).await?;
    let mut lock = lock.ok_or(CommandError::NoWebhook)?;
    endpoint::enable(&mut lock.endpoint()).await?;
    tx.commit().await?;
    Ok(tenant)
}

/// Gives a monitor's webhook a new secret.
///
/// # Errors
/// As [`endpoint::rotate_secret`].
pub async fn rotate_secret(
    context: RequestContext<'_>,
    monitor: MonitorId,
) -> Result<RotatedSecret, CommandError> {
    let (mut tx, tenant) = context.begin(CommandError::NoWebhook).await?;
    let lock = MonitorLock::acquire(&mut tx, tenant, monitor, LockFor::Webhook).await?;
    let mut lock = lock.ok_or(CommandError::NoWebhook)?;
    let (webhook_secret, old_secret_until) =
        endpoint::rotate_secret(&mut lock, context.ring, context.now).await?;
    tx.commit().await?;
    Ok(RotatedSecret {
        webhook_secret,
        old_secret_until,
    })
}
