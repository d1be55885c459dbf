//! Sends a run's alerts at once, or holds them until quiet hours end or the digest is due
//! (monitors.md, rules 90 to 94; docs/decisions/0047).
//!
//! Every function runs in the transaction of a [`MonitorLock`]: alerts are held or in a delivery,
//! never both and never neither, and held alerts become one delivery once.

use jiff::Timestamp;
use serde::Serialize;

use super::alert_builder::{MAX_SENT_ALERTS, fitting};
use crate::commands::CommandError;
use crate::contract::monitors::{MonitorAlerts, MonitorDigest};
use crate::ids::DeliveryId;
use crate::monitors::store::held::{self, NotifyState};
use crate::webhooks::{self, MonitorLock, Outgoing};

/// The type of the event of one run.
const RUN_EVENT: &str = "monitor.alerts";
/// The type of the event of held alerts.
const DIGEST_EVENT: &str = "monitor.digest";

/// What became of the alerts of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dispatch {
    /// They wait to be sent with others.
    Held,
    /// They are in this delivery; `None`: the monitor has no webhook.
    Sent(Option<DeliveryId>),
}

/// Sends or holds the alerts of a run; their rows are inserted after it. While alerts are held,
/// later ones join them, so that they arrive in their order.
pub(super) async fn dispatch(
    lock: &mut MonitorLock<'_>,
    event: &MonitorAlerts,
    now: Timestamp,
) -> sqlx::Result<Dispatch> {
    let state = held::notify_state(lock).await?;
    let until = state
        .notify_at
        .or_else(|| state.plan.as_ref()?.hold_until(now, state.last));
    match until.filter(|_| state.has_webhook) {
        Some(until) => {
            held::hold(lock, until, event.fired).await?;
            Ok(Dispatch::Held)
        }
        None => Ok(Dispatch::Sent(enqueue(lock, RUN_EVENT, event, now).await?)),
    }
}

/// Sends the held alerts of a monitor if they are due, or moves them to the end of quiet hours: a
/// digest that was missed does not break the next night. `false`: none are due.
pub(in crate::monitors) async fn send_due(
    lock: &mut MonitorLock<'_>,
    now: Timestamp,
) -> sqlx::Result<bool> {
    let state = held::notify_state(lock).await?;
    let Some(due_at) = state.notify_at.filter(|due_at| *due_at <= now) else {
        return Ok(false);
    };
    match quiet_until(&state, now) {
        Some(end) => held::postpone(lock, end).await?,
        None => release(lock, &state, due_at, now).await?,
    }
    Ok(true)
}

/// Sends the held alerts now, before the webhook is closed: their delivery then fails like others,
/// and can be sent again to another webhook.
pub(in crate::monitors) async fn release_all(
    lock: &mut MonitorLock<'_>,
    now: Timestamp,
) -> sqlx::Result<()> {
    let state = held::notify_state(lock).await?;
    match state.notify_at {
        Some(notify_at) => release(lock, &state, notify_at, now).await,
        None => Ok(()),
    }
}

/// Adapts the held alerts to new settings or another time zone, which are stored already: they get
/// a new time, or are sent now if nothing holds them any more.
pub(in crate::monitors) async fn notify_changed(
    lock: &mut MonitorLock<'_>,
    now: Timestamp,
) -> sqlx::Result<()> {
    let state = held::notify_state(lock).await?;
    let Some(notify_at) = state.notify_at else {
        return Ok(());
    };
    let until = if notify_at <= now {
        quiet_until(&state, now)
    } else {
        let plan = state.plan.as_ref();
        plan.and_then(|plan| plan.hold_until(now, state.last))
    };
    match until {
        Some(until) => held::postpone(lock, until).await,
        None => release(lock, &state, notify_at, now).await,
    }
}

fn quiet_until(state: &NotifyState, now: Timestamp) -> Option<Timestamp> {
    state.plan.as_ref()?.quiet_until(now)
}

/// Makes one delivery of the held alerts.
async fn release(
    lock: &mut MonitorLock<'_>,
    state: &NotifyState,
    notify_at: Timestamp,
    now: Timestamp,
) -> sqlx::Result<()> {
    let most = i64::try_from(MAX_SENT_ALERTS).unwrap_or(i64::MAX);
    let (newest, since) = held::held_alerts(lock, most).await?;
    let alerts = fitting(&newest);
    let delivery = match since {
        None => None,
        Some(since) => {
            let event = MonitorDigest {
                monitor_id: lock.monitor(),
                name: state.name.clone(),
                since,
                notify_at,
                fired: u32::try_from(state.fired).unwrap_or(u32::MAX),
                truncated: i64::try_from(alerts.len()).is_ok_and(|sent| sent < state.fired),
                alerts,
            };
            enqueue(lock, DIGEST_EVENT, &event, now).await?
        }
    };
    // Sent before its time, it leaves that time free for another digest.
    held::record_release(lock, delivery, notify_at.min(now)).await
}

/// Enqueues an event for the monitor's webhook, if it has one; sent after the commit.
async fn enqueue<T: Serialize>(
    lock: &mut MonitorLock<'_>,
    event_type: &str,
    event: &T,
    now: Timestamp,
) -> sqlx::Result<Option<DeliveryId>> {
    webhooks::enqueue(&mut lock.endpoint(), &Outgoing::new(event_type), event, now)
        .await
        .map_err(|error| match error {
            CommandError::Database(error) => error,
            other => sqlx::Error::Encode(other.into()),
        })
}
