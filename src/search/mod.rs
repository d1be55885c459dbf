//! The domain: one question to the marketplace ([`Search`]) and what became of it ([`Outcome`]).
//!
//! Both faces of farescan go through these two types. `upstream` alone makes an [`Outcome`]; the gateway turns it into an HTTP
//! answer, the scanner, by [`fate`], into a stored attempt. Nothing here does I/O, knows HTTP routes or the database.

mod body;
pub mod fate;
mod kept;
mod key;
mod outcome;
mod question;
mod sight;

pub use body::AnswerBody;
pub use key::CallerKey;
pub use outcome::{Answer, Finding, Incomplete, Outcome, PlanQuota, RateLimit, RateWindow};
pub use question::Search;
pub use sight::Sight;
