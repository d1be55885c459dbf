//! Creates a monitor in one transaction.

use jiff::Timestamp;
use serde_json::{Map, Value};
use sqlx::PgConnection;

use super::read;
use super::store::{self, MonitorColumns};
use super::validate::{ValidatedMonitor, validate};
use crate::channels;
use crate::commands::{
    CommandError, IdempotencyKey, IdempotentRequest, Replayable, RequestContext,
};
use crate::contract::monitors::Monitor;
use crate::db;
use crate::ids::{GrantId, MonitorId, TenantId};
use crate::scans::lock_submissions;
use crate::tenants::acceptance::NotAccepted;
use crate::tenants::store::acceptance::find_accepted;
use crate::tenants::{self, GrantTerms, Purpose};
use crate::webhooks::{Guard, LockFor, MonitorLock, endpoint};

/// The largest number of monitors of a tenant (security.md, rule 20).
pub const MAX_MONITORS: i64 = 1_000;

/// The expiry of a monitor's key: in effect, never.
pub(super) const NEVER_EXPIRES: Timestamp = Timestamp::constant(253_370_764_800, 0);

/// Validates and stores a monitor, with the key of this request sealed for its runs. The guard
/// checks its webhook URL.
///
/// # Errors
/// `ValidationErrors` with every error of the body, its schedule and the scan of its next slot;
/// `NotAccepted` for a tenant whose key the marketplace has not accepted yet; `InvalidState` at
/// [`MAX_MONITORS`]; `IdempotencyMismatch`.
pub async fn create(
    context: RequestContext<'_>,
    guard: Guard,
    body: &Map<String, Value>,
    key: Option<&IdempotencyKey>,
) -> Result<Replayable<Monitor>, CommandError> {
    let idempotent = IdempotentRequest::new("/v1/monitors".to_owned(), body, key);
    if let Some(replay) = idempotent.find_response(context).await? {
        return Ok(with_url(replay, body));
    }
    let checked = validate(body.clone(), guard, context.now).await?;
    let mut tx = db::begin(context.pool).await?;
    let tenant = find_accepted(&mut tx, context.ring, context.key, context.now)
        .await?
        .ok_or(NotAccepted::Required)?;
    // The response shows the secret and the URL, which may hold one. The stored response has
    // neither: a repetition brings the same URL with it.
    let mut secret = None;
    let work = async |conn: &mut PgConnection| {
        lock_submissions(conn, tenant).await?;
        check_monitor_count(store::count(conn, tenant).await?)?;
        let mut monitor = insert_monitor(conn, context, tenant, &checked).await?;
        secret = monitor.webhook_secret.take();
        read::set_webhook_url(&mut monitor, None);
        Ok(monitor)
    };
    let mut created = idempotent.run(context, tx, tenant, work).await?;
    created.response.webhook_secret = secret;
    Ok(with_url(created, body))
}

/// The response with the webhook URL of its request.
fn with_url(mut created: Replayable<Monitor>, body: &Map<String, Value>) -> Replayable<Monitor> {
    let url = body.get("webhook_url").and_then(Value::as_str);
    read::set_webhook_url(&mut created.response, url);
    created
}

async fn insert_monitor(
    conn: &mut PgConnection,
    context: RequestContext<'_>,
    tenant: TenantId,
    checked: &ValidatedMonitor,
) -> Result<Monitor, CommandError> {
    let terms = GrantTerms {
        tenant,
        grant: GrantId::new(),
        purpose: Purpose::Monitor,
        expires_at: NEVER_EXPIRES,
    };
    tenants::store::insert_grant(
        conn,
        &terms,
        &terms.seal(context.ring, context.key),
        context.now,
    )
    .await?;
    let id = MonitorId::new();
    let ValidatedMonitor {
        request,
        next_slot,
        plan,
        ..
    } = checked;
    let api = plan.scan_request.endpoint.get().api();
    let columns = MonitorColumns::new(request, api, Some(*next_slot));
    store::insert(conn, tenant, id, &columns, terms.grant, context.now).await?;
    let secret = match &request.webhook_url {
        Some(url) => {
            let lock = MonitorLock::acquire(conn, tenant, id, LockFor::Webhook).await?;
            Some(
                endpoint::open(
                    &mut lock.ok_or(sqlx::Error::RowNotFound)?,
                    context.ring,
                    url.as_str(),
                    context.now,
                )
                .await?,
            )
        }
        None => None,
    };
    if !request.channels().is_empty() {
        let lock = MonitorLock::acquire(conn, tenant, id, LockFor::Webhook).await?;
        let mut lock = lock.ok_or(sqlx::Error::RowNotFound)?;
        channels::name_channels(&mut lock, request.channels()).await?;
    }
    let mut monitor = read::read_back(conn, context.ring, tenant, id, context.now).await?;
    monitor.webhook_secret = secret;
    monitor.forecast = Some(checked.forecast(conn, Some(tenant), context.now).await?);
    Ok(monitor)
}

fn check_monitor_count(monitors: i64) -> Result<(), CommandError> {
    if monitors < MAX_MONITORS {
        return Ok(());
    }
    let message = format!(
        "the account has {monitors} monitors and may have at most {MAX_MONITORS}; delete one first"
    );
    Err(CommandError::InvalidState(message))
}
