//! Relative dates of a monitor's scan, `+7d`: days after the slot's date (jobs-api, "Scans"). Pure.
//!
//! They stand where the endpoint has a date: in `request`, in a list of the sweep, at the ends of a range. Whatever is no relative date
//! is left as it is: the plan says what is wrong with it.

use jiff::civil::Date;
use serde_json::{Map, Value};

use crate::contract::scans::ScanEndpoint;
use crate::contract::{Endpoint, FieldKind, FieldValue as _};

/// The largest number of days: beyond it nothing is sold.
const MOST_DAYS: i64 = 999;

/// The order of a run: a monitor's scan with its dates worked out for a slot's date.
#[must_use]
pub fn resolved(scan: &Map<String, Value>, date: Date) -> Map<String, Value> {
    let mut order = scan.clone();
    let Some(endpoint) = scan.get("endpoint").and_then(|word| ScanEndpoint::read(word).ok()) else { return order };
    for part in ["request", "sweep"] {
        if let Some(Value::Object(fields)) = order.get_mut(part) {
            resolve(endpoint.get(), fields, date);
        }
    }
    order
}

fn resolve(endpoint: Endpoint, fields: &mut Map<String, Value>, date: Date) {
    for field in endpoint.fields().iter().filter(|field| field.kind == FieldKind::Date) {
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
    let days: i64 = digits.parse().ok().filter(|days| plain && *days <= MOST_DAYS)?;
    date.checked_add(jiff::Span::new().days(days)).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn order(scan: Value) -> Value {
        let Value::Object(scan) = scan else { panic!("an object") };
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
            scan(json!("2026-12-30"), json!("2027-01-06"), json!("2029-09-24"))
        );
        let lists =
            |values: Value| json!({"endpoint": "hotels/search", "request": {}, "sweep": {"checkin_date": values, "nights": [2]}});
        assert_eq!(order(lists(json!(["+1d", "2027-03-01", "+07d"]))), lists(json!(["2026-12-31", "2027-03-01", "2027-01-06"])));
    }

    #[test]
    fn only_dates_are_dates() {
        for scan in [
            json!({"endpoint": "hotels/by-name", "request": {"hotel_name": "+7d", "checkin_date": "+1000d", "checkout_date": "7d"}}),
            json!({"endpoint": "hotels/search", "request": {"checkin_date": "+d", "checkout_date": "+-1d"}, "sweep": []}),
            json!({"endpoint": "nowhere", "request": {"departure_date": "+7d"}}),
            json!({"request": {"departure_date": "+7d"}}),
            json!({}),
        ] {
            assert_eq!(order(scan.clone()), scan);
        }
    }
}
