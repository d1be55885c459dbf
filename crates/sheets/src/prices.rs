//! What prices are of, in words.

use farescan_contract::Endpoint;
use farescan_contract::history_verdict::PriceClass;
use serde_json::{Map, Value as Json};

use crate::sheet::{Tone, Value};
use crate::trip::field_text;

/// A product: `one way, 1 adult, economy, USD`. The market is that of a hotel; `Some(None)`: none is
/// given.
pub fn product(
    endpoint: Endpoint,
    fields: &Map<String, Json>,
    market: Option<Option<&str>>,
    currency: &str,
) -> String {
    let kind = match endpoint {
        Endpoint::FlightsOneway => "one way",
        Endpoint::FlightsRoundtrip => "round trip",
        Endpoint::HotelsSearch => "cheapest hotel of the place",
        Endpoint::HotelsByName | Endpoint::HotelsResolve => "cheapest room",
        Endpoint::HotelsRooms => "cheapest of all rooms",
    };
    let fields = fields.iter();
    let fields = fields.filter_map(|(name, value)| field_words(name, value));
    let market = market.map(|market| match market {
        Some(market) => format!("market {}", market.to_uppercase()),
        None => "worldwide market".to_owned(),
    });
    let words = std::iter::once(kind.to_owned()).chain(fields).chain(market);
    let words = words.chain([currency.to_owned()]);
    words.collect::<Vec<_>>().join(", ")
}

/// The class of a price among its caller's past ones.
pub fn class(class: PriceClass) -> Value {
    let (tone, word) = match class {
        PriceClass::Low => (Tone::Good, "low"),
        PriceClass::Below => (Tone::Good, "below typical"),
        PriceClass::Typical => (Tone::Plain, "typical"),
        PriceClass::Above => (Tone::Warn, "above typical"),
        PriceClass::High => (Tone::Warn, "high"),
        PriceClass::Implausible => (Tone::Warn, "implausible"),
        PriceClass::Insufficient => (Tone::Plain, "too few past prices"),
    };
    Value::Word(tone, word.to_owned())
}

/// A field of a product in words; `None` for one that says nothing.
fn field_words(name: &str, value: &Json) -> Option<String> {
    match (name, value) {
        // The market has words of its own.
        ("proxy_country", _) | (_, Json::Null | Json::Bool(false)) => None,
        ("sort_type", Json::String(text)) if text == "Overall" => None,
        (_, Json::Array(values)) if values.is_empty() => None,
        ("children", _) if value.as_u64() == Some(0) => None,
        ("area", Json::String(area)) => Some(area.clone()),
        _ => Some(field_text(name, value)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_product_is_named_by_what_differs() {
        for (endpoint, market, fields, words) in [
            (
                Endpoint::FlightsRoundtrip,
                None,
                json!({"max_departure_stops": 0, "max_return_stops": 0}),
                "round trip, non-stop, non-stop return, USD",
            ),
            (
                Endpoint::FlightsOneway,
                None,
                json!({"passengers": [1, 1, 2], "seat_type": 3, "max_stops": 0, "sort_type": "Overall", "airline_codes": []}),
                "one way, 2 adults and 1 child, business, non-stop, USD",
            ),
            (
                Endpoint::HotelsByName,
                Some(Some("de")),
                json!({"area": "Lisbon", "adults": 2, "children": 0, "free_cancellation": true, "proxy_country": "de"}),
                "cheapest room, Lisbon, 2 adults, free cancellation, market DE, USD",
            ),
        ] {
            assert_eq!(
                product(endpoint, fields.as_object().unwrap(), market, "USD"),
                words
            );
        }
    }
}
