//! A caller's word over deliveries: send one again, send a test.

use jiff::{SignedDuration, Timestamp};
use sqlx::PgConnection;

use super::store::Switch;
use super::{MonitorLock, WebhookError, enqueue_with, read, store};
use crate::contract::webhooks::{Delivery, MonitorTest, OffReason};
use crate::ids::{DeliveryId, MonitorId, TenantId};

/// The type of a test's event.
pub const TEST: &str = "monitor.test";
/// The shortest time between two tests of a monitor: a test makes this service send something wherever its caller says.
pub const TEST_INTERVAL: SignedDuration = SignedDuration::from_mins(1);

/// The monitor whose event a delivery is, to be locked before [`resend`].
///
/// # Errors
/// [`WebhookError::NoDelivery`].
pub async fn monitor_of(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: DeliveryId,
) -> Result<MonitorId, WebhookError> {
    store::monitor_of(conn, tenant, id)
        .await?
        .ok_or(WebhookError::NoDelivery)
}

/// Has a delivery of this monitor tried again from the beginning, once the caller's transaction is committed: at once, and then as the schedule has it. It
/// keeps its id, so a receiver that took it before can tell.
///
/// # Errors
/// [`WebhookError::NoDelivery`]; `InvalidState` while its webhook is switched off or is no more; `TooSoon` for a test.
pub async fn resend(
    lock: &mut MonitorLock<'_>,
    id: DeliveryId,
    now: Timestamp,
) -> Result<Delivery, WebhookError> {
    match store::switch(lock).await? {
        None => {
            return Err(WebhookError::InvalidState(
                "the monitor of this delivery has no webhook any more".to_owned(),
            ));
        }
        Some(Switch::Off(reason)) => return Err(switched_off(lock.monitor(), reason)),
        Some(Switch::On) => {}
    }
    if store::is_test(lock, id).await? {
        refuse_too_soon(lock, now).await?;
    }
    store::begin_again(lock, id).await?;
    store::arm(lock).await?;
    let tenant = lock.tenant();
    read::delivery(lock.conn(), tenant, id)
        .await?
        .ok_or(WebhookError::NoDelivery)
}

/// Sends a test event, in one try, once the caller's transaction is committed: the delivery tells how it went.
///
/// # Errors
/// [`WebhookError::NoEndpoint`]; `InvalidState` while the webhook is switched off; `TooSoon`.
pub async fn test(lock: &mut MonitorLock<'_>, now: Timestamp) -> Result<Delivery, WebhookError> {
    let (tenant, monitor) = (lock.tenant(), lock.monitor());
    match store::switch(lock).await? {
        None => return Err(WebhookError::NoEndpoint),
        Some(Switch::Off(reason)) => return Err(switched_off(monitor, reason)),
        Some(Switch::On) => {}
    }
    refuse_too_soon(lock, now).await?;
    let data = MonitorTest {
        monitor_id: monitor,
        message: "This is a test. Nothing has happened.".to_owned(),
    };
    let id = enqueue_with(lock, TEST, &data, now, 1)
        .await?
        .ok_or(WebhookError::NoEndpoint)?;
    read::delivery(lock.conn(), tenant, id)
        .await?
        .ok_or(WebhookError::NoDelivery)
}

/// Tests of a monitor come at most once in [`TEST_INTERVAL`], also by a resend. The endpoint is locked.
async fn refuse_too_soon(lock: &mut MonitorLock<'_>, now: Timestamp) -> Result<(), WebhookError> {
    let Some(last) = store::last_test(lock).await? else {
        return Ok(());
    };
    let left = TEST_INTERVAL
        .saturating_sub(now.duration_since(last))
        .min(TEST_INTERVAL);
    match std::time::Duration::try_from(left) {
        Ok(wait) if !wait.is_zero() => Err(WebhookError::TooSoon(wait)),
        _ => Ok(()),
    }
}

fn switched_off(monitor: MonitorId, reason: OffReason) -> WebhookError {
    let why = match reason {
        OffReason::Gone => "its receiver answered 410, which says that it wants no more",
        OffReason::Failing => "nothing was delivered for five days",
    };
    WebhookError::InvalidState(format!(
        "this monitor's webhook is switched off (`{reason}`): {why}; switch it on with POST /v1/monitors/{monitor}/enable-webhook, or give \
         it another URL with PATCH /v1/monitors/{monitor}"
    ))
}
