//! gateway.md, rules 8, 23 and 24.

use super::{COUNT, CURRENCY, DATE, FLAG, FieldCase, HOUR, POSITIVE, body_of, errors, with};
use crate::{Endpoint, Request};
use serde_json::json;

const AIRPORT: &str = "an IATA airport code of three letters, such as \"TLV\"";
const AIRLINE: &str = "an airline code of two or three letters or digits, such as \"LY\"";
const AIRLINES: &str =
    "a list, each element an airline code of two or three letters or digits, such as \"LY\"";
const PASSENGER: &str = "1 (adult), 2 (child), 3 (infant on lap) or 4 (infant in seat)";
const PASSENGERS: &str =
    "a list of at least 1, each 1 (adult), 2 (child), 3 (infant on lap) or 4 (infant in seat)";
const SORT: &str = "one of `Overall`, `Price`, `Duration`";

fn airport(field: &'static str) -> FieldCase {
    FieldCase(
        field,
        json!(["LHR", "AAA", "ZZZ"]),
        json!(["", "LH", "LHRX", "LH1", "L R", "ÉCO", "éa", 3, true, [], {
        }]),
        AIRPORT,
    )
}

fn date(field: &'static str, takes: [&str; 2]) -> FieldCase {
    let refuses = json!([
        "2027-02-29",
        "2027-13-01",
        "2027-00-10",
        "2027-01-32",
        "2027-1-14",
        "20270114",
        "2027-01-14T00:00:00",
        "2027-01-140",
        " 2027-01-14",
        "2027/01/14",
        "14.01.2027",
        "2027-W02-4",
        "-000001-01-01",
        "+7d",
        "tomorrow",
        "",
        20_270_114,
        true,
        ["2027-01-14"],
        {}
    ]);
    FieldCase(field, json!(takes), refuses, DATE)
}

fn count(field: &'static str) -> FieldCase {
    let refuses = json!([-1, 2_147_483_648_u64, 0.5, 1.5, "0", "", true, [], {}]);
    FieldCase(field, json!([0, 1, 2_147_483_647]), refuses, COUNT)
}

fn airlines(field: &'static str) -> FieldCase {
    FieldCase(
        field,
        json!([[], ["LY"], ["LY", "BA"]]),
        json!(["LY", 1, true, {}]),
        AIRLINES,
    )
}

fn hour(field: &'static str) -> FieldCase {
    FieldCase(
        field,
        json!([0, 1, 22, 23]),
        json!([-1, 24, 256, 1.5, "8", "08:00", true, [], {}]),
        HOUR,
    )
}

/// The fields of both searches, in order.
fn shared() -> Vec<FieldCase> {
    vec![
        FieldCase(
            "sort_type",
            json!(["Overall", "Price", "Duration"]),
            json!(["price", "OVERALL", "Stops", "", 1, true, []]),
            SORT,
        ),
        FieldCase(
            "currency",
            json!(["USD", "eur", "Ils"]),
            json!(["", "US", "USDT", "U$D", "€", 840, true, []]),
            CURRENCY,
        ),
        FieldCase(
            "max_price",
            json!([0, 1, 500, 9_007_199_254_740_991_u64]),
            json!([-1, 9_007_199_254_740_992_u64, 99.5, "500", true, []]),
            "an integer from 0 to 9007199254740991",
        ),
        FieldCase(
            "seat_type",
            json!([1, 3]),
            json!([0, 2, 4, -1, "1", "economy", 1.5, true, []]),
            "1 (economy) or 3 (business)",
        ),
        FieldCase(
            "passengers",
            json!([[1], [1, 1, 2, 3, 4]]),
            json!([[], 1, "1", true, {"adults": 1}]),
            PASSENGERS,
        ),
        FieldCase(
            "limit",
            json!([1, 10, 200, 2_147_483_647]),
            json!([0, -1, 2_147_483_648_u64, 1.5, "10", true, []]),
            POSITIVE,
        ),
        flag("use_fallback"),
        flag("strict"),
        flag("use_ext_proxy"),
    ]
}

fn flag(field: &'static str) -> FieldCase {
    FieldCase(
        field,
        json!([true, false]),
        json!([0, 1, "true", "", [], {}]),
        FLAG,
    )
}

#[test]
fn each_oneway_field_accepts_only_valid_values() {
    let mut rows = vec![
        airport("from_airport"),
        airport("to_airport"),
        date("departure_date", ["0000-01-01", "2028-02-29"]),
        count("max_stops"),
        airlines("airline_codes"),
        airlines("exclude_airline_codes"),
        hour("departure_time_min"),
        hour("departure_time_max"),
        hour("departure_arrival_time_min"),
        hour("departure_arrival_time_max"),
    ];
    rows.extend(shared());
    body_of(Endpoint::FlightsOneway).assert_fields(&rows);
}

