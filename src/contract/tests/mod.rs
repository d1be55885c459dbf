//! The contract as tables that can be read beside the specification.
//!
//! Here: how a table is held against a body. The tables are in the files, one for each part of the specification.

mod answers;
mod bodies;
mod faults;
mod flights;
mod history;
mod hotels;
mod monitors;
mod offers;
mod properties;
mod scans;
mod schemas;
mod words;

use super::fault::Faults;
use super::{Endpoint, FieldSpec, Request};
use serde_json::{Map, Value, json};

/// What `limit` and the like say.
pub(super) const POSITIVE: &str = "an integer from 1 to 2147483647";
pub(super) const COUNT: &str = "an integer from 0 to 2147483647";
pub(super) const HOUR: &str = "an integer from 0 to 23";
pub(super) const FLAG: &str = "true or false";
pub(super) const DATE: &str = "a date that exists, as YYYY-MM-DD";
pub(super) const CURRENCY: &str = "an ISO currency code of three letters, such as \"USD\"";
pub(super) const COUNTRY: &str = "a country code of two letters, such as \"de\"";
pub(super) const TEXT: &str = "text of 1 to 300 characters without control characters";

/// A field with values that it takes, values that it refuses, and what the refusal says is allowed.
pub(super) struct Row(pub &'static str, pub Value, pub Value, pub &'static str);

/// Reads a body and gives what would be sent on.
pub(super) type Read = fn(&Map<String, Value>) -> Result<Map<String, Value>, Faults>;

/// A body under test: its table, a body with nothing but what is required, and how it is read.
pub(super) struct Body {
    pub fields: &'static [FieldSpec],
    pub minimal: Value,
    pub read: Read,
}

impl Body {
    /// The minimal body with one field set.
    pub(super) fn with(&self, field: &str, value: &Value) -> Map<String, Value> {
        let mut body = self.minimal.as_object().unwrap().clone();
        body.insert(field.to_owned(), value.clone());
        body
    }

    /// Every field of the table has a row, in order; each value is taken unchanged, or refused with its path, itself
    /// and what is allowed.
    pub(super) fn holds(&self, rows: &[Row]) {
        let (names, tested): (Vec<_>, Vec<_>) = (
            self.fields.iter().map(|field| field.name).collect(),
            rows.iter().map(|row| row.0).collect(),
        );
        assert_eq!(names, tested, "fields of the table, fields that are tested");
        for Row(field, takes, refuses, allowed) in rows {
            for value in takes.as_array().unwrap() {
                let sent = (self.read)(&self.with(field, value));
                assert_eq!(
                    sent.as_ref().map(|sent| &sent[*field]),
                    Ok(value),
                    "{field} takes {value}"
                );
            }
            for value in refuses.as_array().unwrap() {
                self.refuses(field, value, field, value, allowed);
            }
        }
    }

    /// Elements of lists: each alone is taken; behind a good one, a bad one is refused under its index.
    pub(super) fn elements_hold(&self, rows: &[Row]) {
        for Row(field, takes, refuses, allowed) in rows {
            let (takes, refuses) = (takes.as_array().unwrap(), refuses.as_array().unwrap());
            for element in takes {
                let sent = (self.read)(&self.with(field, &json!([element])));
                assert_eq!(
                    sent.as_ref().map(|sent| &sent[*field]),
                    Ok(&json!([element])),
                    "{field} takes {element}"
                );
            }
            for element in refuses {
                let list = json!([takes[0], element]);
                self.refuses(field, &list, &format!("{field}[1]"), element, allowed);
            }
        }
    }

    fn refuses(&self, field: &str, value: &Value, path: &str, held: &Value, allowed: &str) {
        let Err(faults) = (self.read)(&self.with(field, value)) else {
            panic!("{field} takes {value}")
        };
        let said: Vec<_> = faults
            .iter()
            .map(|fault| (fault.path.as_str(), fault.allowed.as_str()))
            .collect();
        assert_eq!(said, [(path, allowed)], "{field} holds {value}");
        let echoed = faults.into_iter().next().unwrap().held.unwrap();
        let held = held.to_string().replace(char::is_control, "\u{fffd}");
        if held.contains("://") {
            assert_eq!(echoed, "a value that is not shown", "{held}");
            return;
        }
        assert!(
            held == echoed || held.chars().count() > 80 && echoed.ends_with('…'),
            "{held} is echoed as {echoed}"
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
pub(super) fn body_of(endpoint: Endpoint) -> Body {
    fn read<const INDEX: usize>(body: &Map<String, Value>) -> Result<Map<String, Value>, Faults> {
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
    Body {
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

/// What is wrong with the body, as its sender reads it.
pub(super) fn faults(endpoint: Endpoint, more: &Value) -> Vec<String> {
    match Request::check(endpoint, &with(endpoint, more)) {
        Ok(_) => Vec::new(),
        Err(faults) => faults.iter().map(ToString::to_string).collect(),
    }
}
