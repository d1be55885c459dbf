//! Validates a monitor: its schedule, its scan and its rules. Reports all errors at once. Pure.

use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::{Map, Value};

use super::alerts::rule_conflicts;
use super::monthly_limit;
use super::schedule::Schedule;
use crate::contract::monitors::relative_dates::{as_written, resolve_dates};
use crate::contract::monitors::{MonitorRequest, NotifySettings, ScheduleRequest, WebhookUrl};
use crate::contract::scans::Priority;
use crate::contract::{FieldValue as _, MAX_REPORTED_ERRORS, ValidationError, ValidationErrors};
use crate::scans::plan::{ScanPlan, earliest_today, plan_new};
use crate::webhooks::Guard;

/// The largest scan of a monitor, in bytes of JSON. Five hundred hotels by name take half of it.
const MAX_SCAN_BYTES: usize = 64 << 10;

/// A valid monitor.
#[derive(Debug)]
pub(super) struct ValidatedMonitor {
    pub(super) request: MonitorRequest,
    pub(super) schedule: Schedule,
    pub(super) next_slot: Timestamp,
    /// The scan of its next slot.
    pub(super) plan: ScanPlan,
}

/// Validates a monitor's body: its fields, its schedule, the scan of its next slot, and its rules
/// against that scan.
pub(super) fn validate_body(
    body: &Map<String, Value>,
    guard: Guard,
    now: Timestamp,
) -> Result<ValidatedMonitor, ValidationErrors> {
    let mut errors = ValidationErrors::default();
    let request = MonitorRequest::from_body(body)
        .map_err(|wrong| errors.merge(wrong))
        .ok();
    // Each readable part is checked even if another one is wrong, to report all errors at once.
    let written = body
        .get("schedule")
        .and_then(|schedule| ScheduleRequest::read(schedule).ok());
    let schedule = written.as_ref().and_then(Schedule::from_request);
    if let (Some(written), Some(schedule)) = (&written, &schedule) {
        errors.merge(schedule.check(written, now).err().unwrap_or_default());
    }
    let url = body
        .get("webhook_url")
        .and_then(|url| WebhookUrl::read(url).ok());
    if let Some(error) = url.and_then(|url| guard.check_field("webhook_url", url.as_str()).err()) {
        errors.push(error);
    }
    let notify = body
        .get("notify")
        .and_then(|notify| NotifySettings::read(notify).ok());
    if let Some(notify) = notify {
        errors.merge(notify.cross_field_errors().prefix("notify"));
    }
    let next_slot = schedule.as_ref().and_then(|schedule| schedule.after(now));
    if let Some(error) = body.get("scan").and_then(scan_too_large) {
        errors.push(error);
    }
    let plan = body
        .get("scan")
        .and_then(Value::as_object)
        .and_then(|scan| {
            let slot = next_slot.unwrap_or(now);
            let schedule = schedule
                .clone()
                .or_else(|| Schedule::parse("0 0 * * *", "UTC"))?;
            plan_new(
                &run_request(scan, &schedule, slot),
                earliest_today(now.max(slot)),
            )
            .map_err(|wrong| errors.merge(scan_errors(wrong, scan, schedule.date(slot))))
            .ok()
        });
    if let (Some(scan), Some(rules)) = (
        body.get("scan").and_then(Value::as_object),
        body.get("alerts").and_then(Value::as_array),
    ) {
        errors.merge(rule_conflicts(rules, scan));
    }
    if let (Some(request), Some(plan)) = (&request, &plan)
        && let Some(error) = monthly_limit::limit_too_low(request, plan)
    {
        errors.push(error);
    }
    errors.ok_if_empty(|| {
        Some(ValidatedMonitor {
            request: request?,
            schedule: schedule?,
            next_slot: next_slot?,
            plan: plan?,
        })
    })
}

/// The error of a scan that is too large: every list and every slot reads it.
fn scan_too_large(scan: &Value) -> Option<ValidationError> {
    let bytes = scan.to_string().len();
    (bytes > MAX_SCAN_BYTES).then(|| {
        ValidationError::with_found(
            "scan",
            format!("{bytes} bytes of JSON"),
            format!("at most {MAX_SCAN_BYTES} bytes; shorten the lists or use several monitors"),
        )
    })
}

/// The errors of the scan, at their paths in the monitor's body. A relative date is shown as
/// written, with the date that it gives for the slot of `date`.
fn scan_errors(wrong: ValidationErrors, scan: &Map<String, Value>, date: Date) -> ValidationErrors {
    if wrong.len() > MAX_REPORTED_ERRORS {
        return wrong.prefix("scan"); // The list says how many more errors there are.
    }
    let mut errors = ValidationErrors::default();
    for mut error in wrong {
        if error.expected == Date::expected() {
            error
                .expected
                .push_str(", or days after the slot's date, from +0d to +999d");
        }
        if let Some(written) = error
            .found
            .as_ref()
            .and_then(|found| as_written(scan, &error.path, found, date))
        {
            error.found = Some(written);
        }
        errors.push(error);
    }
    errors.prefix("scan")
}

/// The scan request of a slot: with its dates resolved, and `scheduled` as the default priority.
pub(super) fn run_request(
    scan: &Map<String, Value>,
    schedule: &Schedule,
    slot: Timestamp,
) -> Map<String, Value> {
    let mut request = resolve_dates(scan, schedule.date(slot));
    if request.get("priority").is_none_or(Value::is_null) {
        request.insert("priority".to_owned(), Priority::Scheduled.to_value());
    }
    request
}

/// [`validate_body`] on a blocking thread: a large plan takes long.
pub(super) async fn validate(
    body: Map<String, Value>,
    guard: Guard,
    now: Timestamp,
) -> Result<ValidatedMonitor, ValidationErrors> {
    match tokio::task::spawn_blocking(move || validate_body(&body, guard, now)).await {
        Ok(checked) => checked,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}
