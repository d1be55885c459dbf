//! What a response takes from the marketplace's, whatever its endpoint.

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::error::ApiError;
use crate::contract::ErrorType;
use crate::search::Incomplete;

/// Copies headers of a marketplace response; one that is not valid is left out.
pub fn forward(headers: &mut HeaderMap, forwarded: &[(String, String)]) {
    for (name, value) in forwarded {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.append(name, value);
        }
    }
}

/// The error for no usable response: for hotel searches and verify.
pub fn upstream_failed(incomplete: &Incomplete) -> ApiError {
    let failed = |status: u16| {
        let error = ApiError::new(
            ErrorType::UpstreamError,
            format!("the marketplace answered with status {status}; try again later"),
        );
        match StatusCode::from_u16(status) {
            Ok(status) if status.is_server_error() => error.with_status(status),
            _ => error,
        }
    };
    match incomplete {
        Incomplete::Timeout => ApiError::new(
            ErrorType::UpstreamTimeout,
            "the marketplace did not answer in time; try again later",
        ),
        Incomplete::Connection => ApiError::new(
            ErrorType::UpstreamUnreachable,
            "the marketplace cannot be reached; try again later",
        ),
        Incomplete::Unreadable => ApiError::new(
            ErrorType::UpstreamInvalidResponse,
            "the marketplace's response cannot be parsed; try again later",
        ),
        Incomplete::Status(status) => failed(*status),
        Incomplete::Stated { .. } => failed(503),
    }
}
