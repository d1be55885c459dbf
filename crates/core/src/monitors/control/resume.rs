//! Resumes a monitor.

use jiff_sqlx::Timestamp as SqlTimestamp;
use serde_json::Map;
use sqlx::PgConnection;

use crate::commands::{
    CommandError, IdempotencyKey, IdempotentRequest, Replayable, RequestContext,
};
use crate::config::PaceConfig;
use crate::contract::monitors::Monitor;
use crate::ids::{GrantId, Kind, MonitorId};
use crate::monitors::create::NEVER_EXPIRES;
use crate::monitors::schedule::Schedule;
use crate::monitors::{read, store};
use crate::scans::control::resume_lane;
use crate::scans::ensure_and_wake_lane;
use crate::tenants::{self, GrantTerms, Purpose};
use crate::webhooks::LockFor;

/// Resumes a monitor with the key of this request, from the next slot of its schedule; skipped
/// slots are not caught up. It also ends a pause of the lane that waits for the caller
/// (`key_rejected`, `not_subscribed`, `quota_exhausted`), for all scans of the lane. An active
/// monitor only gets the new key.
///
/// # Errors
/// `NotFound`; `IdempotencyMismatch`.
pub async fn resume(
    context: RequestContext<'_>,
    pace: &PaceConfig,
    id: MonitorId,
    key: Option<&IdempotencyKey>,
) -> Result<Replayable<Monitor>, CommandError> {
    let idempotent = IdempotentRequest::new(format!("/v1/monitors/{id}/resume"), &Map::new(), key);
    if let Some(replay) = idempotent.find_response(context).await? {
        return with_current_url(context, id, replay).await;
    }
    let (tx, tenant) = context.begin_locked(Kind::Monitor).await?;
    let work = async |conn: &mut PgConnection| {
        let (mut lock, monitor) = store::lock(conn, tenant, id, LockFor::Change).await?;
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
        let sealed = terms.seal(context.ring, context.key);
        resume_lane(lock.conn(), tenant, monitor.api).await?;
        ensure_and_wake_lane(lock.conn(), tenant, monitor.api, pace).await?;
        tenants::store::replace_grant(lock.conn(), &terms, &sealed).await?;
        let mut resumed =
            read::read_back(lock.conn(), context.ring, tenant, id, context.now).await?;
        read::set_webhook_url(&mut resumed, None);
        Ok(resumed)
    };
    let resumed = idempotent.run(context, tx, tenant, work).await?;
    with_current_url(context, id, resumed).await
}

/// The response with the monitor's webhook URL, which is stored only sealed.
async fn with_current_url(
    context: RequestContext<'_>,
    id: MonitorId,
    mut resumed: Replayable<Monitor>,
) -> Result<Replayable<Monitor>, CommandError> {
    let mut conn = context.pool.acquire().await?;
    let url = match context.find_tenant(&mut conn).await? {
        Some(tenant) => read::webhook_url(&mut conn, context.ring, tenant, id, context.now).await?,
        None => None,
    };
    read::set_webhook_url(&mut resumed.response, url.as_deref());
    Ok(resumed)
}
