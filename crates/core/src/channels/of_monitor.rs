//! The channels that a monitor names.

use std::collections::HashMap;

use sqlx::PgConnection;

use super::store;
use crate::commands::CommandError;
use crate::contract::{FieldValue as _, ValidationError, ValidationErrors};
use crate::ids::{ChannelId, MonitorId, TenantId};
use crate::webhooks::MonitorLock;

/// Makes a locked monitor name these channels and no others, in this order. A repeated one counts
/// once.
///
/// # Errors
/// `ValidationErrors` naming each that does not exist or is another caller's.
pub async fn name_channels(
    lock: &mut MonitorLock<'_>,
    channels: &[ChannelId],
) -> Result<(), CommandError> {
    let known = store::lock_named(lock, channels).await?;
    let mut errors = ValidationErrors::default();
    for (index, id) in channels.iter().enumerate() {
        if !known.contains(id) {
            errors.push(ValidationError::new(
                format!("channels[{index}]"),
                &id.to_value(),
                "the id of one of your channels, as in GET /v1/channels",
            ));
        }
    }
    errors.ok_if_empty(|| Some(()))?;
    Ok(store::replace_named(lock, channels).await?)
}

/// The channels of those monitors that name some, by monitor.
pub async fn named_by(
    conn: &mut PgConnection,
    tenant: TenantId,
    monitors: &[MonitorId],
) -> sqlx::Result<HashMap<MonitorId, Vec<ChannelId>>> {
    let mut named = HashMap::<_, Vec<_>>::new();
    for (monitor, channel) in store::named_by(conn, tenant, monitors).await? {
        named.entry(monitor).or_default().push(channel);
    }
    Ok(named)
}
