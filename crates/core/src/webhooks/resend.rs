//! Commands on deliveries: resend one, send a test event.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use sqlx::PgConnection;

use super::store::{CONFIRM_EVENT, EndpointSwitch, TEST_EVENTS};
use super::{EndpointLock, EndpointOwner, MonitorLock, Outgoing, enqueue, read, store};
use crate::commands::CommandError;
use crate::contract::webhooks::{Delivery, MonitorTest};
use crate::ids::{ChannelId, DeliveryId, Kind, TenantId};

/// The type of a test event.
pub const TEST_EVENT: &str = "monitor.test";
/// The shortest time between two tests of a monitor: a test makes this service call any URL that
/// its caller names.
pub const TEST_INTERVAL: SignedDuration = SignedDuration::from_mins(1);

/// Where a delivery goes, to be locked before [`resend`].
///
/// # Errors
/// `NotFound`.
pub async fn owner_of(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: DeliveryId,
) -> Result<EndpointOwner, CommandError> {
    store::owner_of(conn, tenant, id)
        .await?
        .ok_or(CommandError::NotFound(Kind::Delivery))
}

/// Resets a delivery of this endpoint, so that it is tried with all retries after the commit. It
/// keeps its id, so a receiver can detect a duplicate.
///
/// # Errors
/// `NotFound`; `InvalidState` if its webhook is switched off or closed or its channel is paused, or for
/// the mail with a code; `LimitExceeded` for a test.
pub async fn resend(
    lock: &mut EndpointLock<'_>,
    id: DeliveryId,
    now: Timestamp,
) -> Result<Delivery, CommandError> {
    let is_on = require_switched_on(lock).await?;
    if !is_on {
        return Err(CommandError::InvalidState(
            "the monitor of this delivery no longer has a webhook".to_owned(),
        ));
    }
    match store::event_type(lock, id).await?.as_deref() {
        Some(CONFIRM_EVENT) => {
            return Err(CommandError::InvalidState(
                "the address is confirmed: its codes are not sent again".to_owned(),
            ));
        }
        Some(event_type) if TEST_EVENTS.contains(&event_type) => {
            check_test_interval(lock, now).await?;
        }
        _ => {}
    }
    store::reset(lock, id).await?;
    store::wake(lock).await?;
    let tenant = lock.tenant();
    read::delivery(lock.conn(), tenant, id)
        .await?
        .ok_or(CommandError::NotFound(Kind::Delivery))
}

/// Locks an endpoint that is switched on; `false`: it does not exist.
///
/// # Errors
/// `InvalidState` if it is switched off.
async fn require_switched_on(lock: &mut EndpointLock<'_>) -> Result<bool, CommandError> {
    match store::endpoint_switch(lock).await? {
        None => Ok(false),
        Some(EndpointSwitch::Off(reason)) => Err(switched_off_error(lock.owner(), &reason)),
        Some(EndpointSwitch::On) => Ok(true),
    }
}

/// Enqueues a test event, sent after the commit with a single try. The delivery shows the result.
///
/// # Errors
/// `NoWebhook`; `InvalidState` while the webhook is switched off; `LimitExceeded`.
pub async fn send_test(
    lock: &mut MonitorLock<'_>,
    now: Timestamp,
) -> Result<Delivery, CommandError> {
    let data = MonitorTest {
        monitor_id: lock.monitor(),
        message: "This is a test. Nothing has happened.".to_owned(),
    };
    enqueue_test(&mut lock.endpoint(), TEST_EVENT, &data, now)
        .await?
        .ok_or(CommandError::NoWebhook)
}

/// Enqueues a test of an endpoint; `None`: it does not exist.
///
/// # Errors
/// `InvalidState` while it is switched off; `LimitExceeded`.
pub async fn enqueue_test<T: Serialize>(
    lock: &mut EndpointLock<'_>,
    event_type: &str,
    data: &T,
    now: Timestamp,
) -> Result<Option<Delivery>, CommandError> {
    if !require_switched_on(lock).await? {
        return Ok(None);
    }
    check_test_interval(lock, now).await?;
    let test = Outgoing {
        most_tries: 1,
        ..Outgoing::new(event_type)
    };
    let Some(id) = enqueue(lock, &test, data, now).await? else {
        return Ok(None);
    };
    let tenant = lock.tenant();
    Ok(read::delivery(lock.conn(), tenant, id).await?)
}

/// Fails if the last test, or its resend, is less than [`TEST_INTERVAL`] ago. The endpoint is
/// locked.
async fn check_test_interval(
    lock: &mut EndpointLock<'_>,
    now: Timestamp,
) -> Result<(), CommandError> {
    let Some(last) = store::last_test(lock).await? else {
        return Ok(());
    };
    let what = match lock.owner() {
        EndpointOwner::Monitor(_) => "a monitor's webhook",
        EndpointOwner::Channel(_) => "a channel",
    };
    let left = TEST_INTERVAL
        .saturating_sub(now.duration_since(last))
        .min(TEST_INTERVAL);
    match std::time::Duration::try_from(left) {
        Ok(wait) if !wait.is_zero() => Err(CommandError::LimitExceeded {
            message: format!(
                "{what} can be tested at most once a minute; retry after {} s",
                wait.as_secs().max(1)
            ),
            retry_after: wait,
        }),
        _ => Ok(()),
    }
}

/// Why nothing is sent to an address, and what helps.
pub fn unconfirmed(channel: ChannelId, reason: &str) -> String {
    format!(
        "the channel is paused (`{reason}`): its address is not confirmed; POST /v1/channels/{channel}/confirm with {{\"code\": …}} confirms \
         it, and with {{}} mails another code"
    )
}

fn switched_off_error(owner: EndpointOwner, reason: &str) -> CommandError {
    if let (EndpointOwner::Channel(channel), "unconfirmed" | "unsubscribed") = (owner, reason) {
        return CommandError::InvalidState(unconfirmed(channel, reason));
    }
    let why = match reason {
        "gone" => "its receiver answered 410 Gone",
        "by_caller" => "its caller paused it",
        _ => match owner {
            EndpointOwner::Monitor(_) => "nothing was delivered for five days",
            EndpointOwner::Channel(_) => "nothing was delivered for three days",
        },
    };
    CommandError::InvalidState(match owner {
        EndpointOwner::Monitor(monitor) => format!(
            "the monitor's webhook is switched off (`{reason}`): {why}; switch it on with \
             POST /v1/monitors/{monitor}/enable-webhook or change its URL with PATCH /v1/monitors/{monitor}"
        ),
        EndpointOwner::Channel(channel) => format!(
            "the channel is paused (`{reason}`): {why}; make it active with \
             PATCH /v1/channels/{channel} and {{\"status\": \"active\"}}"
        ),
    })
}
