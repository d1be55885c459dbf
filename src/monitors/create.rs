//! Making a monitor: all of it is stored, or nothing.

use jiff::Timestamp;
use serde_json::{Map, Value};
use sqlx::PgConnection;

use super::order::{Checked, checked};
use super::store::{self, Written};
use super::{MonitorError, forecast, read};
use crate::contract::FieldValue as _;
use crate::contract::monitors::Monitor;
use crate::db;
use crate::ids::{GrantId, MonitorId, TenantId};
use crate::scans::{Answered, Desk, IdempotencyKey, Post, ScanError, lock_orders};
use crate::tenants::acceptance::NotAccepted;
use crate::tenants::store::acceptance::find_accepted;
use crate::tenants::{self, GrantTerms, Purpose};
use crate::webhooks::{Guard, LockFor, MonitorLock, endpoint};

/// The most monitors of a caller (security.md, "Limits").
pub const MAX_MONITORS: i64 = 1_000;

/// As long as the monitor lives: a time that no monitor sees.
pub(super) const FOR_LIFE: Timestamp = Timestamp::constant(253_370_764_800, 0);

/// Checks and stores a monitor whose webhook the guard lets through, with the key of this request sealed for its runs; its next slot comes by itself.
///
/// # Errors
/// `Faults` with every fault of the body, of its schedule and of the scan that its next slot would make; `NotAccepted` for a caller
/// whose key no marketplace has accepted yet; `InvalidState` at the bound of monitors; `IdempotencyMismatch`; `Database`.
pub async fn create(
    desk: Desk<'_>,
    guard: Guard,
    body: &Map<String, Value>,
    key: Option<&IdempotencyKey>,
) -> Result<Answered<Monitor>, MonitorError> {
    let post = Post::new("/v1/monitors".to_owned(), body, key);
    if let Some(answer) = post.repeated(desk).await? {
        return Ok(Answered {
            answer,
            replayed: true,
        });
    }
    let checked = checked(body.clone(), guard, desk.now).await?;

    let mut tx = db::begin(desk.pool).await?;
    let tenant = find_accepted(&mut tx, desk.ring, desk.key, desk.now)
        .await?
        .ok_or(NotAccepted::Required)?;
    if let Some(answer) = post.take(&mut tx, tenant, desk.now).await? {
        return Ok(Answered {
            answer,
            replayed: true,
        });
    }
    lock_orders(&mut tx, tenant).await?;
    refuse_too_many(store::count(&mut tx, tenant).await?)?;
    let mut answer = place(&mut tx, desk, tenant, &checked).await?;
    let secret = answer.webhook_secret.take();
    post.keep(&mut tx, tenant, &answer).await?;
    // Shown, and kept nowhere in the clear.
    answer.webhook_secret = secret;
    tx.commit().await?;
    Ok(Answered {
        answer,
        replayed: false,
    })
}

async fn place(
    conn: &mut PgConnection,
    desk: Desk<'_>,
    tenant: TenantId,
    checked: &Checked,
) -> Result<Monitor, MonitorError> {
    let terms = GrantTerms {
        tenant,
        grant: GrantId::new(),
        purpose: Purpose::Monitor,
        expires_at: FOR_LIFE,
    };
    tenants::store::insert_grant(conn, &terms, &terms.seal(desk.ring, desk.key), desk.now).await?;
    let id = MonitorId::new();
    let Checked {
        request,
        schedule,
        next_slot,
        plan,
    } = checked;
    let written = Written {
        name: request.name.as_str(),
        cron: request.schedule.cron.as_str(),
        timezone: request.schedule.timezone.as_str(),
        scan: &request.scan.to_value(),
        api: plan.order.endpoint.get().api(),
        rules: &request
            .alerts
            .as_ref()
            .map_or_else(|| Value::Array(Vec::new()), |rules| rules.to_value()),
        max_requests_per_month: request
            .max_requests_per_month
            .and_then(|max| i32::try_from(max.get()).ok()),
        next_slot: Some(*next_slot),
    };
    store::insert(conn, tenant, id, &written, terms.grant, desk.now).await?;
    let secret = match &request.webhook_url {
        Some(url) => {
            let lock = MonitorLock::acquire(conn, tenant, id, LockFor::Webhook).await?;
            Some(
                endpoint::open(
                    &mut lock.ok_or(sqlx::Error::RowNotFound)?,
                    desk.ring,
                    url.as_str(),
                    desk.now,
                )
                .await?,
            )
        }
        None => None,
    };
    let mut monitor = read::stored(conn, tenant, id, desk.now).await?;
    monitor.webhook_secret = secret;
    let ceiling = request.max_requests_per_month.map(|max| max.get());
    monitor.forecast =
        Some(forecast::forecast(conn, Some(tenant), schedule, plan, ceiling, desk.now).await?);
    Ok(monitor)
}

fn refuse_too_many(monitors: i64) -> Result<(), MonitorError> {
    if monitors < MAX_MONITORS {
        return Ok(());
    }
    let message = format!(
        "{monitors} monitors are there, and a caller may have {MAX_MONITORS}: delete one first"
    );
    Err(MonitorError::Order(ScanError::InvalidState(message)))
}
