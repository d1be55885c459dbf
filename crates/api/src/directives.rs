//! Headers that are lists of directives, `name` or `name=argument` (RFC 7240, RFC 9111).

use axum::http::{HeaderMap, HeaderName};

/// The elements of a header's lists, in order.
pub(super) fn directives<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'a str> {
    let lists = headers.get_all(name).into_iter();
    lists
        .filter_map(|list| list.to_str().ok())
        .flat_map(|list| split(list, ','))
}

/// The name of a directive, in lower case, and its argument.
pub(super) fn name_and_argument(directive: &str) -> (String, Option<&str>) {
    let (name, argument) = directive
        .split_once('=')
        .map_or((directive, None), |(name, argument)| (name, Some(argument)));
    (name.trim().to_ascii_lowercase(), argument)
}

/// The parts of a list; separators inside quotes do not count.
pub(super) fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(|c| {
        let bare = !quoted && c == separator;
        match c {
            '"' if !escaped => quoted = !quoted,
            _ => {}
        }
        escaped = quoted && c == '\\' && !escaped;
        bare
    })
    .map(str::trim)
    .collect()
}

/// A number of seconds: digits, which may be quoted. One that does not fit counts as the largest.
pub(super) fn seconds(argument: &str) -> Option<u64> {
    let digits = argument.trim().trim_matches('"');
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(digits.parse().unwrap_or(u64::MAX))
}
