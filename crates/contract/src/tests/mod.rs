//! The public API types, tested with tables that follow gateway.md.
//!
//! Here: how a table is checked against a body. The tables are in the submodules, one for each part
//! of gateway.md.

mod answers;
mod bodies;
mod flights;
mod history;
mod hotels;
mod monitors;
mod offers;
mod properties;
mod scans;
mod schemas;
mod string_enums;
mod validation;

use super::validation::ValidationErrors;
use super::{Endpoint, FieldSpec, Request};
use serde_json::{Map, Value, json};

/// The `expected` texts of the field types.
pub(super) const POSITIVE: &str = "an integer from 1 to 2147483647";
pub(super) const COUNT: &str = "an integer from 0 to 2147483647";
pub(super) const HOUR: &str = "an integer from 0 to 23";
pub(super) const FLAG: &str = "true or false";
pub(super) const DATE: &str = "a date that exists, as YYYY-MM-DD";
pub(super) const CURRENCY: &str = "an ISO currency code of three letters, such as \"USD\"";
pub(super) const COUNTRY: &str = "a country code of two letters, such as \"de\"";
pub(super) const TEXT: &str = "text of 1 to 300 characters without control characters";

/// A field with valid values, invalid values, and the `expected` text of their error.
pub(super) struct FieldCase(pub &'static str, pub Value, pub Value, pub &'static str);

/// Reads a body and returns the upstream body.
pub(super) type ReadBody = fn(&Map<String, Value>) -> Result<Map<String, Value>, ValidationErrors>;

/// A body under test: its field table, a body with only the required fields, and its reader.
pub(super) struct TestBody {
    pub fields: &'static [FieldSpec],
    pub minimal: Value,
    pub read: ReadBody,
}

impl TestBody {
    /// The minimal body with one field set.
    pub(super) fn with(&self, field: &str, value: &Value) -> Map<String, Value> {
        let mut body = self.minimal.as_object().unwrap().clone();
        body.insert(field.to_owned(), value.clone());
        body
    }

    /// Every field of the table has a case, in order. Each valid value is kept unchanged; each
    /// invalid one is refused with path, found value and `expected` text.
    pub(super) fn assert_fields(&self, rows: &[FieldCase]) {
        let (names, tested): (Vec<_>, Vec<_>) = (
            self.fields.iter().map(|field| field.name).collect(),
            rows.iter().map(|row| row.0).collect(),
        );
        assert_eq!(names, tested, "fields of the table, fields that are tested");
        for FieldCase(field, valid, invalid, expected) in rows {
            for value in valid.as_array().unwrap() {
                let sent = (self.read)(&self.with(field, value));
                assert_eq!(
                    sent.as_ref().map(|sent| &sent[*field]),
                    Ok(value),
                    "{field} accepts {value}"
                );
            }
            for value in invalid.as_array().unwrap() {
                self.assert_rejected(field, value, field, value, expected);
            }
        }
    }

    /// List elements: each valid one alone is accepted; an invalid one after a valid one is refused
    /// with its index.
    pub(super) fn assert_elements(&self, rows: &[FieldCase]) {
        for FieldCase(field, valid, invalid, expected) in rows {
            let (valid, invalid) = (valid.as_array().unwrap(), invalid.as_array().unwrap());
            for element in valid {
                let sent = (self.read)(&self.with(field, &json!([element])));
                assert_eq!(
                    sent.as_ref().map(|sent| &sent[*field]),
                    Ok(&json!([element])),
                    "{field} accepts {element}"
                );
            }
            for element in invalid {
                let list = json!([valid[0], element]);
                self.assert_rejected(field, &list, &format!("{field}[1]"), element, expected);
            }
        }
    }

    fn assert_rejected(
        &self,
        field: &str,
        value: &Value,
        path: &str,
        found: &Value,
        expected: &str,
    ) {
        let Err(errors) = (self.read)(&self.with(field, value)) else {
            panic!("{field} accepts {value}")
        };
        let reported: Vec<_> = errors
            .iter()
            .map(|error| (error.path.as_str(), error.expected.as_str()))
            .collect();
        assert_eq!(reported, [(path, expected)], "{field}: {value}");
        let echoed = errors.into_iter().next().unwrap().found.unwrap();
        let found = found.to_string().replace(char::is_control, "\u{fffd}");
        if found.contains("://") {
            assert_eq!(echoed, "a value that is not shown", "{found}");
            return;
        }
        assert!(
            found == echoed || found.chars().count() > 80 && echoed.ends_with('…'),
            "{found} is echoed as {echoed}"
        );
    }
}

/// The endpoint's body with only its required fields.
pub(super) fn minimal(endpoint: Endpoint) -> Map<String, Value> {
    let body = match endpoint {
        Endpoint::FlightsOneway => {
            json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2027-01-14"})
        }
        Endpoint::FlightsRoundtrip => json!({
            "from_airport": "TLV", "to_airport": "LHR", "departure_date": "2027-01-14", "return_date": "2027-01-21"
        }),
        Endpoint::HotelsSearch => {
            json!({"destination": "Lisbon", "checkin_date": "2027-01-14", "checkout_date": "2027-01-17"})
        }
        Endpoint::HotelsByName => {
            json!({"hotel_name": "Grand Hotel", "checkin_date": "2027-01-14", "checkout_date": "2027-01-17"})
        }
        Endpoint::HotelsRooms => {
            json!({"hotel_booking_id": "pt/grand", "checkin_date": "2027-01-14", "checkout_date": "2027-01-17"})
        }
        Endpoint::HotelsResolve => json!({"hotel_name": "Grand Hotel"}),
    };
    body.as_object().unwrap().clone()
}

/// An endpoint's body under test.
pub(super) fn body_of(endpoint: Endpoint) -> TestBody {
    fn read<const INDEX: usize>(
        body: &Map<String, Value>,
    ) -> Result<Map<String, Value>, ValidationErrors> {
        Request::check(Endpoint::ALL[INDEX], body).map(|checked| checked.request.to_body())
    }
    let read = match endpoint {
        Endpoint::FlightsOneway => read::<0>,
        Endpoint::FlightsRoundtrip => read::<1>,
        Endpoint::HotelsSearch => read::<2>,
        Endpoint::HotelsByName => read::<3>,
        Endpoint::HotelsRooms => read::<4>,
        Endpoint::HotelsResolve => read::<5>,
    };
    TestBody {
        fields: endpoint.fields(),
        minimal: Value::Object(minimal(endpoint)),
        read,
    }
}

/// The body with more fields set.
pub(super) fn with(endpoint: Endpoint, more: &Value) -> Map<String, Value> {
    let mut body = minimal(endpoint);
    body.extend(more.as_object().unwrap().clone());
    body
}

/// The error messages of the body.
pub(super) fn errors(endpoint: Endpoint, more: &Value) -> Vec<String> {
    match Request::check(endpoint, &with(endpoint, more)) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    }
}
