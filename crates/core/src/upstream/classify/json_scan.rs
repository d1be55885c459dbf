//! Validates an answer in one pass over its text: JSON syntax, nesting depth, shape and number of
//! rows.
//!
//! Reads every string and number as a full parse would, but builds no values.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::MAX_DEPTH;

/// The field whose empty string means that there is no verdict (gateway.md, rules 3 and 14).
pub(super) const VERDICT_FIELD: &str = "price_range_in_relation_to_other_periods";

/// A list of objects.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RowScan {
    pub(super) count: usize,
    /// Positions of empty verdicts: the byte after the opening quote.
    pub(super) empty_verdicts: Vec<usize>,
}

/// The kind of a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonKind {
    Null,
    Bool(bool),
    Number,
    Text {
        is_empty: bool,
        /// Address of its first character in the input; `None` if it contains escapes.
        address: Option<usize>,
    },
    List {
        count: usize,
        of_objects: bool,
    },
    Object,
}

/// Scans a list of objects. `None` if it is another value, invalid JSON or nested too deeply.
pub(super) fn rows(text: &str) -> Option<RowScan> {
    let mut rows = RowScan::default();
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.deserialize_any(ListVisitor(&mut rows)).ok()?;
    reader.end().ok()?;
    let begin = text.as_ptr().addr();
    for position in &mut rows.empty_verdicts {
        *position = position.checked_sub(begin)?;
    }
    Some(rows)
}

/// The kind of an object's field. `None` if the text is no object or lacks the field.
pub(super) fn field(text: &str, name: &str) -> Option<JsonKind> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let kind = reader.deserialize_any(FieldVisitor(name)).ok()?;
    reader.end().ok()?;
    kind
}

/// The text with `null` in place of the empty strings at these positions; `None` if a position is
/// wrong.
pub(super) fn with_nulls(text: &str, empty_verdicts: &[usize]) -> Option<String> {
    let mut out = String::with_capacity(text.len() + 2 * empty_verdicts.len());
    let mut done = 0;
    for position in empty_verdicts {
        let (begin, end) = (position.checked_sub(1)?, position + 1);
        if text.get(begin..end)? != "\"\"" {
            return None;
        }
        out.push_str(text.get(done..begin)?);
        out.push_str("null");
        done = end;
    }
    out.push_str(text.get(done..)?);
    Some(out)
}

/// The first `count` rows of a list that [`rows`] has scanned, with `null` in place of their empty
/// verdicts. `None` if there are fewer.
pub(super) fn first_rows(text: &str, count: usize, empty_verdicts: &[usize]) -> Option<String> {
    let rows: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    let Some(last) = count.checked_sub(1) else {
        return Some("[]".to_owned());
    };
    let last = rows.get(last)?.get().as_bytes().as_ptr_range().end.addr();
    let end = last.checked_sub(text.as_ptr().addr())?;
    let within = empty_verdicts.partition_point(|position| *position < end);
    let mut first = with_nulls(text.get(..end)?, empty_verdicts.get(..within)?)?;
    first.push(']');
    Some(first)
}

/// Any value, with a limit on nested containers.
#[derive(Clone, Copy)]
struct AnyValue {
    remaining_depth: usize,
}

impl AnyValue {
    const TOP: Self = Self {
        remaining_depth: MAX_DEPTH,
    };

    fn inside<E: Error>(self) -> Result<Self, E> {
        let remaining_depth = self
            .remaining_depth
            .checked_sub(1)
            .ok_or_else(|| E::custom("nested too deep"))?;
        Ok(Self { remaining_depth })
    }
}

impl<'de> DeserializeSeed<'de> for AnyValue {
    type Value = JsonKind;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<JsonKind, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AnyValue {
    type Value = JsonKind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<JsonKind, E> {
        Ok(JsonKind::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<JsonKind, E> {
        Ok(JsonKind::Bool(value))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<JsonKind, E> {
        Ok(JsonKind::Number)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<JsonKind, E> {
        Ok(JsonKind::Number)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<JsonKind, E> {
        Ok(JsonKind::Number)
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<JsonKind, E> {
        Ok(JsonKind::Text {
            is_empty: text.is_empty(),
            address: Some(text.as_ptr().addr()),
        })
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<JsonKind, E> {
        Ok(JsonKind::Text {
            is_empty: text.is_empty(),
            address: None,
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<JsonKind, A::Error> {
        let (inner, mut count, mut of_objects) = (self.inside()?, 0, true);
        while let Some(kind) = list.next_element_seed(inner)? {
            count += 1;
            of_objects &= kind == JsonKind::Object;
        }
        Ok(JsonKind::List { count, of_objects })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<JsonKind, A::Error> {
        let inner = self.inside()?;
        while object.next_key::<IgnoredAny>()?.is_some() {
            object.next_value_seed(inner)?;
        }
        Ok(JsonKind::Object)
    }
}

/// Compares a key with a name.
#[derive(Clone, Copy)]
struct IsKey<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for IsKey<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<bool, D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for IsKey<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}

/// Visits a list of objects.
struct ListVisitor<'r>(&'r mut RowScan);

impl<'de> Visitor<'de> for ListVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(RowVisitor(self.0))?.is_some() {
            self.0.count += 1;
        }
        Ok(())
    }
}

/// Visits one of its objects.
struct RowVisitor<'r>(&'r mut RowScan);

impl<'de> DeserializeSeed<'de> for RowVisitor<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for RowVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut row: A) -> Result<(), A::Error> {
        let inner = AnyValue::TOP.inside()?.inside()?;
        while let Some(is_verdict) = row.next_key_seed(IsKey(VERDICT_FIELD))? {
            let kind = row.next_value_seed(inner)?;
            if is_verdict
                && let JsonKind::Text {
                    is_empty: true,
                    address,
                } = kind
            {
                // An escaped text has no address: an invalid position makes the caller fall back to
                // a full parse.
                self.0.empty_verdicts.push(address.unwrap_or(usize::MAX));
            }
        }
        Ok(())
    }
}

/// Visits an object for one field; the last of duplicate fields counts.
struct FieldVisitor<'a>(&'a str);

impl<'de> Visitor<'de> for FieldVisitor<'_> {
    type Value = Option<JsonKind>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Option<JsonKind>, A::Error> {
        let (inner, mut found) = (AnyValue::TOP.inside()?, None);
        while let Some(is_it) = object.next_key_seed(IsKey(self.0))? {
            let kind = object.next_value_seed(inner)?;
            if is_it {
                found = Some(kind);
            }
        }
        Ok(found)
    }
}
