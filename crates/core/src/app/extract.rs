//! Extractors: request bodies, limited in size and time, and query pairs. `contract` validates
//! their contents.

use std::convert::Infallible;
use std::error::Error as _;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::Uri;
use axum::http::request::Parts;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::AppState;
use super::auth::ApiKey;
use super::concurrency::Permit;
use super::error::ApiError;
use crate::contract::{MAX_DEPTH, ValidationErrors, read_empty_body, read_object};

/// The largest body of a search (gateway.md, rule 10).
pub const SEARCH_BODY: usize = 64 * 1024;
/// The largest body of a scan (security.md, rule 18).
pub const SCAN_BODY: usize = 1024 * 1024;
/// How long a body may take to arrive (security.md, rule 18).
const BODY_TIMEOUT: Duration = Duration::from_secs(20);

/// A body that is one JSON object of at most `LIMIT` bytes, whatever its content type (gateway.md,
/// rule 10).
#[derive(Debug)]
pub struct JsonObject<const LIMIT: usize>(pub Map<String, Value>);

impl<S: Sync, const LIMIT: usize> FromRequest<S> for JsonObject<LIMIT> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _state: &S) -> Result<Self, ApiError> {
        Ok(Self(read_json_object(request.into_body(), LIMIT).await??))
    }
}

/// The body of a submission, up to [`SCAN_BODY`], with its permits (`concurrency`). The handler
/// holds them until it ends, because a small body may contain thousands of searches.
#[derive(Debug)]
pub struct SubmissionBody {
    pub body: Map<String, Value>,
    _permits: Vec<Permit>,
}

impl SubmissionBody {
    /// The body, for a request that submits nothing: its permits are returned.
    pub fn into_body(self) -> Map<String, Value> {
        self.body
    }
}

impl FromRequest<AppState> for SubmissionBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, ApiError> {
        let (parts, mut body) = request.into_parts();
        let ApiKey { key, .. } = ApiKey::from_parts(&parts)?;
        let (mut bytes, mut permits) = (BytesMut::new(), Vec::new());
        with_timeout(read_past(SEARCH_BODY, &mut body, &mut bytes), BODY_TIMEOUT).await?;
        if bytes.len() > SEARCH_BODY {
            permits.extend(app.concurrency.large_body(&key).await?);
            with_timeout(read_past(SCAN_BODY, &mut body, &mut bytes), BODY_TIMEOUT).await?;
        }
        if bytes.len() > SCAN_BODY {
            return Err(ApiError::payload_too_large(SCAN_BODY));
        }
        permits.extend(app.concurrency.submission(&key).await?);
        Ok(Self {
            body: read_object(&bytes, MAX_DEPTH)?,
            _permits: permits,
        })
    }
}

/// Reads until `bytes` exceeds `limit` or the body ends.
async fn read_past(limit: usize, body: &mut Body, bytes: &mut BytesMut) -> Result<(), ApiError> {
    while bytes.len() <= limit
        && let Some(frame) = body.frame().await
    {
        bytes.extend_from_slice(
            &frame
                .map_err(|_| body_interrupted())?
                .into_data()
                .unwrap_or_default(),
        );
    }
    Ok(())
}

/// A JSON object, or no body, which counts as an empty object.
#[derive(Debug)]
pub struct OptionalJsonObject<const LIMIT: usize>(pub Map<String, Value>);

impl<S: Sync, const LIMIT: usize> FromRequest<S> for OptionalJsonObject<LIMIT> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _state: &S) -> Result<Self, ApiError> {
        let bytes = read_body(request.into_body(), LIMIT, BODY_TIMEOUT).await?;
        if bytes.is_empty() {
            return Ok(Self(Map::new()));
        }
        Ok(Self(read_object(&bytes, MAX_DEPTH)?))
    }
}

/// No body, or an empty object.
#[derive(Debug)]
pub struct NoBody;

impl<S: Sync> FromRequest<S> for NoBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, _state: &S) -> Result<Self, ApiError> {
        let bytes = read_body(request.into_body(), SEARCH_BODY, BODY_TIMEOUT).await?;
        Ok(read_empty_body(&bytes, MAX_DEPTH).map(|()| Self)?)
    }
}

/// The decoded pairs of the query string, without keys (gateway.md, rule 11). `contract` validates
/// them.
#[derive(Debug)]
pub struct QueryPairs(Vec<(String, String)>);

impl QueryPairs {
    /// Those of `uri`.
    pub fn of(uri: &Uri) -> Self {
        let query = uri.query().unwrap_or_default();
        Self(
            form_urlencoded::parse(query.as_bytes())
                .into_owned()
                .collect(),
        )
    }

    /// The pairs in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl<S: Sync> FromRequestParts<S> for QueryPairs {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.uri))
    }
}

/// Reads a body as a JSON object.
///
/// The outer error means that the body could not be read (too large, too slow, interrupted). The
/// inner one means that it is no JSON object; only a caller with a key sees it (gateway.md, rule
/// 4).
pub async fn read_json_object(
    body: Body,
    limit: usize,
) -> Result<Result<Map<String, Value>, ValidationErrors>, ApiError> {
    Ok(read_object(
        &read_body(body, limit, BODY_TIMEOUT).await?,
        MAX_DEPTH,
    ))
}

/// Reads a body whose text no error message may show.
pub async fn read_bytes(body: Body, limit: usize) -> Result<Bytes, ApiError> {
    read_body(body, limit, BODY_TIMEOUT).await
}

async fn read_body(body: Body, limit: usize, time_limit: Duration) -> Result<Bytes, ApiError> {
    let reading = async {
        to_bytes(body, limit).await.map_err(|error| match error {
            error if is_too_large(&error) => ApiError::payload_too_large(limit),
            _ => body_interrupted(),
        })
    };
    with_timeout(reading, time_limit).await
}

async fn with_timeout<T>(
    reading: impl Future<Output = Result<T, ApiError>>,
    time_limit: Duration,
) -> Result<T, ApiError> {
    let late = || {
        ApiError::invalid_request(format!(
            "the body did not arrive within {} s",
            time_limit.as_secs()
        ))
    };
    timeout(time_limit, reading)
        .await
        .unwrap_or_else(|_| Err(late()))
}

fn body_interrupted() -> ApiError {
    ApiError::invalid_request("the connection closed before the end of the body")
}

fn is_too_large(error: &axum::Error) -> bool {
    error
        .source()
        .is_some_and(|source| source.is::<http_body_util::LengthLimitError>())
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;
    use crate::contract::ErrorType;

    #[tokio::test]
    async fn a_body_is_limited_in_size_and_time() {
        let body = || Body::from("12345");
        assert_eq!(read_body(body(), 5, BODY_TIMEOUT).await.unwrap(), "12345");
        assert_eq!(
            read_body(body(), 4, BODY_TIMEOUT)
                .await
                .unwrap_err()
                .error_type(),
            ErrorType::PayloadTooLarge
        );
        let endless = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
        assert_eq!(
            read_body(endless, 5, Duration::from_millis(20))
                .await
                .unwrap_err()
                .error_type(),
            ErrorType::InvalidRequest
        );
        let broken = Body::from_stream(stream::iter([
            Ok(Bytes::from("1")),
            Err(std::io::Error::other("gone")),
        ]));
        assert_eq!(
            read_body(broken, 5, BODY_TIMEOUT)
                .await
                .unwrap_err()
                .error_type(),
            ErrorType::InvalidRequest
        );
    }
}
