//! Scans: one request with swept fields makes many searches (docs/reference/scans.md).
//!
//! ```text
//!  submit ─► plan (pure) ─► one transaction: grant, lane, scan, items ─► queue
//!  after_acceptance ─► stores the rest of a scan after the marketplace has accepted its caller
//!  retry, cancel, control (pause, resume, delete) ─► one transaction with the scan locked
//!  confirm ─► items of an ended run are searched once more before an alert
//!  preview ─► the items and cost of a submit, without storing anything
//!  question ─► what a scan with a strategy searches next, when it ends, and how often that was wrong
//!  respond_async ─► a synchronous search as a scan of one item, and its outcome
//!  recorded_search ─► the same after its call, and the answers that later ones may take
//!  read ─► a scan as its caller sees it; watch ─► the same as it changes
//!  grid, cells, compare ─► prices by the values of the swept fields
//!  undecided ─► incomplete scans that their caller has not dismissed
//!  saved_views ─► named filters of the list
//! ```
//!
//! `store::lock` locks a scan, after its lane and its items. Every function works for one tenant:
//! another tenant's id is treated as unknown. Not here: searching (`queue`), HTTP (`api`).

pub mod after_acceptance;
pub mod cancel;
pub mod cells;
pub mod compare;
pub mod confirm;
pub mod control;
mod default_age;
pub mod grid;
mod item_state;
pub mod plan;
pub mod preview;
pub mod question;
pub mod read;
pub mod recorded_search;
pub mod respond_async;
pub mod retry;
pub mod reuse;
pub mod saved_views;
mod searches;
mod sequence;
mod store;
pub mod submit;
pub mod undecided;
pub mod watch;

use crate::config::PaceConfig;
use crate::contract::Api;

pub use item_state::StoredItemState;
pub use store::{ensure_and_wake_lane, ensure_lane, lock_submissions};

/// The pace of a new lane, in searches per minute.
pub fn per_minute(pace: &PaceConfig, api: Api) -> u32 {
    match api {
        Api::Flights => pace.flights_per_minute,
        Api::Hotels => pace.hotels_per_minute,
    }
}

/// The whole seconds that the searches take at a lane's pace.
fn seconds_at(searches: u32, seconds_per_search: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most 10,000 items at a positive pace; `as` saturates"
    )]
    let seconds = (f64::from(searches) * seconds_per_search).ceil() as u64;
    seconds
}
