//! Paging: opaque cursors, and whole lists as streams of pages ([`stream_rows`]).
//!
//! A cursor holds the sort key of the last row of a page (keyset), so pages neither skip nor repeat
//! a row while rows are added and removed. It also holds the name of its list: a cursor of another
//! list is rejected. Not here: the lists.

mod stream;

pub use stream::{Page, stream_rows};

use jiff::Timestamp;

use crate::contract::primitives::{Cursor, is_accepted_time};
use crate::contract::{FieldValue as _, ValidationError, ValidationErrors};
use crate::ids::ResourceId;

/// Why a page cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The cursor does not belong to this list.
    #[error(transparent)]
    ValidationErrors(#[from] ValidationErrors),
    /// The listed resource was deleted meanwhile.
    #[error("the resource was deleted while its rows were read")]
    Gone,
    /// The database did not answer.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Separates the parts of a key, which are numbers, and digits of hexadecimal or base64url.
const SEPARATOR: char = '|';

/// The cursor after a row of `list` with this sort key.
pub fn encode_cursor<const N: usize>(list: &str, key: [String; N]) -> String {
    let text = std::iter::once(list.to_owned())
        .chain(key)
        .collect::<Vec<_>>()
        .join(&SEPARATOR.to_string());
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// The sort key of a cursor of `list`.
///
/// # Errors
/// An error of the field `cursor` if it is not a cursor of this list.
pub fn decode_cursor<const N: usize>(
    list: &str,
    cursor: &Cursor,
) -> Result<[String; N], ValidationErrors> {
    let parts = decode(cursor.as_str()).and_then(|text| {
        let mut parts = text.split(SEPARATOR).map(str::to_owned);
        if parts.next()? != list {
            return None;
        }
        parts.collect::<Vec<_>>().try_into().ok()
    });
    parts.ok_or_else(|| invalid_cursor(cursor))
}

/// The cursor after a resource of a list that is in the order of ids.
pub fn encode_id<Id: ResourceId>(last: Id) -> String {
    encode_cursor(Id::KIND.plural(), [last.to_string()])
}

/// The id after which a page of such a list begins; `None`: it is the first page.
///
/// # Errors
/// As [`decode_cursor`].
pub fn decode_id<Id: ResourceId>(cursor: Option<&Cursor>) -> Result<Option<Id>, ValidationErrors> {
    let decode = |cursor| {
        let [id] = decode_cursor(Id::KIND.plural(), cursor)?;
        id.parse().map_err(|_| invalid_cursor(cursor))
    };
    cursor.map(decode).transpose()
}

/// A time in a cursor, as microseconds; `None` for what no cursor of this service holds.
pub fn cursor_time(micros: &str) -> Option<Timestamp> {
    let time = Timestamp::from_microsecond(micros.parse().ok()?).ok()?;
    Some(time).filter(is_accepted_time)
}

/// The validation error of a cursor that this service did not create.
pub fn invalid_cursor(cursor: &Cursor) -> ValidationErrors {
    ValidationError::new("cursor", &cursor.to_value(), Cursor::expected()).into()
}

/// The rows to query for a page: one more shows whether another page follows.
pub fn limit_plus_one(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1)
}

/// Truncates rows to a page. Returns the last row of the page if more rows follow.
pub fn truncate_page<Row>(rows: &mut Vec<Row>, limit: usize) -> Option<&Row> {
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
    fn truncate_page_returns_the_last_row_if_more_follow() {
        for (rows, page, last) in [(0, 0, None), (2, 2, None), (3, 3, None), (4, 3, Some(2))] {
            let mut rows: Vec<_> = (0..rows).collect();
            assert_eq!(truncate_page(&mut rows, 3).copied(), last);
            assert_eq!(rows.len(), page);
        }
    }

    #[test]
    fn a_cursor_is_valid_in_its_own_list_only() {
        let made = encode_cursor("items", ["12".to_owned(), "0a".to_owned()]);
        assert_eq!(
            decode_cursor("items", &cursor(&made)),
            Ok(["12".to_owned(), "0a".to_owned()])
        );
        for wrong in [
            decode_cursor::<1>("items", &cursor(&made)).unwrap_err(),
            decode_cursor::<2>("scans", &cursor(&made)).unwrap_err(),
        ] {
            assert!(wrong.to_string().contains("`cursor`"), "{wrong}");
        }
        for text in ["x", "0", "zz", "é1", "ff"] {
            if let Ok(cursor) = Cursor::read(&json!(text)) {
                assert!(decode_cursor::<1>("items", &cursor).is_err(), "{text}");
            }
        }
    }
}