#[test]
fn each_roundtrip_field_accepts_only_valid_values() {
    let mut rows = vec![
        airport("from_airport"),
        airport("to_airport"),
        date("departure_date", ["2027-01-21", "2024-02-29"]),
        date("return_date", ["2027-01-14", "2028-02-29"]),
        count("max_departure_stops"),
        count("max_return_stops"),
        airlines("departure_airline_codes"),
        airlines("return_airline_codes"),
        airlines("departure_exclude_airline_codes"),
        airlines("return_exclude_airline_codes"),
        hour("departure_departure_time_min"),
        hour("departure_departure_time_max"),
        hour("departure_arrival_time_min"),
        hour("departure_arrival_time_max"),
        hour("return_departure_time_min"),
        hour("return_departure_time_max"),
        hour("return_arrival_time_min"),
        hour("return_arrival_time_max"),
    ];
    rows.extend(shared());
    // The alias is never sent upstream, so its case has no values; see `bodies`.
    rows.push(FieldCase(
        "max_stops",
        json!([]),
        json!([-1, 2_147_483_648_u64, 0.5, "0", true, []]),
        COUNT,
    ));
    body_of(Endpoint::FlightsRoundtrip).assert_fields(&rows);
}

#[test]
fn an_invalid_list_element_is_named_by_its_index() {
    let airlines = |field| {
        let refuses = json!(["L", "LYYY", "L-", "", "é1", 12, null, true]);
        FieldCase(
            field,
            json!(["LY", "ly", "U2", "4O", "EZY", "123"]),
            refuses,
            AIRLINE,
        )
    };
    let passengers = || {
        FieldCase(
            "passengers",
            json!([1, 2, 3, 4]),
            json!([0, 5, -1, 1.5, "1", null, true, []]),
            PASSENGER,
        )
    };
    let oneway = ["airline_codes", "exclude_airline_codes"];
    body_of(Endpoint::FlightsOneway).assert_elements(&oneway.map(airlines));
    body_of(Endpoint::FlightsOneway).assert_elements(&[passengers()]);
    let roundtrip = [
        "departure_airline_codes",
        "return_airline_codes",
        "departure_exclude_airline_codes",
        "return_exclude_airline_codes",
    ];
    body_of(Endpoint::FlightsRoundtrip).assert_elements(&roundtrip.map(airlines));
    body_of(Endpoint::FlightsRoundtrip).assert_elements(&[passengers()]);
}

#[test]
fn airports_are_sent_in_upper_case_and_codes_as_given() {
    for endpoint in [Endpoint::FlightsOneway, Endpoint::FlightsRoundtrip] {
        let body = with(
            endpoint,
            &json!({"from_airport": "tlv", "to_airport": "lHr", "currency": "eUr"}),
        );
        let sent = Request::check(endpoint, &body).unwrap().request.to_body();
        assert_eq!(
            [
                &sent["from_airport"],
                &sent["to_airport"],
                &sent["currency"]
            ],
            ["TLV", "LHR", "eUr"]
        );
    }
}

#[test]
fn a_return_is_not_before_its_departure() {
    let trip = |departure: &str, back: &str| {
        errors(
            Endpoint::FlightsRoundtrip,
            &json!({"departure_date": departure, "return_date": back}),
        )
    };
    assert_eq!(trip("2027-01-14", "2027-01-15"), [""; 0]);
    assert_eq!(trip("2027-01-14", "2027-01-14"), [""; 0]);
    assert_eq!(
        trip("2027-01-14", "2027-01-13"),
        [
            "`return_date`: found \"2027-01-13\"; expected a date on or after `departure_date` (2027-01-14)"
        ]
    );
    // An invalid date is not compared.
    assert_eq!(trip("2027-01-14", "2027-01-99").len(), 1);
}

#[test]
fn a_minimum_hour_above_the_maximum_is_valid() {
    let hours = json!({"departure_time_min": 22, "departure_time_max": 4});
    assert_eq!(errors(Endpoint::FlightsOneway, &hours), [""; 0]);
}

#[test]
fn a_past_date_is_valid() {
    assert_eq!(
        errors(
            Endpoint::FlightsOneway,
            &json!({"departure_date": "1999-12-31"})
        ),
        [""; 0]
    );
}
