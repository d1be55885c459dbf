//! The product that a search is about. Pure.
//!
//! A series identifies a request without its dates and fetch options (history.md, rules 7 to 9).
//! Equivalent requests share a series: defaults are filled in, lists that are sets are sorted, and
//! codes have one case.

use jiff::civil::Date;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::contract::{Endpoint, FieldKind, FieldSpec, Request};

/// How an answer is fetched and how much of it is shown; not part of the product. An answer is
/// reused only for equal options (`options_of_search` in `migrations/functions/reuse.sql`).
const FETCH_OPTIONS: [&str; 4] = ["strict", "limit", "use_ext_proxy", "use_fallback"];

/// A product and the dates of the journey or stay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    pub series: Series,
    /// Departure or check-in.
    pub first_date: Date,
    /// Return or check-out, if any.
    pub last_date: Option<Date>,
}

/// A product with a price history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// Equal for equal endpoint and product, including currency, party and market.
    pub key: SeriesKey,
    pub endpoint: Endpoint,
    /// The canonical product fields.
    pub product: Map<String, Value>,
    /// Departure airport.
    pub origin: Option<String>,
    /// Destination airport, or name or id of a hotel or place.
    pub place: String,
    /// Three upper-case letters.
    pub currency: String,
    /// Market: a country code in lower case.
    pub market: Option<String>,
}

/// First 16 bytes of a digest of the canonical product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SeriesKey(pub [u8; 16]);

impl Subject {
    /// The subject of a request; `None` for resolve, which returns no price.
    pub fn of(request: &Request) -> Option<Self> {
        let (endpoint, body) = (request.endpoint(), request.to_body());
        let first_date = request.first_date()?;
        let product = product(endpoint, &body);
        let text = |name: &str| product.get(name).and_then(Value::as_str).map(str::to_owned);
        let series = Series {
            key: SeriesKey::of(endpoint, &product),
            endpoint,
            origin: text("from_airport"),
            place: text(place_field(endpoint)?)?,
            currency: text("currency")?,
            market: text("proxy_country"),
            product,
        };
        Some(Self {
            series,
            first_date,
            last_date: request.last_date(),
        })
    }
}

/// The field with the destination; `None` for resolve.
fn place_field(endpoint: Endpoint) -> Option<&'static str> {
    match endpoint {
        Endpoint::FlightsOneway | Endpoint::FlightsRoundtrip => Some("to_airport"),
        Endpoint::HotelsSearch => Some("destination"),
        Endpoint::HotelsByName => Some("hotel_name"),
        Endpoint::HotelsRooms => Some("hotel_booking_id"),
        Endpoint::HotelsResolve => None,
    }
}

impl SeriesKey {
    fn of(endpoint: Endpoint, product: &Map<String, Value>) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"farescan series 1\0");
        hash.update(endpoint.as_str());
        hash.update(b"\0");
        hash.update(Value::Object(product.clone()).to_string());
        let mut key = [0; 16];
        key.copy_from_slice(&hash.finalize()[..16]);
        Self(key)
    }
}

/// The fields of an endpoint that belong to the product, in the order of the field table.
pub(super) fn product_fields(endpoint: Endpoint) -> impl Iterator<Item = &'static FieldSpec> {
    let names_product = |field: &&FieldSpec| {
        field.kind != FieldKind::Date
            && field.alias_of.is_empty()
            && !FETCH_OPTIONS.contains(&field.name)
    };
    endpoint.fields().iter().filter(names_product)
}

/// The canonical product. Fields are sorted by name, so that a new field does not reorder the
/// others.
fn product(endpoint: Endpoint, body: &Map<String, Value>) -> Map<String, Value> {
    let mut fields: Vec<_> = product_fields(endpoint).collect();
    fields.sort_unstable_by_key(|field| field.name);
    let value = |field: &FieldSpec| {
        body.get(field.name)
            .cloned()
            .or_else(|| field.default_value())
    };
    let named = fields
        .into_iter()
        .filter_map(|field| Some((field.name.to_owned(), canonical(field.name, value(field)?)?)));
    named.collect()
}

