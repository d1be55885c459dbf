//! Previews a monitor: its slots, its forecast and the warnings of its schedule. Stores nothing.

use serde_json::{Map, Value};

use super::schedule::warnings;
use super::validate::{ValidatedMonitor, validate};
use crate::channels;
use crate::commands::{CommandError, RequestContext};
use crate::contract::monitors::MonitorPreview;
use crate::db;
use crate::webhooks::Guard;

/// The number of slots in a preview.
const SLOTS: usize = 5;

/// Previews a monitor. Validates it as a new one, without a call to the marketplace.
///
/// # Errors
/// `ValidationErrors` with every error of the body, as on creation.
pub async fn preview(
    context: RequestContext<'_>,
    guard: Guard,
    body: &Map<String, Value>,
) -> Result<MonitorPreview, CommandError> {
    let checked = validate(body.clone(), guard, context.now).await?;
    // Never committed: finding a tenant may renew its fingerprint, and a preview stores nothing.
    let mut tx = db::begin(context.pool).await?;
    let tenant = context.find_tenant(&mut tx).await?;
    channels::check_named(&mut tx, tenant, checked.request.channels()).await?;
    let forecast = checked.forecast(&mut tx, tenant, context.now).await?;
    tx.rollback().await?;
    let ValidatedMonitor {
        request, schedule, ..
    } = checked;
    let mut schedule_warnings = warnings::warnings(
        request.schedule.cron.as_str(),
        request.schedule.timezone.as_str(),
        context.now,
    );
    if let Some(scan) = body.get("scan") {
        schedule_warnings.extend(warnings::unreported_watch(scan, body.get("alerts")));
    }
    Ok(MonitorPreview {
        next_slots: schedule.slots_after(context.now).take(SLOTS).collect(),
        schedule_warnings,
        forecast,
    })
}
