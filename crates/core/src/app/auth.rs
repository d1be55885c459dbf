//! The caller's API key: where a request may carry it, what a valid key is, and that nothing after
//! this module can log it (gateway.md, rules 11 to 13).
//!
//! [`extract_api_key`] runs before all other middleware: it removes every key from headers and
//! query and stores the result as an extension of the request. Handlers of this service's own
//! routes take [`ApiKey`], which counts against its caller's rate (`rate_limit`) and requests in
//! flight (`concurrency`). The seven specified endpoints, which the marketplace limits, take
//! [`UnlimitedApiKey`].

use std::sync::Arc;

use axum::extract::{FromRequestParts, Request};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri};

use super::AppState;
use super::concurrency::Permit;
use super::error::ApiError;
use crate::contract::{KeyFormatError, MAX_KEY_BYTES, parse_key};
use crate::search::CallerKey;

/// The caller's key and where the request carried it.
#[derive(Debug, Clone)]
pub struct ApiKey {
    pub key: CallerKey,
    /// `x-api-key`, `authorization`, `query:api_key` …: the carrier, never the key (gateway.md,
    /// rule 13).
    pub key_source: &'static str,
    /// Whether the request may change data.
    pub is_write: bool,
    /// Concurrency permits, held until the handler drops them. Empty: not counted.
    permits: Arc<Vec<Permit>>,
}

/// Why a request has no usable key. Never holds the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiKeyError {
    Missing,
    /// Over 512 bytes, white space inside, or not visible ASCII (gateway.md, rule 12).
    Malformed(&'static str),
    /// `Authorization` without one of its three schemes.
    Scheme,
    /// A placeholder from the documentation, as the fixed list spells it.
    Placeholder(&'static str),
}

/// The headers that carry a bare key, in their precedence; `authorization` follows them
/// (gateway.md, rule 11).
const HEADERS: [HeaderName; 3] = [
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-marketplace-key"),
    HeaderName::from_static("x-marketplace-token"),
];
const HEADER_SOURCES: [&str; 3] = ["x-api-key", "x-marketplace-key", "x-marketplace-token"];
const SCHEMES: [&str; 3] = ["bearer", "apikey", "token"];
/// The query fields that carry a key, in their precedence, with the source name of each.
const QUERY: [(&str, &str); 4] = [
    ("api_key", "query:api_key"),
    ("apikey", "query:apikey"),
    ("marketplace_key", "query:marketplace_key"),
    ("key", "query:key"),
];
/// The result of [`extract_api_key`].
#[derive(Clone)]
struct ExtractedApiKey(Arc<Result<ApiKey, ApiKeyError>>);

/// A request that was counted against its caller's rate limit as the request of a page.
#[derive(Clone, Copy)]
struct CountedAsPage;

/// Removes the key from the request before anything can log it.
pub fn extract_api_key(mut request: Request) -> Request {
    let found = find_api_key(request.headers(), request.uri());
    for name in HEADERS.iter().chain([&AUTHORIZATION]) {
        request.headers_mut().remove(name);
    }
    if let Some(clean) = remove_keys_from_uri(request.uri()) {
        *request.uri_mut() = clean;
    }
    request
        .extensions_mut()
        .insert(ExtractedApiKey(Arc::new(found)));
    request
}

/// Adds the key of a session to a request that a page hands on to the API. The page has counted it
/// against its caller's rate limit.
pub fn add_session_key(request: &mut Request, key: CallerKey) {
    let caller = ApiKey::without_permits(key, "session");
    let extensions = request.extensions_mut();
    extensions.insert(ExtractedApiKey(Arc::new(Ok(caller))));
    extensions.insert(CountedAsPage);
}

impl ApiKey {
    /// A key that holds no concurrency permits.
    pub fn without_permits(key: CallerKey, key_source: &'static str) -> Self {
        Self {
            key,
            key_source,
            is_write: false,
            permits: Arc::default(),
        }
    }

    /// The key of a request.
    ///
    /// # Errors
    /// 401 `missing_api_key` or `invalid_api_key`.
    pub fn from_parts(parts: &Parts) -> Result<Self, ApiError> {
        let Some(ExtractedApiKey(found)) = parts.extensions.get::<ExtractedApiKey>() else {
            return Err(ApiError::missing_api_key());
        };
        let caller = found.as_ref().clone().map_err(ApiError::from)?;
        Ok(Self {
            is_write: !parts.method.is_safe(),
            ..caller
        })
    }

    /// Acquires the concurrency permits of the request.
    ///
    /// # Errors
    /// 429 after the timeout.
    pub async fn acquire_permits(&mut self, app: &AppState) -> Result<(), ApiError> {
        self.permits = Arc::new(app.concurrency.request(&self.key, self.is_write).await?);
        Ok(())
    }
}

impl FromRequestParts<AppState> for ApiKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, ApiError> {
        let LongPollApiKey(mut caller) = LongPollApiKey::from_request_parts(parts, app).await?;
        caller.acquire_permits(app).await?;
        Ok(caller)
    }
}

