//! A JSON reader that rejects duplicate names and bounds the number of values.
//!
//! serde_json silently takes the last of two duplicate names, and a parsed body can take a hundred
//! times the memory of its text. This reader stops when a list, an object or the whole body has
//! more values than any valid body.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::validation::{ValidationError, ValidationErrors, is_secret, shorten_display};

/// The most elements of a list: a sweep has at most 10,000 values, and the 64 KiB of a search hold
/// at most 13,108 codes.
const MAX_ELEMENTS: usize = 16_384;
/// The most fields of an object: no body has a tenth of them.
const MAX_FIELDS: usize = 1_000;
/// The most values of a body; an object counts more, because of its index.
const MAX_COST: usize = 20_000;
const OBJECT_COST: usize = 5;

/// Why a body was not read to its end.
pub(super) enum ReadError {
    /// It is not JSON.
    Syntax(serde_json::Error),
    /// It has more values than any valid body.
    TooLarge(ValidationError),
}

/// Reads one value with nothing after it: the value, and an error for each duplicate name.
pub(super) fn read(json: &[u8]) -> Result<(Value, ValidationErrors), ReadError> {
    let mut state = ReadState {
        errors: ValidationErrors::default(),
        cost: 0,
        too_large: None,
    };
    let mut reader = serde_json::Deserializer::from_slice(json);
    let read = StrictValue {
        path: None,
        state: &mut state,
    }
    .deserialize(&mut reader);
    if let Some(error) = state.too_large {
        return Err(ReadError::TooLarge(error));
    }
    let value = read.map_err(ReadError::Syntax)?;
    reader.end().map_err(ReadError::Syntax)?;
    Ok((value, state.errors))
}

/// What was read so far.
struct ReadState {
    errors: ValidationErrors,
    cost: usize,
    /// Set when the reader stops early.
    too_large: Option<ValidationError>,
}

impl ReadState {
    /// Adds to the cost; fails if the list or object at `path` has more than `most` values, or the
    /// body costs too much.
    fn count<E: Error>(
        &mut self,
        cost: usize,
        path: Option<&JsonPath<'_>>,
        (found, most): (usize, usize),
    ) -> Result<(), E> {
        self.cost += cost;
        let error = if found > most {
            let path = path.map_or_else(|| "body".to_owned(), JsonPath::path);
            ValidationError::with_found(
                path,
                format!("more than {most} values"),
                format!("at most {most} values"),
            )
        } else if self.cost > MAX_COST {
            ValidationError::with_found(
                "body",
                format!("more than {MAX_COST} values"),
                format!("at most {MAX_COST} values in all; an object counts as {OBJECT_COST} more"),
            )
        } else {
            return Ok(());
        };
        let stop = E::custom(&error);
        self.too_large = Some(error);
        Err(stop)
    }
}

fn duplicate_field(path: &str, first: &Value, second: &Value) -> ValidationError {
    let expected = "one value: a field is given once";
    if is_secret(path, first) || is_secret(path, second) {
        return ValidationError::secret(path, expected);
    }
    // Shortened as a whole: a hundred deep errors must not make a huge response.
    let found = shorten_display(format_args!("{first} and {second}"));
    ValidationError::with_found(path, found, expected)
}

/// The path of a value, linked from the inside out: it becomes text only for an error.
#[derive(Clone, Copy)]
enum JsonPath<'a> {
    Field(&'a str, Option<&'a JsonPath<'a>>),
    Element(usize, Option<&'a JsonPath<'a>>),
}

impl JsonPath<'_> {
    /// The path from the top.
    fn path(&self) -> String {
        match self {
            Self::Field(name, None) => (*name).to_owned(),
            Self::Field(name, Some(outer)) => format!("{}.{name}", outer.path()),
            Self::Element(index, outer) => {
                format!("{}[{index}]", outer.map(JsonPath::path).unwrap_or_default())
            }
        }
    }
}

/// Deserializes the value at a path.
struct StrictValue<'a> {
    path: Option<&'a JsonPath<'a>>,
    state: &'a mut ReadState,
}

impl<'de> DeserializeSeed<'de> for StrictValue<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictValue<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let path = JsonPath::Element(list.len(), self.path);
            match elements.next_element_seed(StrictValue {
                path: Some(&path),
                state: self.state,
            })? {
                Some(element) => list.push(element),
                None => {
                    // `Vec` allocates four elements for the first: too much for thousands of short
                    // lists.
                    list.shrink_to_fit();
                    return Ok(list.into());
                }
            }
            self.state.count(1, self.path, (list.len(), MAX_ELEMENTS))?;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        self.state.count(OBJECT_COST, None, (0, 0))?;
        let mut object = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let path = JsonPath::Field(&name, self.path);
            let value = fields.next_value_seed(StrictValue {
                path: Some(&path),
                state: self.state,
            })?;
            if let Some(first) = object.get(&name) {
                self.state
                    .errors
                    .push_lazily(|| duplicate_field(&path.path(), first, &value));
            }
            object.insert(name, value);
            self.state.count(1, self.path, (object.len(), MAX_FIELDS))?;
        }
        Ok(object.into())
    }
}
