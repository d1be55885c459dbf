//! Cursors: where a page of a list begins, opaque to the caller.
//!
//! A cursor names the last row of the page before by its sort key (keyset), so pages neither skip nor repeat a row while rows come and
//! go. It carries the word of its list: a cursor of another list is refused. Here too: whole lists, read page by page (`walk`). Not here:
//! the lists.

mod walk;

pub use walk::{Page, walk};

use crate::contract::primitives::Cursor;
use crate::contract::{Fault, Faults, FieldValue as _};

/// Why a page is not given.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The cursor is none of this list's.
    #[error(transparent)]
    Faults(#[from] Faults),
    /// What is listed was deleted while it was read.
    #[error("it was deleted while it was read")]
    Gone,
    /// The database did not answer.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Between the parts of a key, which are numbers and hexadecimal digits.
const SEPARATOR: char = '|';

/// The cursor after a row of `list` with this sort key.
#[must_use]
pub fn after<const N: usize>(list: &str, key: [String; N]) -> String {
    let text = std::iter::once(list.to_owned())
        .chain(key)
        .collect::<Vec<_>>()
        .join(&SEPARATOR.to_string());
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// The sort key that a cursor of `list` names.
///
/// # Errors
/// A fault of the field `cursor` when it is no cursor of this list.
pub fn read<const N: usize>(list: &str, cursor: &Cursor) -> Result<[String; N], Faults> {
    let parts = decode(cursor.as_str()).and_then(|text| {
        let mut parts = text.split(SEPARATOR).map(str::to_owned);
        if parts.next()? != list {
            return None;
        }
        parts.collect::<Vec<_>>().try_into().ok()
    });
    parts.ok_or_else(|| refused(cursor))
}

/// The fault of a cursor that this service did not make.
#[must_use]
pub fn refused(cursor: &Cursor) -> Faults {
    Fault::new("cursor", &cursor.to_value(), Cursor::allowed()).into()
}

/// How many rows to ask the database for, to see whether there are more than a page takes.
#[must_use]
pub fn one_more_than(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1)
}

/// Takes off what is beyond a page. The last row of the page, if there are more after it.
pub fn cut<Row>(rows: &mut Vec<Row>, limit: usize) -> Option<&Row> {
    let more = rows.len() > limit;
    rows.truncate(limit);
    rows.last().filter(|_| more)
}

fn decode(text: &str) -> Option<String> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    let bytes = (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok());
    String::from_utf8(bytes.collect::<Option<_>>()?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cursor(text: &str) -> Cursor {
        Cursor::read(&json!(text)).unwrap()
    }

    #[test]
    fn a_page_is_cut_where_more_comes_after_it() {
        for (rows, page, last) in [(0, 0, None), (2, 2, None), (3, 3, None), (4, 3, Some(2))] {
            let mut rows: Vec<_> = (0..rows).collect();
            assert_eq!(cut(&mut rows, 3).copied(), last);
            assert_eq!(rows.len(), page);
        }
    }

    #[test]
    fn a_cursor_reads_back_in_its_own_list_only() {
        let made = after("items", ["12".to_owned(), "0a".to_owned()]);
        assert_eq!(
            read("items", &cursor(&made)),
            Ok(["12".to_owned(), "0a".to_owned()])
        );
        for wrong in [
            read::<1>("items", &cursor(&made)).unwrap_err(),
            read::<2>("scans", &cursor(&made)).unwrap_err(),
        ] {
            assert!(wrong.to_string().starts_with("`cursor` holds"), "{wrong}");
        }
        for text in ["x", "0", "zz", "é1", "ff"] {
            if let Ok(cursor) = Cursor::read(&json!(text)) {
                assert!(read::<1>("items", &cursor).is_err(), "{text}");
            }
        }
    }
}
