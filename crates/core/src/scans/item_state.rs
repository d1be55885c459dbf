//! The states of an item in the database, and those that its caller sees.

use crate::contract::scans::ItemState;
use crate::contract::string_enum::string_enum;

string_enum! {
    /// The state of an item in the database (engine.md, rule 2).
    pub enum StoredItemState {
        /// May be claimed.
        Pending = "pending",
        /// Taken by a worker, nothing sent.
        Claimed = "claimed",
        /// On record as sent.
        Calling = "calling",
        /// A retry that waits.
        Delayed = "delayed",
        /// Of a paused scan.
        Held = "held",
        /// Of a scan with a strategy, not needed yet.
        Deferred = "deferred",
        /// Of a scan with a strategy, never needed.
        Skipped = "skipped",
        /// Ended with an answer, or lost with its worker.
        Done = "done",
        /// Ended without an answer.
        Failed = "failed",
        /// Cancelled before it was sent.
        Cancelled = "cancelled",
    }
}

impl StoredItemState {
    /// Whether it waits for a decision of its scan's strategy.
    pub(super) const fn is_deferred(self) -> bool {
        matches!(self, Self::Deferred)
    }
}

impl From<StoredItemState> for ItemState {
    fn from(stored: StoredItemState) -> Self {
        match stored {
            StoredItemState::Pending
            | StoredItemState::Claimed
            | StoredItemState::Delayed
            | StoredItemState::Held
            | StoredItemState::Deferred => Self::Pending,
            StoredItemState::Calling => Self::Running,
            StoredItemState::Done => Self::Done,
            StoredItemState::Failed => Self::Failed,
            StoredItemState::Cancelled => Self::Cancelled,
            StoredItemState::Skipped => Self::Skipped,
        }
    }
}

/// The stored states of an API state, for a query.
pub(super) fn stored_states(state: ItemState) -> Vec<String> {
    StoredItemState::ALL
        .iter()
        .filter(|stored| ItemState::from(**stored) == state)
        .map(ToString::to_string)
        .collect()
}
