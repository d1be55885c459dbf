//! Relative dates of a monitor's scan, `+7d`: days after the slot's date (monitors.md, rule 5).
//! Pure.
//!
//! They are allowed wherever the endpoint has a date: in `request`, in a list of the sweep, and at
//! the ends of a range. Any other value stays as it is: the plan reports it.

use jiff::civil::Date;
use serde_json::{Map, Value};

use crate::scans::ScanEndpoint;
use crate::{Endpoint, FieldKind, FieldValue as _, shorten};

/// The largest number of days; nothing is sold beyond it.
const MAX_DAYS: i64 = 999;

/// A monitor's scan with its dates resolved for the date of a slot.
pub fn resolve_dates(scan: &Map<String, Value>, date: Date) -> Map<String, Value> {
    let mut resolved = scan.clone();
    let Some(endpoint) = scan
        .get("endpoint")
        .and_then(|word| ScanEndpoint::read(word).ok())
    else {
        // The plan reports the missing endpoint. Of the dates it checks only ranges, which hold
        // dates for every endpoint.
        if let Some(Value::Object(fields)) = resolved.get_mut("sweep") {
            for endpoint in Endpoint::ALL {
                resolve_fields(*endpoint, fields, date);
            }
        }
        return resolved;
    };
    for part in ["request", "sweep"] {
        if let Some(Value::Object(fields)) = resolved.get_mut(part) {
            resolve_fields(endpoint.get(), fields, date);
        }
    }
    resolved
}

fn resolve_fields(endpoint: Endpoint, fields: &mut Map<String, Value>, date: Date) {
    for field in endpoint
        .fields()
        .iter()
        .filter(|field| field.kind == FieldKind::Date)
    {
        match fields.get_mut(field.name) {
            Some(Value::Array(values)) => values
                .iter_mut()
                .for_each(|value| resolve_value(value, date)),
            Some(Value::Object(range)) => {
                for end in ["from", "to"] {
                    if let Some(value) = range.get_mut(end) {
                        resolve_value(value, date);
                    }
                }
            }
            Some(value) => resolve_value(value, date),
            None => {}
        }
    }
}

fn resolve_value(value: &mut Value, date: Date) {
    if let Some(day) = value.as_str().and_then(|text| parse_relative(text, date)) {
        *value = day.to_string().into();
    }
}

fn parse_relative(text: &str, date: Date) -> Option<Date> {
    let digits = text.strip_prefix('+')?.strip_suffix('d')?;
    let plain = (1..=3).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let days: i64 = digits
        .parse()
        .ok()
        .filter(|days| plain && *days <= MAX_DAYS)?;
    date.checked_add(jiff::Span::new().days(days)).ok()
}

/// The value that the caller wrote at a path of the scan, followed by the resolved date of a
/// relative one. `None` if the caller wrote `found` itself.
pub fn as_written(
    scan: &Map<String, Value>,
    path: &str,
    found: &str,
    date: Date,
) -> Option<String> {
    let mut parts = path.split(['.', '[']);
    let mut written = scan.get(parts.next()?)?;
    for part in parts {
        written = match part.strip_suffix(']') {
            Some(index) => written.get(index.parse::<usize>().ok()?)?,
            None => written.get(part)?,
        };
    }
    let day = written.as_str().and_then(|text| parse_relative(text, date));
    let comes_to = day
        .map(|day| format!(" ({day} for the slot of {date})"))
        .unwrap_or_default();
    let written = shorten(&written.to_string());
    (written != found).then(|| format!("{written}{comes_to}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn resolve(scan: Value) -> Value {
        let Value::Object(scan) = scan else {
            panic!("an object")
        };
        resolve_dates(&scan, jiff::civil::date(2026, 12, 30)).into()
    }

    #[test]
    fn relative_dates_count_from_the_date_of_the_slot() {
        let scan = |date: Value, from: Value, to: Value| {
            json!({
                "endpoint": "flights/roundtrip",
                "request": {"from_airport": "TLV", "to_airport": "LHR", "departure_date": date},
                "sweep": {"return_date": {"from": from, "to": to, "weekdays": ["mon"]}},
                "label": "+7d"
            })
        };
        assert_eq!(
            resolve(scan(json!("+0d"), json!("+7d"), json!("+999d"))),
            scan(
                json!("2026-12-30"),
                json!("2027-01-06"),
                json!("2029-09-24")
            )
        );
        let lists = |values: Value| json!({"endpoint": "hotels/search", "request": {}, "sweep": {"checkin_date": values, "nights": [2]}});
        assert_eq!(
            resolve(lists(json!(["+1d", "2027-03-01", "+07d"]))),
            lists(json!(["2026-12-31", "2027-03-01", "2027-01-06"]))
        );
    }

    #[test]
    fn a_range_is_resolved_even_without_an_endpoint() {
        let scan = |from: &str, to: &str| json!({"sweep": {"checkin_date": {"from": from, "to": to}, "nights": [2]}});
        assert_eq!(
            resolve(scan("+1d", "+2d")),
            scan("2026-12-31", "2027-01-01")
        );
    }

    #[test]
    fn an_error_shows_the_written_and_the_resolved_date() {
        let scan = json!({
            "request": {"checkin_date": "+7d", "currency": "+7d", "adults": 0},
            "sweep": {"checkout_date": {"from": "+8d", "to": "+7d"}, "departure_date": ["2027-01-01", "+1d"]}
        });
        let shown = |path: &str, found: Value| {
            as_written(
                scan.as_object().unwrap(),
                path,
                &found.to_string(),
                jiff::civil::date(2026, 12, 30),
            )
        };
        let day = |text: &str| Some(text.to_owned());
        assert_eq!(
            shown("request.checkin_date", json!("2027-01-06")),
            day("\"+7d\" (2027-01-06 for the slot of 2026-12-30)")
        );
        assert_eq!(
            shown("sweep.checkout_date.to", json!("2027-01-06")),
            day("\"+7d\" (2027-01-06 for the slot of 2026-12-30)")
        );
        assert_eq!(
            shown("sweep.departure_date[1]", json!("2026-12-31")),
            day("\"+1d\" (2026-12-31 for the slot of 2026-12-30)")
        );
        let range = json!({"from": "2027-01-07", "to": "2027-01-06"});
        assert_eq!(
            shown("sweep.checkout_date", range),
            day(r#"{"from":"+8d","to":"+7d"}"#)
        );
        // The value is not a relative date.
        for (path, found) in [
            ("request.currency", json!("+7d")),
            ("request.adults", json!(0)),
            ("sweep.departure_date[0]", json!("2027-01-01")),
        ] {
            assert_eq!(shown(path, found), None, "{path}");
        }
        for nowhere in [
            "",
            "sweep.departure_date[7]",
            "sweep.departure_date[x]",
            "request.checkin_date.to",
            "label",
            "sweep.nights[0]",
        ] {
            assert_eq!(shown(nowhere, json!(1)), None, "{nowhere}");
        }
    }

    #[test]
    fn only_date_fields_are_resolved() {
        for scan in [
            json!({"endpoint": "hotels/by-name", "request": {"hotel_name": "+7d", "checkin_date": "+1000d", "checkout_date": "7d"}}),
            json!({"endpoint": "hotels/search", "request": {"checkin_date": "+d", "checkout_date": "+-1d"}, "sweep": []}),
            json!({"endpoint": "nowhere", "request": {"departure_date": "+7d"}, "sweep": {"label": {"from": "+7d"}}}),
            json!({"request": {"departure_date": "+7d"}}),
            json!({}),
        ] {
            assert_eq!(resolve(scan.clone()), scan);
        }
    }
}
