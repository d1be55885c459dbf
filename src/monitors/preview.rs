//! What a monitor would be: its slots, what a month of it takes, and what its schedule means. Nothing is stored.

use serde_json::{Map, Value};

use super::order::{Checked, checked};
use super::schedule::warn;
use super::{MonitorError, forecast};
use crate::contract::monitors::MonitorPreview;
use crate::db;
use crate::scans::Desk;
use crate::tenants;
use crate::webhooks::Guard;

/// How many slots are shown.
const SLOTS: usize = 5;

/// Previews a monitor. It is checked as if it were made, and nobody is asked.
///
/// # Errors
/// `Faults` with every fault of the body, the same as when it is made; `Database`.
pub async fn preview(
    desk: Desk<'_>,
    guard: Guard,
    body: &Map<String, Value>,
) -> Result<MonitorPreview, MonitorError> {
    let Checked {
        request,
        schedule,
        plan,
        ..
    } = checked(body.clone(), guard, desk.now).await?;
    // Never committed: looking a caller up may renew its fingerprint, and a preview stores nothing.
    let mut tx = db::begin(desk.pool).await?;
    let tenant = tenants::store::find(&mut tx, desk.ring, desk.key, desk.now).await?;
    let ceiling = request.max_requests_per_month.map(|max| max.get());
    let forecast = forecast::forecast(&mut tx, tenant, &schedule, &plan, ceiling, desk.now).await?;
    tx.rollback().await?;
    Ok(MonitorPreview {
        next_slots: schedule.slots(desk.now).take(SLOTS).collect(),
        schedule_warnings: warn::warnings(
            request.schedule.cron.as_str(),
            request.schedule.timezone.as_str(),
            desk.now,
        ),
        forecast,
    })
}
