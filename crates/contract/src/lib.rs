//! The public API types: every request and response, and the validation of requests (gateway.md,
//! rules 4 to 10).
//!
//! Here: types and pure checks, which the gateway, a scan's items, the sandbox and the command line
//! share. Not here: any I/O, and the evaluation of an upstream response (`search`, `upstream`).
//!
//! A body passes these steps: [`read_object`] (bytes to a JSON object) → [`FieldAlias::detect`] (the
//! rewrite, known even if the body is invalid) → [`Request::check`] (all errors at once, or a valid
//! [`Request`]) → [`Request::to_body`] (exactly what goes upstream).
//!
//! `request_body!` declares each body once; its field types are in [`primitives`].

pub mod account_settings;
mod alias;
mod body_schema;
pub mod channels;
pub mod codes;
mod endpoint;
mod error;
mod fare_row;
pub mod field;
pub mod flights;
pub mod history;
pub mod history_grid;
mod history_query;
pub mod history_verdict;
pub mod hotels;
pub mod ids;
mod key;
pub mod key_rotation;
pub mod latest;
mod money;
pub mod monitors;
mod offer;
pub mod plans;
pub mod primitives;
mod query_string;
pub mod quota;
mod raw_json;
mod read_body;
mod reason;
mod request;
mod request_body;
pub mod scans;
pub mod series;
mod status;
pub mod string_enum;
mod time_range;
pub mod usage;
pub mod validation;
pub mod verify;
pub mod visible_text;
pub mod webhooks;

// What `string_enum!` names where other crates use it.
#[cfg(feature = "sqlx")]
#[doc(hidden)]
pub use sqlx;
#[doc(hidden)]
pub use {serde, serde_json, utoipa};

pub use alias::FieldAlias;
pub use endpoint::{Api, Endpoint};
pub use error::{ErrorBody, ErrorDetail, ErrorType, FieldError};
pub use field::{FieldKind, FieldSpec, FieldValue};
pub use history_query::HistoryQuery;
pub use key::{KeyFormatError, MAX_KEY_BYTES, PLACEHOLDERS, parse_key};
pub use offer::{Offer, offers};
pub use raw_json::RawJson;
pub use read_body::{MAX_DEPTH, read_empty_body, read_object};
pub use reason::{KnownReason, SearchReason};
pub use request::{CheckedRequest, Request};
pub use scans::{Attempt, AttemptPage, Item, ItemPage, RetryAccepted, Scan, ScanPage, ScanStatus};
pub use status::{SearchStatus, Verdict};
pub use string_enum::UnknownVariant;
pub use validation::shorten;
pub use validation::{MAX_FOUND_CHARS, MAX_REPORTED_ERRORS, ValidationError, ValidationErrors};

#[cfg(test)]
mod tests;
