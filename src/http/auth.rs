//! The caller's key: where it may ride, what may be one, and that nothing past this point can log it (specification 5; contract 11 to
//! 13).
//!
//! [`lift_key`] runs before everything else: it takes every key out of headers and query and leaves what it found as an extension of
//! the request. [`Caller`] is how a handler of our own routes asks for it, and is counted against its caller's rate (`limits`) and requests in
//! flight (`bounds`); the specified seven, which the marketplace limits, take it uncounted.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Request};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use axum::middleware::Next;
use axum::response::Response;

use super::AppState;
use super::bounds::Permit;
use super::error::ApiError;
use crate::contract::{MAX_KEY_BYTES, NotAKey, read_key};
use crate::search::CallerKey;

/// Who calls: the key, and how it came.
#[derive(Debug, Clone)]
pub struct Caller {
    pub key: CallerKey,
    /// `x-api-key`, `authorization`, `query:api_key` …: the channel, never the key (contract 13).
    pub key_source: &'static str,
    /// Whether the request may change something.
    pub(super) writes: bool,
    /// Of its caller's requests in flight, held until the handler drops them. None: it is not counted.
    permits: Arc<Vec<Permit>>,
}

/// Why there is no caller. Never holds the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyFault {
    Missing,
    /// Contract 12: over 512 bytes, white space inside, or not visible ASCII.
    Malformed(&'static str),
    /// `Authorization` without one of its three schemes.
    Scheme,
    /// An example's stand-in for a key, as the fixed list spells it.
    Placeholder(&'static str),
}

/// The headers that carry a bare key, in their precedence; `authorization` follows them (contract 11).
const HEADERS: [HeaderName; 3] = [
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-marketplace-key"),
    HeaderName::from_static("x-marketplace-token"),
];
const HEADER_SOURCES: [&str; 3] = ["x-api-key", "x-marketplace-key", "x-marketplace-token"];
const SCHEMES: [&str; 3] = ["bearer", "apikey", "token"];
/// The query fields that carry a key, in their precedence, and the name of each as a source.
const QUERY: [(&str, &str); 4] = [
    ("api_key", "query:api_key"),
    ("apikey", "query:apikey"),
    ("marketplace_key", "query:marketplace_key"),
    ("key", "query:key"),
];
/// What [`lift_key`] found, for the extractor.
#[derive(Clone)]
struct Lifted(Arc<Result<Caller, KeyFault>>);

/// Takes the key out of the request before anything can log it.
pub(super) async fn lift_key(mut request: Request, next: Next) -> Response {
    let found = find(request.headers(), request.uri());
    for name in HEADERS.iter().chain([&AUTHORIZATION]) {
        request.headers_mut().remove(name);
    }
    if let Some(clean) = without_keys(request.uri()) {
        *request.uri_mut() = clean;
    }
    request.extensions_mut().insert(Lifted(Arc::new(found)));
    next.run(request).await
}

impl Caller {
    /// Somebody with this key, who takes no place among requests in flight.
    pub(super) fn uncounted(key: CallerKey, key_source: &'static str) -> Self {
        Self {
            key,
            key_source,
            writes: false,
            permits: Arc::default(),
        }
    }

    /// Whose request it is.
    ///
    /// # Errors
    /// 401 `missing_api_key` or `invalid_api_key`.
    pub fn of(parts: &Parts) -> Result<Self, ApiError> {
        let Some(Lifted(found)) = parts.extensions.get::<Lifted>() else {
            return Err(ApiError::missing_api_key());
        };
        let caller = found.as_ref().clone().map_err(ApiError::from)?;
        Ok(Self {
            writes: !parts.method.is_safe(),
            ..caller
        })
    }

    /// Waits until it is one of its caller's requests in flight (`bounds`).
    ///
    /// # Errors
    /// 429 when that takes too long.
    pub(super) async fn enter(&mut self, app: &AppState) -> Result<(), ApiError> {
        self.permits = Arc::new(app.bounds.enter(&self.key, self.writes).await?);
        Ok(())
    }
}

impl FromRequestParts<AppState> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, ApiError> {
        let Waiting(mut caller) = Waiting::from_request_parts(parts, app).await?;
        caller.enter(app).await?;
        Ok(caller)
    }
}

/// The caller of a request that may wait for something to happen: counted against the rate, and not as in flight.
pub(super) struct Waiting(pub(super) Caller);

