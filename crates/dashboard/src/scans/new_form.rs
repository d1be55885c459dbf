//! The form of a new scan: from its fields to the body of `POST /v1/scans`, and back.
//!
//! A field of a search is named as in the API. A scalar field with several values, separated by
//! commas, is swept. A date field is two fields, `<name>.from` and `<name>.to`. Nothing is checked
//! here: the preview checks the body as the API does.

use farescan_sheets::trip::words;
use serde_json::{Map, Value, json};

use crate::form::{FormFields, number};
use crate::once;
use farescan_core::contract::scans::{Scan, StrategyProgress};
use farescan_core::contract::{Endpoint, FieldKind, FieldSpec};

/// Fields of the form that are no fields of a search.
pub(super) const NIGHTS: &str = "nights";
pub(super) const SAMPLES: &str = "samples";
pub(super) const WEEKDAYS: &str = "weekdays";
pub(super) const STEP: &str = "step_days";
/// Numbers of a list beyond which its ranges are not written out.
const MAX_NUMBERS: usize = 400;

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
        other => {
            let text = words(other);
            let mut letters = text.chars();
            let first = letters.next().map(|first| first.to_ascii_uppercase());
            first.into_iter().chain(letters).collect()
        }
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
    let mut dates = endpoint
        .fields()
        .iter()
        .filter(|field| field.kind == FieldKind::Date);
    dates.nth(1).map(|field| field.name)
}

/// The body that the form describes.
pub(super) fn body(endpoint: Endpoint, fields: &FormFields) -> Map<String, Value> {
    let (mut request, mut sweep) = (Map::new(), Map::new());
    for field in search_fields(endpoint) {
        if field.kind == FieldKind::Date {
            add_dates(field.name, fields, &mut request, &mut sweep);
        } else if let Some(text) = fields.text(field.name) {
            add_values(field, text, &mut request, &mut sweep);
        }
    }
    if end_of_stay(endpoint).is_some()
        && let Some(text) = fields.text(NIGHTS)
    {
        sweep.insert(NIGHTS.to_owned(), numbers(text));
    }
    if let Some(text) = fields.text(SAMPLES) {
        sweep.insert(SAMPLES.to_owned(), number(text));
    }
    let mut body = Map::new();
    body.insert("endpoint".to_owned(), json!(endpoint));
    body.insert("request".to_owned(), Value::Object(request));
    if !sweep.is_empty() {
        body.insert("sweep".to_owned(), Value::Object(sweep));
    }
    add_options(fields, &mut body);
    body
}

/// One day is a field of the request; a range is swept.
fn add_dates(
    name: &str,
    fields: &FormFields,
    request: &mut Map<String, Value>,
    sweep: &mut Map<String, Value>,
) {
    let from = fields.text(&format!("{name}.from"));
    let to = fields.text(&format!("{name}.to"));
    let weekdays: Vec<_> = fields.all(WEEKDAYS).collect();
    let step = fields.text(STEP).filter(|step| *step != "1");
    match (from, to.filter(|to| Some(*to) != from)) {
        (Some(day), None) if weekdays.is_empty() => {
            request.insert(name.to_owned(), day.into());
        }
        (None, None) => {}
        (from, to) => {
            let mut range = Map::new();
            range.insert("from".to_owned(), json!(from.or(to)));
            range.insert("to".to_owned(), json!(to.or(from)));
            if let Some(step) = step {
                range.insert("step_days".to_owned(), number(step));
            }
            if !weekdays.is_empty() {
                range.insert("weekdays".to_owned(), json!(weekdays));
            }
            sweep.insert(name.to_owned(), Value::Object(range));
        }
    }
}

fn add_values(
    field: &FieldSpec,
    text: &str,
    request: &mut Map<String, Value>,
    sweep: &mut Map<String, Value>,
) {
    let parts: Vec<_> = split_list(text).collect();
    // A name may contain a comma: it is a list only if each part would do.
    let is_swept = field.kind == FieldKind::Scalar
        && parts.len() > 1
        && !matches!(field.name, "hotel_name" | "destination" | "area");
    if is_swept {
        let values: Vec<_> = parts.iter().map(|part| scalar(field, part)).collect();
        sweep.insert(field.name.to_owned(), Value::Array(values));
    } else if field.kind == FieldKind::List {
        request.insert(field.name.to_owned(), json!(parts));
    } else {
        request.insert(field.name.to_owned(), scalar(field, text));
    }
}

/// The text, or the JSON that it spells where the field takes no text.
fn scalar(field: &FieldSpec, text: &str) -> Value {
    let as_text = Value::from(text);
    if (field.read)(&as_text).is_ok() {
        return as_text;
    }
    serde_json::from_str(text).unwrap_or(as_text)
}

