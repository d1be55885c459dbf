//! What a search says of itself (specification 4.3) and of a price (2.3).

use super::words::words;

words! {
    /// How far a search came: the value of `X-Search-Status`.
    pub enum SearchStatus {
        /// Complete.
        Ok = "ok",
        /// Complete, and nothing exists: the empty answer is the answer.
        Empty = "empty",
        /// There are results, but part of the search failed.
        Partial = "partial",
        /// It did not complete: an empty answer says nothing about availability.
        Degraded = "degraded",
    }
}

words! {
    /// The provider's word on a fare against the route's historical range.
    pub enum Verdict {
        /// Below the usual range.
        Low = "low",
        /// Within it.
        Typical = "typical",
        /// Above it.
        High = "high",
    }
}
