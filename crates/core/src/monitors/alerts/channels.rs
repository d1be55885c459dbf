//! The alerts of a run as messages to the channels of its monitor.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::store;
use crate::channels;
use crate::commands::CommandError;
use crate::contract::monitors::relative_dates::resolve_dates;
use crate::contract::monitors::{Alert, MonitorAlerts};
use crate::monitors::schedule::Schedule;
use crate::monitors::store::{LockedMonitor, locked_row};
use crate::notices::{MonitorView, most_urgent_first};
use crate::webhooks::MonitorLock;

/// Sends the alerts of a run to the channels of the locked monitor, after the commit: all that are stored,
/// because the event lists the strongest, which may hide those of a higher priority.
pub(super) async fn send(
    lock: &mut MonitorLock<'_>,
    event: &MonitorAlerts,
    alerts: &[Alert],
    public_url: Option<&str>,
    now: Timestamp,
) -> sqlx::Result<()> {
    let targets = channels::targets(lock).await?;
    if targets.is_empty() {
        return Ok(());
    }
    let event = MonitorAlerts {
        alerts: most_urgent_first(alerts),
        ..event.clone()
    };
    let monitor = locked_row(lock).await?;
    let item = event.alerts.first().and_then(|alert| alert.item_id);
    let carrier = match item {
        Some(item) => {
            let tenant = lock.tenant();
            store::carrier(lock.conn(), tenant, item).await?
        }
        None => None,
    };
    let run = MonitorView {
        scan: scan_of_run(&monitor, event.slot),
        carrier,
        public_url: public_url.map(str::to_owned),
    };
    let sent = channels::send(lock, &targets, &event, &run, now).await;
    sent.map_err(|error| match error {
        CommandError::Database(error) => error,
        other => sqlx::Error::Encode(other.into()),
    })
}

/// The scan of the monitor with the dates of the run of a slot.
fn scan_of_run(monitor: &LockedMonitor, slot: Timestamp) -> Map<String, Value> {
    let Some(scan) = monitor.scan.as_object() else {
        return Map::new();
    };
    match Schedule::parse(&monitor.cron, &monitor.timezone) {
        Some(schedule) => resolve_dates(scan, schedule.date(slot)),
        None => scan.clone(),
    }
}
