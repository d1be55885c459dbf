//! A fare in a line: whatever the answer has of it.

use farescan_contract::Endpoint;
use rust_decimal::Decimal;
use serde_json::{Value, json};

use crate::fare;

fn line(endpoint: Endpoint, rows: &Value) -> Option<String> {
    fare::line(endpoint, &rows.to_string(), Decimal::from(150), None)
}

fn oneway(price: u32, more: &Value) -> Value {
    let mut row = json!({
        "price_as_number": price, "airline": "Example Air", "duration": "5 hr 25 min", "stops": 0,
        "departure_date": "2027-01-14", "departure_description": "7:15 AM on Thu, Jan 14",
        "arrival_description": "10:40 AM on Thu, Jan 14",
    });
    let more = more.as_object().unwrap().clone();
    row.as_object_mut().unwrap().extend(more);
    row
}

#[test]
fn a_fare_has_its_times() {
    let overnight = json!({"arrival_description": "5:05 AM on Fri, Jan 15", "stops": 1});
    let unreadable = json!({"arrival_description": "5:05 AM on a day", "stops": "Unknown"});
    let bare = json!({"departure_description": null, "arrival_description": null, "duration": null, "stops": null});
    let nothing = json!({"airline": null, "departure_description": null, "arrival_description": null, "duration": null, "stops": null});
    for (more, expected) in [
        (
            json!({}),
            Some("Example Air, 7:15 AM – 10:40 AM, 5 hr 25 min, non-stop"),
        ),
        (
            overnight,
            Some("Example Air, 7:15 AM – 5:05 AM +1, 5 hr 25 min, 1 stop"),
        ),
        (
            unreadable,
            Some("Example Air, 7:15 AM – 5:05 AM, a day, 5 hr 25 min"),
        ),
        (bare, Some("Example Air")),
        (nothing, None),
        (
            json!({"stops": {"a": "list"}, "airline": " Example Air ", "price_insights_low": "none"}),
            Some("Example Air, 7:15 AM – 10:40 AM, 5 hr 25 min"),
        ),
    ] {
        let rows = json!([
            oneway(149, &json!({"airline": "Other"})),
            oneway(150, &more)
        ]);
        let found = line(Endpoint::FlightsOneway, &rows);
        assert_eq!(found.as_deref(), expected, "{more}");
    }
}

/// Of several with the price it is the one that the alert's link opens.
#[test]
fn the_fare_of_the_link_is_named() {
    let row = |airline: &str, currency: &str| {
        let link = format!("https://fares.example/?tfs=x&curr={currency}");
        oneway(150, &json!({"airline": airline, "buy_link": link}))
    };
    let rows = json!([row("First Air", "EUR"), row("Second Air", "USD")]).to_string();
    let named = |link: Option<&str>| {
        let line = fare::line(Endpoint::FlightsOneway, &rows, Decimal::from(150), link);
        line.unwrap().split(',').next().unwrap().to_owned()
    };
    assert_eq!(
        named(Some("https://fares.example/?tfs=x&curr=USD")),
        "Second Air"
    );
    assert_eq!(
        named(Some("https://fares.example/?tfs=x&curr=EUR")),
        "First Air"
    );
    assert_eq!(named(Some("https://elsewhere.example/")), "First Air");
    assert_eq!(named(None), "First Air");
}

#[test]
fn a_round_trip_has_the_times_of_both_ways() {
    let rows = json!([{
        "total_price_as_number": 150, "departure_date": "2027-01-14", "return_date": "2027-01-18",
        "departure_flight_departure_description": "7:15 AM on Thu, Jan 14",
        "departure_flight_arrival_description": "10:40 AM on Thu, Jan 14",
        "departure_flight_airline": "Example Air", "departure_flight_duration": "5 hr 25 min", "departure_flight_stops": 0,
        "return_flight_departure_description": "11:00 PM on Mon, Jan 18",
        "return_flight_arrival_description": "5:50 AM on Tue, Jan 19",
        "return_flight_airline": "Other Air", "return_flight_duration": "4 hr 50 min", "return_flight_stops": 2,
    }]);
    assert_eq!(
        line(Endpoint::FlightsRoundtrip, &rows).unwrap(),
        "Example Air, 7:15 AM – 10:40 AM, 5 hr 25 min, non-stop; back Other Air, 11:00 PM – 5:50 AM +1, 4 hr 50 min, 2 stops"
    );
}

/// The way back is left out only where it is the airline of the way out and nothing else.
#[test]
fn the_way_back_is_said_where_it_says_more() {
    let both = |out: &str, back: &str, more: Value| {
        let mut row = json!({
            "total_price_as_number": 150, "departure_flight_airline": out, "return_flight_airline": back
        });
        let more = more.as_object().unwrap().clone();
        row.as_object_mut().unwrap().extend(more);
        line(Endpoint::FlightsRoundtrip, &json!([row])).unwrap()
    };
    let stops = json!({"departure_flight_stops": 0, "return_flight_stops": 0});
    assert_eq!(both("One Air", "One Air", json!({})), "One Air");
    assert_eq!(
        both("One Air", "Two Air", json!({})),
        "One Air; back Two Air"
    );
    assert_eq!(
        both("One Air", "One Air", stops),
        "One Air, non-stop; back One Air, non-stop"
    );
}

#[test]
fn no_fare_has_no_line() {
    for rows in [
        json!([]),
        json!({"detail": "no list"}),
        json!([oneway(151, &json!({}))]),
        json!(["a word", null, 3]),
    ] {
        assert_eq!(line(Endpoint::FlightsOneway, &rows), None, "{rows}");
    }
    let stay = json!({"price": 150, "room_type": "Double"});
    assert_eq!(line(Endpoint::HotelsByName, &stay), None);
}
