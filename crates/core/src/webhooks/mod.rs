//! Webhooks: delivers a monitor's events to its receiver, at least once, signed as in Standard
//! Webhooks (monitors.md, rules 53 to 72).
//!
//! ```text
//!  enqueue  ─► deliveries, in the transaction of the event
//!  run      ─► lease due deliveries, one per endpoint ─► send (guard, sign) ─► retry (pure)
//!              ─► record the try, fenced
//!  endpoint ─► open, change_url, enable, rotate_secret, close
//!  resend   ─► the same delivery again, or a test event
//! ```
//!
//! `addresses` and [`guard`] decide which receivers are allowed, [`sign`] signs, [`retry_schedule`]
//! schedules retries. The row of an endpoint serialises its deliveries: one try at a time, so a
//! hanging receiver takes one permit. If a process dies in a try, its lease expires and another
//! process retries (`docs/decisions/0015`). Not here: the events (`monitors`), HTTP.

mod addresses;
pub mod endpoint;
pub mod guard;
pub mod read;
pub mod resend;
pub mod retry_schedule;
mod run;
mod send;
pub mod sign;
mod store;

use jiff::Timestamp;
use serde::Serialize;

pub use guard::Guard;
pub use run::{DelivererDeps, run};
pub use send::Sender;
pub use sign::Secret;
pub use store::lock::{LockFor, MonitorLock};

use crate::commands::CommandError;
use crate::contract::webhooks::Event;
use crate::ids::DeliveryId;

/// The largest body, in bytes. Standard Webhooks recommends less than 20 KB.
pub const MAX_BODY: usize = 1024 * 1024;

/// Enqueues an event for a monitor's webhook, if it has one. It is sent after the commit; until
/// then the endpoint stays locked. For a webhook that is switched off, the delivery is stored as
/// failed.
///
/// # Errors
/// `Internal` for an event larger than [`MAX_BODY`].
pub async fn enqueue<T: Serialize>(
    lock: &mut MonitorLock<'_>,
    event_type: &str,
    data: &T,
    now: Timestamp,
) -> Result<Option<DeliveryId>, CommandError> {
    enqueue_with(lock, event_type, data, now, retry_schedule::MAX_TRIES).await
}

async fn enqueue_with<T: Serialize>(
    lock: &mut MonitorLock<'_>,
    event_type: &str,
    data: &T,
    now: Timestamp,
    most_tries: u16,
) -> Result<Option<DeliveryId>, CommandError> {
    let event = Event {
        event_type: event_type.to_owned(),
        timestamp: now,
        data,
    };
    let body = serde_json::to_string(&event).map_err(|error| sqlx::Error::Encode(error.into()))?;
    if body.len() > MAX_BODY {
        return Err(CommandError::Internal(format!(
            "the event has {} bytes; at most {MAX_BODY} bytes can be sent",
            body.len()
        )));
    }
    let delivery = store::NewDelivery {
        id: DeliveryId::new(),
        event_type,
        body: &body,
        most_tries,
    };
    Ok(store::enqueue(lock, &delivery, now)
        .await?
        .then_some(delivery.id))
}
