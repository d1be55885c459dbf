//! The domain types: a request to the marketplace ([`Search`]) and its result ([`Outcome`]).
//!
//! Gateway and scanner share both types. Only `upstream` creates an [`Outcome`]. The gateway turns
//! it into an HTTP response; the scanner turns it into a stored attempt, by [`outcome_status`]. No
//! I/O, no HTTP routes and no database here.

mod body;
mod compression;
mod item_summary;
mod key;
mod outcome;
pub mod outcome_status;
mod search_request;
mod stored_headers;
mod stored_outcome;

pub use body::AnswerBody;
pub use compression::{compress, compress_answer, decompress};
pub use item_summary::ItemSummary;
pub use key::CallerKey;
pub use outcome::{Answer, Finding, Incomplete, Outcome, PlanQuota, RateLimit, RateWindow};
pub use search_request::Search;
pub use stored_headers::StoredHeaders;
