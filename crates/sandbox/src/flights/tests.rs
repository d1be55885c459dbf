//! Properties of every answer of the flights engine, on generated searches.

use std::collections::HashMap;

use jiff::civil::{Date, DateTime, date};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::itineraries;
use crate::draws::Draw;
use crate::server::EngineQuery as _;
use crate::wire::flights::{FlightRow, FlightSearch, OnewayRow, RoundtripRow, RowStops};
use crate::world::airlines::AIRLINES;
use crate::world::airports::SandboxAirport;

const TODAY: Date = date(2026, 11, 20);

fn oneway(body: &Value) -> Vec<OnewayRow> {
    let search = FlightSearch::oneway(body).unwrap_or_else(|faults| panic!("{body}: {faults:?}"));
    let rows = itineraries::find(Draw::seeded(1), TODAY, &search).rows;
    let of_oneway = rows.into_iter().map(|row| match row {
        FlightRow::Oneway(row) => row,
        FlightRow::Roundtrip(row) => panic!("{row:?}"),
    });
    of_oneway.collect()
}

fn roundtrip(body: &Value) -> Vec<RoundtripRow> {
    let search =
        FlightSearch::roundtrip(body).unwrap_or_else(|faults| panic!("{body}: {faults:?}"));
    let rows = itineraries::find(Draw::seeded(1), TODAY, &search).rows;
    let of_roundtrip = rows.into_iter().map(|row| match row {
        FlightRow::Roundtrip(row) => row,
        FlightRow::Oneway(row) => panic!("{row:?}"),
    });
    of_roundtrip.collect()
}

fn code_of(airline: &str) -> &'static str {
    let known = AIRLINES.iter().find(|known| known.name == airline);
    &known.expect("a known airline").code
}

/// The local time in a description, without its year.
fn clock(description: &str) -> DateTime {
    DateTime::strptime("%Y %I:%M %p on %a, %b %d", format!("2027 {description}"))
        .or_else(|_| DateTime::strptime("%Y %I:%M %p on %a, %b %d", format!("2026 {description}")))
        .unwrap_or_else(|error| panic!("{description}: {error}"))
}

fn in_window(hour: i8, (earliest, latest): (i8, i8)) -> bool {
    if earliest <= latest {
        (earliest..=latest).contains(&hour)
    } else {
        hour >= earliest || hour <= latest
    }
}

fn route() -> impl Strategy<Value = (&'static str, &'static str)> {
    prop::sample::select(vec![
        ("TLV", "LHR"),
        ("LHR", "JFK"),
        ("BER", "LIS"),
        ("SIN", "SYD"),
        ("JFK", "LAX"),
    ])
}

