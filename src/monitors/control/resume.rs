//! Resumes a monitor.

use jiff_sqlx::Timestamp as SqlTimestamp;
use serde_json::Map;

use crate::config::PaceConfig;
use crate::contract::monitors::Monitor;
use crate::db;
use crate::ids::{GrantId, MonitorId};
use crate::monitors::create::NEVER_EXPIRES;
use crate::monitors::schedule::Schedule;
use crate::monitors::{MonitorError, read, store};
use crate::scans::control::resume_lane;
use crate::scans::{
    IdempotencyKey, IdempotentRequest, Replayable, RequestContext, ensure_and_wake_lane,
};
use crate::tenants::{self, GrantTerms, Purpose};
use crate::webhooks::LockFor;

/// Resumes a monitor with the key of this request, from the next slot of its schedule; skipped
/// slots are not caught up. It also ends a pause of the lane that waits for the caller
/// (`key_rejected`, `not_subscribed`, `quota_exhausted`), for all scans of the lane. An active
/// monitor only gets the new key.
///
/// # Errors
/// `NotFound`; `IdempotencyMismatch`; `Database`.
pub async fn resume(
    context: RequestContext<'_>,
    pace: &PaceConfig,
    id: MonitorId,
    key: Option<&IdempotencyKey>,
) -> Result<Replayable<Monitor>, MonitorError> {
    let idempotent = IdempotentRequest::new(format!("/v1/monitors/{id}/resume"), &Map::new(), key);
    if let Some(response) = idempotent.find_response(context).await? {
        return Ok(Replayable {
            response,
            replayed: true,
        });
    }
    let mut tx = db::begin(context.pool).await?;
    let found =
        tenants::store::find_and_lock(&mut tx, context.ring, context.key, context.now).await?;
    let tenant = found.ok_or(MonitorError::NotFound)?;
    let (mut lock, monitor) = store::lock(&mut tx, tenant, id, LockFor::Change)
        .await?
        .ok_or(MonitorError::NotFound)?;
    if let Some(response) = idempotent.reserve(lock.conn(), tenant, context.now).await? {
        return Ok(Replayable {
            response,
            replayed: true,
        });
    }
    let next = if monitor.paused {
        let last = store::last_decided(lock.conn(), tenant, id).await?;
        Schedule::parse(&monitor.cron, &monitor.timezone)
            .and_then(|schedule| schedule.next_undecided(context.now, last))
    } else {
        monitor.next_slot.map(SqlTimestamp::to_jiff)
    };
    store::set_paused(lock.conn(), tenant, id, false, next, context.now).await?;
    let terms = GrantTerms {
        tenant,
        grant: GrantId::from(monitor.grant_id),
        purpose: Purpose::Monitor,
        expires_at: NEVER_EXPIRES,
    };
    resume_lane(lock.conn(), tenant, monitor.api).await?;
    ensure_and_wake_lane(lock.conn(), tenant, monitor.api, pace).await?;
    tenants::store::replace_grant(lock.conn(), &terms, &terms.seal(context.ring, context.key))
        .await?;
    let response = read::read_back(lock.conn(), context.ring, tenant, id, context.now).await?;
    idempotent
        .store_response(lock.conn(), tenant, &response)
        .await?;
    tx.commit().await?;
    Ok(Replayable {
        response,
        replayed: false,
    })
}
