//! The fields of a fare's row that an offer is made of, read from an answer's text in one pass.
//!
//! A scan looks at every answer for its best price; taking the whole answer apart for that costs several times as much. Not here: what an
//! offer is (`offer`).

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Number, Value};

/// A row; whatever else stands in it is passed over.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Fare<'a> {
    #[serde(borrow)]
    pub(super) airline: Leaf<'a>,
    pub(super) departure_flight_airline: Leaf<'a>,
    pub(super) return_flight_airline: Leaf<'a>,
    pub(super) stops: Leaf<'a>,
    pub(super) total_stops: Leaf<'a>,
    pub(super) buy_link: Leaf<'a>,
    pub(super) price_range_in_relation_to_other_periods: Leaf<'a>,
    pub(super) price_insights_low: Leaf<'a>,
    pub(super) price_insights_high: Leaf<'a>,
    pub(super) price_as_number: Leaf<'a>,
    pub(super) total_price_as_number: Leaf<'a>,
}

/// What stands in a field: engines are not held to its kind.
#[derive(Debug, Default, PartialEq)]
pub(super) enum Leaf<'a> {
    Text(Cow<'a, str>),
    Number(Number),
    /// Anything else, or nothing.
    #[default]
    Other,
}

impl Leaf<'_> {
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Number(_) | Self::Other => None,
        }
    }

    pub(super) fn number(&self) -> Option<&Number> {
        match self {
            Self::Number(number) => Some(number),
            Self::Text(_) | Self::Other => None,
        }
    }
}

/// What is read in each row, in the answer's order.
pub(super) fn fares<T>(answer: &[u8], read: impl Fn(&Fare<'_>) -> Option<T>) -> Vec<T> {
    match serde_json::from_slice::<Vec<Fare<'_>>>(answer) {
        Ok(rows) => rows.iter().filter_map(read).collect(),
        // A row that is no object, or that has a field twice: of that the last counts, as it does for any reader of JSON.
        Err(_) => {
            let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
            let rows = answer
                .as_array()
                .into_iter()
                .flatten()
                .filter(|row| row.is_object());
            rows.filter_map(|row| read(&Fare::deserialize(row).ok()?))
                .collect()
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Leaf<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Kinds)
    }
}

struct Kinds;

impl<'de> Visitor<'de> for Kinds {
    type Value = Leaf<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Leaf<'de>, E> {
        Ok(Leaf::Text(text.into()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Leaf<'de>, E> {
        Ok(Leaf::Text(text.to_owned().into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Leaf<'de>, E> {
        Ok(Leaf::Number(number.into()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Leaf<'de>, E> {
        Ok(Leaf::Number(number.into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Leaf<'de>, E> {
        Ok(Number::from_f64(number).map_or(Leaf::Other, Leaf::Number))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Leaf<'de>, E> {
        Ok(Leaf::Other)
    }

    fn visit_unit<E: Error>(self) -> Result<Leaf<'de>, E> {
        Ok(Leaf::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Leaf<'de>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Leaf::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Leaf<'de>, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Leaf::Other)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn seen(answer: &str) -> Vec<String> {
        fares(answer.as_bytes(), |row| Some(format!("{row:?}")))
    }

    fn leaf() -> impl Strategy<Value = Value> {
        prop_oneof![
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<bool>().prop_map(Value::from),
            ".*".prop_map(Value::from),
            Just(Value::Null),
            Just(json!([{"stops": 1}, "x"])),
            Just(json!({"airline": {"airline": "x"}})),
        ]
    }

    proptest! {
        /// A row that is no object has all of them read the long way round.
        #[test]
        fn text_and_values_are_read_alike(rows in proptest::collection::vec((leaf(), leaf(), leaf(), leaf()), 0..5)) {
            let row = |(airline, stops, price, other): &(Value, Value, Value, Value)| {
                json!({"airline": airline, "stops": stops, "price_as_number": price, "other": other})
            };
            let mut list: Vec<_> = rows.iter().map(row).collect();
            let direct = seen(&json!(list).to_string());
            prop_assert_eq!(direct.len(), list.len());
            list.push(Value::Null);
            prop_assert_eq!(direct, seen(&json!(list).to_string()));
        }
    }

    #[test]
    fn of_a_field_that_stands_twice_the_last_counts() {
        let twice = seen(r#"[{"stops": 1, "airline": "A", "stops": 2}]"#);
        assert_eq!(twice, seen(r#"[{"airline": "A", "stops": 2}]"#));
        assert!(seen("{}").is_empty() && seen("no").is_empty());
    }
}
