//! The two phases of a scan over a range of dates: how they are ordered, and how they went.

use crate::contract::declare::request;
use crate::contract::primitives::whole_number;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

request! {
    /// Search some dates of a range first, then those next to the cheapest. Needs exactly one swept date range.
    pub struct Strategy for "strategy" {
        required {
            /// Every how many dates of the range are searched first; the first and the last of it are always.
            coarse_step: CoarseStep;
            /// Next to how many of the cheapest of them is searched then: everything up to the dates that were searched first. For
            /// each combination of the other swept fields by itself.
            refine: Refine;
        }
        optional {}
        example { "coarse_step": 4, "refine": 2 }
    }
}

whole_number! {
    /// Dates from one of the first phase to the next.
    pub struct CoarseStep(u16): 2..=90;
}

whole_number! {
    /// Dates of the first phase whose neighbours are searched.
    pub struct Refine(u16): 1..=90;
}

/// What a two-phase scan has searched, and what it left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "coarse_step": 4, "refine": 2, "phase": "refine", "searched": 36, "not_searched": 54, "requests_saved": 54
})))]
pub struct StrategyProgress {
    /// As ordered.
    pub coarse_step: u16,
    /// As ordered.
    pub refine: u16,
    /// The phase that runs, or in which it ended.
    pub phase: StrategyPhase,
    /// Items that went upstream and have ended.
    pub searched: u32,
    /// Items that are left out for good: their state is `skipped`, and `items` does not count them. 0 until the second phase is chosen.
    pub not_searched: u32,
    /// Requests that this saved: one for each item left out.
    pub requests_saved: u32,
}

crate::contract::words::words! {
    /// A phase of a two-phase scan.
    pub enum StrategyPhase {
        /// Every so many dates.
        Coarse = "coarse",
        /// Next to the cheapest.
        Refine = "refine",
    }
}
