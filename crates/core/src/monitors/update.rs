//! Updates a monitor: a field of the patch replaces the stored one, an absent field stays.

use jiff::Timestamp;
use jiff_sqlx::Timestamp as SqlTimestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sqlx::PgConnection;

use super::schedule::Schedule;
use super::store::{self, LockedMonitor, MonitorColumns};
use super::validate::validate;
use super::{alerts, read, repeated};
use crate::channels;
use crate::commands::{CommandError, IdempotencyKey, IdempotentRequest, RequestContext};
use crate::contract::monitors::ShownSecret;
use crate::contract::monitors::{Monitor, MonitorPatch, MonitorRequest};
use crate::contract::{ValidationError, ValidationErrors};
use crate::ids::{Kind, MonitorId, TenantId};
use crate::webhooks::{Guard, LockFor, MonitorLock, endpoint};

/// The fields that `null` removes.
const REMOVABLE: [&str; 3] = ["webhook_url", "notify", "max_requests_per_month"];

/// Updates a monitor. The merged monitor is validated as a new one, but errors of unchanged fields
/// are ignored: a new name is allowed although the scan's dates have passed. A new schedule takes
/// effect with its next slot, a new scan with the next run. A due slot that is not decided yet uses
/// the updated monitor.
///
/// # Errors
/// `ValidationErrors`; `NotFound`.
pub async fn update(
    context: RequestContext<'_>,
    guard: Guard,
    id: MonitorId,
    body: &Map<String, Value>,
) -> Result<Monitor, CommandError> {
    MonitorPatch::from_body(body)?;
    let (mut tx, tenant) = context.begin_locked(Kind::Monitor).await?;
    let (mut lock, monitor) = store::lock(&mut tx, tenant, id, LockFor::Change).await?;
    let updated = update_locked(&mut lock, &monitor, context, guard, body).await?;
    tx.commit().await?;
    Ok(updated)
}

/// What became of the change that a form asked for.
#[derive(Debug)]
pub enum FormUpdate {
    /// It is stored, by this press of the form's button or an earlier one.
    Stored(Box<Monitor>),
    /// Nothing was stored: the monitor has changed since its form was shown.
    ChangedMeanwhile,
}

/// The stored response to a form.
#[derive(Debug, Serialize, Deserialize)]
struct StoredUpdate {
    /// When it opened the webhook.
    opened_at: Option<Timestamp>,
}

/// As [`update`], for a form that showed the monitor as it was at `seen`, its `updated_at`. The
/// form has a key of its own, so that a second press changes nothing. After one that opened the
/// webhook it shows the same secret (monitors.md, rule 71).
///
/// # Errors
/// As [`update`]; `IdempotencyMismatch`.
pub async fn update_by_form(
    context: RequestContext<'_>,
    guard: Guard,
    id: MonitorId,
    body: &Map<String, Value>,
    seen: Timestamp,
    key: &IdempotencyKey,
) -> Result<FormUpdate, CommandError> {
    MonitorPatch::from_body(body)?;
    let path = format!("/v1/monitors/{id}/form");
    let idempotent = IdempotentRequest::new(path, body, Some(key));
    if let Some(replay) = idempotent.find_response::<StoredUpdate>(context).await? {
        return stored_before(context, id, &replay.response).await;
    }
    let (tx, tenant) = context.begin_locked(Kind::Monitor).await?;
    let (mut updated, mut is_outdated) = (None, false);
    let work = async |conn: &mut PgConnection| {
        let (mut lock, monitor) = store::lock(conn, tenant, id, LockFor::Change).await?;
        if monitor.updated_at.to_jiff() != seen {
            is_outdated = true;
            let message = "the monitor was changed since its form was shown";
            return Err(CommandError::InvalidState(message.to_owned()));
        }
        let stored = update_locked(&mut lock, &monitor, context, guard, body).await?;
        let opened_at = stored.webhook_secret.as_ref().map(|_| context.now);
        updated = Some(stored);
        Ok(StoredUpdate { opened_at })
    };
    let done = idempotent.run(context, tx, tenant, work).await;
    if is_outdated {
        return Ok(FormUpdate::ChangedMeanwhile);
    }
    let done = done?;
    match updated {
        Some(monitor) => Ok(FormUpdate::Stored(Box::new(monitor))),
        // An equal press was faster.
        None => stored_before(context, id, &done.response).await,
    }
}

/// The monitor as it is now; with its secret, if the press before has opened the webhook.
async fn stored_before(
    context: RequestContext<'_>,
    id: MonitorId,
    stored: &StoredUpdate,
) -> Result<FormUpdate, CommandError> {
    let (mut tx, tenant) = context.begin(Kind::Monitor).await?;
    let mut monitor = read::read_back(&mut tx, context.ring, tenant, id, context.now).await?;
    if let Some(opened_at) = stored.opened_at {
        let secret = repeated::secret(&mut tx, context, tenant, id, opened_at).await?;
        monitor.webhook_secret = secret;
    }
    tx.commit().await?;
    Ok(FormUpdate::Stored(Box::new(monitor)))
}

