//! The two phases of a scan over a range of dates: their settings and progress.

use crate::contract::primitives::bounded_integer;
use crate::contract::request_body::request_body;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

request_body! {
    /// Search some dates of a range first, then those next to the cheapest. Needs exactly one swept
    /// date range.
    pub struct Strategy for "strategy" {
        required {
            /// The first phase searches every n-th date of the range, and always its first and last
            /// date.
            coarse_step: CoarseStep;
            /// The number of cheapest dates of the first phase around which the second phase
            /// searches, up to the next dates of the first phase. Applies to each combination of
            /// the other swept fields separately.
            refine: Refine;
        }
        optional {}
        example { "coarse_step": 4, "refine": 2 }
    }
}

bounded_integer! {
    /// The step between dates of the first phase.
    pub struct CoarseStep(u16): 2..=90;
}

bounded_integer! {
    /// The number of first-phase dates whose neighbours are searched.
    pub struct Refine(u16): 1..=90;
}

/// The progress of a two-phase scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "coarse_step": 4, "refine": 2, "phase": "refine", "searched": 36, "not_searched": 54, "requests_saved": 54
})))]
pub struct StrategyProgress {
    /// As requested.
    pub coarse_step: u16,
    /// As requested.
    pub refine: u16,
    /// The current or last phase.
    pub phase: StrategyPhase,
    /// Items that were searched and have ended.
    pub searched: u32,
    /// Items that will not be searched: their state is `skipped`, and `items` does not count them.
    /// 0 until the second phase is chosen.
    pub not_searched: u32,
    /// Requests saved: one for each skipped item.
    pub requests_saved: u32,
}

crate::contract::string_enum::string_enum! {
    /// A phase of a two-phase scan.
    pub enum StrategyPhase {
        /// Every n-th date.
        Coarse = "coarse",
        /// The dates around the cheapest.
        Refine = "refine",
    }
}
