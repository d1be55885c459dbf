//! The markets of a monitor over its runs (monitors.md, rules 96 to 98).

use crate::ids::{MonitorId, ScanId};
use crate::primitives::{CountryCode, bounded_integer};
use crate::query_string::query_string;
use crate::request_body::request_body;
use crate::scans::MarketParity;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

bounded_integer! {
    /// The runs of a parity history.
    pub struct ParityRuns(u16): 1..=52;
}

impl ParityRuns {
    /// The documented default.
    pub const TWELVE: Self = Self(12);
}

request_body! {
    /// The query of `GET /v1/monitors/{id}/parity`.
    pub struct ParityQuery for "the query of a parity history" {
        required {}
        optional {
            /// The market with which the others are compared. Absent, it is that of the monitor's first
            /// rule `parity_gap_percent`, or else the first market of its scan.
            baseline: CountryCode;
            /// The most runs, the newest first.
            runs: ParityRuns = ParityRuns::TWELVE => runs_or_default;
        }
        example { "baseline": "us", "runs": 12 }
    }
}

query_string!(ParityQuery);

/// The markets of a monitor compared with one of them, run by run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "monitor_id": "mon_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b", "baseline": "us",
    "markets": [{"market": "de", "cheaper": 0, "dearer": 3, "same": 9, "unknown": 0, "same_percent": 75,
                 "difference_percent": {"lowest": -0.4, "median": 0.8, "highest": 15.62}, "noise_percent": 1.5}],
    "runs": [{"slot": "2026-11-23T04:00:00Z", "scan_id": "scn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5c",
              "markets": [{"market": "de", "cheaper": 0, "dearer": 3, "same": 9, "unknown": 0, "same_percent": 75,
                           "difference_percent": {"lowest": -0.4, "median": 0.8, "highest": 15.62}, "noise_percent": 1.5}]}]
})))]
pub struct ParityHistory {
    /// The monitor.
    pub monitor_id: MonitorId,
    /// The market with which the others are compared, in lower case.
    pub baseline: String,
    /// Each other market over all these runs, in the order of the scan.
    pub markets: Vec<MarketParity>,
    /// The runs that have ended and compare anything, newest first.
    pub runs: Vec<RunParity>,
}

/// The markets of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunParity {
    /// The slot of the run.
    pub slot: Timestamp,
    /// Its scan.
    pub scan_id: ScanId,
    /// Each market but the baseline, in the order of the scan.
    pub markets: Vec<MarketParity>,
}
