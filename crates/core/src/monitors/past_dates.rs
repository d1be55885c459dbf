//! Removes past dates from the scan of a run. Pure.
//!
//! A monitor over a fixed range of dates keeps running while the range passes: each run searches
//! the remaining dates. The validation of a request body is stricter: there a past date is an error
//! (`scans::plan`).

use jiff::Span;
use jiff::civil::{Date, Weekday};
use serde_json::{Map, Value};

use crate::contract::scans::{DateRange, ScanEndpoint};
use crate::contract::{FieldKind, FieldValue as _};

/// The scan of a run without the swept dates before `today`. A field without any later date is left
/// as it is, and so is a date of `request`: the plan reports them.
pub fn without_past_dates(mut scan: Map<String, Value>, today: Date) -> Map<String, Value> {
    let endpoint = scan
        .get("endpoint")
        .and_then(|word| ScanEndpoint::read(word).ok());
    if let (Some(endpoint), Some(Value::Object(sweep))) = (endpoint, scan.get_mut("sweep")) {
        for field in endpoint
            .get()
            .fields()
            .iter()
            .filter(|field| field.kind == FieldKind::Date)
        {
            match sweep.get_mut(field.name) {
                Some(Value::Array(dates)) if dates.iter().any(|date| !is_past(date, today)) => {
                    dates.retain(|date| !is_past(date, today));
                }
                Some(range @ Value::Object(_)) => {
                    if let Some(first) = first_remaining(range, today) {
                        range["from"] = first.to_string().into();
                    }
                }
                _ => {}
            }
        }
    }
    scan
}

fn is_past(date: &Value, today: Date) -> bool {
    Date::read(date).is_ok_and(|date| date < today)
}

/// The first remaining day of a range, on the steps of the whole range.
fn first_remaining(range: &Value, today: Date) -> Option<Date> {
    let range = DateRange::read(range)
        .ok()
        .filter(|range| range.from < today)?;
    let days: Option<Vec<Weekday>> = range.weekdays.as_ref().map(|days| {
        days.as_slice()
            .iter()
            .map(|day| Weekday::from(*day))
            .collect()
    });
    let steps = range
        .from
        .series(Span::new().days(range.step_days_or_default().get()))
        .take_while(|date| *date <= range.to);
    let mut wanted = steps.filter(|date| {
        *date >= today
            && days
                .as_ref()
                .is_none_or(|days| days.contains(&date.weekday()))
    });
    wanted.next()
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use serde_json::json;

    use super::*;

    fn left(dates: Value) -> Value {
        let scan = json!({"endpoint": "flights/oneway", "request": {"from_airport": "TLV"}, "sweep": {"departure_date": dates}});
        let Value::Object(scan) = scan else {
            panic!("an object")
        };
        let scan = without_past_dates(scan, date(2027, 1, 10));
        assert_eq!(scan["request"], json!({"from_airport": "TLV"}));
        scan["sweep"]["departure_date"].clone()
    }

    #[test]
    fn the_remaining_range_stays_on_its_steps() {
        let range = |from: &str, more: Value| {
            let mut range = json!({"from": from, "to": "2027-01-20"});
            range
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            range
        };
        for (from, more, first) in [
            ("2027-01-10", json!({}), "2027-01-10"),
            ("2027-01-09", json!({}), "2027-01-10"),
            ("2027-01-01", json!({"step_days": 7}), "2027-01-15"),
            ("2027-01-01", json!({"weekdays": ["fri"]}), "2027-01-15"),
            ("2027-01-15", json!({}), "2027-01-15"),
            // No date is left: the plan reports `from`.
            ("2027-01-09", json!({"step_days": 30}), "2027-01-09"),
            ("2027-01-09", json!({"to": "2027-01-09"}), "2027-01-09"),
        ] {
            let [before, after] = [from, first].map(|from| range(from, more.clone()));
            assert_eq!(left(before), after);
        }
    }

    #[test]
    fn a_list_loses_past_dates_but_never_all_dates() {
        assert_eq!(
            left(json!(["2027-01-09", "2027-01-10", "later"])),
            json!(["2027-01-10", "later"])
        );
        let gone = json!(["2027-01-08", "2027-01-09"]);
        assert_eq!(left(gone.clone()), gone);
        for other in [
            json!("2027-01-01"),
            json!({"from": "2027-01-01"}),
            json!([]),
            json!(null),
        ] {
            assert_eq!(left(other.clone()), other);
        }
    }
}
