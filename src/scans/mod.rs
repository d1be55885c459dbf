//! Scans: one request with some fields swept, so many searches (jobs-api, "Scans").
//!
//! ```text
//!  submit ─► plan (pure) ─► one transaction: grant, lane, scan, items ─► the queue takes it from here
//!  expand ─► the rest of a scan whose caller the marketplace had not accepted yet
//!  retry, cancel, pause, resume ─► one transaction: lane, then items, then the scan
//!  preview ─► what a submit would make, without making it
//!  single ─► a synchronous search as a scan of one item, and what came of it
//!  read ─► the scan as its caller sees it; watch ─► the same as it changes
//! ```
//!
//! Locks are taken in one order everywhere: the lane, then items, then the scan; so nobody waits for ever, and after a cancel is
//! answered no call begins. Every function works for one tenant: another's id is the same as one that never was. Not here: searching
//! (`queue`), HTTP (`http`).

pub mod cancel;
pub(crate) mod cells;
pub mod compare;
pub mod control;
pub mod expand;
pub mod grid;
mod idempotency;
pub mod plan;
pub mod preview;
pub mod read;
pub mod retry;
pub mod single;
mod store;
pub mod submit;
pub mod two_phase;
pub mod watch;

use std::time::Duration;

use jiff::Timestamp;
use sqlx::PgPool;

use crate::config::PaceConfig;
use crate::contract::{Api, Faults};
use crate::search::CallerKey;
use crate::tenants::Keyring;
use crate::tenants::acceptance::NotAccepted;

pub(crate) use idempotency::Post;
pub use idempotency::{IdempotencyKey, MAX_IDEMPOTENCY_KEY};
pub(crate) use store::{lock_orders, open_lane};

/// The pace of a new lane.
pub(crate) fn per_minute(pace: &PaceConfig, api: Api) -> u32 {
    match api {
        Api::Flights => pace.flights_per_minute,
        Api::Hotels => pace.hotels_per_minute,
    }
}

/// How many whole seconds so many searches take at a lane's pace.
fn seconds_at(searches: u32, seconds_per_search: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most 10,000 items at a positive pace; `as` saturates"
    )]
    let seconds = (f64::from(searches) * seconds_per_search).ceil() as u64;
    seconds
}

/// Where orders are taken: who orders, when, and what is needed to take it.
#[derive(Debug, Clone, Copy)]
pub struct Desk<'a> {
    /// The database.
    pub pool: &'a PgPool,
    /// Tells the caller from others, and seals the key.
    pub ring: &'a Keyring,
    /// Whose order it is.
    pub key: &'a CallerKey,
    /// When it came.
    pub now: Timestamp,
}

/// What a POST answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered<T> {
    /// The answer.
    pub answer: T,
    /// It was given before, to the same `Idempotency-Key` and body; nothing was done now.
    pub replayed: bool,
}

/// Why an order is not taken. Nothing was stored then, and nothing spent.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// The caller has to mend the request.
    #[error(transparent)]
    Faults(#[from] Faults),
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
    /// The caller has as much underway as one may have; later there is room again.
    #[error("{message}")]
    TooMuch {
        /// Which bound was met.
        message: String,
        /// When it is worth another try.
        wait: Duration,
    },
    /// This process plans as many orders as it can.
    #[error(
        "this service has too many orders to plan; nothing was stored. Wait as Retry-After says"
    )]
    Busy,
    /// The marketplace has not accepted the caller's key yet.
    #[error(transparent)]
    NotAccepted(#[from] NotAccepted),
    /// The database did not answer.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}
