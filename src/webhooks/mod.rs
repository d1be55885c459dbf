//! Webhooks: what happens to a monitor is told to a receiver, at least once, signed as Standard Webhooks say (jobs-api, "Monitors").
//!
//! ```text
//!  enqueue ─► deliveries, in the transaction of what is told
//!  run ─► take (due endpoints, one try each, leased) ─► send (guard, sign) ─► schedule (pure) ─► end, fenced
//!  endpoint ─► open, change_url, enable, rotate, close        resend, test ─► the same deliveries again
//! ```
//!
//! `addresses` and [`guard`] say where a receiver may be, [`sign`] what proves the sender, [`schedule`] when a failure is tried again.
//! An endpoint's row is the lane of its deliveries: one try at a time, so a receiver that hangs takes one place. A process that dies
//! in a try loses nothing: the lease runs out and another tries again (`docs/decisions/0015`). Not here: what is told (`monitors`), HTTP.

mod addresses;
pub mod endpoint;
pub mod guard;
pub mod read;
pub mod resend;
mod run;
pub mod schedule;
mod send;
pub mod sign;
mod store;

use jiff::Timestamp;
use serde::Serialize;

pub use guard::Guard;
pub use run::{Deps, run};
pub use send::Sender;
pub use sign::Secret;
pub use store::lock::{LockFor, MonitorLock};

use crate::contract::webhooks::Event;
use crate::ids::DeliveryId;

/// The largest body, in bytes. Receivers like them below 20 KB; who has more to tell tells where it is.
pub const MAX_BODY: usize = 1024 * 1024;

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// There is no such monitor, it has no webhook, or it is another caller's.
    #[error("there is no such monitor, or it has no webhook")]
    NoEndpoint,
    /// There is no such delivery, or it is another caller's.
    #[error("there is no such delivery")]
    NoDelivery,
    /// The webhook is not in a state that allows it.
    #[error("{0}")]
    InvalidState(String),
    /// The monitor was tested less than a minute ago.
    #[error("a monitor's webhook is tested at most once a minute; try again in {} seconds", .0.as_secs().max(1))]
    TooSoon(std::time::Duration),
    /// An event that no receiver would want.
    #[error("an event has {0} bytes; at most {MAX_BODY} can be sent")]
    TooLarge(usize),
    /// A secret that is held does not open.
    #[error("the webhook's secret: {0}")]
    Secret(String),
    /// The database did not answer.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Has an event sent to a monitor's webhook, if it has one, once the caller's transaction is committed. One row; the endpoint stays locked
/// until then. A webhook that is switched off gets nothing, and the delivery is on record as failed.
///
/// # Errors
/// [`WebhookError::TooLarge`], or when the database does not answer.
pub async fn enqueue<T: Serialize>(
    lock: &mut MonitorLock<'_>,
    event_type: &str,
    data: &T,
    now: Timestamp,
) -> Result<Option<DeliveryId>, WebhookError> {
    enqueue_with(lock, event_type, data, now, schedule::MOST_TRIES).await
}

async fn enqueue_with<T: Serialize>(
    lock: &mut MonitorLock<'_>,
    event_type: &str,
    data: &T,
    now: Timestamp,
    most_tries: u16,
) -> Result<Option<DeliveryId>, WebhookError> {
    let event = Event {
        event_type: event_type.to_owned(),
        timestamp: now,
        data,
    };
    let body = serde_json::to_string(&event).map_err(|error| sqlx::Error::Encode(error.into()))?;
    if body.len() > MAX_BODY {
        return Err(WebhookError::TooLarge(body.len()));
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