/// Updates a locked monitor, in the transaction of its lock.
async fn update_locked(
    lock: &mut MonitorLock<'_>,
    monitor: &LockedMonitor,
    context: RequestContext<'_>,
    guard: Guard,
    body: &Map<String, Value>,
) -> Result<Monitor, CommandError> {
    let (tenant, id): (TenantId, MonitorId) = (lock.tenant(), lock.monitor());
    let merged = merged_body(monitor, body);
    let request = MonitorRequest::from_body(&merged)?;
    let given = |name: &str| body.get(name).is_some_and(|value| !value.is_null());
    let checked = match validate(merged, guard, context.now).await {
        Ok(checked) => Some(checked),
        Err(errors) => match errors_in_patch(errors, given) {
            errors if errors.is_empty() => None,
            errors => return Err(errors.into()),
        },
    };

    let undecided = monitor
        .next_slot
        .filter(|slot| slot.to_jiff() <= context.now);
    let last = store::last_decided(lock.conn(), tenant, id).await?;
    let next_slot = match (Schedule::from_request(&request.schedule), undecided) {
        _ if monitor.paused => None,
        (Some(schedule), None) if given("schedule") => schedule.next_undecided(context.now, last),
        _ => monitor.next_slot.map(SqlTimestamp::to_jiff),
    };
    let api = request
        .scan
        .get("endpoint")
        .and_then(Value::as_str)
        .and_then(crate::contract::Endpoint::parse);
    let api = api.ok_or(sqlx::Error::RowNotFound)?.api();
    let columns = MonitorColumns::new(&request, api, next_slot);
    store::update(lock.conn(), tenant, id, &columns, context.now).await?;
    let searches_else = changes_search(&monitor.scan, &request.scan);
    let rules = request.rules();
    alerts::rules_changed(lock.conn(), tenant, id, rules, searches_else, context.now).await?;
    if monitor.notify != columns.notify || monitor.timezone != request.schedule.timezone.as_str() {
        alerts::notify_changed(lock, context.now).await?;
    }
    if given("channels") {
        channels::name_channels(lock, request.channels()).await?;
    }
    let secret = change_webhook(lock, context, body.get("webhook_url")).await?;
    let mut answer = read::read_back(lock.conn(), context.ring, tenant, id, context.now).await?;
    answer.webhook_secret = secret;
    if let Some(checked) = &checked {
        let forecast = checked.forecast(lock.conn(), Some(tenant), context.now);
        answer.forecast = Some(forecast.await?);
    }
    Ok(answer)
}

/// The errors that the patch causes. An unchanged field was valid when it was set, though its dates
/// may have passed since. Rules and the monthly limit depend on the scan, so a new scan can make
/// them invalid.
fn errors_in_patch(mut errors: ValidationErrors, given: impl Fn(&str) -> bool) -> ValidationErrors {
    let is_touched = |error: &ValidationError| {
        let part = error.path.split(['.', '[']).next().unwrap_or_default();
        given(part) || given("scan") && ["alerts", "max_requests_per_month"].contains(&part)
    };
    errors.retain(is_touched);
    errors
}

/// Opens, moves or closes the webhook. Returns the secret of an opened one.
async fn change_webhook(
    lock: &mut MonitorLock<'_>,
    context: RequestContext<'_>,
    given: Option<&Value>,
) -> Result<Option<ShownSecret>, CommandError> {
    match given {
        None => {}
        Some(Value::String(url)) => {
            match endpoint::change_url(&mut lock.endpoint(), context.ring, url).await {
                Err(CommandError::NoWebhook) => {
                    return Ok(Some(
                        endpoint::open(lock, context.ring, url, context.now).await?,
                    ));
                }
                moved => moved?,
            }
        }
        Some(_) => {
            alerts::release_all(lock, context.now).await?;
            endpoint::close(lock, context.now).await?;
        }
    }
    Ok(None)
}

/// Whether the runs will search something else, so that earlier prices are not comparable.
fn changes_search(before: &Value, after: &Map<String, Value>) -> bool {
    ["endpoint", "request", "sweep"]
        .into_iter()
        .any(|part| before.get(part) != after.get(part))
}

/// The whole body of the monitor with the patch applied.
fn merged_body(monitor: &LockedMonitor, patch: &Map<String, Value>) -> Map<String, Value> {
    let times = [monitor.cron.as_str(), monitor.timezone.as_str()];
    let (scan, rules) = (monitor.scan.clone(), monitor.rules.clone());
    let mut body = MonitorRequest::draft(&monitor.name, times, scan, rules);
    body.insert("notify".to_owned(), monitor.notify.clone().into());
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
