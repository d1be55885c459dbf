//! One message for each channel of a monitor, in the transaction that records its alerts.
//!
//! A message that may not be sent yet is held, and later alerts join it until it is tried: those of
//! quiet hours, of a day, or of the rest of an hour that has had its messages become one.

use jiff::{SignedDuration, Timestamp};

use super::store::{self, Target};
use crate::commands::CommandError;
use crate::contract::channels::{ChannelAlerts, Notice};
use crate::contract::monitors::MonitorAlerts;
use crate::contract::webhooks::Event;
use crate::ids::{ChannelId, MonitorId};
use crate::notices::{self, ChannelView, MonitorView};
use crate::notify::NotifyPlan;
use crate::webhooks::hold::{self, ChannelQueue};
use crate::webhooks::{
    EndpointLock, EndpointOwner, LockFor, MAX_PER_CHANNEL_HOUR, MonitorLock, Outgoing,
    enqueue_event,
};

/// The type of a message about alerts.
pub const EVENT: &str = "channel.alerts";

const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// Sends the alerts of a run to the channels of its locked monitor: each gets one message after the
/// commit, or they join its held one.
pub async fn send(
    lock: &mut MonitorLock<'_>,
    event: &MonitorAlerts,
    run: &MonitorView,
    now: Timestamp,
) -> Result<(), CommandError> {
    let (tenant, monitor) = (lock.tenant(), lock.monitor());
    for target in store::targets(lock).await? {
        let view = ChannelView {
            least_priority: target.least_priority,
            timezone: target.timezone.clone(),
        };
        let Some((notice, fired)) = notices::of_alerts(event, run, &view) else {
            continue;
        };
        let owner = EndpointOwner::Channel(target.id);
        let endpoint =
            EndpointLock::acquire(lock.conn(), tenant, owner, LockFor::Webhook).await?;
        // The key of the channel is locked with those of the others.
        let mut endpoint = endpoint.ok_or(CommandError::NoChannel)?;
        enqueue(&mut endpoint, &target, monitor, (notice, fired), now).await?;
    }
    Ok(())
}

async fn enqueue(
    lock: &mut EndpointLock<'_>,
    target: &Target,
    monitor: MonitorId,
    (notice, fired): (Notice, u64),
    now: Timestamp,
) -> Result<(), CommandError> {
    let queue = hold::lock_queue(lock).await?;
    if let Some((id, body)) = &queue.held
        && let Ok(held) = serde_json::from_str::<Event<ChannelAlerts>>(body)
    {
        let joined = notices::joined(held.data, fired, notice);
        return hold::replace(lock, *id, EVENT, &joined, now).await;
    }
    let held_until = held_until(target, &queue, now);
    if let Some(until) = held_until {
        hold::record(lock, until).await?;
    }
    let how = Outgoing {
        monitor: Some(monitor),
        held_until,
        ..Outgoing::new(EVENT)
    };
    enqueue_event(lock, &how, &notices::single(target.id, fired, notice), now).await?;
    Ok(())
}

/// Until when a message is held; `None`: it is sent at once.
fn held_until(target: &Target, queue: &ChannelQueue, now: Timestamp) -> Option<Timestamp> {
    let ready = free_at(queue, now);
    let plan = NotifyPlan::new(target.notify.as_ref(), &target.timezone);
    let until = plan.and_then(|plan| plan.hold_until(ready, queue.held_for));
    until.or((ready > now).then_some(ready))
}

/// When the hour allows one more message, after those that wait.
fn free_at(queue: &ChannelQueue, now: Timestamp) -> Timestamp {
    let hour_ago = now.checked_sub(HOUR).unwrap_or(Timestamp::MIN);
    let in_hour = queue.recent.iter().filter(|at| **at > hour_ago);
    let count = i64::try_from(in_hour.clone().count()).unwrap_or(i64::MAX);
    if count.saturating_add(queue.waiting) < i64::from(MAX_PER_CHANNEL_HOUR) {
        return now;
    }
    let oldest = in_hour.min().copied().unwrap_or(now);
    oldest.checked_add(HOUR).unwrap_or(now)
}

/// Adapts the held message to new settings or another time zone, which are stored already.
pub(super) async fn notify_changed(
    lock: &mut EndpointLock<'_>,
    id: ChannelId,
    now: Timestamp,
) -> Result<(), CommandError> {
    let queue = hold::lock_queue(lock).await?;
    if queue.held.is_none() {
        return Ok(());
    }
    let target = store::target(lock, id).await?;
    let target = target.ok_or(CommandError::NoChannel)?;
    // The held message itself may take the time for which it was held before.
    let unheld = ChannelQueue {
        held_for: None,
        ..queue
    };
    Ok(hold::reschedule(lock, held_until(&target, &unheld, now)).await?)
}
