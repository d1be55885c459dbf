//! One message for each channel of a monitor, in the transaction that records its alerts.
//!
//! A message that may not be sent yet is held, and later alerts join it until it is tried: those of
//! quiet hours, of a day, or of the rest of an hour that has had its messages become one.

use jiff::{SignedDuration, Timestamp};

use super::store;
pub use super::store::ChannelTarget;
use crate::commands::CommandError;
use crate::contract::channels::{ChannelAlerts, ChannelNotice};
use crate::contract::monitors::MonitorAlerts;
use crate::contract::webhooks::Event;
use crate::ids::{ChannelId, Kind, MonitorId};
use crate::notices::{self, ChannelView, MonitorView};
use crate::notify::NotifyPlan;
use crate::webhooks::hold::{self, ChannelQueue};
use crate::webhooks::{
    self, EndpointLock, EndpointOwner, LockFor, MAX_PER_CHANNEL_HOUR, MonitorLock, Outgoing,
};

/// The type of a message about alerts.
pub const EVENT: &str = "channel.alerts";

const HOUR: SignedDuration = SignedDuration::from_hours(1);
/// By how much the clock of a process may be behind that of another, which has already sent what was held
/// until a time.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(1);

/// The channels of a locked monitor, which are locked against their deletion.
pub async fn targets(lock: &mut MonitorLock<'_>) -> sqlx::Result<Vec<ChannelTarget>> {
    store::targets(lock).await
}

/// Sends the alerts of a run to the [`targets`] of its locked monitor: each gets one message after the
/// commit, or they join its held one.
pub async fn send(
    lock: &mut MonitorLock<'_>,
    targets: &[ChannelTarget],
    event: &MonitorAlerts,
    run: &MonitorView,
    now: Timestamp,
) -> Result<(), CommandError> {
    let (tenant, monitor) = (lock.tenant(), lock.monitor());
    for target in targets {
        let view = ChannelView {
            least_priority: target.least_priority,
            timezone: target.timezone.clone(),
        };
        let Some((notice, fired)) = notices::of_alerts(event, run, &view) else {
            continue;
        };
        let owner = EndpointOwner::Channel(target.id);
        let endpoint = EndpointLock::acquire(lock.conn(), tenant, owner, LockFor::Webhook).await?;
        let mut endpoint = endpoint.ok_or(Kind::Channel)?;
        enqueue(&mut endpoint, target, monitor, (notice, fired), now).await?;
    }
    Ok(())
}

async fn enqueue(
    lock: &mut EndpointLock<'_>,
    target: &ChannelTarget,
    monitor: MonitorId,
    (notice, fired): (ChannelNotice, u64),
    now: Timestamp,
) -> Result<(), CommandError> {
    let queue = hold::lock_queue(lock).await?;
    if let Some((id, body)) = &queue.held
        && let Ok(held) = serde_json::from_str::<Event<ChannelAlerts>>(body)
    {
        let joined = notices::joined(held.data, fired, notice.clone());
        // It goes with the monitor that it is of, which may be deleted at this moment.
        if hold::replace(lock, *id, EVENT, &joined, now).await? {
            return Ok(());
        }
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
    webhooks::enqueue(lock, &how, &notices::single(target.id, fired, notice), now).await?;
    Ok(())
}

/// Until when a message is held; `None`: it is sent at once.
fn held_until(target: &ChannelTarget, queue: &ChannelQueue, now: Timestamp) -> Option<Timestamp> {
    let free = free_at(queue);
    let plan = NotifyPlan::new(target.notify.as_ref(), &target.timezone);
    let earliest = free.map_or(now, |free| free.max(now));
    // A later time is that of a message that is not held any more: it failed, or the settings changed.
    let is_sent = |held_for: &Timestamp| *held_for <= now.saturating_add(CLOCK_SKEW).unwrap_or(now);
    let sent_for = queue.held_for.filter(is_sent);
    let until = plan.and_then(|plan| plan.hold_until(earliest, sent_for));
    until.or(free)
}

/// When the hour allows one more message, after those that wait; `None`: now.
fn free_at(queue: &ChannelQueue) -> Option<Timestamp> {
    let hour_ago = queue.clock.checked_sub(HOUR).ok()?;
    let in_hour = queue.recent.iter().filter(|at| **at > hour_ago);
    let count = i64::try_from(in_hour.clone().count()).unwrap_or(i64::MAX);
    if count.saturating_add(queue.waiting) < i64::from(MAX_PER_CHANNEL_HOUR) {
        return None;
    }
    in_hour.min().unwrap_or(&queue.clock).checked_add(HOUR).ok()
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
    let target = target.ok_or(Kind::Channel)?;
    // The held message itself may take the time for which it was held before.
    let unheld = ChannelQueue {
        held_for: None,
        ..queue
    };
    Ok(hold::reschedule(lock, held_until(&target, &unheld, now)).await?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::contract::FieldValue as _;
    use crate::contract::channels::NoticePriority;
    use crate::contract::monitors::NotifySettings;

    fn at(time: &str) -> Timestamp {
        time.parse().unwrap()
    }

    /// Until when an alert of this time is held, of a channel that was held for `held_for` last.
    fn held(notify: &serde_json::Value, now: &str, held_for: Option<&str>) -> Option<Timestamp> {
        let target = ChannelTarget {
            id: ChannelId::new(),
            least_priority: NoticePriority::Low,
            notify: Some(NotifySettings::read(notify).unwrap()),
            timezone: "UTC".to_owned(),
        };
        let queue = ChannelQueue {
            clock: at(now),
            recent: Vec::new(),
            waiting: 0,
            held: None,
            held_for: held_for.map(at),
        };
        held_until(&target, &queue, at(now))
    }

    #[test]
    fn a_time_of_a_message_that_is_not_held_any_more_moves_nothing() {
        let daily = json!({"digest_at": "08:00"});
        let next = Some(at("2026-12-02T08:00:00Z"));
        for last in [
            None,
            Some("2026-12-02T08:00:00Z"),
            Some("2027-03-01T08:00:00Z"),
        ] {
            assert_eq!(held(&daily, "2026-12-01T12:00:00Z", last), next, "{last:?}");
        }
        let night = json!({"quiet_hours": {"from": "22:00", "until": "07:00"}});
        let end = "2026-12-02T07:00:00Z";
        assert_eq!(
            held(&night, "2026-12-02T03:00:00Z", Some(end)),
            Some(at(end))
        );
    }

    #[test]
    fn what_was_sent_by_a_faster_clock_is_not_held_for_again() {
        let daily = json!({"digest_at": "08:00"});
        let sent = Some("2026-12-01T08:00:00Z");
        let tomorrow = Some(at("2026-12-02T08:00:00Z"));
        assert_eq!(held(&daily, "2026-12-01T07:59:30Z", sent), tomorrow);
    }
}
