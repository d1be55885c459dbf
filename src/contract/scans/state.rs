//! The states of scans and items, and the words that lists are asked with.

use crate::contract::words::words;

words! {
    /// Where a scan is: `queued` → `running` ⇄ `paused` → `completed` | `incomplete` | `cancelled`.
    pub enum ScanStatus {
        /// Stored; nothing has begun.
        Queued = "queued",
        /// Searching.
        Running = "running",
        /// Nothing new begins; `status_reason` says why.
        Paused = "paused",
        /// Every item has ended, each with an answer.
        Completed = "completed",
        /// Every item has ended, at least one partial, degraded or failed.
        Incomplete = "incomplete",
        /// Ended by its caller.
        Cancelled = "cancelled",
    }
}

impl ScanStatus {
    /// Whether nothing more will happen unless the caller orders it.
    #[must_use]
    pub const fn is_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Incomplete | Self::Cancelled)
    }
}

words! {
    /// Why a scan is paused: its `status_reason`.
    pub enum PauseReason {
        /// The caller said so. Outranks the lane's reasons.
        ByCaller = "by_caller",
        /// The plan's rate window is full.
        RateLimited = "rate_limited",
        /// The plan's quota is used up.
        QuotaExhausted = "quota_exhausted",
        /// The marketplace does not know the key.
        KeyRejected = "key_rejected",
        /// The key has no subscription to the API.
        NotSubscribed = "not_subscribed",
        /// `max_requests` is reached.
        BudgetSpent = "budget_spent",
        /// The plan's reserve for the caller's own calls is reached.
        ReserveReached = "reserve_reached",
        /// The stored key was kept for its longest time and is destroyed.
        KeyExpired = "key_expired",
        /// The marketplace fails every call.
        UpstreamDown = "upstream_down",
        /// The operator moves the caller's work to another installation; it goes on there by itself.
        Moving = "moving",
    }
}

words! {
    /// Where an item is.
    pub enum ItemState {
        /// Waits for its turn.
        Pending = "pending",
        /// Is being searched.
        Running = "running",
        /// Has a search status.
        Done = "done",
        /// The marketplace refused the question itself; asking again cannot help.
        Failed = "failed",
        /// Its scan was cancelled before its turn.
        Cancelled = "cancelled",
        /// Left out by the scan's strategy; the scan does not count it.
        Skipped = "skipped",
    }
}

words! {
    /// Which of a caller's scans go first.
    pub enum Priority {
        /// Somebody waits.
        Interactive = "interactive",
        /// Nobody waits.
        Scheduled = "scheduled",
    }
}

words! {
    /// The order of a scan's items.
    pub enum ItemSort {
        /// As planned.
        Position = "position",
        /// Cheapest first; items without a price last.
        Price = "price",
    }
}

words! {
    /// What an item is shown with.
    pub enum Expand {
        /// The whole answer as upstream gave it.
        Answer = "answer",
    }
}
