//! The alerts of a run as messages to the channels of its monitor.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::channels;
use crate::commands::CommandError;
use crate::contract::monitors::relative_dates::resolve_dates;
use crate::contract::monitors::{Alert, MonitorAlerts};
use crate::contract::{Api, Endpoint};
use crate::monitors::schedule::Schedule;
use crate::monitors::store::{LockedMonitor, locked_row};
use crate::notices::{self, MonitorView, most_urgent_first};
use crate::scans::read::answer;
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
    let scan = scan_of_run(&monitor, event.slot);
    let fare = match event.alerts.first() {
        Some(first) => fare_of(lock, &scan, first).await?,
        None => None,
    };
    let run = MonitorView {
        scan,
        fare,
        public_url: public_url.map(str::to_owned),
    };
    let sent = channels::send(lock, &targets, &event, &run, now).await;
    sent.map_err(|error| match error {
        CommandError::Database(error) => error,
        other => sqlx::Error::Encode(other.into()),
    })
}

/// The fare of an alert: airline, times, duration, stops. `None` for a hotel, whose alerts name the room. An
/// answer that cannot be read costs the message this line, and never the report.
async fn fare_of(
    lock: &mut MonitorLock<'_>,
    scan: &Map<String, Value>,
    alert: &Alert,
) -> sqlx::Result<Option<String>> {
    let endpoint = scan.get("endpoint").and_then(Value::as_str);
    let endpoint = endpoint.and_then(Endpoint::parse);
    let endpoint = endpoint.filter(|endpoint| endpoint.api() == Api::Flights);
    let (Some(endpoint), Some(item)) = (endpoint, alert.item_id) else {
        return Ok(None);
    };
    let tenant = lock.tenant();
    let answer = match answer(lock.conn(), tenant, item).await {
        Err(sqlx::Error::Decode(error)) => {
            tracing::warn!(%item, %error, "the answer of an alert cannot be read");
            return Ok(None);
        }
        found => found?,
    };
    let Some(answer) = answer else {
        return Ok(None);
    };
    let alert = alert.clone();
    // An answer of megabytes would block an async thread.
    let reading = tokio::task::spawn_blocking(move || notices::fare_of(endpoint, &alert, &answer));
    Ok(reading.await.unwrap_or_default())
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
