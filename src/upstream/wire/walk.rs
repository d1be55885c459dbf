//! One pass over the text of an answer: whether it is JSON, how deep it nests, of what kind it is and how many rows it has.
//!
//! Everything is looked at that a full reading would look at, text by text and number by number; only nothing is built of it. Not here: what
//! follows from it (`wire`).

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::MAX_DEPTH;

/// The field whose empty text stands for no verdict (contract 3, 14).
pub(super) const VERDICT: &str = "price_range_in_relation_to_other_periods";

/// A list of objects.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Rows {
    pub(super) count: usize,
    /// Where the empty verdicts stand: the place behind the first of their two quotes.
    pub(super) blanks: Vec<usize>,
}

/// What a value is, as far as anybody asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Bool(bool),
    Number,
    Text {
        is_empty: bool,
        /// The address of its first character in the text that is read; none if it had escapes.
        address: Option<usize>,
    },
    List {
        count: usize,
        of_objects: bool,
    },
    Object,
}

/// A text that must be a list of objects. `None`: it is not, or is no JSON, or nests too deep.
pub(super) fn rows(text: &str) -> Option<Rows> {
    let mut rows = Rows::default();
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.deserialize_any(List(&mut rows)).ok()?;
    reader.end().ok()?;
    let begin = text.as_ptr().addr();
    for blank in &mut rows.blanks {
        *blank = blank.checked_sub(begin)?;
    }
    Some(rows)
}

/// A text that must be an object: what its field of this name is. `None`: it is no object, or has no such field.
pub(super) fn field(text: &str, name: &str) -> Option<Kind> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let kind = reader.deserialize_any(Field(name)).ok()?;
    reader.end().ok()?;
    kind
}

/// The text with `null` for each empty text at these places; `None` if one of them is none.
pub(super) fn with_nulls(text: &str, blanks: &[usize]) -> Option<String> {
    let mut out = String::with_capacity(text.len() + 2 * blanks.len());
    let mut done = 0;
    for blank in blanks {
        let (begin, end) = (blank.checked_sub(1)?, blank + 1);
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

/// Any value, with room for so many containers inside each other.
#[derive(Clone, Copy)]
struct Any {
    room: usize,
}

impl Any {
    const TOP: Self = Self { room: MAX_DEPTH };

    fn inside<E: Error>(self) -> Result<Self, E> {
        let room = self
            .room
            .checked_sub(1)
            .ok_or_else(|| E::custom("nested too deep"))?;
        Ok(Self { room })
    }
}

impl<'de> DeserializeSeed<'de> for Any {
    type Value = Kind;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Kind, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Any {
    type Value = Kind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<Kind, E> {
        Ok(Kind::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Kind, E> {
        Ok(Kind::Bool(value))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Kind, E> {
        Ok(Kind::Number)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Kind, E> {
        Ok(Kind::Number)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Kind, E> {
        Ok(Kind::Number)
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Kind, E> {
        Ok(Kind::Text {
            is_empty: text.is_empty(),
            address: Some(text.as_ptr().addr()),
        })
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Kind, E> {
        Ok(Kind::Text {
            is_empty: text.is_empty(),
            address: None,
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Kind, A::Error> {
        let (inner, mut count, mut of_objects) = (self.inside()?, 0, true);
        while let Some(kind) = list.next_element_seed(inner)? {
            count += 1;
            of_objects &= kind == Kind::Object;
        }
        Ok(Kind::List { count, of_objects })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Kind, A::Error> {
        let inner = self.inside()?;
        while object.next_key::<IgnoredAny>()?.is_some() {
            object.next_value_seed(inner)?;
        }
        Ok(Kind::Object)
    }
}

/// Whether a key is this one.
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

/// The whole of a list of objects.
struct List<'r>(&'r mut Rows);

impl<'de> Visitor<'de> for List<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Row(self.0))?.is_some() {
            self.0.count += 1;
        }
        Ok(())
    }
}

/// One of its objects.
struct Row<'r>(&'r mut Rows);

impl<'de> DeserializeSeed<'de> for Row<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Row<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut row: A) -> Result<(), A::Error> {
        let inner = Any::TOP.inside()?.inside()?;
        while let Some(is_verdict) = row.next_key_seed(IsKey(VERDICT))? {
            let kind = row.next_value_seed(inner)?;
            if is_verdict
                && let Kind::Text {
                    is_empty: true,
                    address,
                } = kind
            {
                // Without an address: a place that is none, for the caller to stumble over.
                self.0.blanks.push(address.unwrap_or(usize::MAX));
            }
        }
        Ok(())
    }
}

/// A field of an object; of one that stands there twice the last counts.
struct Field<'a>(&'a str);

impl<'de> Visitor<'de> for Field<'_> {
    type Value = Option<Kind>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Option<Kind>, A::Error> {
        let (inner, mut found) = (Any::TOP.inside()?, None);
        while let Some(is_it) = object.next_key_seed(IsKey(self.0))? {
            let kind = object.next_value_seed(inner)?;
            if is_it {
                found = Some(kind);
            }
        }
        Ok(found)
    }
}
