//! Responses that are the same for all clients: the OpenAPI description and the files of its page.
//! Each body exists once per encoding and all responses share it, so a slow client holds no memory.

use std::convert::Infallible;

use axum::body::{Body, to_bytes};
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use tokio::sync::OnceCell;
use tower::{ServiceExt as _, service_fn};
use tower_http::compression::Compression;

use super::compression::should_compress;

/// How long clients cache. Short, because a new version of the service has the same paths.
const MAX_AGE: HeaderValue = HeaderValue::from_static("public, max-age=300");
/// For a path that changes with its content.
const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// The encodings, the smallest first.
const ENCODINGS: [&str; 3] = ["br", "zstd", "gzip"];

/// A body that does not change while the process runs.
#[derive(Debug)]
pub struct Asset {
    content_type: HeaderValue,
    caching: HeaderValue,
    /// Weak, because all encodings share it.
    tag: HeaderValue,
    plain: Bytes,
    /// In the order of [`ENCODINGS`].
    packed: [OnceCell<Bytes>; ENCODINGS.len()],
}

impl Asset {
    pub fn new(content_type: &str, plain: impl Into<Bytes>) -> Self {
        let plain = plain.into();
        let digest = Sha256::digest(&plain);
        let tag: String = digest[..8]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let text =
            |text: &str| HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static("*/*"));
        Self {
            content_type: text(content_type),
            caching: MAX_AGE,
            tag: text(&format!("W/\"{tag}\"")),
            plain,
            packed: [const { OnceCell::const_new() }; 3],
        }
    }

    /// The same for a path that names [`Asset::digest`]: clients never ask again.
    #[must_use]
    pub fn immutable(self) -> Self {
        Self {
            caching: IMMUTABLE,
            ..self
        }
    }

    /// The beginning of the content's SHA-256 in hexadecimal digits.
    pub fn digest(&self) -> &str {
        let tag = self.tag.to_str().unwrap_or_default();
        tag.trim_start_matches("W/").trim_matches('"')
    }

    /// The response to a request with these headers.
    pub async fn answer(&self, headers: &HeaderMap) -> Response {
        let caching = [
            (ETAG, self.tag.clone()),
            (CACHE_CONTROL, self.caching.clone()),
            (VARY, HeaderValue::from_static("accept-encoding")),
        ];
        if self.is_known(headers) {
            return (StatusCode::NOT_MODIFIED, caching).into_response();
        }
        let kind = [(CONTENT_TYPE, self.content_type.clone())];
        match self.encoding(headers) {
            Some(encoding) => {
                let coding = [(
                    CONTENT_ENCODING,
                    HeaderValue::from_static(ENCODINGS[encoding]),
                )];
                (
                    caching,
                    kind,
                    coding,
                    Body::from(self.packed(encoding).await),
                )
                    .into_response()
            }
            None => (caching, kind, Body::from(self.plain.clone())).into_response(),
        }
    }

    /// Whether the client has the current version.
    fn is_known(&self, headers: &HeaderMap) -> bool {
        let strong = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
        let ours = strong(self.tag.to_str().unwrap_or_default());
        list_elements(headers, IF_NONE_MATCH).any(|tag| tag.trim() == "*" || strong(tag) == ours)
    }

    /// The smallest encoding that the client accepts.
    fn encoding(&self, headers: &HeaderMap) -> Option<usize> {
        if !should_compress(self.plain.len() as u64, self.content_type.as_bytes()) {
            return None;
        }
        let is_refused = |weight: &str| {
            weight
                .trim()
                .strip_prefix("q=")
                .is_some_and(|weight| weight.trim().parse() == Ok(0.0))
        };
        let takes = |encoding: &&str| {
            list_elements(headers, ACCEPT_ENCODING).any(|accepted| {
                let (name, weight) = accepted.split_once(';').unwrap_or((accepted, ""));
                name.trim().eq_ignore_ascii_case(encoding) && !is_refused(weight)
            })
        };
        ENCODINGS.iter().position(takes)
    }

    async fn packed(&self, encoding: usize) -> Bytes {
        let pack = async || {
            let plain = self.plain.clone();
            // Compression is slow and would block the async thread.
            let packing = tokio::task::spawn_blocking(move || {
                futures::executor::block_on(compressed(plain, ENCODINGS[encoding]))
            });
            packing.await.unwrap_or_default()
        };
        self.packed[encoding].get_or_init(pack).await.clone()
    }
}

/// The elements of a header's list.
fn list_elements(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    headers
        .get_all(name)
        .into_iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
}

/// Compresses with the same middleware as every other response.
async fn compressed(plain: Bytes, encoding: &'static str) -> Bytes {
    let answer = service_fn(async |_: Request<Body>| {
        Ok::<_, Infallible>(Response::new(Body::from(plain.clone())))
    });
    let mut request = Request::new(Body::empty());
    request
        .headers_mut()
        .insert(ACCEPT_ENCODING, HeaderValue::from_static(encoding));
    let response = Compression::new(answer)
        .oneshot(request)
        .await
        .unwrap_or_else(|never: Infallible| match never {});
    to_bytes(Body::new(response.into_body()), usize::MAX)
        .await
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asset() -> Asset {
        Asset::new("application/json", "0123456789".repeat(1_000))
    }

    fn asking(name: HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[tokio::test]
    async fn each_encoding_is_computed_once() {
        let asset = asset();
        for (accepted, encoding) in [
            ("gzip", "gzip"),
            ("gzip, zstd;q=0.1", "zstd"),
            ("GZIP, br;q=0", "gzip"),
            ("br;q=1.0, gzip", "br"),
            ("*", ""),
            ("deflate", ""),
        ] {
            let headers = asking(ACCEPT_ENCODING, accepted);
            let [first, second] = [asset.answer(&headers).await, asset.answer(&headers).await];
            assert_eq!(
                first
                    .headers()
                    .get(CONTENT_ENCODING)
                    .map_or("", |value| value.to_str().unwrap()),
                encoding,
                "{accepted}"
            );
            let [first, second] = [
                to_bytes(first.into_body(), 20_000).await.unwrap(),
                to_bytes(second.into_body(), 20_000).await.unwrap(),
            ];
            assert_eq!(
                first.as_ptr(),
                second.as_ptr(),
                "{accepted}: the same bytes"
            );
            assert_eq!(
                encoding.is_empty(),
                first.len() == 10_000,
                "{accepted}: {}",
                first.len()
            );
        }
    }

    #[tokio::test]
    async fn a_cached_asset_is_not_sent_again() {
        let asset = asset();
        let tag = asset.answer(&HeaderMap::new()).await.headers()[ETAG].clone();
        for (known, status) in [
            (tag.to_str().unwrap(), 304),
            (&tag.to_str().unwrap()[2..], 304),
            ("*", 304),
            ("\"other\"", 200),
        ] {
            let headers =
                HeaderMap::from_iter([(IF_NONE_MATCH, HeaderValue::from_str(known).unwrap())]);
            assert_eq!(
                asset.answer(&headers).await.status().as_u16(),
                status,
                "{known}"
            );
        }
    }
}
