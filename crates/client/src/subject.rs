//! What a scan searches, in a few characters: its route, or its hotel.

use serde_json::{Map, Value};

use farescan_contract::Scan;

/// `TLV–LHR/CDG`, or the name of the hotel.
pub fn subject(scan: &Scan) -> String {
    subject_in(&scan.request, &scan.sweep)
}

/// The subject of the body of a scan.
pub fn subject_of(body: &Map<String, Value>) -> String {
    let none = Map::new();
    let part = |name: &str| body.get(name).and_then(Value::as_object).unwrap_or(&none);
    subject_in(part("request"), part("sweep"))
}

fn subject_in(request: &Map<String, Value>, sweep: &Map<String, Value>) -> String {
    let value = |name: &str| {
        let value = request.get(name).or_else(|| sweep.get(name))?;
        Some(match value.as_array() {
            Some(values) => {
                let texts = values.iter().filter_map(|value| value.as_str());
                texts.collect::<Vec<_>>().join("/")
            }
            None => value.as_str()?.to_owned(),
        })
    };
    match (value("from_airport"), value("to_airport")) {
        (Some(from), Some(to)) => format!("{from}–{to}"),
        _ => ["hotel_name", "destination", "hotel_booking_id"]
            .into_iter()
            .find_map(value)
            .unwrap_or_default(),
    }
}
