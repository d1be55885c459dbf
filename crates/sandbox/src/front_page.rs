//! The sandbox's front page: keys, magic values and paths as plain text.

use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::magic_values::MAGIC_VALUES;
use super::plans::KEYS;

/// Lists keys, magic values and paths.
pub(super) fn front_page(paths: &[&str]) -> Response {
    let keys = KEYS
        .iter()
        .map(|(key, _, line)| format!("  {key:<22}{line}"));
    let words = MAGIC_VALUES.iter().map(|magic| {
        format!(
            "  {}  flights: {}\n       hotels:  {}",
            magic.word, magic.flights, magic.hotels
        )
    });
    let paths = paths.iter().map(|path| format!("  {path}"));
    let section = |title: &str, lines: Vec<String>| format!("\n{title}\n{}\n", lines.join("\n"));
    let page = [
        "farescan sandbox: a simulated marketplace. All prices are invented.\n".to_owned(),
        section(
            "Keys (header x-rapidapi-key or x-marketplace-key; a key with a suffix, such as sandbox-pro.alice, has its own counters)",
            keys.collect(),
        ),
        section(
            "Magic values (a destination airport, or the first word of a destination, hotel name or hotel id)",
            words.collect(),
        ),
        section("Paths (POST)", paths.collect()),
    ];
    (
        [(header::CONTENT_TYPE, "text/plain; charset=utf-8")],
        page.concat(),
    )
        .into_response()
}
