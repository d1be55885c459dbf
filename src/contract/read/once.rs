//! JSON in which no name is given twice. serde_json's own reader takes the last of them and says nothing.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::contract::fault::{Fault, Faults, shorten};

/// Reads one value with nothing after it: the value, and a fault for each name that its object has already.
pub(super) fn read(json: &[u8]) -> serde_json::Result<(Value, Faults)> {
    let mut faults = Faults::default();
    let mut reader = serde_json::Deserializer::from_slice(json);
    let value = Once { place: None, faults: &mut faults }.deserialize(&mut reader)?;
    reader.end()?;
    Ok((value, faults))
}

fn twice(path: &str, first: &Value, second: &Value) -> Fault {
    let fault = Fault::new(path, &Value::from_iter([first.clone(), second.clone()]), "one value: a field is given once");
    // Shortened as a whole: a hundred faults deep down must not make a huge answer.
    let held = fault.held.map(|held| if held.starts_with('[') { shorten(&format!("{first} and {second}")) } else { held });
    Fault { held, ..fault }
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
            Self::Element(index, outer) => format!("{}[{index}]", outer.map(Place::path).unwrap_or_default()),
        }
    }
}

/// One value at its place.
struct Once<'a> {
    place: Option<&'a Place<'a>>,
    faults: &'a mut Faults,
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
            match elements.next_element_seed(Once { place: Some(&place), faults: self.faults })? {
                Some(element) => list.push(element),
                None => return Ok(list.into()),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let place = Place::Field(&name, self.place);
            let value = fields.next_value_seed(Once { place: Some(&place), faults: self.faults })?;
            if let Some(first) = object.get(&name) {
                self.faults.push_with(|| twice(&place.path(), first, &value));
            }
            object.insert(name, value);
        }
        Ok(object.into())
    }
}
