//! What the second press of a form's button shows: the signing secret that the first press has made,
//! whose page a double click replaces.

use jiff::{SignedDuration, Timestamp};
use sqlx::PgConnection;

use crate::commands::{CommandError, RequestContext};
use crate::contract::monitors::{Monitor, ShownSecret};
use crate::ids::{Kind, MonitorId, TenantId};
use crate::webhooks::{LockFor, MonitorLock, endpoint};

/// How long a form's secret is shown again.
const SHOWN_AGAIN: SignedDuration = SignedDuration::from_mins(10);

/// The secret of a webhook that was opened at this time; `None` if that was more than ten minutes
/// ago, or the secret was rotated since.
pub(super) async fn secret(
    conn: &mut PgConnection,
    context: RequestContext<'_>,
    tenant: TenantId,
    id: MonitorId,
    opened_at: Timestamp,
) -> Result<Option<ShownSecret>, CommandError> {
    if context.now.duration_since(opened_at) > SHOWN_AGAIN {
        return Ok(None);
    }
    let lock = MonitorLock::acquire(conn, tenant, id, LockFor::Webhook).await?;
    let mut lock = lock.ok_or(Kind::Monitor)?;
    endpoint::only_secret(&mut lock, context.ring, context.now).await
}

/// As [`secret`], for the monitor that a repeated form has created.
///
/// # Errors
/// `NotFound` when it was deleted.
pub async fn created_secret(
    context: RequestContext<'_>,
    created: &Monitor,
) -> Result<Option<ShownSecret>, CommandError> {
    if created.webhook.is_none() {
        return Ok(None);
    }
    let (mut tx, tenant) = context.begin(Kind::Monitor).await?;
    let shown = secret(&mut tx, context, tenant, created.id, created.created_at).await?;
    tx.commit().await?;
    Ok(shown)
}
