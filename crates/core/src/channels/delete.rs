//! Deletes a channel.

use super::store;
use crate::commands::{CommandError, RequestContext};
use crate::ids::{ChannelId, Kind};
use crate::webhooks::{EndpointLock, EndpointOwner, LockFor};

/// The most monitors that a refusal names.
const MAX_NAMED: i64 = 20;

/// Deletes a channel with its target, its token and its messages.
///
/// # Errors
/// `NotFound`; `InvalidState`, naming the monitors, while monitors name it: they would be silent
/// without anybody's knowledge.
pub async fn delete(context: RequestContext<'_>, id: ChannelId) -> Result<(), CommandError> {
    let (mut tx, tenant) = context.begin_locked(Kind::Channel).await?;
    let owner = EndpointOwner::Channel(id);
    let lock = EndpointLock::acquire(&mut tx, tenant, owner, LockFor::Deletion).await?;
    let mut lock = lock.ok_or(Kind::Channel)?;
    let monitors = store::monitors_of(&mut lock, id, MAX_NAMED + 1).await?;
    if !monitors.is_empty() {
        let most = usize::try_from(MAX_NAMED).unwrap_or(usize::MAX);
        let named = monitors.iter().take(most).map(ToString::to_string);
        let more = if monitors.len() > most {
            " and others"
        } else {
            ""
        };
        let message = format!(
            "monitors name this channel; remove it from their `channels` first: {}{more}",
            named.collect::<Vec<_>>().join(", ")
        );
        return Err(CommandError::InvalidState(message));
    }
    store::delete(&mut lock, id).await?;
    tx.commit().await?;
    Ok(())
}
