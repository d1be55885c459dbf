//! The media types that a client accepts (RFC 9110, 12.5.1). Parameters other than `q` are ignored:
//! `text/csv; charset=utf-8` means CSV.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;
use mediatype::{MediaType, MediaTypeList, ReadParams as _, names};

/// Whether a person asks with a browser, which prefers `text/html` to JSON. Programs accept anything
/// or name JSON.
pub fn prefers_html(headers: &HeaderMap) -> bool {
    let accept = accept_text(headers);
    let ranges = accepted_ranges(&accept);
    quality_of(&ranges, "text", "html") > quality_of(&ranges, "application", "json")
}

/// The headers `Accept` as one list.
pub fn accept_text(headers: &HeaderMap) -> String {
    let lines: Vec<_> = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .filter(|value| !value.trim().is_empty())
        .collect();
    lines.join(",")
}

/// Unparsable elements are skipped; the rest of the list counts.
pub fn accepted_ranges(accept: &str) -> Vec<MediaType<'_>> {
    MediaTypeList::new(accept).filter_map(Result::ok).collect()
}

/// The quality of a format in thousandths, from the most specific matching range. 0: not
/// acceptable.
pub fn quality_of(ranges: &[MediaType<'_>], top: &str, sub: &str) -> u16 {
    let is = |name: mediatype::Name<'_>, word: &str| name.as_str().eq_ignore_ascii_case(word);
    let specificity = |range: &MediaType<'_>| {
        let (any_top, any_sub) = (range.ty == names::_STAR, range.subty == names::_STAR);
        match (
            is(range.ty, top),
            is(range.subty, sub) && range.suffix.is_none(),
        ) {
            (true, true) => Some(2),
            (true, _) if any_sub => Some(1),
            _ if any_top && any_sub => Some(0),
            _ => None,
        }
    };
    let naming = ranges
        .iter()
        .filter_map(|range| Some((specificity(range)?, q_value(range))));
    naming.max().map_or(0, |(_, quality)| quality)
}

/// `q` in thousandths; 1000 if it is absent or not a number from 0 to 1.
fn q_value(range: &MediaType<'_>) -> u16 {
    let given = range
        .get_param(names::Q)
        .and_then(|q| q.as_str().parse::<f32>().ok())
        .filter(|q| (0.0..=1.0).contains(q));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 0 to 1000"
    )]
    given.map_or(1000, |q| (q * 1000.0).round() as u16)
}
