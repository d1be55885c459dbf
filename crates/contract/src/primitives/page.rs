//! Paging and formats of lists.

use super::integer::bounded_integer;
use super::text::text_type;
use crate::string_enum::string_enum;

string_enum! {
    /// The format of a list. It overrides the header `Accept`, which links and spreadsheets cannot
    /// send.
    pub enum ListFormat {
        /// A page of JSON.
        Json = "json",
        /// All rows as CSV.
        Csv = "csv",
        /// All rows as NDJSON: one JSON object a line.
        Ndjson = "ndjson",
        /// All rows as Parquet.
        Parquet = "parquet",
    }
}

bounded_integer! {
    /// The maximum rows of a page (security.md, rule 20).
    pub struct PageLimit(u16): 1..=500;
}

impl PageLimit {
    /// The default.
    pub const FIFTY: Self = Self(50);
}

/// The longest cursor, in characters.
const MAX_CURSOR_CHARS: usize = 200;

text_type! {
    /// The position where a page begins, opaque to the caller. `paging` checks that this service
    /// issued it.
    pub struct Cursor {
        expected: "the `next_cursor` of the previous page",
        accepts: |text| (1..=MAX_CURSOR_CHARS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()),
        normalize: str::to_owned,
        examples: [] as [&str; 0],
        schema: { min_length: 1, max_length: MAX_CURSOR_CHARS, pattern: "^[!-~]+$" },
    }
}
