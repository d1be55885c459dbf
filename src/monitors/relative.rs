//! Relative dates of a monitor's scan, `+7d`: days after the slot's date (jobs-api, "Scans"). Pure.
//!
//! They stand where the endpoint has a date: in `request`, in a list of the sweep, at the ends of a range. Whatever is no relative date
//! is left as it is: the plan says what is wrong with it.

use jiff::civil::Date;
use serde_json::{Map, Value};

use crate::contract::scans::ScanEndpoint;
use crate::contract::{Endpoint, FieldKind, FieldValue as _, shorten};

/// The largest number of days: beyond it nothing is sold.
const MOST_DAYS: i64 = 999;

/// The order of a run: a monitor's scan with its dates worked out for a slot's date.
#[must_use]
pub fn resolved(scan: &Map<String, Value>, date: Date) -> Map<String, Value> {
    let mut order = scan.clone();
    let Some(endpoint) = scan
        .get("endpoint")
        .and_then(|word| ScanEndpoint::read(word).ok())
    else {
        // That it lacks its endpoint is told; of its dates nothing but ranges is looked at, and those are of dates in every endpoint.
        if let Some(Value::Object(fields)) = order.get_mut("sweep") {
            for endpoint in Endpoint::ALL {
                resolve(*endpoint, fields, date);
            }
        }
        return order;
    };
    for part in ["request", "sweep"] {
        if let Some(Value::Object(fields)) = order.get_mut(part) {
            resolve(endpoint.get(), fields, date);
        }
    }
    order
}

fn resolve(endpoint: Endpoint, fields: &mut Map<String, Value>, date: Date) {
    for field in endpoint
        .fields()
        .iter()
        .filter(|field| field.kind == FieldKind::Date)
    {
        match fields.get_mut(field.name) {
            Some(Value::Array(values)) => values.iter_mut().for_each(|value| replace(value, date)),
            Some(Value::Object(range)) => {
                for end in ["from", "to"] {
                    if let Some(value) = range.get_mut(end) {
                        replace(value, date);
                    }
                }
            }
            Some(value) => replace(value, date),
            None => {}
        }
    }
}

fn replace(value: &mut Value, date: Date) {
    if let Some(day) = value.as_str().and_then(|text| day(text, date)) {
        *value = day.to_string().into();
    }
}

fn day(text: &str, date: Date) -> Option<Date> {
    let digits = text.strip_prefix('+')?.strip_suffix('d')?;
    let plain = (1..=3).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let days: i64 = digits
        .parse()
        .ok()
        .filter(|days| plain && *days <= MOST_DAYS)?;
    date.checked_add(jiff::Span::new().days(days)).ok()
}

/// What a scan has written at a path of its order, with what it comes to where it is a relative date. `None`: just what the order `held`
/// there.
#[must_use]
pub fn as_written(scan: &Map<String, Value>, path: &str, held: &str, date: Date) -> Option<String> {
    let mut parts = path.split(['.', '[']);
    let mut written = scan.get(parts.next()?)?;
    for part in parts {
        written = match part.strip_suffix(']') {
            Some(index) => written.get(index.parse::<usize>().ok()?)?,
            None => written.get(part)?,
        };
    }
    let day = written.as_str().and_then(|text| day(text, date));
    let comes_to = day
        .map(|day| format!(" ({day} for the slot of {date})"))
        .unwrap_or_default();
    let written = shorten(&written.to_string());
    (written != held).then(|| format!("{written}{comes_to}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn order(scan: Value) -> Value {
        let Value::Object(scan) = scan else {
            panic!("an object")
        };
        resolved(&scan, jiff::civil::date(2026, 12, 30)).into()
    }

    #[test]
    fn dates_count_from_the_slots_day() {
        let scan = |date: Value, from: Value, to: Value| {
            json!({
                "endpoint": "flights/roundtrip",
                "request": {"from_airport": "TLV", "to_airport": "LHR", "departure_date": date},
                "sweep": {"return_date": {"from": from, "to": to, "weekdays": ["mon"]}},
                "label": "+7d"
            })
        };
        assert_eq!(
            order(scan(json!("+0d"), json!("+7d"), json!("+999d"))),
            scan(
                json!("2026-12-30"),
                json!("2027-01-06"),
                json!("2029-09-24")
            )
        );
        let lists = |values: Value| json!({"endpoint": "hotels/search", "request": {}, "sweep": {"checkin_date": values, "nights": [2]}});
        assert_eq!(
            order(lists(json!(["+1d", "2027-03-01", "+07d"]))),
            lists(json!(["2026-12-31", "2027-03-01", "2027-01-06"]))
        );
    }

    #[test]
    fn a_range_without_an_endpoint_counts_too() {
        let scan = |from: &str, to: &str| json!({"sweep": {"checkin_date": {"from": from, "to": to}, "nights": [2]}});
        assert_eq!(order(scan("+1d", "+2d")), scan("2026-12-31", "2027-01-01"));
    }

    #[test]
    fn what_was_written_is_told_beside_what_it_came_to() {
        let scan = json!({
            "request": {"checkin_date": "+7d", "currency": "+7d", "adults": 0},
            "sweep": {"checkout_date": {"from": "+8d", "to": "+7d"}, "departure_date": ["2027-01-01", "+1d"]}
        });
        let told = |path: &str, held: Value| {
            as_written(
                scan.as_object().unwrap(),
                path,
                &held.to_string(),
                jiff::civil::date(2026, 12, 30),
            )
        };
        let day = |text: &str| Some(text.to_owned());
        assert_eq!(
            told("request.checkin_date", json!("2027-01-06")),
            day("\"+7d\" (2027-01-06 for the slot of 2026-12-30)")
        );
        assert_eq!(
            told("sweep.checkout_date.to", json!("2027-01-06")),
            day("\"+7d\" (2027-01-06 for the slot of 2026-12-30)")
        );
        assert_eq!(
            told("sweep.departure_date[1]", json!("2026-12-31")),
            day("\"+1d\" (2026-12-31 for the slot of 2026-12-30)")
        );
        let range = json!({"from": "2027-01-07", "to": "2027-01-06"});
        assert_eq!(
            told("sweep.checkout_date", range),
            day(r#"{"from":"+8d","to":"+7d"}"#)
        );
        // What was told is what was written.
        for (path, held) in [
            ("request.currency", json!("+7d")),
            ("request.adults", json!(0)),
            ("sweep.departure_date[0]", json!("2027-01-01")),
        ] {
            assert_eq!(told(path, held), None, "{path}");
        }
        for nowhere in [
            "",
            "sweep.departure_date[7]",
            "sweep.departure_date[x]",
            "request.checkin_date.to",
            "label",
            "sweep.nights[0]",
        ] {
            assert_eq!(told(nowhere, json!(1)), None, "{nowhere}");
        }
    }

    #[test]
    fn only_dates_are_dates() {
        for scan in [
            json!({"endpoint": "hotels/by-name", "request": {"hotel_name": "+7d", "checkin_date": "+1000d", "checkout_date": "7d"}}),
            json!({"endpoint": "hotels/search", "request": {"checkin_date": "+d", "checkout_date": "+-1d"}, "sweep": []}),
            json!({"endpoint": "nowhere", "request": {"departure_date": "+7d"}, "sweep": {"label": {"from": "+7d"}}}),
            json!({"request": {"departure_date": "+7d"}}),
            json!({}),
        ] {
            assert_eq!(order(scan.clone()), scan);
        }
    }
}
