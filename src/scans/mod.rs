//! Scans: one request with swept fields makes many searches (docs/reference/scans.md).
//!
//! ```text
//!  submit ─► plan (pure) ─► one transaction: grant, lane, scan, items ─► queue
//!  expand ─► stores the rest of a scan after the marketplace has accepted its caller
//!  retry, cancel, control (pause, resume, delete) ─► one transaction: lane, then items, then the scan
//!  preview ─► the items and cost of a submit, without storing anything
//!  respond_async ─► a synchronous search as a scan of one item, and its outcome
//!  read ─► a scan as its caller sees it; watch ─► the same as it changes
//!  grid, cells, compare ─► prices by the values of the swept fields
//! ```
//!
//! Every transaction takes its locks in one order: the lane, then items, then the scan. So there
//! are no deadlocks, and no call begins after a cancel has returned. Every function works for one
//! tenant: another tenant's id is treated as unknown. Not here: searching (`queue`), HTTP (`http`).

pub mod cancel;
pub(crate) mod cells;
pub mod compare;
pub mod control;
pub mod expand;
pub mod grid;
mod idempotency;
mod item_state;
pub mod plan;
pub mod preview;
pub mod read;
pub mod respond_async;
pub mod retry;
mod store;
pub mod submit;
pub mod two_phase;
pub mod watch;

use std::time::Duration;

use jiff::Timestamp;
use sqlx::PgPool;

use crate::config::PaceConfig;
use crate::contract::{Api, ValidationErrors};
use crate::search::CallerKey;
use crate::tenants::Keyring;
use crate::tenants::acceptance::NotAccepted;

pub(crate) use idempotency::IdempotentRequest;
pub use idempotency::{IdempotencyKey, MAX_IDEMPOTENCY_KEY};
pub(crate) use item_state::StoredItemState;
pub(crate) use store::{ensure_and_wake_lane, lock_submissions};

/// The pace of a new lane, in searches per minute.
pub(crate) fn per_minute(pace: &PaceConfig, api: Api) -> u32 {
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

/// The caller and the time of a request, with the resources needed to handle it.
#[derive(Debug, Clone, Copy)]
pub struct RequestContext<'a> {
    /// The database.
    pub pool: &'a PgPool,
    /// Identifies the caller by its key, and seals the key.
    pub ring: &'a Keyring,
    /// The caller's key.
    pub key: &'a CallerKey,
    /// When the request came.
    pub now: Timestamp,
}

/// The response of an idempotent POST.
#[derive(Debug, Clone, PartialEq)]
pub struct Replayable<T> {
    /// The response body.
    pub response: T,
    /// It is the stored response to an earlier request with the same `Idempotency-Key` and body.
    pub replayed: bool,
}

/// Why a command on a scan was refused. Nothing was stored, and nothing was spent.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// The request is invalid.
    #[error(transparent)]
    ValidationErrors(#[from] ValidationErrors),
    /// There is no such scan, or it is another caller's.
    #[error("there is no such scan")]
    NotFound,
    /// The scan is not in a state that allows it.
    #[error("{0}")]
    InvalidState(String),
    /// The `Idempotency-Key` was used with another body.
    #[error(
        "the Idempotency-Key `{0}` was used with another body; use a new key for a new request"
    )]
    IdempotencyMismatch(String),
    /// The caller has reached a limit of live scans or items.
    #[error("{message}")]
    LimitExceeded {
        /// Names the limit and the number found.
        message: String,
        /// How long to wait before the next try.
        retry_after: Duration,
    },
    /// This process plans as many scans as it can.
    #[error("this service is planning too many scans; nothing was stored; retry after Retry-After")]
    Busy,
    /// The marketplace has not accepted the caller's key yet.
    #[error(transparent)]
    NotAccepted(#[from] NotAccepted),
    /// The database did not answer.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}
