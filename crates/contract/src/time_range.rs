//! Errors of time ranges in queries.

use super::field::FieldValue as _;
use super::validation::{ValidationError, ValidationErrors};
use jiff::Timestamp;

/// The error of a time range that does not end after it begins; none if an end is absent.
pub(super) fn time_range_errors(
    since: Option<Timestamp>,
    until: Option<Timestamp>,
) -> ValidationErrors {
    match since.zip(until) {
        Some((since, until)) if since >= until => reversed_range_error(since, until),
        _ => ValidationErrors::default(),
    }
}

/// The error of a time range that ends before it begins.
pub(super) fn reversed_range_error(since: Timestamp, until: Timestamp) -> ValidationErrors {
    ValidationError::new(
        "since",
        &since.to_value(),
        format!("a time before {until}, where the range ends"),
    )
    .into()
}
