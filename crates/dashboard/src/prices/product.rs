//! The products of a route or hotel: what must be equal for prices to compare.

use farescan_sheets::draft::plain;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use farescan_core::contract::Endpoint;
use farescan_core::contract::history::ProductFields;
use farescan_core::contract::history_grid::HistoryGrid;
use farescan_core::history::Product;

/// What distinguishes one product from another of the same route or hotel.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ProductName {
    pub(super) endpoint: Endpoint,
    pub(super) currency: String,
    pub(super) market: Option<String>,
    pub(super) fields: ProductFields,
}

impl ProductName {
    /// A short digest for URLs.
    pub(super) fn digest(&self) -> String {
        let market = self.market.as_deref().unwrap_or_default();
        let fields = serde_json::to_string(self.fields.as_ref()).unwrap_or_default();
        let text = format!("{}\n{}\n{market}\n{fields}", self.endpoint, self.currency);
        Sha256::digest(text)[..6]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// The product in words: `one way, 1 adult, economy, USD`.
    pub(super) fn label(&self) -> String {
        let mut words = vec![
            match self.endpoint {
                Endpoint::FlightsOneway => "one way",
                Endpoint::FlightsRoundtrip => "round trip",
                Endpoint::HotelsSearch => "cheapest hotel of the place",
                Endpoint::HotelsByName | Endpoint::HotelsResolve => "cheapest room",
                Endpoint::HotelsRooms => "cheapest of all rooms",
            }
            .to_owned(),
        ];
        words.extend(
            self.fields
                .iter()
                .filter_map(|(name, value)| field_words(name, value)),
        );
        if self.endpoint.api() == farescan_core::contract::Api::Hotels {
            words.push(self.market.as_deref().map_or_else(
                || "worldwide market".to_owned(),
                |market| format!("market {}", market.to_uppercase()),
            ));
        }
        words.push(self.currency.clone());
        words.join(", ")
    }
}

impl From<&HistoryGrid> for ProductName {
    fn from(grid: &HistoryGrid) -> Self {
        Self {
            endpoint: grid.endpoint,
            currency: grid.currency.clone(),
            market: grid.proxy_country.clone(),
            fields: grid.product.clone(),
        }
    }
}

impl From<&Product> for ProductName {
    fn from(product: &Product) -> Self {
        Self {
            endpoint: product.endpoint,
            currency: product.currency.clone(),
            market: product.market.clone(),
            fields: product.fields.clone(),
        }
    }
}

/// A field of a product in words; `None` for one that says nothing.
fn field_words(name: &str, value: &Value) -> Option<String> {
    let number = value.as_u64();
    Some(match (name, value) {
        // The market has words of its own.
        ("proxy_country", _) | (_, Value::Null | Value::Bool(false)) => return None,
        ("sort_type", Value::String(text)) if text == "Overall" => return None,
        (_, Value::Array(values)) if values.is_empty() => return None,
        ("children" | "max_return_stops", _) if number == Some(0) => return None,
        ("passengers", Value::Array(kinds)) => passengers(kinds),
        ("seat_type", _) if number == Some(1) => "economy".to_owned(),
        ("seat_type", _) if number == Some(3) => "business".to_owned(),
        ("adults", _) => counted(number?, "adult", "adults"),
        ("children", _) => counted(number?, "child", "children"),
        ("max_stops" | "max_departure_stops", _) if number == Some(0) => "non-stop".to_owned(),
        ("area", Value::String(area)) => area.clone(),
        (name, Value::Bool(true)) => name.replace('_', " "),
        (name, Value::String(text)) => format!("{} {text}", name.replace('_', " ")),
        (name, Value::Array(values)) => {
            let values: Vec<_> = values.iter().map(plain).collect();
            format!("{} {}", name.replace('_', " "), values.join("/"))
        }
        (name, value) => format!("{} {}", name.replace('_', " "), plain(value)),
    })
}

fn passengers(kinds: &[Value]) -> String {
    let of = |kind: u64| {
        let count = kinds.iter().filter(|value| value.as_u64() == Some(kind));
        count.count() as u64
    };
    let groups = [
        (of(1), "adult", "adults"),
        (of(2), "child", "children"),
        (of(3), "infant on lap", "infants on lap"),
        (of(4), "infant in seat", "infants in seat"),
    ];
    let words: Vec<_> = groups
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, one, more)| counted(count, one, more))
        .collect();
    words.join(" and ")
}

fn counted(count: u64, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    fn name(endpoint: Endpoint, market: Option<&str>, fields: Value) -> ProductName {
        let Value::Object(fields) = fields else {
            panic!("an object")
        };
        ProductName {
            endpoint,
            currency: "USD".to_owned(),
            market: market.map(str::to_owned),
            fields: Arc::new(fields),
        }
    }

    #[test]
    fn a_product_is_named_by_what_differs() {
        for (product, label) in [
            (
                name(
                    Endpoint::FlightsOneway,
                    None,
                    json!({"passengers": [1, 1, 2], "seat_type": 3, "max_stops": 0, "sort_type": "Overall", "airline_codes": []}),
                ),
                "one way, 2 adults and 1 child, business, non-stop, USD",
            ),
            (
                name(
                    Endpoint::HotelsByName,
                    Some("de"),
                    json!({"area": "Lisbon", "adults": 2, "children": 0, "free_cancellation": true, "proxy_country": "de"}),
                ),
                "cheapest room, Lisbon, 2 adults, free cancellation, market DE, USD",
            ),
        ] {
            assert_eq!(product.label(), label);
        }
    }

    #[test]
    fn products_of_other_markets_have_other_digests() {
        let digest = |market| name(Endpoint::HotelsByName, market, json!({"adults": 2})).digest();
        assert_eq!(digest(Some("de")), digest(Some("de")));
        assert_ne!(digest(Some("de")), digest(Some("us")));
        assert_eq!(digest(None).len(), 12);
    }
}
