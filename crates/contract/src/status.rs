//! The status of a search (gateway.md, rule 37) and the provider's verdict on a fare (gateway.md,
//! rule 25).

use super::string_enum::string_enum;

string_enum! {
    /// Whether a search completed: the value of `X-Search-Status`.
    pub enum SearchStatus {
        /// Complete.
        Ok = "ok",
        /// Complete, without results.
        Empty = "empty",
        /// There are results, but a part of the search failed.
        Partial = "partial",
        /// It did not complete: an empty response says nothing about availability.
        Degraded = "degraded",
    }
}

string_enum! {
    /// The provider's verdict on a fare against the route's historical range.
    pub enum Verdict {
        /// Below the usual range.
        Low = "low",
        /// Within it.
        Typical = "typical",
        /// Above it.
        High = "high",
    }
}
