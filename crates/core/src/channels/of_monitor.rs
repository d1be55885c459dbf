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
    let tenant = lock.tenant();
    check_named(lock.conn(), Some(tenant), channels).await?;
    Ok(store::replace_named(lock, channels).await?)
}

/// Checks the channels of a monitor (channels.md, rule 7). Those that exist are locked against their deletion
/// until the end of the transaction.
///
/// # Errors
/// `ValidationErrors` naming each that does not exist or is another caller's; without a tenant all of them.
pub async fn check_named(
    conn: &mut PgConnection,
    tenant: Option<TenantId>,
    channels: &[ChannelId],
) -> Result<(), CommandError> {
    let known = match tenant {
        Some(tenant) if !channels.is_empty() => store::lock_named(conn, tenant, channels).await?,
        _ => Vec::new(),
    };
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
    Ok(errors.ok_if_empty(|| Some(()))?)
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
