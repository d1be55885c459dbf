//! Which responses are compressed.

use axum::http::header::CONTENT_TYPE;
use axum::http::{Extensions, HeaderMap, HeaderValue, StatusCode, Version};
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{Predicate, SizeAbove};

/// Smaller bodies gain nothing.
const MIN_COMPRESSED_BYTES: u64 = 1024;

/// Types that are compressed already.
const ALREADY_COMPRESSED: [&str; 2] = ["image/png", "application/vnd.apache.parquet"];
/// Streamed events must not be buffered.
const EVENT_STREAM: &str = "text/event-stream";

/// Compresses responses for clients that accept it, if that saves bytes.
pub fn compression() -> CompressionLayer<impl Predicate> {
    let predicate = |_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions| {
        let kind = headers
            .get(CONTENT_TYPE)
            .map(HeaderValue::as_bytes)
            .unwrap_or_default();
        should_compress(u64::MAX, kind)
    };
    CompressionLayer::new().compress_when(SizeAbove::new(MIN_COMPRESSED_BYTES).and(predicate))
}

/// Whether to compress a body of this size and type.
pub fn should_compress(bytes: u64, content_type: &[u8]) -> bool {
    bytes > MIN_COMPRESSED_BYTES
        && ALREADY_COMPRESSED
            .iter()
            .chain([&EVENT_STREAM])
            .all(|kind| !content_type.starts_with(kind.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_and_compressed_types_are_not_compressed() {
        for (bytes, kind, expected) in [
            (1_025, "application/json", true),
            (1_024, "application/json", false),
            (u64::MAX, "text/csv; charset=utf-8", true),
            (u64::MAX, "", true),
            (u64::MAX, "text/event-stream", false),
            (u64::MAX, "text/event-stream; charset=utf-8", false),
            (u64::MAX, "application/vnd.apache.parquet", false),
            (u64::MAX, "image/png", false),
        ] {
            assert_eq!(
                should_compress(bytes, kind.as_bytes()),
                expected,
                "{bytes} {kind}"
            );
        }
    }
}
