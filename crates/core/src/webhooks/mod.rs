//! Webhooks: delivers a monitor's events to its receiver, at least once, signed as in Standard
//! Webhooks (monitors.md, rules 53 to 72). Messages to channels are deliveries as well: an endpoint
//! is the webhook of a monitor or a channel, and only [`send`] tells them apart (decision 58).
//!
//! ```text
//!  enqueue  ─► deliveries, in the transaction of the event
//!  run      ─► lease due deliveries, one per endpoint ─► send (guard, sign) ─► retry (pure)
//!              ─► record the try, fenced
//!  endpoint ─► open, change_url, enable, rotate_secret, close
//!  resend   ─► the same delivery again, or a test event
//! ```
//!
//! `prepare` is what a try sends. Mails go to the operator's mail server ([`mail`], `smtp`), and only to addresses
//! that are confirmed ([`consent`]).
//!
//! `addresses` and [`guard`] decide which receivers are allowed, [`sign`] signs, [`retry_schedule`]
//! schedules retries. The row of an endpoint serialises its deliveries: one try at a time, so a
//! hanging receiver takes one permit. If a process dies in a try, its lease expires and another
//! process retries (`docs/decisions/0015`). Not here: the events (`monitors`), what a message says
//! (`notices`), the settings of a channel (`channels`), HTTP.

mod addresses;
pub mod consent;
pub mod endpoint;
pub mod guard;
pub mod hold;
pub mod mail;
mod prepare;
pub mod read;
pub mod relay;
pub mod resend;
pub mod retry_schedule;
mod run;
mod send;
pub mod sign;
mod smtp;
mod store;

use jiff::Timestamp;
use serde::Serialize;

pub use guard::Guard;
pub use mail::{Mailer, MailerError};
pub use relay::Relay;
pub use run::{DelivererDeps, MAX_PER_CHANNEL_HOUR, run};
pub use send::Sender;
pub use sign::Secret;
pub use store::lock::{EndpointLock, EndpointOwner, LockFor, MonitorLock};

use crate::commands::CommandError;
use crate::contract::webhooks::Event;
use crate::ids::{DeliveryId, MonitorId};

/// The largest body, in bytes. Standard Webhooks recommends less than 20 KB.
pub const MAX_BODY: usize = 1024 * 1024;

/// How an event is sent.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing<'a> {
    /// Its type.
    pub event_type: &'a str,
    /// The tries until it fails.
    pub most_tries: u16,
    /// Of a message to a channel: the monitor that it is about, if it is about one.
    pub monitor: Option<MonitorId>,
    /// It is not sent before this time, and later alerts join it until then.
    pub held_until: Option<Timestamp>,
}

impl<'a> Outgoing<'a> {
    /// At once, with all tries.
    pub fn new(event_type: &'a str) -> Self {
        Self {
            event_type,
            most_tries: retry_schedule::MAX_TRIES,
            monitor: None,
            held_until: None,
        }
    }
}

/// Enqueues an event for an endpoint; `None`: there is no such endpoint. It is sent after the commit; until
/// then the endpoint stays locked. For an endpoint that is switched off, the delivery is stored as
/// failed.
///
/// # Errors
/// `Internal` for an event larger than [`MAX_BODY`].
pub async fn enqueue<T: Serialize>(
    lock: &mut EndpointLock<'_>,
    how: &Outgoing<'_>,
    data: &T,
    now: Timestamp,
) -> Result<Option<DeliveryId>, CommandError> {
    let body = event_body(how.event_type, data, now)?;
    let delivery = store::NewDelivery {
        id: DeliveryId::new(),
        event_type: how.event_type,
        body: &body,
        most_tries: how.most_tries,
        monitor: how.monitor,
        held_until: how.held_until,
    };
    Ok(store::enqueue(lock, &delivery, now)
        .await?
        .then_some(delivery.id))
}

/// The body of an event.
fn event_body<T: Serialize>(
    event_type: &str,
    data: &T,
    now: Timestamp,
) -> Result<String, CommandError> {
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
    Ok(body)
}
