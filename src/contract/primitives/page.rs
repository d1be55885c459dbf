//! Pages of lists, and the forms in which a list can be had.

use super::integer::whole_number;
use super::text::text;
use crate::contract::words::words;

words! {
    /// The form of a list. It goes before the header `Accept`, which links and spreadsheets cannot send.
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

whole_number! {
    /// The most rows of a page (security, "Limits").
    pub struct PageLimit(u16): 1..=500;
}

impl PageLimit {
    /// The default.
    pub const FIFTY: Self = Self(50);
}

/// The longest cursor, in characters.
const MAX_CURSOR_CHARS: usize = 200;

text! {
    /// Where a page begins, opaque to its caller. Whether this service made it is its reader's to find out.
    pub struct Cursor {
        allowed: "the `next_cursor` of the page before",
        accepts: |text| (1..=MAX_CURSOR_CHARS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()),
        forwards: str::to_owned,
        examples: [] as [&str; 0],
        schema: { min_length: 1, max_length: MAX_CURSOR_CHARS, pattern: "^[!-~]+$" },
    }
}
