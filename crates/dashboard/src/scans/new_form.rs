//! The form of a new scan: from its fields to the body of `POST /v1/scans`, and back.
//!
//! A field of a search is named as in the API. A scalar field with several values, separated by
//! commas, is swept. A date field is two fields, `<name>.from` and `<name>.to`. Nothing is checked
//! here: the preview checks the body as the API does.

use farescan_sheets::draft::{ScanDraft, date_fields, date_range, number, numbers};
use farescan_sheets::trip::{capitalised, words};
use serde_json::{Map, Value};

use crate::form::FormFields;
use crate::once;
use farescan_core::contract::scans::{Scan, StrategyProgress};
use farescan_core::contract::{Endpoint, FieldKind, FieldSpec};

/// Fields of the form that are no fields of a search.
pub(super) const NIGHTS: &str = "nights";
pub(super) const SAMPLES: &str = "samples";
pub(super) const WEEKDAYS: &str = "weekdays";
pub(super) const STEP: &str = "step_days";

/// The page with the form.
pub(super) const PATH: &str = "/scans/new";

/// This page with the same query, without its key.
pub(super) fn path_without_key(query: &FormFields) -> String {
    let pairs = query.pairs().filter(|(name, _)| *name != once::FIELD);
    let query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish();
    format!("{PATH}?{query}")
}

/// The endpoint that a form is for.
pub(super) fn endpoint_of(fields: &FormFields) -> Endpoint {
    fields
        .text("endpoint")
        .and_then(Endpoint::parse)
        .filter(|endpoint| Endpoint::SEARCHES.contains(endpoint))
        .unwrap_or(Endpoint::FlightsOneway)
}

/// The label of a field.
pub(super) fn label(name: &str) -> String {
    match name {
        "from_airport" => "From".to_owned(),
        "to_airport" => "To".to_owned(),
        "departure_date" => "Departure".to_owned(),
        "checkin_date" => "Check-in".to_owned(),
        "proxy_country" => "Market".to_owned(),
        "hotel_booking_id" => "Booking id".to_owned(),
        other => capitalised(&words(other)),
    }
}

/// The fields of an endpoint's form: without aliases, and without the end of a stay, which `nights`
/// sets.
pub(super) fn search_fields(endpoint: Endpoint) -> impl Iterator<Item = &'static FieldSpec> {
    let end = end_of_stay(endpoint);
    endpoint
        .fields()
        .iter()
        .filter(move |field| field.alias_of.is_empty() && Some(field.name) != end)
}

/// The second date of an endpoint.
pub(super) fn end_of_stay(endpoint: Endpoint) -> Option<&'static str> {
    date_fields(endpoint).nth(1)
}

/// The body that the form describes.
pub(super) fn body(endpoint: Endpoint, fields: &FormFields) -> Map<String, Value> {
    let mut draft = ScanDraft::new(endpoint);
    for field in search_fields(endpoint) {
        if field.kind == FieldKind::Date {
            enter_dates(field.name, fields, &mut draft);
        } else if let Some(text) = fields.text(field.name) {
            draft.enter(field, text);
        }
    }
    if end_of_stay(endpoint).is_some()
        && let Some(text) = fields.text(NIGHTS)
    {
        draft.sweep.insert(NIGHTS.to_owned(), numbers(text));
    }
    if let Some(text) = fields.text(SAMPLES) {
        draft.sweep.insert(SAMPLES.to_owned(), number(text));
    }
    draft.enter_options(|name| match name {
        "find" => {
            let below = fields.text("below").map(|_| "below");
            below.or_else(|| fields.text("max_risk").map(|_| "cheapest"))
        }
        "max_attempts" => fields.text(name).filter(|attempts| *attempts != "1"),
        "watch" => None,
        _ => fields.text(name),
    });
    draft.into_body()
}

