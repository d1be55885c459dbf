//! A scan or a search in words: a title and the facts beside it.

use jiff::civil::Date;
use serde_json::{Map, Value};

use crate::contract::Endpoint;
use crate::web::parts::words;

/// The fields that a title shows.
const TITLE_FIELDS: [&str; 5] = [
    "from_airport",
    "to_airport",
    "destination",
    "hotel_name",
    "hotel_booking_id",
];

/// The title of a scan: `TLV → LHR, CDG`.
pub(in crate::web) fn title(
    endpoint: Endpoint,
    request: &Map<String, Value>,
    sweep: &Map<String, Value>,
) -> String {
    let field = |name: &str| {
        let value = sweep.get(name).or_else(|| request.get(name));
        value.map_or_else(|| "?".to_owned(), value_text)
    };
    match endpoint {
        Endpoint::FlightsOneway => {
            format!("{} → {}", field("from_airport"), field("to_airport"))
        }
        Endpoint::FlightsRoundtrip => {
            format!("{} ⇄ {}", field("from_airport"), field("to_airport"))
        }
        Endpoint::HotelsSearch => format!("Hotels in {}", field("destination")),
        Endpoint::HotelsByName | Endpoint::HotelsResolve => field("hotel_name"),
        Endpoint::HotelsRooms => format!("Rooms of {}", field("hotel_booking_id")),
    }
}

/// The title of one search, with its dates: `TLV → LHR, 4 Feb 2027`.
pub(in crate::web) fn search_title(endpoint: Endpoint, search: &Map<String, Value>) -> String {
    let dates: Vec<_> = [
        "departure_date",
        "return_date",
        "checkin_date",
        "checkout_date",
    ]
    .iter()
    .filter_map(|name| search.get(*name))
    .map(value_text)
    .collect();
    let title = title(endpoint, search, &Map::new());
    if dates.is_empty() {
        title
    } else {
        format!("{title}, {}", dates.join(" – "))
    }
}

/// The product, then each field that the title does not show.
pub(super) fn facts(
    endpoint: Endpoint,
    request: &Map<String, Value>,
    sweep: &Map<String, Value>,
) -> Vec<String> {
    let product = match endpoint {
        Endpoint::FlightsOneway => "One way",
        Endpoint::FlightsRoundtrip => "Round trip",
        Endpoint::HotelsSearch => "Hotels of a place",
        Endpoint::HotelsByName => "One hotel",
        Endpoint::HotelsRooms => "Rooms of a hotel",
        Endpoint::HotelsResolve => "Name of a hotel",
    };
    let others = sweep
        .iter()
        .chain(request)
        .filter(|(name, value)| !TITLE_FIELDS.contains(&name.as_str()) && !value.is_null());
    std::iter::once(product.to_owned())
        .chain(others.map(|(name, value)| field_text(name, value)))
        .collect()
}

/// One field: `4 Feb 2027 – 28 Feb 2027 (thu, fri)`, `max stops 0`.
pub(super) fn field_text(name: &str, value: &Value) -> String {
    let text = value_text(value);
    match name {
        "departure_date" | "return_date" | "currency" => text,
        "checkin_date" => format!("check-in {text}"),
        "checkout_date" => format!("check-out {text}"),
        "proxy_country" => format!("market {}", text.to_uppercase()),
        "nights" => format!("{text} nights"),
        "samples" => format!("{text} samples"),
        _ => format!("{} {text}", words(name)),
    }
}

/// A value as a person writes it: dates in words, lists with commas, ranges with a dash.
pub(super) fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => date_text(text).unwrap_or_else(|| text.clone()),
        Value::Array(values) => values.iter().map(value_text).collect::<Vec<_>>().join(", "),
        Value::Object(range) if range.contains_key("from") && range.contains_key("to") => {
            range_text(range)
        }
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| format!("{} {}", words(name), value_text(value)))
            .collect::<Vec<_>>()
            .join(", "),
        Value::Null => "none".to_owned(),
        other => other.to_string(),
    }
}

fn range_text(range: &Map<String, Value>) -> String {
    let part = |name: &str| {
        range
            .get(name)
            .filter(|value| !value.is_null())
            .map(value_text)
    };
    let days = [part("from"), part("to")].map(Option::unwrap_or_default);
    let details = [
        part("step_days")
            .filter(|step| step != "1")
            .map(|step| format!("every {step} days")),
        part("weekdays"),
    ];
    let details: Vec<_> = details.into_iter().flatten().collect();
    let days = days.join(" – ");
    if details.is_empty() {
        days
    } else {
        format!("{days} ({})", details.join(", "))
    }
}

/// `4 Feb 2027` for a date.
fn date_text(text: &str) -> Option<String> {
    let date: Date = (text.len() == 10).then(|| text.parse().ok())??;
    Some(date.strftime("%-d %b %Y").to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(object) => object,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn a_scan_is_described_by_its_route_and_its_other_fields() {
        let request = object(json!({"from_airport": "TLV", "max_stops": 0}));
        let sweep = object(json!({
            "to_airport": ["LHR", "CDG"],
            "departure_date": {"from": "2027-02-01", "to": "2027-02-28", "weekdays": ["thu", "fri"]}
        }));
        let endpoint = Endpoint::FlightsOneway;
        assert_eq!(title(endpoint, &request, &sweep), "TLV → LHR, CDG");
        assert_eq!(
            facts(endpoint, &request, &sweep),
            [
                "One way",
                "1 Feb 2027 – 28 Feb 2027 (thu, fri)",
                "max stops 0"
            ]
        );
    }

    #[test]
    fn a_search_is_described_with_its_dates() {
        let search = object(json!({"hotel_name": "Hotel Arts", "checkin_date": "2027-02-04"}));
        assert_eq!(
            search_title(Endpoint::HotelsByName, &search),
            "Hotel Arts, 4 Feb 2027"
        );
    }
}