fn departure() -> impl Strategy<Value = Date> {
    (0_i64..360).prop_map(|days| TODAY.saturating_add(jiff::Span::new().days(days)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_oneway_row_satisfies_the_filters(
        (from, to) in route(),
        on in departure(),
        max_stops in 0_i64..3,
        only in prop::sample::subsequence(vec!["LY", "BA", "LH", "SQ", "DL", "TP", "FR", "U2", "TK"], 0..6),
        without in prop::sample::subsequence(vec!["LY", "BA", "DL", "U2"], 0..3),
        departs in (0_i8..24, 0_i8..24),
        arrives in (0_i8..24, 0_i8..24),
        max_price in 50_i64..900,
        limit in 1_usize..40,
        sort in prop::sample::select(vec!["Overall", "Price", "Duration"]),
    ) {
        let rows = oneway(&json!({
            "from_airport": from, "to_airport": to, "departure_date": on, "max_stops": max_stops,
            "airline_codes": only, "exclude_airline_codes": without, "max_price": max_price, "limit": limit,
            "departure_time_min": departs.0, "departure_time_max": departs.1,
            "departure_arrival_time_min": arrives.0, "departure_arrival_time_max": arrives.1, "sort_type": sort,
        }));
        let satisfies = |row: &OnewayRow| {
            i64::try_from(row.stops_info.len()).expect("few") <= max_stops
                && (only.is_empty() || only.contains(&code_of(row.airline)))
                && !without.contains(&code_of(row.airline))
                && row.price_as_number <= max_price
                && in_window(clock(&row.departure_description).hour(), departs)
                && in_window(clock(&row.arrival_description).hour(), arrives)
        };
        let all = oneway(&json!({"from_airport": from, "to_airport": to, "departure_date": on, "limit": 1_000}));
        prop_assert!(rows.iter().all(satisfies));
        prop_assert_eq!(rows.len(), all.iter().filter(|row| satisfies(row)).count().min(limit));
        for row in &rows {
            let readable = RowStops::Count(row.stops_info.len());
            prop_assert!(row.stops == RowStops::Unreadable("Unknown") || row.stops == readable);
            prop_assert!(row.insight.is_none());
            prop_assert_eq!(row.departure_date, on);
        }
        let sorted = match sort {
            "Price" => rows.is_sorted_by_key(|row| row.price_as_number),
            "Duration" => rows.is_sorted_by_key(|row| row.duration_seconds),
            _ => true,
        };
        prop_assert!(sorted);
    }

    #[test]
    fn every_roundtrip_row_satisfies_the_filters(
        (from, to) in route(),
        on in departure(),
        nights in 0_i64..21,
        (out_stops, back_stops) in (0_usize..3, 0_usize..3),
        out_hours in (0_i8..24, 0_i8..24),
        back_hours in (0_i8..24, 0_i8..24),
        without in prop::sample::select(vec!["LY", "BA", "DL", "U2"]),
        limit in 1_usize..60,
    ) {
        let back_on = on.saturating_add(jiff::Span::new().days(nights));
        let rows = roundtrip(&json!({
            "from_airport": from, "to_airport": to, "departure_date": on, "return_date": back_on,
            "max_departure_stops": out_stops, "max_return_stops": back_stops,
            "departure_departure_time_min": out_hours.0, "departure_departure_time_max": out_hours.1,
            "return_arrival_time_min": back_hours.0, "return_arrival_time_max": back_hours.1,
            "return_exclude_airline_codes": [without], "limit": limit, "sort_type": "Price",
        }));
        prop_assert!(rows.len() <= limit);
        prop_assert!(rows.is_sorted_by_key(|row| row.total_price_as_number));
        for row in &rows {
            let arrived = clock(&row.departure_flight_arrival_description);
            prop_assert!(clock(&row.return_flight_departure_description) > arrived);
            prop_assert!(row.departure_flight_stops <= out_stops && row.return_flight_stops <= back_stops);
            prop_assert_eq!(row.total_stops, row.departure_flight_stops + row.return_flight_stops);
            prop_assert!(in_window(clock(&row.departure_flight_departure_description).hour(), out_hours));
            prop_assert!(in_window(clock(&row.return_flight_arrival_description).hour(), back_hours));
            prop_assert_ne!(code_of(row.return_flight_airline), without);
        }
    }

    #[test]
    fn a_band_is_low_to_high_in_the_requested_currency(
        (from, to) in route(),
        on in departure(),
        currency in prop::sample::select(vec!["USD", "EUR", "ILS", "JPY", "KRW"]),
        passengers in prop::collection::vec(1_i64..=4, 1..5),
        seat_type in prop::sample::select(vec![1, 3]),
    ) {
        let body = json!({"from_airport": from, "to_airport": to, "departure_date": on, "currency": currency,
            "passengers": passengers, "seat_type": seat_type});
        for row in oneway(&body) {
            let insight = row.insight.expect("the engine's opinion");
            if let (Some(low), Some(high)) = (insight.low, insight.high) {
                prop_assert!(low <= high);
                prop_assert!(row.price_as_number * 5 > low, "{} against {low}", row.price_as_number);
            }
            prop_assert!(row.price_as_number > 0);
        }
    }

    #[test]
    fn the_same_search_has_the_same_answer((from, to) in route(), on in departure()) {
        let body = json!({"from_airport": from, "to_airport": to, "departure_date": on});
        prop_assert_eq!(json!(oneway(&body)), json!(oneway(&body)));
    }
}

#[test]
fn the_verdict_compares_the_cheapest_fare_with_the_band() {
    let mut verdicts: HashMap<String, usize> = HashMap::new();
    for days in 0..300 {
        let on = TODAY.saturating_add(jiff::Span::new().days(days));
        let rows = oneway(
            &json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": on, "limit": 200}),
        );
        let cheapest = rows
            .iter()
            .map(|row| row.price_as_number)
            .min()
            .expect("flights every day");
        let insight = rows[0].insight.clone().expect("the engine's opinion");
        let verdict = insight.verdict;
        match (verdict, insight.low, insight.high) {
            (None, None, None) | (Some(""), Some(_), Some(_)) => {}
            (Some("low"), Some(low), Some(_)) => assert!(cheapest < low, "{on}"),
            (Some("high"), Some(_), Some(high)) => assert!(cheapest > high, "{on}"),
            (Some("typical"), Some(low), Some(high)) => {
                assert!((low..=high).contains(&cheapest), "{on}");
            }
            other => panic!("{on}: {other:?}"),
        }
        *verdicts.entry(format!("{verdict:?}")).or_default() += 1;
    }
    assert_eq!(
        verdicts.len(),
        5,
        "low, typical, high, empty and none all occur: {verdicts:?}"
    );
}

#[test]
fn sorting_by_price_and_a_price_cap_omit_the_rating() {
    let plain = json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2027-01-20"});
    let fields = |rows: Vec<OnewayRow>| json!(rows)[0].as_object().expect("a row").len();
    let whole = fields(oneway(&plain));
    for (field, value) in [("sort_type", json!("Price")), ("max_price", json!(5_000))] {
        let mut body = plain.clone();
        body[field] = value;
        assert_eq!(fields(oneway(&body)), whole - 3, "{field}");
    }
}

#[test]
fn a_direct_request_is_quicker_than_one_through_a_proxy() {
    let median = |body: Value| {
        FlightSearch::oneway(&body)
            .expect("a good body")
            .median_seconds()
    };
    let mut body =
        json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2027-01-20"});
    assert!((median(body.clone()) - 1.6).abs() < 1e-9);
    body["use_ext_proxy"] = json!(false);
    assert!(median(body) < 1.6);
}

#[test]
fn cabin_party_and_return_raise_the_price() {
    let cheapest = |more: &[(&str, Value)]| {
        let mut body = json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2027-02-17", "limit": 200});
        for (field, value) in more {
            body[*field] = value.clone();
        }
        oneway(&body)
            .iter()
            .map(|row| row.price_as_number)
            .min()
            .expect("flights")
    };
    let adult = cheapest(&[]);
    assert!(cheapest(&[("max_stops", json!(0))]) > adult);
    assert!(cheapest(&[("seat_type", json!(3))]) > 2 * adult);
    assert!((cheapest(&[("passengers", json!([1, 1]))]) - 2 * adult).abs() <= 1);
    assert!(cheapest(&[("passengers", json!([1, 2]))]) < 2 * adult);
    assert!(
        cheapest(&[("passengers", json!([1, 3]))]) < cheapest(&[("passengers", json!([1, 4]))])
    );
    assert!(cheapest(&[("currency", json!("ils"))]) > 3 * adult);
    let there_and_back = roundtrip(
        &json!({"from_airport": "TLV", "to_airport": "LHR", "sort_type": "Price",
        "departure_date": "2027-02-17", "return_date": "2027-02-24"}),
    );
    let total = there_and_back[0].total_price_as_number;
    assert!(adult < total && total < 4 * adult, "{total}");
}

#[test]
fn the_return_departs_after_the_outbound_arrival() {
    let rows = roundtrip(
        &json!({"from_airport": "BER", "to_airport": "LIS", "limit": 1_000,
        "departure_date": "2027-02-17", "return_date": "2027-02-17"}),
    );
    assert!(!rows.is_empty());
    for row in rows {
        let arrived = clock(&row.departure_flight_arrival_description);
        assert!(clock(&row.return_flight_departure_description) > arrived);
    }
}

#[test]
fn airports_and_days_without_flights_have_no_rows() {
    let plain = json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2027-01-20"});
    assert!(!oneway(&plain).is_empty());
    for (field, value) in [
        ("to_airport", "QQQ"),
        ("from_airport", "QQQ"),
        ("to_airport", "TLV"),
        ("departure_date", "2026-11-19"),
        ("departure_date", "2027-11-17"),
    ] {
        let mut body = plain.clone();
        body[field] = json!(value);
        assert!(oneway(&body).is_empty(), "{field} {value}");
    }
}

#[test]
fn rows_use_the_documented_words() {
    let rows = oneway(
        &json!({"from_airport": "tlv", "to_airport": "lhr", "departure_date": "2027-01-20",
        "currency": "EUR", "limit": 200}),
    );
    assert!(rows.iter().any(|row| !row.stops_info.is_empty()));
    for row in rows {
        assert_eq!(
            (row.from_airport.as_str(), row.to_airport.as_str()),
            ("Tel Aviv (TLV)", "London (LHR)")
        );
        assert_eq!(row.price, format!("€{}", row.price_as_number));
        assert!(
            row.buy_link.contains("?tfs=") && row.buy_link.ends_with("&curr=EUR"),
            "{}",
            row.buy_link
        );
        assert_eq!(
            row.duration,
            format!(
                "{} hr {} min",
                row.duration_seconds / 3_600,
                row.duration_seconds / 60 % 60
            )
        );
        assert!(
            row.departure_description.ends_with("on Wed, Jan 20"),
            "{}",
            row.departure_description
        );
        let changes: i64 = row
            .stops_info
            .iter()
            .map(|stop| stop.stop_duration_seconds)
            .sum();
        assert!(changes < row.duration_seconds);
    }
}

#[test]
fn every_route_has_an_answer() {
    for (from, to) in [
        ("ZZP", "TLV"),
        ("TLV", "ZZR"),
        ("AKL", "KEF"),
        ("HNL", "CPT"),
    ] {
        assert!(SandboxAirport::find(from).is_some() && SandboxAirport::find(to).is_some());
        let body = json!({"from_airport": from, "to_airport": to, "departure_date": "2027-01-20"});
        assert!(!oneway(&body).is_empty(), "{from}-{to}");
    }
}
