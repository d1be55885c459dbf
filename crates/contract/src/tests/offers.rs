//! The prices of a response (gateway.md, rules 3, 14, 25, 26, 29, 31 and 32).

use crate::{Endpoint, Offer, Verdict, offers};
use rust_decimal::Decimal;
use serde_json::{Value, json};

fn one(endpoint: Endpoint, answer: &Value) -> Offer {
    let mut found = offers(endpoint, answer.to_string().as_bytes());
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn amount(text: &str) -> Decimal {
    text.parse().unwrap()
}

fn nothing_but(price: &str) -> Offer {
    Offer {
        price: amount(price),
        currency: None,
        carrier_or_room: None,
        hotel: None,
        board: None,
        link: None,
        verdict: None,
        band_low: None,
        band_high: None,
        stops: None,
    }
}

#[test]
fn a_oneway_row_becomes_an_offer() {
    let link = "https://flights.example/s?tfs=CBw&curr=eur#top";
    let row = json!({
        "price_range_in_relation_to_other_periods": "low", "price_insights_low": 180, "price_insights_high": 320.5,
        "price": "€164", "price_as_number": 164.25, "buy_link": link, "airline": " Example Air ", "stops": 1
    });
    let expected = Offer {
        currency: Some("EUR".into()),
        carrier_or_room: Some("Example Air".into()),
        link: Some(link.into()),
        verdict: Some(Verdict::Low),
        band_low: Some(amount("180")),
        band_high: Some(amount("320.5")),
        stops: Some(1),
        ..nothing_but("164.25")
    };
    assert_eq!(one(Endpoint::FlightsOneway, &json!([row])), expected);
}

#[test]
fn a_roundtrip_row_becomes_an_offer() {
    let row = |out: Value, back: Value| {
        json!([{
            "price_range_in_relation_to_other_periods": "high", "price_insights_low": 1, "price_insights_high": 2,
            "total_price_as_number": 402, "price_as_number": 1, "total_stops": 3,
            "departure_flight_airline": out, "return_flight_airline": back
        }])
    };
    let expected = Offer {
        carrier_or_room: Some("A / B".into()),
        verdict: Some(Verdict::High),
        band_low: Some(amount("1")),
        band_high: Some(amount("2")),
        stops: Some(3),
        ..nothing_but("402")
    };
    assert_eq!(
        one(Endpoint::FlightsRoundtrip, &row(json!("A"), json!("B"))),
        expected
    );
    for (out, back, carrier) in [
        (json!("A"), json!("A"), Some("A")),
        (json!("A"), json!(null), Some("A")),
        (json!(null), json!("B"), Some("B")),
        (json!(null), json!(""), None),
    ] {
        assert_eq!(
            one(Endpoint::FlightsRoundtrip, &row(out, back))
                .carrier_or_room
                .as_deref(),
            carrier
        );
    }
}

#[test]
fn hotel_rows_become_offers() {
    let hotel = json!({
        "name": "Grand Hotel", "available": true, "price_string": "US$312", "price": 312, "room_type": "Double Room",
        "link": "https://hotels.example/pt/grand", "children": null
    });
    let expected = Offer {
        hotel: Some("Grand Hotel".into()),
        carrier_or_room: Some("Double Room".into()),
        link: Some("https://hotels.example/pt/grand".into()),
        ..nothing_but("312")
    };
    assert_eq!(
        one(Endpoint::HotelsSearch, &json!({"properties": [hotel]})),
        expected
    );
    assert_eq!(one(Endpoint::HotelsByName, &hotel), expected);

    let rooms = json!({
        "booking_url": "https://hotels.example/pt/grand?x",
        "rooms": [{"room_type": "Suite", "room_economy": "Breakfast included", "price_as_number": 500, "price": "US$500"}]
    });
    let expected = Offer {
        carrier_or_room: Some("Suite".into()),
        board: Some("Breakfast included".into()),
        link: Some("https://hotels.example/pt/grand?x".into()),
        ..nothing_but("500")
    };
    assert_eq!(one(Endpoint::HotelsRooms, &rooms), expected);
}

#[test]
fn an_unavailable_hotel_has_no_offer() {
    for answer in [
        json!({"name": "Grand Hotel", "available": false, "price": null}),
        json!({"name": "Grand Hotel", "available": false, "price": 312}),
        json!({"name": null, "available": true, "price": null}),
    ] {
        assert_eq!(
            offers(Endpoint::HotelsByName, answer.to_string().as_bytes()),
            []
        );
    }
}

#[test]
fn rows_without_a_price_are_dropped_in_order() {
    let rows: Vec<_> = [
        json!(300),
        json!(null),
        json!("200"),
        json!(0),
        json!(-5),
        json!({}),
        json!(100),
        json!(0.01),
    ]
    .into_iter()
    .map(|price| json!({"price_as_number": price}))
    .chain([json!({}), json!(null), json!("row")])
    .collect();
    let prices: Vec<_> = offers(Endpoint::FlightsOneway, json!(rows).to_string().as_bytes())
        .into_iter()
        .map(|offer| offer.price)
        .collect();
    assert_eq!(prices, [amount("300"), amount("100"), amount("0.01")]);
}

#[test]
fn prices_are_exact() {
    let price = |number: &str| {
        let row: Value =
            serde_json::from_str(&format!("[{{\"price_as_number\": {number}}}]")).unwrap();
        offers(Endpoint::FlightsOneway, row.to_string().as_bytes())
            .pop()
            .map(|offer| offer.price)
    };
    assert_eq!(price("123.45"), Some(amount("123.45")));
    assert_eq!(price("0.1"), Some(amount("0.1")));
    assert_eq!(price("1e21"), Some(amount("1000000000000000000000")));
    assert_eq!(price("12345678901234"), Some(amount("12345678901234")));
    assert_eq!(price("1e300"), None);
}

#[test]
fn missing_or_malformed_row_fields_become_none() {
    for (field, garbled) in [
        ("stops", json!("Unknown")),
        ("stops", json!(-1)),
        ("stops", json!(4_294_967_296_u64)),
        ("airline", json!("  ")),
        ("airline", json!(7)),
        ("price_range_in_relation_to_other_periods", json!("")),
        ("price_range_in_relation_to_other_periods", json!("bargain")),
        ("price_insights_low", json!(null)),
        ("price_insights_high", json!("320")),
        ("buy_link", json!(null)),
    ] {
        let row = json!([{"price_as_number": 10, field: garbled}]);
        assert_eq!(
            one(Endpoint::FlightsOneway, &row),
            nothing_but("10"),
            "{row}"
        );
    }
}

#[test]
fn the_currency_comes_from_the_deep_link() {
    let currency = |link: &str| {
        one(
            Endpoint::FlightsOneway,
            &json!([{"price_as_number": 1, "buy_link": link}]),
        )
        .currency
    };
    assert_eq!(
        currency("https://x.example/?curr=USD").as_deref(),
        Some("USD")
    );
    assert_eq!(
        currency("https://x.example/?tfs=a&curr=ils&hl=en").as_deref(),
        Some("ILS")
    );
    for link in [
        "https://x.example/curr=USD",
        "https://x.example/?xcurr=USD",
        "https://x.example/?curr=",
        "https://x.example/?curr=US",
        "https://x.example/?curr=USDT",
        "https://x.example/?curr=U%24",
    ] {
        assert_eq!(currency(link), None, "{link}");
    }
}

#[test]
fn an_answer_of_another_shape_has_no_offers() {
    for endpoint in Endpoint::ALL {
        for answer in [
            json!(null),
            json!([]),
            json!({}),
            json!({"properties": null, "rooms": {}}),
            json!("x"),
            json!(1),
        ] {
            assert_eq!(
                offers(*endpoint, answer.to_string().as_bytes()),
                [],
                "{endpoint} {answer}"
            );
        }
    }
    assert_eq!(offers(Endpoint::HotelsResolve, br#"{"price": 5}"#), []);
}
