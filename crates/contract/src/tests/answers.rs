//! Responses (gateway.md, rules 25 to 34): their field names, and that real ones deserialize.

use crate::flights::{OnewayFlight, RoundtripItinerary, StopCount};
use crate::hotels::{
    HotelByNameResponse, HotelProperty, HotelRoom, HotelRoomsResponse, HotelSearchResponse,
    ResolveResponse,
};
use crate::verify::{ApiUsage, PlanUsage, VerifyCheck, VerifyReason, VerifyResponse};
use crate::{Api, Verdict};
use serde::Serialize;
use serde_json::{Value, json};

fn has_fields<T: Default + Serialize>(fields: &[&str]) {
    let written = json!(T::default());
    assert_eq!(
        written.as_object().unwrap().keys().collect::<Vec<_>>(),
        fields
    );
}

const INSIGHTS: [&str; 3] = [
    "price_range_in_relation_to_other_periods",
    "price_insights_low",
    "price_insights_high",
];

#[test]
fn every_answer_has_its_documented_fields() {
    let oneway = [
        "from_airport",
        "to_airport",
        "departure_date",
        "price",
        "price_as_number",
        "duration",
        "duration_seconds",
        "buy_link",
        "airline",
        "stops",
        "stops_info",
        "departure_description",
        "arrival_description",
    ];
    has_fields::<OnewayFlight>(&[&INSIGHTS[..], &oneway].concat());
    let roundtrip = [
        "from_airport",
        "to_airport",
        "departure_date",
        "return_date",
        "total_price",
        "total_price_as_number",
        "total_duration_seconds",
        "total_stops",
        "buy_link",
        "departure_flight_departure_description",
        "departure_flight_arrival_description",
        "departure_flight_airline",
        "departure_flight_duration",
        "departure_flight_stops",
        "return_flight_departure_description",
        "return_flight_arrival_description",
        "return_flight_airline",
        "return_flight_duration",
        "return_flight_stops",
    ];
    has_fields::<RoundtripItinerary>(&[&INSIGHTS[..], &roundtrip].concat());
    has_fields::<HotelSearchResponse>(&[
        "destination",
        "checkin_date",
        "checkout_date",
        "applied_filters",
        "budget_per_night",
        "properties",
    ]);
    has_fields::<HotelProperty>(&[
        "name",
        "price_string",
        "price",
        "review_score",
        "review_count",
        "room_type",
        "location",
        "image_url",
        "link",
        "nights",
        "adults",
        "children",
    ]);
    has_fields::<HotelByNameResponse>(&[
        "name",
        "available",
        "price_string",
        "price",
        "review_score",
        "review_count",
        "room_type",
        "image_url",
        "link",
        "nights",
        "adults",
        "children",
    ]);
    has_fields::<HotelRoomsResponse>(&[
        "hotel_booking_id",
        "checkin_date",
        "checkout_date",
        "booking_url",
        "rooms",
    ]);
    has_fields::<HotelRoom>(&[
        "room_type",
        "room_economy",
        "guests",
        "price_as_number",
        "price",
    ]);
    has_fields::<ResolveResponse>(&["hotel_name", "hotel_booking_id", "matched_name"]);
}

#[test]
fn a_row_with_missing_fields_is_read() {
    let row = json!({"stops": "Unknown", "price_as_number": 164, "price_insights_low": null, "new_field": [1]});
    let read: OnewayFlight = serde_json::from_value(row).unwrap();
    assert_eq!(
        read.stops,
        Some(StopCount::Unreadable("Unknown".to_owned()))
    );
    assert_eq!(
        (read.price_as_number, read.price_insights_low),
        (Some(164.0), None)
    );
    let row = json!({"total_stops": 2, "price_range_in_relation_to_other_periods": "typical"});
    let read: RoundtripItinerary = serde_json::from_value(row).unwrap();
    assert_eq!(
        (
            read.total_stops,
            read.price_range_in_relation_to_other_periods
        ),
        (Some(StopCount::Known(2)), Some(Verdict::Typical))
    );
    let hotel: HotelProperty =
        serde_json::from_value(json!({"name": "Grand Hotel", "children": null})).unwrap();
    assert_eq!(
        (hotel.name.as_deref(), hotel.children),
        (Some("Grand Hotel"), None)
    );
}

/// gateway.md, rules 20 and 34.
#[test]
fn verify_reports_its_checks_and_the_remaining_quota() {
    let mut usage = ApiUsage::default();
    assert_eq!(json!(usage), json!({}));
    usage.set(
        Api::Hotels,
        PlanUsage {
            plan_requests_remaining: Some(7),
            ..PlanUsage::default()
        },
    );
    assert_eq!(
        json!(usage),
        json!({"hotels": {"plan_requests_remaining": 7}})
    );
    usage.set(Api::Flights, PlanUsage::default());
    let response = VerifyResponse {
        valid: true,
        checks: vec![
            VerifyCheck::new(
                Api::Flights,
                "flights/oneway, empty body",
                VerifyReason::NotSubscribed,
            ),
            VerifyCheck::new(
                Api::Hotels,
                "hotels/resolve, empty body",
                VerifyReason::QuotaExhausted,
            ),
        ],
        api_usage: usage,
        key_source: "x-api-key".to_owned(),
    };
    let wire: Value = json!({
        "valid": true,
        "checks": [
            {"api": "flights", "ok": false, "checked": "flights/oneway, empty body", "reason": "not_subscribed"},
            {"api": "hotels", "ok": true, "checked": "hotels/resolve, empty body", "reason": "quota_exhausted"}
        ],
        "api_usage": {"flights": {}, "hotels": {"plan_requests_remaining": 7}},
        "key_source": "x-api-key"
    });
    assert_eq!(json!(response), wire);
    assert_eq!(
        serde_json::from_value::<VerifyResponse>(wire).unwrap(),
        response
    );
    let good: Vec<_> = VerifyReason::ALL
        .iter()
        .filter(|reason| reason.is_ok())
        .collect();
    assert_eq!(
        good,
        [&VerifyReason::Subscribed, &VerifyReason::QuotaExhausted]
    );
}
