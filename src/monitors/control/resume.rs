//! Letting a monitor go on by its caller's word.

use jiff_sqlx::Timestamp as SqlTimestamp;
use serde_json::Map;

use crate::config::PaceConfig;
use crate::contract::Api;
use crate::contract::monitors::Monitor;
use crate::db;
use crate::ids::{GrantId, MonitorId};
use crate::monitors::create::FOR_LIFE;
use crate::monitors::schedule::Schedule;
use crate::monitors::{MonitorError, read, store};
use crate::scans::control::resume_lane;
use crate::scans::{Answered, Desk, IdempotencyKey, Post, open_lane};
use crate::tenants::{self, GrantTerms, Purpose};
use crate::webhooks::LockFor;

/// Has a monitor go on with the key of this request, from the next slot of its schedule: what a pause skipped is not caught up. A pause of
/// its lane that waits for the caller (`key_rejected`, `not_subscribed`, `quota_exhausted`) ends too, for all scans of the lane. One that is
/// active goes on with this key.
///
/// # Errors
/// `NotFound`; `IdempotencyMismatch`; `Database`.
pub async fn resume(
    desk: Desk<'_>,
    pace: &PaceConfig,
    id: MonitorId,
    key: Option<&IdempotencyKey>,
) -> Result<Answered<Monitor>, MonitorError> {
    let post = Post::new(format!("/v1/monitors/{id}/resume"), &Map::new(), key);
    if let Some(answer) = post.repeated(desk).await? {
        return Ok(Answered {
            answer,
            replayed: true,
        });
    }
    let mut tx = db::begin(desk.pool).await?;
    let found = tenants::store::find_and_hold(&mut tx, desk.ring, desk.key, desk.now).await?;
    let tenant = found.ok_or(MonitorError::NotFound)?;
    let (mut lock, monitor) = store::lock(&mut tx, tenant, id, LockFor::Change)
        .await?
        .ok_or(MonitorError::NotFound)?;
    if let Some(answer) = post.take(lock.conn(), tenant, desk.now).await? {
        return Ok(Answered {
            answer,
            replayed: true,
        });
    }
    let next = if monitor.paused {
        let last = store::last_decided(lock.conn(), tenant, id).await?;
        Schedule::read(&monitor.cron, &monitor.timezone)
            .and_then(|schedule| schedule.after_decided(desk.now, last))
    } else {
        monitor.next_slot.map(SqlTimestamp::to_jiff)
    };
    store::set_paused(lock.conn(), tenant, id, false, next, desk.now).await?;
    let terms = GrantTerms {
        tenant,
        grant: GrantId::from(monitor.grant_id),
        purpose: Purpose::Monitor,
        expires_at: FOR_LIFE,
    };
    if let Some(api) = Api::parse(&monitor.api) {
        resume_lane(lock.conn(), tenant, api.as_str()).await?;
        open_lane(lock.conn(), tenant, api, pace).await?;
    }
    tenants::store::replace_grant(lock.conn(), &terms, &terms.seal(desk.ring, desk.key)).await?;
    let answer = read::stored(lock.conn(), tenant, id, desk.now).await?;
    post.keep(lock.conn(), tenant, &answer).await?;
    tx.commit().await?;
    Ok(Answered {
        answer,
        replayed: false,
    })
}
