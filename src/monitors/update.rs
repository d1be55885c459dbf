//! Changing a monitor: what is absent stays, what is there takes the place of what was.

use jiff_sqlx::Timestamp as SqlTimestamp;
use serde_json::{Map, Value, json};

use super::order::checked;
use super::schedule::Schedule;
use super::store::{self, LockedMonitor, Written};
use super::{MonitorError, alerts, forecast, read};
use crate::contract::monitors::{Monitor, MonitorPatch, MonitorRequest};
use crate::contract::webhooks::ShownSecret;
use crate::contract::{Fault, Faults, FieldValue as _};
use crate::db;
use crate::ids::MonitorId;
use crate::scans::Desk;
use crate::tenants;
use crate::webhooks::{Guard, LockFor, MonitorLock, WebhookError, endpoint};

/// What `null` takes away.
const REMOVABLE: [&str; 2] = ["webhook_url", "max_requests_per_month"];

/// Changes a monitor. The whole of it is checked as if it were made now, but for what the change does not touch: a new name does not ask
/// whether the scan's dates have passed. A new schedule holds from its next slot on, a new scan from its next run on; a slot that has come
/// and is not decided yet is decided by what stands then.
///
/// # Errors
/// `Faults`; `NotFound`; `Database`.
pub async fn update(
    desk: Desk<'_>,
    guard: Guard,
    id: MonitorId,
    body: &Map<String, Value>,
) -> Result<Monitor, MonitorError> {
    MonitorPatch::from_body(body)?;
    let mut tx = db::begin(desk.pool).await?;
    let found = tenants::store::find_and_hold(&mut tx, desk.ring, desk.key, desk.now).await?;
    let tenant = found.ok_or(MonitorError::NotFound)?;
    let (mut lock, monitor) = store::lock(&mut tx, tenant, id, LockFor::Change)
        .await?
        .ok_or(MonitorError::NotFound)?;
    let merged = merged(&monitor, body);
    let request = MonitorRequest::from_body(&merged)?;
    let given = |name: &str| body.get(name).is_some_and(|value| !value.is_null());
    let checked = match checked(merged, guard, desk.now).await {
        Ok(checked) => Some(checked),
        Err(faults) => match touched(faults, given) {
            faults if faults.is_empty() => None,
            faults => return Err(MonitorError::faults(faults)),
        },
    };

    let undecided = monitor.next_slot.filter(|slot| slot.to_jiff() <= desk.now);
    let last = store::last_decided(lock.conn(), tenant, id).await?;
    let next_slot = match (Schedule::of(&request.schedule), undecided) {
        _ if monitor.paused => None,
        (Some(schedule), None) if given("schedule") => schedule.after_decided(desk.now, last),
        _ => monitor.next_slot.map(SqlTimestamp::to_jiff),
    };
    let api = request
        .scan
        .get("endpoint")
        .and_then(Value::as_str)
        .and_then(crate::contract::Endpoint::parse);
    let written = Written {
        name: request.name.as_str(),
        cron: request.schedule.cron.as_str(),
        timezone: request.schedule.timezone.as_str(),
        scan: &request.scan.to_value(),
        api: api.ok_or(sqlx::Error::RowNotFound)?.api(),
        rules: &request
            .alerts
            .as_ref()
            .map_or_else(|| json!([]), |rules| rules.to_value()),
        max_requests_per_month: request
            .max_requests_per_month
            .and_then(|max| i32::try_from(max.get()).ok()),
        next_slot,
    };
    store::update(lock.conn(), tenant, id, &written, desk.now).await?;
    let rules = request
        .alerts
        .as_ref()
        .map_or(&[][..], |rules| rules.as_slice());
    alerts::changed(
        lock.conn(),
        tenant,
        id,
        rules,
        searches_else(&monitor.scan, &request.scan),
        desk.now,
    )
    .await?;
    let secret = change_webhook(&mut lock, desk, body.get("webhook_url")).await?;
    let mut answer = read::stored(lock.conn(), tenant, id, desk.now).await?;
    answer.webhook_secret = secret;
    if let Some(checked) = &checked {
        let ceiling = request.max_requests_per_month.map(|max| max.get());
        let (schedule, plan) = (&checked.schedule, &checked.plan);
        answer.forecast = Some(
            forecast::forecast(lock.conn(), Some(tenant), schedule, plan, ceiling, desk.now)
                .await?,
        );
    }
    tx.commit().await?;
    Ok(answer)
}

/// The faults of what a change gives. What it does not was right when it was given, and time may have passed over it: the dates of a
/// scan, the last slot of a schedule. Rules and the ceiling are looked at beside the scan, so a new scan may be at fault for them.
fn touched(mut faults: Faults, given: impl Fn(&str) -> bool) -> Faults {
    let is_touched = |fault: &Fault| {
        let part = fault.path.split(['.', '[']).next().unwrap_or_default();
        given(part) || given("scan") && ["alerts", "max_requests_per_month"].contains(&part)
    };
    faults.retain(is_touched);
    faults
}

/// Opens, moves or closes the webhook as a change says; the secret of one that is opened.
async fn change_webhook(
    lock: &mut MonitorLock<'_>,
    desk: Desk<'_>,
    given: Option<&Value>,
) -> Result<Option<ShownSecret>, MonitorError> {
    match given {
        None => {}
        Some(Value::String(url)) => match endpoint::change_url(lock, url).await {
            Err(WebhookError::NoEndpoint) => {
                return Ok(Some(endpoint::open(lock, desk.ring, url, desk.now).await?));
            }
            moved => moved?,
        },
        Some(_) => endpoint::close(lock, desk.now).await?,
    }
    Ok(None)
}

/// Whether its runs will be about something else: prices of before do not compare with theirs.
fn searches_else(before: &Value, after: &Map<String, Value>) -> bool {
    ["endpoint", "request", "sweep"]
        .into_iter()
        .any(|part| before.get(part) != after.get(part))
}

/// The body of the monitor as it would be, as if it were sent whole.
fn merged(monitor: &LockedMonitor, patch: &Map<String, Value>) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("name".to_owned(), monitor.name.as_str().into());
    body.insert(
        "schedule".to_owned(),
        json!({"cron": monitor.cron, "timezone": monitor.timezone}),
    );
    body.insert("scan".to_owned(), monitor.scan.clone());
    body.insert("alerts".to_owned(), monitor.rules.clone());
    body.insert(
        "max_requests_per_month".to_owned(),
        monitor.max_requests_per_month.into(),
    );
    for (name, value) in patch
        .iter()
        .filter(|(name, value)| !value.is_null() || REMOVABLE.contains(&name.as_str()))
    {
        body.insert(name.clone(), value.clone());
    }
    body
}
