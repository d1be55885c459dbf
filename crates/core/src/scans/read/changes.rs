//! A scan with its changes after an event, read in one snapshot.

use std::collections::HashSet;

use sqlx::PgPool;

use super::best::leave_out_implausible;
use super::store::{self, ChangesRow};
use crate::contract::scans::{Item, Scan};
use crate::ids::{ScanId, TenantId};

/// The most events of one read: about 2.5 MB of text.
pub const MAX_EVENTS: usize = 5_000;

/// The result of one read of a scan's events.
#[derive(Debug, Clone)]
pub struct Changes {
    /// The current scan.
    pub scan: Scan,
    /// The items that changed, in their current state; each once, with the id of its last event; by
    /// id.
    pub items: Vec<(u64, Item)>,
    /// The id of the last event that was read: `last`, or less if there are more events.
    pub up_to: u64,
    /// The id of the scan's last event.
    pub last: u64,
    /// The lowest event id after which no event has been deleted.
    pub retained_after: u64,
}

impl Changes {
    /// Whether it reaches the last event.
    pub fn is_complete(&self) -> bool {
        self.up_to == self.last
    }
}

/// Reads a scan and its changes after an event; with `after: None` the scan alone. `None`: there is
/// no such scan.
pub async fn changes(
    pool: &PgPool,
    tenant: TenantId,
    id: ScanId,
    after: Option<u64>,
) -> sqlx::Result<Option<Changes>> {
    let after = after
        .and_then(|after| i64::try_from(after).ok())
        .unwrap_or(i64::MAX);
    let limit = i64::try_from(MAX_EVENTS).unwrap_or(i64::MAX);
    let row = store::changes(pool, tenant, id, after, limit).await?;
    let Some(mut changes) = row.map(to_changes) else {
        return Ok(None);
    };
    let scan = std::slice::from_mut(&mut changes.scan);
    leave_out_implausible(&mut *pool.acquire().await?, tenant, scan).await?;
    Ok(Some(changes))
}

fn to_changes(row: ChangesRow) -> Changes {
    let number = |number: i64| u64::try_from(number).unwrap_or_default();
    let (last, retained_after) = (number(row.event_count), number(row.events_from));
    let more = row.items.len() >= MAX_EVENTS;
    let up_to = row
        .items
        .last()
        .filter(|_| more)
        .map_or(last, |(id, _)| *id);
    // An item that changed twice is included once: both events would have its current state.
    let mut included = HashSet::new();
    let mut items: Vec<_> = row
        .items
        .into_iter()
        .rev()
        .filter(|(_, item)| included.insert(item.item_id))
        .collect();
    items.reverse();
    let items = items
        .into_iter()
        .map(|(id, item)| (id, Item::from(item)))
        .collect();
    Changes {
        scan: row.scan.into(),
        items,
        up_to,
        last,
        retained_after,
    }
}
