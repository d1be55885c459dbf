//! Bodies, read within bounds of size and time. What a body means is checked by `contract`.

use std::convert::Infallible;
use std::error::Error as _;
use std::str::FromStr;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::AppState;
use super::auth::Caller;
use super::bounds::Permit;
use super::error::ApiError;
use crate::contract::{Faults, MAX_DEPTH, read_nothing, read_object, shorten};
use crate::ids::NotAnId;

/// The largest body of a search (contract 10).
pub const SEARCH_BODY: usize = 64 * 1024;
/// The largest body of a scan (security, "Limits").
pub const SCAN_BODY: usize = 1024 * 1024;
/// How long a body may take to arrive (security, "Limits").
const BODY_TIMEOUT: Duration = Duration::from_secs(20);

/// A body that is one JSON object of at most `LIMIT` bytes, whatever its content type says (contract 10).
#[derive(Debug)]
pub struct JsonObject<const LIMIT: usize>(pub Map<String, Value>);

impl<S: Sync, const LIMIT: usize> FromRequest<S> for JsonObject<LIMIT> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _state: &S) -> Result<Self, ApiError> {
        Ok(Self(object(request.into_body(), LIMIT).await??))
    }
}

/// The body of an order, up to [`SCAN_BODY`], with its permits (`bounds`). They are held until the handler
/// has ended, because an order of a few bytes may stand for thousands of searches.
#[derive(Debug)]
pub(super) struct OrderBody {
    pub(super) body: Map<String, Value>,
    _permits: Vec<Permit>,
}

impl FromRequest<AppState> for OrderBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, ApiError> {
        let (parts, mut body) = request.into_parts();
        let Caller { key, .. } = Caller::of(&parts)?;
        let (mut bytes, mut permits) = (BytesMut::new(), Vec::new());
        in_time(
            read_beyond(SEARCH_BODY, &mut body, &mut bytes),
            BODY_TIMEOUT,
        )
        .await?;
        if bytes.len() > SEARCH_BODY {
            permits.extend(app.bounds.large_body(&key).await?);
            in_time(read_beyond(SCAN_BODY, &mut body, &mut bytes), BODY_TIMEOUT).await?;
        }
        if bytes.len() > SCAN_BODY {
            return Err(ApiError::payload_too_large(SCAN_BODY));
        }
        permits.extend(app.bounds.order(&key).await?);
        Ok(Self {
            body: read_object(&bytes, MAX_DEPTH)?,
            _permits: permits,
        })
    }
}

/// Reads until there is more than so much, or all.
async fn read_beyond(limit: usize, body: &mut Body, bytes: &mut BytesMut) -> Result<(), ApiError> {
    while bytes.len() <= limit
        && let Some(frame) = body.frame().await
    {
        bytes.extend_from_slice(
            &frame
                .map_err(|_| broken_off())?
                .into_data()
                .unwrap_or_default(),
        );
    }
    Ok(())
}

/// The same, or no body at all, which is an empty object.
#[derive(Debug)]
pub(super) struct MaybeObject<const LIMIT: usize>(pub(super) Map<String, Value>);

impl<S: Sync, const LIMIT: usize> FromRequest<S> for MaybeObject<LIMIT> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _state: &S) -> Result<Self, ApiError> {
        let bytes = whole(request.into_body(), LIMIT, BODY_TIMEOUT).await?;
        if bytes.is_empty() {
            return Ok(Self(Map::new()));
        }
        Ok(Self(read_object(&bytes, MAX_DEPTH)?))
    }
}

/// No body, or an object without fields: of a call that takes none.
#[derive(Debug)]
pub(super) struct NoBody;

impl<S: Sync> FromRequest<S> for NoBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, _state: &S) -> Result<Self, ApiError> {
        let bytes = whole(request.into_body(), SEARCH_BODY, BODY_TIMEOUT).await?;
        Ok(read_nothing(&bytes, MAX_DEPTH).map(|()| Self)?)
    }
}

/// The decoded pairs of the query string, keys taken out before (contract 11). What they mean is read by `contract`.
#[derive(Debug)]
pub(super) struct Pairs(Vec<(String, String)>);

impl Pairs {
    /// The pairs in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl<S: Sync> FromRequestParts<S> for Pairs {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(Self(
            form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes())
                .into_owned()
                .collect(),
        ))
    }
}

/// The id in a path. What is no id names nothing; that it is none is told, because it can be no other caller's.
///
/// # Errors
/// 404.
pub(super) fn id<T: FromStr<Err = NotAnId>>(what: &str, text: &str) -> Result<T, ApiError> {
    text.parse().map_err(|form| {
        ApiError::not_found(format!(
            "there is no {what} `{}`; allowed: {form}",
            shorten(text)
        ))
    })
}

/// Reads a body.
///
/// The outer error: it could not be read (too large, too slow, broken off). The inner one: it could, and is not a JSON object; that
/// is one of the faults that only a caller with a key is told (contract 4).
pub(super) async fn object(
    body: Body,
    limit: usize,
) -> Result<Result<Map<String, Value>, Faults>, ApiError> {
    Ok(read_object(
        &whole(body, limit, BODY_TIMEOUT).await?,
        MAX_DEPTH,
    ))
}

/// Reads a body whose text must not be shown, whatever is wrong with it.
pub(super) async fn bytes(body: Body, limit: usize) -> Result<Bytes, ApiError> {
    whole(body, limit, BODY_TIMEOUT).await
}

async fn whole(body: Body, limit: usize, patience: Duration) -> Result<Bytes, ApiError> {
    let reading = async {
        to_bytes(body, limit).await.map_err(|error| match error {
            error if is_too_large(&error) => ApiError::payload_too_large(limit),
            _ => broken_off(),
        })
    };
    in_time(reading, patience).await
}

async fn in_time<T>(
    reading: impl Future<Output = Result<T, ApiError>>,
    patience: Duration,
) -> Result<T, ApiError> {
    let late = || {
        ApiError::invalid_request(format!(
            "the body did not arrive within {} s",
            patience.as_secs()
        ))
    };
    timeout(patience, reading)
        .await
        .unwrap_or_else(|_| Err(late()))
}

fn broken_off() -> ApiError {
    ApiError::invalid_request("the body broke off before its end")
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
    async fn a_body_has_bounds_of_size_and_time() {
        let body = || Body::from("12345");
        assert_eq!(whole(body(), 5, BODY_TIMEOUT).await.unwrap(), "12345");
        assert_eq!(
            whole(body(), 4, BODY_TIMEOUT)
                .await
                .unwrap_err()
                .error_type(),
            ErrorType::PayloadTooLarge
        );
        let endless = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
        assert_eq!(
            whole(endless, 5, Duration::from_millis(20))
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
            whole(broken, 5, BODY_TIMEOUT)
                .await
                .unwrap_err()
                .error_type(),
            ErrorType::InvalidRequest
        );
    }
}