impl FromRequestParts<AppState> for Waiting {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, ApiError> {
        let caller = Caller::of(parts)?;
        app.admit(&caller.key)?;
        Ok(Self(caller))
    }
}

/// The caller of one of the specified seven, whose rate is the marketplace's to limit.
pub(super) struct Uncounted(pub(super) Caller);

impl<S: Sync> FromRequestParts<S> for Uncounted {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        Caller::of(parts).map(Self)
    }
}

impl From<KeyFault> for ApiError {
    fn from(fault: KeyFault) -> Self {
        match fault {
            KeyFault::Missing => Self::missing_api_key(),
            KeyFault::Malformed(source) => Self::invalid_api_key(format!(
                "the key in `{source}` is malformed: a key is 1 to {MAX_KEY_BYTES} visible ASCII characters without white space"
            )),
            KeyFault::Scheme => Self::invalid_api_key(
                "`authorization` is malformed: it reads `Bearer <API_KEY>`, `ApiKey <API_KEY>` or `Token <API_KEY>`",
            ),
            KeyFault::Placeholder(text) => Self::invalid_api_key(format!(
                "`{text}` is a placeholder: send your own marketplace key in its place"
            )),
        }
    }
}

/// The first carrier that is not blank decides, headers before the query (contract 11).
fn find(headers: &HeaderMap, uri: &Uri) -> Result<Caller, KeyFault> {
    for (name, source) in HEADERS.iter().zip(HEADER_SOURCES) {
        if let Some(value) = headers
            .get_all(name)
            .iter()
            .find(|value| !is_blank(value.as_bytes()))
        {
            return read(value.as_bytes(), source);
        }
    }
    for value in headers.get_all(AUTHORIZATION) {
        if let Some(key) = credentials(value)? {
            return read(key, "authorization");
        }
    }
    let query = uri.query().unwrap_or_default();
    for (name, source) in QUERY {
        let mut values = form_urlencoded::parse(query.as_bytes()).filter(|(held, _)| held == name);
        if let Some((_, value)) = values.find(|(_, value)| !is_blank(value.as_bytes())) {
            return read(value.as_bytes(), source);
        }
    }
    Err(KeyFault::Missing)
}

/// The key of an `Authorization` header; `None` when there is a scheme and nothing after it, or nothing at all.
fn credentials(value: &HeaderValue) -> Result<Option<&[u8]>, KeyFault> {
    let value = value.as_bytes().trim_ascii();
    let end = value
        .iter()
        .position(u8::is_ascii_whitespace)
        .unwrap_or(value.len());
    let (scheme, key) = value.split_at(end);
    match () {
        () if value.is_empty() => Ok(None),
        () if !SCHEMES
            .iter()
            .any(|known| scheme.eq_ignore_ascii_case(known.as_bytes())) =>
        {
            Err(KeyFault::Scheme)
        }
        () => Ok(Some(key).filter(|key| !is_blank(key))),
    }
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes.trim_ascii().is_empty()
}

fn read(bytes: &[u8], source: &'static str) -> Result<Caller, KeyFault> {
    match read_key(bytes.trim_ascii()) {
        Ok(key) => Ok(Caller::uncounted(CallerKey::new(key), source)),
        Err(NotAKey::Malformed) => Err(KeyFault::Malformed(source)),
        Err(NotAKey::Placeholder(placeholder)) => Err(KeyFault::Placeholder(placeholder)),
    }
}

/// The URI without its key fields, in whatever case they are spelled; `None` when it has none.
fn without_keys(uri: &Uri) -> Option<Uri> {
    let query = uri.query()?;
    let is_key = |pair: &&str| {
        let name = form_urlencoded::parse(pair.as_bytes())
            .next()
            .map(|(name, _)| name)
            .unwrap_or_default();
        QUERY.iter().any(|(key, _)| name.eq_ignore_ascii_case(key))
    };
    if !query.split('&').any(|pair| is_key(&pair)) {
        return None;
    }
    let kept: Vec<_> = query.split('&').filter(|pair| !is_key(pair)).collect();
    let path_and_query = if kept.is_empty() {
        uri.path().to_owned()
    } else {
        format!("{}?{}", uri.path(), kept.join("&"))
    };
    let mut parts = uri.clone().into_parts();
    // A part of a valid query is valid; should it not be, the path alone goes on rather than the key.
    parts.path_and_query = Some(
        path_and_query
            .parse()
            .unwrap_or_else(|_| PathAndQuery::from_static("/")),
    );
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests;