/// Whole numbers and ranges, as in `7, 10-14`; anything else stays text, which the API refuses.
fn numbers(text: &str) -> Value {
    let mut values = Vec::new();
    for part in split_list(text) {
        let ends = part
            .split_once("..")
            .or_else(|| part.split_once(['-', '–']));
        let range = ends.and_then(|(first, last)| {
            let first: u16 = first.trim().parse().ok()?;
            let last: u16 = last.trim().parse().ok()?;
            (first <= last && last - first < 366).then_some(first..=last)
        });
        match range {
            // More than any scan may have stay text, which the API refuses.
            Some(range) if values.len() <= MAX_NUMBERS => values.extend(range.map(Value::from)),
            _ => values.push(number(part)),
        }
    }
    Value::Array(values)
}

fn split_list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
}

fn add_options(fields: &FormFields, body: &mut Map<String, Value>) {
    if let Some(label) = fields.text("label") {
        body.insert("label".to_owned(), label.into());
    }
    if let Some(tags) = fields.text("tags") {
        body.insert(
            "tags".to_owned(),
            json!(split_list(tags).collect::<Vec<_>>()),
        );
    }
    if let Some(max) = fields.text("max_requests") {
        body.insert("max_requests".to_owned(), number(max));
    }
    if let Some(age) = fields.text("max_age_seconds") {
        body.insert("max_age_seconds".to_owned(), number(age));
    }
    if let Some(attempts) = fields
        .text("max_attempts")
        .filter(|attempts| *attempts != "1")
    {
        body.insert(
            "retry".to_owned(),
            json!({"max_attempts": number(attempts)}),
        );
    }
    let mut strategy = Map::new();
    let (risk, below) = (fields.text("max_risk"), fields.text("below"));
    if risk.is_some() || below.is_some() {
        let find = below.map_or("cheapest", |_| "below");
        strategy.insert("find".to_owned(), json!(find));
        let given = [("max_risk", risk), ("below", below)].into_iter();
        let given = given.filter_map(|(name, text)| Some((name.to_owned(), number(text?))));
        strategy.extend(given);
    }
    if !strategy.is_empty() {
        body.insert("strategy".to_owned(), Value::Object(strategy));
    }
}

/// The fields that describe a scan like this one: the reverse of [`body`].
pub(super) fn fields_of(scan: &Scan) -> FormFields {
    let mut pairs = vec![("endpoint".to_owned(), scan.endpoint.to_string())];
    let mut add = |name: String, text: String| pairs.push((name, text));
    for (name, value) in scan.request.iter().chain(&scan.sweep) {
        match value {
            Value::Object(range) if range.contains_key("from") => {
                for part in ["from", "to"] {
                    add(format!("{name}.{part}"), plain(&range[part]));
                }
                if let Some(step) = range.get(STEP) {
                    add(STEP.to_owned(), plain(step));
                }
                for day in range
                    .get(WEEKDAYS)
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
                {
                    add(WEEKDAYS.to_owned(), plain(day));
                }
            }
            Value::String(day) if is_date(scan.endpoint, name) => {
                add(format!("{name}.from"), day.clone());
            }
            _ => add(name.clone(), plain(value)),
        }
    }
    if let Some(label) = &scan.label {
        add("label".to_owned(), label.clone());
    }
    if !scan.tags.is_empty() {
        add("tags".to_owned(), scan.tags.join(", "));
    }
    if let Some(max) = scan.requests.max {
        add("max_requests".to_owned(), max.to_string());
    }
    if let Some(age) = scan.max_age_seconds {
        add("max_age_seconds".to_owned(), age.to_string());
    }
    match &scan.strategy {
        Some(StrategyProgress::Find(find)) => {
            add("max_risk".to_owned(), find.max_risk.to_string());
            if let Some(below) = &find.below {
                add("below".to_owned(), below.get().to_string());
            }
        }
        // The form has no fields for a watch: it repeats one run, and a monitor repeats its own.
        Some(StrategyProgress::Watch(_)) | None => {}
    }
    FormFields::from_pairs(pairs)
}

fn is_date(endpoint: Endpoint, name: &str) -> bool {
    endpoint
        .field(name)
        .is_some_and(|field| field.kind == FieldKind::Date)
}

/// A value as the form takes it.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
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
    fn what_is_no_number_reaches_the_check_as_it_is() {
        assert_eq!(numbers("7, x, 9-3"), json!([7, "x", "9-3"]));
        assert_eq!(number("4o"), json!("4o"));
    }
}
