//! Messages of a channel that wait, and that later alerts join (channels.md, rules 11 to 16).

use jiff::Timestamp;
use serde::Serialize;

use super::store::endpoints as store;
pub use super::store::endpoints::ChannelQueue;
use super::store::wake;
use super::{EndpointLock, event_body};
use crate::commands::CommandError;
use crate::ids::{DeliveryId, Kind};

/// Locks the endpoint of a channel and reads what waits there.
///
/// # Errors
/// `NotFound`.
pub async fn lock_queue(lock: &mut EndpointLock<'_>) -> Result<ChannelQueue, CommandError> {
    store::lock_queue(lock)
        .await?
        .ok_or(CommandError::NotFound(Kind::Channel))
}

/// Replaces what the held message says. It keeps its id and its time, and is about several monitors.
/// `false`: it is gone.
pub async fn replace<T: Serialize>(
    lock: &mut EndpointLock<'_>,
    id: DeliveryId,
    event_type: &str,
    data: &T,
    now: Timestamp,
) -> Result<bool, CommandError> {
    let body = event_body(event_type, data, now)?;
    Ok(store::replace_held(lock, id, &body).await?)
}

/// Records the time for which alerts are held: the next one is later.
pub async fn record(lock: &mut EndpointLock<'_>, until: Timestamp) -> sqlx::Result<()> {
    store::set_held_for(lock, until).await
}

/// Moves the held message to another time; `None`: it is sent at once.
pub async fn reschedule(lock: &mut EndpointLock<'_>, until: Option<Timestamp>) -> sqlx::Result<()> {
    wake(lock).await?;
    store::move_held(lock, until).await
}
