//! The fields of a flight row that become an offer, read from the response text in one pass.
//!
//! A scan reads the best price of every response; parsing the whole response for that costs several
//! times as much. Not here: the offer itself (`offer`).

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Number, Value};

/// A flight row; its other fields are skipped.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FareRow<'a> {
    #[serde(borrow)]
    pub(super) airline: LooseValue<'a>,
    pub(super) departure_flight_airline: LooseValue<'a>,
    pub(super) return_flight_airline: LooseValue<'a>,
    pub(super) stops: LooseValue<'a>,
    pub(super) total_stops: LooseValue<'a>,
    pub(super) buy_link: LooseValue<'a>,
    pub(super) price_range_in_relation_to_other_periods: LooseValue<'a>,
    pub(super) price_insights_low: LooseValue<'a>,
    pub(super) price_insights_high: LooseValue<'a>,
    pub(super) price_as_number: LooseValue<'a>,
    pub(super) total_price_as_number: LooseValue<'a>,
}

/// The value of a field, of any type: engines use several types for one field.
#[derive(Debug, Default, PartialEq)]
pub(super) enum LooseValue<'a> {
    Text(Cow<'a, str>),
    Number(Number),
    /// Another type, or absent.
    #[default]
    Other,
}

impl LooseValue<'_> {
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

/// The results of `read` for each row, in the order of the response.
pub(super) fn read_fare_rows<T>(answer: &str, read: impl Fn(&FareRow<'_>) -> Option<T>) -> Vec<T> {
    match serde_json::from_str::<Vec<FareRow<'_>>>(answer) {
        Ok(rows) => rows.iter().filter_map(read).collect(),
        // A row is not an object or has a duplicate field. The second reader takes the last
        // duplicate, as JSON readers do.
        Err(_) => {
            let answer: Value = serde_json::from_str(answer).unwrap_or_default();
            let rows = answer
                .as_array()
                .into_iter()
                .flatten()
                .filter(|row| row.is_object());
            rows.filter_map(|row| read(&FareRow::deserialize(row).ok()?))
                .collect()
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for LooseValue<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LooseValueVisitor)
    }
}

struct LooseValueVisitor;

impl<'de> Visitor<'de> for LooseValueVisitor {
    type Value = LooseValue<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<LooseValue<'de>, E> {
        Ok(LooseValue::Text(text.into()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<LooseValue<'de>, E> {
        Ok(LooseValue::Text(text.to_owned().into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<LooseValue<'de>, E> {
        Ok(LooseValue::Number(number.into()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<LooseValue<'de>, E> {
        Ok(LooseValue::Number(number.into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<LooseValue<'de>, E> {
        Ok(Number::from_f64(number).map_or(LooseValue::Other, LooseValue::Number))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<LooseValue<'de>, E> {
        Ok(LooseValue::Other)
    }

    fn visit_unit<E: Error>(self) -> Result<LooseValue<'de>, E> {
        Ok(LooseValue::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<LooseValue<'de>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(LooseValue::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<LooseValue<'de>, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(LooseValue::Other)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn rows_as_text(answer: &str) -> Vec<String> {
        read_fare_rows(answer, |row| Some(format!("{row:?}")))
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
        /// A row that is not an object makes the second reader read all rows.
        #[test]
        fn both_row_readers_agree(rows in proptest::collection::vec((leaf(), leaf(), leaf(), leaf()), 0..5)) {
            let row = |(airline, stops, price, other): &(Value, Value, Value, Value)| {
                json!({"airline": airline, "stops": stops, "price_as_number": price, "other": other})
            };
            let mut list: Vec<_> = rows.iter().map(row).collect();
            let direct = rows_as_text(&json!(list).to_string());
            prop_assert_eq!(direct.len(), list.len());
            list.push(Value::Null);
            prop_assert_eq!(direct, rows_as_text(&json!(list).to_string()));
        }
    }

    #[test]
    fn the_last_of_two_duplicate_row_fields_counts() {
        let twice = rows_as_text(r#"[{"stops": 1, "airline": "A", "stops": 2}]"#);
        assert_eq!(twice, rows_as_text(r#"[{"airline": "A", "stops": 2}]"#));
        assert!(rows_as_text("{}").is_empty() && rows_as_text("no").is_empty());
    }
}
