//! Commands on deliveries: resend one, send a test event.

use jiff::{SignedDuration, Timestamp};
use sqlx::PgConnection;

use super::store::EndpointSwitch;
use super::{MonitorLock, enqueue_with, read, store};
use crate::commands::CommandError;
use crate::contract::monitors::OffReason;
use crate::contract::webhooks::{Delivery, MonitorTest};
use crate::ids::{DeliveryId, MonitorId, TenantId};

/// The type of a test event.
pub const TEST_EVENT: &str = "monitor.test";
/// The shortest time between two tests of a monitor: a test makes this service call any URL that
/// its caller names.
pub const TEST_INTERVAL: SignedDuration = SignedDuration::from_mins(1);

/// The monitor of a delivery, to be locked before [`resend`].
///
/// # Errors
/// `NoDelivery`.
pub async fn monitor_of(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: DeliveryId,
) -> Result<MonitorId, CommandError> {
    store::monitor_of(conn, tenant, id)
        .await?
        .ok_or(CommandError::NoDelivery)
}

/// Resets a delivery of this monitor, so that it is tried with all retries after the commit. It
/// keeps its id, so a receiver can detect a duplicate.
///
/// # Errors
/// `NoDelivery`; `InvalidState` if its webhook is switched off or closed; `LimitExceeded`
/// for a test.
pub async fn resend(
    lock: &mut MonitorLock<'_>,
    id: DeliveryId,
    now: Timestamp,
) -> Result<Delivery, CommandError> {
    match store::endpoint_switch(lock).await? {
        None => {
            return Err(CommandError::InvalidState(
                "the monitor of this delivery no longer has a webhook".to_owned(),
            ));
        }
        Some(EndpointSwitch::Off(reason)) => {
            return Err(switched_off_error(lock.monitor(), reason));
        }
        Some(EndpointSwitch::On) => {}
    }
    if store::is_test(lock, id).await? {
        check_test_interval(lock, now).await?;
    }
    store::reset(lock, id).await?;
    store::wake(lock).await?;
    let tenant = lock.tenant();
    read::delivery(lock.conn(), tenant, id)
        .await?
        .ok_or(CommandError::NoDelivery)
}

/// Enqueues a test event, sent after the commit with a single try. The delivery shows the result.
///
/// # Errors
/// `NoWebhook`; `InvalidState` while the webhook is switched off; `LimitExceeded`.
pub async fn send_test(
    lock: &mut MonitorLock<'_>,
    now: Timestamp,
) -> Result<Delivery, CommandError> {
    let (tenant, monitor) = (lock.tenant(), lock.monitor());
    match store::endpoint_switch(lock).await? {
        None => return Err(CommandError::NoWebhook),
        Some(EndpointSwitch::Off(reason)) => return Err(switched_off_error(monitor, reason)),
        Some(EndpointSwitch::On) => {}
    }
    check_test_interval(lock, now).await?;
    let data = MonitorTest {
        monitor_id: monitor,
        message: "This is a test. Nothing has happened.".to_owned(),
    };
    let id = enqueue_with(lock, TEST_EVENT, &data, now, 1)
        .await?
        .ok_or(CommandError::NoWebhook)?;
    read::delivery(lock.conn(), tenant, id)
        .await?
        .ok_or(CommandError::NoDelivery)
}

/// Fails if the last test, or its resend, is less than [`TEST_INTERVAL`] ago. The endpoint is
/// locked.
async fn check_test_interval(
    lock: &mut MonitorLock<'_>,
    now: Timestamp,
) -> Result<(), CommandError> {
    let Some(last) = store::last_test(lock).await? else {
        return Ok(());
    };
    let left = TEST_INTERVAL
        .saturating_sub(now.duration_since(last))
        .min(TEST_INTERVAL);
    match std::time::Duration::try_from(left) {
        Ok(wait) if !wait.is_zero() => Err(CommandError::LimitExceeded {
            message: format!(
                "a monitor's webhook can be tested at most once a minute; retry after {} s",
                wait.as_secs().max(1)
            ),
            retry_after: wait,
        }),
        _ => Ok(()),
    }
}

fn switched_off_error(monitor: MonitorId, reason: OffReason) -> CommandError {
    let why = match reason {
        OffReason::Gone => "its receiver answered 410 Gone",
        OffReason::Failing => "nothing was delivered for five days",
    };
    CommandError::InvalidState(format!(
        "the monitor's webhook is switched off (`{reason}`): {why}; switch it on with \
         POST /v1/monitors/{monitor}/enable-webhook or change its URL with PATCH /v1/monitors/{monitor}"
    ))
}
