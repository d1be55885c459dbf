//! The states of scans and items, and the values of list parameters.

use crate::string_enum::string_enum;

string_enum! {
    /// The status of a scan: `queued` → `running` ⇄ `paused` → `completed` | `incomplete` |
    /// `cancelled`.
    pub enum ScanStatus {
        /// Stored; no search has begun.
        Queued = "queued",
        /// Searching.
        Running = "running",
        /// No new search begins; `status_reason` says why.
        Paused = "paused",
        /// Every item has ended with a complete answer.
        Completed = "completed",
        /// Every item has ended, at least one partial, degraded or failed.
        Incomplete = "incomplete",
        /// Cancelled by its caller.
        Cancelled = "cancelled",
    }
}

impl ScanStatus {
    /// Whether the scan has ended: only a request of the caller can continue it.
    pub const fn is_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Incomplete | Self::Cancelled)
    }
}

string_enum! {
    /// Why a scan is paused: its `status_reason`.
    pub enum PauseReason {
        /// Paused by the caller. Has precedence over the lane's reasons.
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
        /// The maximum storage time of the key has passed; the key is destroyed.
        KeyExpired = "key_expired",
        /// The marketplace fails every call.
        UpstreamDown = "upstream_down",
        /// The operator moves the caller's work to another installation, where it continues.
        Moving = "moving",
    }
}

string_enum! {
    /// The state of an item.
    pub enum ItemState {
        /// Waits to be searched.
        Pending = "pending",
        /// Is being searched.
        Running = "running",
        /// Has a search status.
        Done = "done",
        /// The marketplace refused the request as invalid; a retry does not help.
        Failed = "failed",
        /// Its scan was cancelled before its search.
        Cancelled = "cancelled",
        /// Not searched because of the scan's strategy; `items` does not count it.
        Skipped = "skipped",
    }
}

string_enum! {
    /// The order of a caller's scans.
    pub enum Priority {
        /// Before `scheduled` ones: somebody waits for the result.
        Interactive = "interactive",
        /// After `interactive` ones.
        Scheduled = "scheduled",
    }
}

string_enum! {
    /// The order of a scan's items.
    pub enum ItemSort {
        /// By position.
        Position = "position",
        /// Cheapest first; items without a price last.
        Price = "price",
    }
}

string_enum! {
    /// Additional content of an item.
    pub enum Expand {
        /// The complete upstream response.
        Answer = "answer",
    }
}
