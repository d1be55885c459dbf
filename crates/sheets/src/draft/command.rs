//! A scan as the command `farescan scan`.

use farescan_contract::Endpoint;
use serde_json::{Map, Value};

use super::{OPTIONS, ScanDraft, plain};

/// The fields of a route that are words or flags of the command, in their order.
const ROUTE: [(&str, Option<&str>); 4] = [
    ("from_airport", None),
    ("to_airport", None),
    ("departure_date", Some("--depart")),
    ("nights", Some("--nights")),
];

/// Those of a hotel.
const STAY: [(&str, Option<&str>); 5] = [
    ("hotel_name", None),
    ("checkin_date", Some("--checkin")),
    ("nights", Some("--nights")),
    ("proxy_country", Some("--markets")),
    ("samples", Some("--samples")),
];

impl ScanDraft {
    /// The command that submits it; `None` if the command line has no words for it, as for markets
    /// of a place, or a watch, which is for the runs of a monitor.
    pub fn command(mut self) -> Option<String> {
        let (kind, fields) = match self.endpoint {
            Endpoint::FlightsOneway => ("oneway", &ROUTE[..3]),
            Endpoint::FlightsRoundtrip => ("roundtrip", &ROUTE[..]),
            Endpoint::HotelsByName => ("hotel", &STAY[..]),
            Endpoint::HotelsSearch | Endpoint::HotelsRooms | Endpoint::HotelsResolve => {
                return None;
            }
        };
        let mut words = ["farescan", "scan", kind].map(str::to_owned).to_vec();
        for (name, flag) in fields {
            match (self.take(name), *name) {
                (None, "proxy_country" | "samples") => {}
                // Several names are no words of the command.
                (None, _) | (Some(Value::Array(_)), "hotel_name") => return None,
                (Some(value), _) => {
                    words.extend(flag.map(str::to_owned));
                    words.extend(field_words(&value)?);
                }
            }
        }
        if !self.sweep.is_empty() {
            return None;
        }
        for (name, value) in &self.request {
            words.extend(["--set".to_owned(), format!("{name}={}", plain(value))]);
        }
        for (name, object, flag) in OPTIONS {
            let given = match (name, self.option(name, object)) {
                ("watch", Some(_)) => return None,
                ("max_age_seconds", Some(age)) => vec![format!("{age}s")],
                (_, Some(Value::Array(tags))) => tags.iter().map(plain).collect(),
                (_, value) => value.map(plain).into_iter().collect(),
            };
            words.extend(given.into_iter().flat_map(|text| [flag.to_owned(), text]));
        }
        let quoted: Vec<_> = words.iter().map(|word| shell_word(word)).collect();
        Some(quoted.join(" "))
    }
}

/// A scalar, or several with commas, or the dates of a range with their flags.
fn field_words(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Object(range) => range_words(range),
        value => Some(vec![scalars(value)?]),
    }
}

fn range_words(range: &Map<String, Value>) -> Option<Vec<String>> {
    let end = |name: &str| range.get(name).and_then(Value::as_str);
    let mut words = vec![format!("{}..{}", end("from")?, end("to")?)];
    for (name, flag) in [("step_days", "--step"), ("weekdays", "--weekdays")] {
        if let Some(value) = range.get(name) {
            words.extend([flag.to_owned(), scalars(value)?]);
        }
    }
    Some(words)
}

fn scalars(value: &Value) -> Option<String> {
    match value {
        Value::String(_) | Value::Number(_) => Some(plain(value)),
        Value::Array(values) => {
            let values: Option<Vec<_>> = values.iter().map(scalars).collect();
            values.map(|values| values.join(","))
        }
        _ => None,
    }
}

/// One word of a POSIX shell: quoted where it needs that.
pub fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ",.-_/:=@+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_body_is_a_command_with_quoted_words() {
        for (body, expected) in [
            (
                json!({
                    "endpoint": "flights/oneway", "request": {"from_airport": "TLV", "max_stops": 0},
                    "sweep": {"to_airport": ["LHR", "CDG"],
                              "departure_date": {"from": "2027-02-01", "to": "2027-02-28", "weekdays": ["thu", "fri"]}},
                    "label": "it's February", "tags": ["a", "b"], "max_requests": 40, "max_age_seconds": 3600, "retry": {"max_attempts": 2}
                }),
                Some(
                    r"farescan scan oneway TLV LHR,CDG --depart 2027-02-01..2027-02-28 --weekdays thu,fri --set max_stops=0 --label 'it'\''s February' --tag a --tag b --max-requests 40 --max-age 3600s --attempts 2",
                ),
            ),
            (
                json!({
                    "endpoint": "hotels/by-name", "request": {"hotel_name": "Hotel Arts", "checkin_date": "2027-02-01"},
                    "sweep": {"nights": [3, 7], "proxy_country": ["us", "de"], "samples": 3}
                }),
                Some(
                    "farescan scan hotel 'Hotel Arts' --checkin 2027-02-01 --nights 3,7 --markets us,de --samples 3",
                ),
            ),
            (
                json!({"endpoint": "hotels/search", "request": {"destination": "Rome"}}),
                None,
            ),
            (
                json!({
                    "endpoint": "hotels/by-name", "request": {"checkin_date": "2027-02-01"},
                    "sweep": {"hotel_name": ["Hotel Arts", "Hotel Casa"], "nights": [3]}
                }),
                None,
            ),
            (
                json!({
                    "endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2027-02-01"},
                    "strategy": {"watch": "cheapest"}, "max_requests": 3
                }),
                None,
            ),
        ] {
            let draft = ScanDraft::of(body.as_object().unwrap()).unwrap();
            assert_eq!(draft.command().as_deref(), expected);
        }
    }
}
