//! The wire: every request and response, and what makes a request acceptable (specification 2, contract 4 to 10).
//!
//! Here: types and pure checks, which the gateway, a scan's items, the sandbox and the command line share. Not here:
//! any I/O, and what an upstream answer means (`search`, `upstream`).
//!
//! A body takes this way: [`read_object`] (bytes to a JSON object) → [`Alias::of`] (what will be rewritten, known even if
//! the body is refused) → [`Request::check`] (every fault at once, or a [`Request`] that cannot be wrong) →
//! [`Request::to_body`] (exactly what goes upstream).
//!
//! A body is declared once, by `request!` in `declare`; its field types are in [`primitives`].

pub mod account;
mod alias;
mod as_written;
mod check;
mod declare;
mod describe;
mod endpoint;
mod error;
mod fare;
mod fault;
mod field;
pub mod flights;
pub mod grids;
pub mod history;
pub mod hotels;
mod key;
pub mod latest;
mod money;
pub mod monitors;
mod offer;
pub mod plans;
pub mod primitives;
mod query;
pub mod quota;
mod read;
mod reason;
pub mod rotation;
pub mod scans;
pub mod series;
mod status;
pub mod usage;
pub mod webhooks;
mod words;

pub use alias::Alias;
pub use as_written::AsWritten;
pub use check::{Checked, Request};
pub use endpoint::{Api, Endpoint};
pub use error::{ErrorBody, ErrorDetail, ErrorType, FieldError};
pub(crate) use fault::shorten;
pub use fault::{Fault, Faults, MAX_HELD_CHARS, MAX_LISTED};
pub use field::{FieldKind, FieldSpec, FieldValue};
pub use key::{MAX_KEY_BYTES, NotAKey, PLACEHOLDERS, read_key};
pub use offer::{Offer, offers};
pub use read::{MAX_DEPTH, read_nothing, read_object, unknown_field};
pub use reason::{KnownReason, SearchReason};
pub use scans::{Attempt, AttemptPage, Item, ItemPage, RetryAccepted, Scan, ScanPage, ScanStatus};
pub use status::{SearchStatus, Verdict};
pub use words::UnknownWord;

#[cfg(test)]
mod tests;
