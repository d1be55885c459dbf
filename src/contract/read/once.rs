//! JSON in which no name is given twice, and which holds no more than a valid body can. serde_json's own reader takes the last of two names
//! and says nothing, and reads a list as long as the body: in memory it takes up to a hundred times as much as its text. So reading
//! stops where a list, an object or the whole holds more than any valid body.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::contract::fault::{Fault, Faults, is_secret, shorten, shortened};

/// The most elements of a list: a sweep has at most 10,000 values, and the 64 KiB of a search hold at most 13,108 codes.
const MAX_ELEMENTS: usize = 16_384;
/// The most fields of an object: no body has a tenth of them.
const MAX_FIELDS: usize = 1_000;
/// What a body may weigh, in values; an object weighs more, because of its index.
const MAX_WEIGHT: usize = 20_000;
const OBJECT_WEIGHT: usize = 5;

/// Why a body was not read to its end.
pub(super) enum Unread {
    /// It is no JSON.
    Syntax(serde_json::Error),
    /// It holds more than any valid body.
    TooMuch(Fault),
}

/// Reads one value with nothing after it: the value, and a fault for each name that its object has already.
pub(super) fn read(json: &[u8]) -> Result<(Value, Faults), Unread> {
    let mut progress = Progress {
        faults: Faults::default(),
        weight: 0,
        too_much: None,
    };
    let mut reader = serde_json::Deserializer::from_slice(json);
    let read = Once {
        place: None,
        progress: &mut progress,
    }
    .deserialize(&mut reader);
    if let Some(fault) = progress.too_much {
        return Err(Unread::TooMuch(fault));
    }
    let value = read.map_err(Unread::Syntax)?;
    reader.end().map_err(Unread::Syntax)?;
    Ok((value, progress.faults))
}

/// How far the reading has come.
struct Progress {
    faults: Faults,
    weight: usize,
    /// Set when the reading stops.
    too_much: Option<Fault>,
}

impl Progress {
    /// Counts what was read at a place that holds `held` elements or fields of `most`.
    fn add<E: Error>(
        &mut self,
        weight: usize,
        place: Option<&Place<'_>>,
        (held, most): (usize, usize),
    ) -> Result<(), E> {
        self.weight += weight;
        let fault = if held > most {
            let path = place.map_or_else(|| "body".to_owned(), Place::path);
            Fault {
                path: shorten(&path),
                held: Some(format!("more than {most} values")),
                allowed: format!("at most {most} values"),
            }
        } else if self.weight > MAX_WEIGHT {
            let held = Some(format!("more than {MAX_WEIGHT} values"));
            let allowed = format!(
                "at most {MAX_WEIGHT} values in all, of which an object counts as {OBJECT_WEIGHT} more"
            );
            Fault {
                path: "body".to_owned(),
                held,
                allowed,
            }
        } else {
            return Ok(());
        };
        let error = E::custom(&fault);
        self.too_much = Some(fault);
        Err(error)
    }
}

fn twice(path: &str, first: &Value, second: &Value) -> Fault {
    let allowed = "one value: a field is given once";
    if is_secret(path, first) || is_secret(path, second) {
        return Fault::secret(path, allowed);
    }
    // Shortened as a whole: a hundred faults deep down must not make a huge answer.
    Fault {
        path: shorten(path),
        held: Some(shortened(format_args!("{first} and {second}"))),
        allowed: allowed.to_owned(),
    }
}

/// Where a value stands, from the inside out: a path is only put together for a fault.
#[derive(Clone, Copy)]
enum Place<'a> {
    Field(&'a str, Option<&'a Place<'a>>),
    Element(usize, Option<&'a Place<'a>>),
}

impl Place<'_> {
    /// The path from the top.
    fn path(&self) -> String {
        match self {
            Self::Field(name, None) => (*name).to_owned(),
            Self::Field(name, Some(outer)) => format!("{}.{name}", outer.path()),
            Self::Element(index, outer) => {
                format!("{}[{index}]", outer.map(Place::path).unwrap_or_default())
            }
        }
    }
}

/// One value at its place.
struct Once<'a> {
    place: Option<&'a Place<'a>>,
    progress: &'a mut Progress,
}

impl<'de> DeserializeSeed<'de> for Once<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Once<'_> {
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
            let place = Place::Element(list.len(), self.place);
            match elements.next_element_seed(Once {
                place: Some(&place),
                progress: self.progress,
            })? {
                Some(element) => list.push(element),
                None => {
                    // Room for four is made for the first: with thousands of lists of one element that counts.
                    list.shrink_to_fit();
                    return Ok(list.into());
                }
            }
            self.progress
                .add(1, self.place, (list.len(), MAX_ELEMENTS))?;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        self.progress.add(OBJECT_WEIGHT, None, (0, 0))?;
        let mut object = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let place = Place::Field(&name, self.place);
            let value = fields.next_value_seed(Once {
                place: Some(&place),
                progress: self.progress,
            })?;
            if let Some(first) = object.get(&name) {
                self.progress
                    .faults
                    .push_with(|| twice(&place.path(), first, &value));
            }
            object.insert(name, value);
            self.progress
                .add(1, self.place, (object.len(), MAX_FIELDS))?;
        }
        Ok(object.into())
    }
}