/// One day is a field of the request; a range is swept.
fn enter_dates(name: &str, fields: &FormFields, draft: &mut ScanDraft) {
    let from = fields.text(&format!("{name}.from"));
    let to = fields.text(&format!("{name}.to"));
    let Some(first) = from.or(to) else { return };
    let last = to.unwrap_or(first);
    let weekdays: Vec<_> = fields.all(WEEKDAYS).collect();
    if first == last && weekdays.is_empty() {
        draft.set(name, Some(first));
    } else {
        let step = fields.text(STEP).filter(|step| *step != "1").map(number);
        let range = date_range(first, last, step, &weekdays);
        draft.sweep.insert(name.to_owned(), range);
    }
}

/// The fields that describe a scan like this one: the reverse of [`body`].
pub(super) fn fields_of(scan: &Scan) -> FormFields {
    let mut draft = ScanDraft::from(scan);
    // The form has no fields for a watch: it repeats one run, and a monitor repeats its own.
    if let Some(StrategyProgress::Watch(_)) = scan.strategy {
        draft.options.shift_remove("strategy");
    }
    FormFields::from_pairs(draft.to_pairs())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn body_of(endpoint: Endpoint, encoded: &str) -> Value {
        Value::Object(body(endpoint, &FormFields::parse(encoded.as_bytes())))
    }

    #[test]
    fn several_values_and_ranges_are_swept() {
        let encoded = "from_airport=TLV&to_airport=LHR,+CDG&departure_date.from=2027-02-01&departure_date.to=2027-02-28\
            &weekdays=thu&weekdays=fri&max_stops=0&airline_codes=LY,BA&label=February&tags=a,b&max_requests=40&max_age_seconds=3600&max_attempts=2";
        assert_eq!(
            body_of(Endpoint::FlightsOneway, encoded),
            json!({
                "endpoint": "flights/oneway",
                "request": {"from_airport": "TLV", "max_stops": 0, "airline_codes": ["LY", "BA"]},
                "sweep": {
                    "to_airport": ["LHR", "CDG"],
                    "departure_date": {"from": "2027-02-01", "to": "2027-02-28", "weekdays": ["thu", "fri"]}
                },
                "label": "February", "tags": ["a", "b"], "max_requests": 40, "max_age_seconds": 3600, "retry": {"max_attempts": 2}
            })
        );
    }

    #[test]
    fn a_stay_has_nights_and_a_name_may_have_a_comma() {
        let encoded = "hotel_name=Hotel+Arts,+Barcelona&checkin_date.from=2027-02-01&nights=3,+7-9&proxy_country=us,de&samples=3";
        assert_eq!(
            body_of(Endpoint::HotelsByName, encoded),
            json!({
                "endpoint": "hotels/by-name",
                "request": {"hotel_name": "Hotel Arts, Barcelona", "checkin_date": "2027-02-01"},
                "sweep": {"proxy_country": ["us", "de"], "nights": [3, 7, 8, 9], "samples": 3}
            })
        );
    }

    #[test]
    fn a_form_like_its_scan_describes_the_same_searches() {
        for body in [
            json!({
                "endpoint": "flights/oneway",
                "request": {"from_airport": "TLV", "max_stops": 0, "airline_codes": ["LY", "BA"], "passengers": [1, 1]},
                "sweep": {
                    "to_airport": ["LHR", "CDG"],
                    "departure_date": {"from": "2027-02-01", "to": "2027-02-28", "step_days": 2, "weekdays": ["thu", "fri"]}
                },
                "label": "2027", "tags": ["a", "b"], "max_requests": 40,
                "strategy": {"find": "below", "below": 99.5, "max_risk": 0.05}
            }),
            json!({
                "endpoint": "hotels/search", "request": {"destination": "Rome, Italy", "checkin_date": "2027-02-01", "budget_per_night": 200},
                "sweep": {"nights": [3, 7], "samples": 3}
            }),
        ] {
            let draft = ScanDraft::of(body.as_object().unwrap()).unwrap();
            let fields = FormFields::from_pairs(draft.to_pairs());
            assert_eq!(Value::Object(super::body(draft.endpoint, &fields)), body);
        }
    }
}
