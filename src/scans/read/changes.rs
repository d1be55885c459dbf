//! A scan with what changed in it after a place in its events, all of one moment.

use std::collections::HashSet;

use sqlx::PgPool;

use super::rows::{ItemRow, ScanRow};
use super::store;
use crate::contract::scans::{Item, Scan};
use crate::ids::{ScanId, TenantId};

/// The most events of one reading: some 2.5 MB of text.
pub const MOST_EVENTS: usize = 5_000;

/// What one reading of a scan's events brought.
#[derive(Debug, Clone)]
pub struct Changes {
    /// The scan, as it is now.
    pub scan: Scan,
    /// Items that changed after the place that was asked for, as they are now, each once, at its last event; by event.
    pub items: Vec<(u64, Item)>,
    /// The place up to which this tells everything: the last number that was given, or before it when there is more to read.
    pub upto: u64,
    /// The last number that was given.
    pub last: u64,
    /// The lowest place after which everything is still kept.
    pub kept_after: u64,
}

impl Changes {
    /// Whether there is nothing to read after this now.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.upto == self.last
    }
}

/// A scan and what changed in it after a place; after `None` nothing has changed. `None`: there is no such scan.
///
/// # Errors
/// When the database does not answer.
pub async fn changes(
    pool: &PgPool,
    tenant: TenantId,
    id: ScanId,
    after: Option<u64>,
) -> sqlx::Result<Option<Changes>> {
    let place = after
        .and_then(|after| i64::try_from(after).ok())
        .unwrap_or(i64::MAX);
    let limit = i64::try_from(MOST_EVENTS).unwrap_or(i64::MAX);
    Ok(store::changes(pool, tenant, id, place, limit)
        .await?
        .map(told))
}

/// A row of what changed.
pub(super) struct ChangesRow {
    pub(super) scan: ScanRow,
    pub(super) items: Vec<(u64, ItemRow)>,
    pub(super) event_count: i64,
    pub(super) events_from: i64,
}

fn told(row: ChangesRow) -> Changes {
    let number = |number: i64| u64::try_from(number).unwrap_or_default();
    let (last, kept_after) = (number(row.event_count), number(row.events_from));
    let more = row.items.len() >= MOST_EVENTS;
    let upto = row
        .items
        .last()
        .filter(|_| more)
        .map_or(last, |(id, _)| *id);
    // An item that changed twice is shown once: both events would say the same.
    let mut shown = HashSet::new();
    let mut items: Vec<_> = row
        .items
        .into_iter()
        .rev()
        .filter(|(_, item)| shown.insert(item.item_id))
        .collect();
    items.reverse();
    let items = items
        .into_iter()
        .map(|(id, item)| (id, Item::from(item)))
        .collect();
    Changes {
        scan: row.scan.into(),
        items,
        upto,
        last,
        kept_after,
    }
}