/// The key of a request that may wait for an event. It counts against the rate limit, not against
/// requests in flight.
pub struct LongPollApiKey(pub ApiKey);

impl FromRequestParts<AppState> for LongPollApiKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, ApiError> {
        let caller = ApiKey::from_parts(parts)?;
        if parts.extensions.get::<CountedAsPage>().is_none() {
            app.check_rate_limit(&caller.key)?;
        }
        Ok(Self(caller))
    }
}

/// The key of a request to one of the seven specified endpoints, which only the marketplace limits.
pub struct UnlimitedApiKey(pub ApiKey);

impl<S: Sync> FromRequestParts<S> for UnlimitedApiKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        ApiKey::from_parts(parts).map(Self)
    }
}

impl From<ApiKeyError> for ApiError {
    fn from(fault: ApiKeyError) -> Self {
        match fault {
            ApiKeyError::Missing => Self::missing_api_key(),
            ApiKeyError::Malformed(source) => Self::invalid_api_key(format!(
                "the key in `{source}` is malformed; expected 1 to {MAX_KEY_BYTES} visible ASCII characters without white space"
            )),
            ApiKeyError::Scheme => Self::invalid_api_key(
                "`authorization` is malformed; expected `Bearer <API_KEY>`, `ApiKey <API_KEY>` or `Token <API_KEY>`",
            ),
            ApiKeyError::Placeholder(text) => Self::invalid_api_key(format!(
                "`{text}` is a placeholder; send your own marketplace key instead"
            )),
        }
    }
}

/// The first carrier that is not blank wins; headers precede the query (gateway.md, rule 11).
fn find_api_key(headers: &HeaderMap, uri: &Uri) -> Result<ApiKey, ApiKeyError> {
    for (name, source) in HEADERS.iter().zip(HEADER_SOURCES) {
        if let Some(value) = headers
            .get_all(name)
            .iter()
            .find(|value| !is_blank(value.as_bytes()))
        {
            return parse_api_key(value.as_bytes(), source);
        }
    }
    for value in headers.get_all(AUTHORIZATION) {
        if let Some(key) = authorization_key(value)? {
            return parse_api_key(key, "authorization");
        }
    }
    let query = uri.query().unwrap_or_default();
    for (name, source) in QUERY {
        let mut values = form_urlencoded::parse(query.as_bytes()).filter(|(held, _)| held == name);
        if let Some((_, value)) = values.find(|(_, value)| !is_blank(value.as_bytes())) {
            return parse_api_key(value.as_bytes(), source);
        }
    }
    Err(ApiKeyError::Missing)
}

/// The key of an `Authorization` header; `None` if the header is blank or has only a scheme.
fn authorization_key(value: &HeaderValue) -> Result<Option<&[u8]>, ApiKeyError> {
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
            Err(ApiKeyError::Scheme)
        }
        () => Ok(Some(key).filter(|key| !is_blank(key))),
    }
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes.trim_ascii().is_empty()
}

fn parse_api_key(bytes: &[u8], source: &'static str) -> Result<ApiKey, ApiKeyError> {
    match parse_key(bytes.trim_ascii()) {
        Ok(key) => Ok(ApiKey::without_permits(CallerKey::new(key), source)),
        Err(KeyFormatError::Malformed) => Err(ApiKeyError::Malformed(source)),
        Err(KeyFormatError::Placeholder(placeholder)) => Err(ApiKeyError::Placeholder(placeholder)),
    }
}

/// The URI without its key fields, in any letter case; `None` if it has none.
fn remove_keys_from_uri(uri: &Uri) -> Option<Uri> {
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
    // A part of a valid query is valid. If it were not, the path `/` is used rather than the key.
    parts.path_and_query = Some(
        path_and_query
            .parse()
            .unwrap_or_else(|_| PathAndQuery::from_static("/")),
    );
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests;