/// The canonical form of a value; `None` if it equals an absent field.
fn canonical(name: &str, value: Value) -> Option<Value> {
    Some(match value {
        Value::String(text) if name == "currency" || name.ends_with("airline_codes") => {
            text.to_ascii_uppercase().into()
        }
        Value::String(text) if name == "proxy_country" => text.to_ascii_lowercase().into(),
        Value::Array(values) if values.is_empty() => return None,
        Value::Array(values) => {
            let mut values: Vec<_> = values
                .into_iter()
                .filter_map(|value| canonical(name, value))
                .collect();
            values.sort_by_cached_key(Value::to_string);
            // Passengers count: two adults are not one. Any other list is a set.
            if name != "passengers" {
                values.dedup();
            }
            values.into()
        }
        Value::Number(number) => match number.as_f64() {
            // Treats 100.0 as 100. Every integer below 2^53 is exact as a float.
            #[expect(
                clippy::cast_possible_truncation,
                reason = "whole and below 2^53 by the guard"
            )]
            Some(float) if float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0 => {
                (float as i64).into()
            }
            _ => number.into(),
        },
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn subject(endpoint: &str, body: Value) -> Subject {
        let Value::Object(body) = body else {
            panic!("an object")
        };
        Subject::of(
            &Request::check(Endpoint::parse(endpoint).unwrap(), &body)
                .unwrap()
                .request,
        )
        .unwrap()
    }

    fn key(endpoint: &str, more: &Value) -> SeriesKey {
        let mut body = match endpoint {
            "flights/oneway" => {
                json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2027-01-14"})
            }
            _ => {
                json!({"destination": "Lisbon", "checkin_date": "2027-01-14", "checkout_date": "2027-01-15"})
            }
        };
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        subject(endpoint, body).series.key
    }

    #[test]
    fn equivalent_requests_share_a_series() {
        for (endpoint, same) in [
            ("flights/oneway", json!({"departure_date": "2027-03-01"})),
            ("flights/oneway", json!({"from_airport": "tlv"})),
            ("flights/oneway", json!({"currency": "usd"})),
            ("flights/oneway", json!({"passengers": [1]})),
            ("flights/oneway", json!({"sort_type": "Overall"})),
            ("flights/oneway", json!({"airline_codes": []})),
            (
                "flights/oneway",
                json!({"strict": true, "limit": 3, "use_ext_proxy": false, "use_fallback": true}),
            ),
            (
                "hotels/search",
                json!({"checkin_date": "2027-01-10", "checkout_date": "2027-01-11"}),
            ),
            (
                "hotels/search",
                json!({"adults": 2, "children": 0, "filters": []}),
            ),
        ] {
            assert_eq!(key(endpoint, &same), key(endpoint, &json!({})), "{same}");
        }
        for (endpoint, one, other) in [
            (
                "flights/oneway",
                json!({"airline_codes": ["LH", "ba"]}),
                json!({"airline_codes": ["BA", "lh", "LH"]}),
            ),
            (
                "flights/oneway",
                json!({"passengers": [1, 2]}),
                json!({"passengers": [2, 1]}),
            ),
            (
                "hotels/search",
                json!({"filters": ["gym", "sauna"]}),
                json!({"filters": ["sauna", "gym"]}),
            ),
            (
                "hotels/search",
                json!({"budget_per_night": 100}),
                json!({"budget_per_night": 100.0}),
            ),
            (
                "hotels/search",
                json!({"proxy_country": "DE"}),
                json!({"proxy_country": "de"}),
            ),
        ] {
            assert_eq!(
                key(endpoint, &one),
                key(endpoint, &other),
                "{one} and {other}"
            );
        }
    }

    #[test]
    fn products_currencies_parties_and_markets_have_own_series() {
        let mut observation = Vec::new();
        for (endpoint, more) in [
            ("flights/oneway", json!({})),
            ("flights/oneway", json!({"to_airport": "CDG"})),
            ("flights/oneway", json!({"currency": "EUR"})),
            ("flights/oneway", json!({"passengers": [1, 1]})),
            ("flights/oneway", json!({"seat_type": 3})),
            ("flights/oneway", json!({"max_stops": 0})),
            ("flights/oneway", json!({"max_price": 300})),
            ("flights/oneway", json!({"airline_codes": ["LH"]})),
            ("flights/oneway", json!({"exclude_airline_codes": ["LH"]})),
            ("hotels/search", json!({})),
            ("hotels/search", json!({"proxy_country": "de"})),
            ("hotels/search", json!({"proxy_country": "us"})),
            ("hotels/search", json!({"children": 1})),
            ("hotels/search", json!({"filters": ["gym"]})),
        ] {
            let key = key(endpoint, &more);
            assert!(!observation.contains(&key), "{endpoint} {more}");
            observation.push(key);
        }
    }

    #[test]
    fn an_alias_equals_the_fields_that_it_sets() {
        let trip = |stops: Value| {
            let mut body = json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2027-01-14", "return_date": "2027-01-21"});
            body.as_object_mut()
                .unwrap()
                .extend(stops.as_object().unwrap().clone());
            subject("flights/roundtrip", body)
        };
        let aliased = trip(json!({"max_stops": 1}));
        assert_eq!(
            aliased,
            trip(json!({"max_departure_stops": 1, "max_return_stops": 1}))
        );
        assert_eq!(aliased.last_date, Some(jiff::civil::date(2027, 1, 21)));
        assert_eq!(
            (
                aliased.series.origin.as_deref(),
                aliased.series.place.as_str()
            ),
            (Some("TLV"), "LHR")
        );
    }

    /// Stored history depends on these bytes: a change starts all series anew.
    #[test]
    fn the_canonical_form_is_fixed() {
        let subject = subject(
            "hotels/by-name",
            json!({"hotel_name": "Grand", "checkin_date": "2027-01-14", "checkout_date": "2027-01-15"}),
        );
        let product = r#"{"adults":2,"children":0,"currency":"USD","free_cancellation":false,"hotel_name":"Grand"}"#;
        assert_eq!(Value::Object(subject.series.product).to_string(), product);
        assert_eq!(
            format!("{:032x}", u128::from_be_bytes(subject.series.key.0)),
            "82f7c31bbaacc97267e1c40f1b39450c"
        );
    }
}
