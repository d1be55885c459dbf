//! Queries of the price history (history.md, rules 12 to 24).

use super::{COUNT, COUNTRY, CURRENCY, DATE, FieldCase, POSITIVE, TEXT, TestBody};
use crate::history::{FlightHistoryQuery, HotelHistoryQuery};
use crate::latest::{FlightLatestQuery, HotelLatestQuery};
use crate::{FieldValue, ValidationError};
use serde_json::json;

const TIME: &str = "a time with its offset in the years 0 to 9999, as 2027-01-13T08:00:00Z";

fn tail() -> Vec<FieldCase> {
    let time = |field| {
        let refuses = json!([
            "2027-01-13",
            "2027-01-13T08:00:00",
            "yesterday",
            "",
            1,
            true
        ]);
        FieldCase(field, json!(["2027-01-13T08:00:00Z"]), refuses, TIME)
    };
    vec![
        time("since"),
        time("until"),
        FieldCase(
            "limit",
            json!([1, 500]),
            json!([0, 501, "1"]),
            "an integer from 1 to 500",
        ),
        FieldCase(
            "cursor",
            json!(["abc"]),
            json!(["", "a b", 1]),
            "the `next_cursor` of the previous page",
        ),
        FieldCase(
            "format",
            json!(["json", "csv", "ndjson", "parquet"]),
            json!(["CSV", "xlsx", "", 1]),
            "one of `json`, `csv`, `ndjson`, `parquet`",
        ),
    ]
}

fn date(field: &'static str) -> FieldCase {
    FieldCase(
        field,
        json!(["2027-01-14"]),
        json!(["2027-02-29", "x", 1]),
        DATE,
    )
}

#[test]
fn each_flight_history_parameter_is_validated() {
    let airport = "an IATA airport code of three letters, such as \"TLV\"";
    let mut rows = vec![
        FieldCase("from_airport", json!(["LHR"]), json!(["L", 1]), airport),
        FieldCase("to_airport", json!(["LHR"]), json!(["L", 1]), airport),
        date("departure_date"),
        date("departure_from"),
        date("departure_to"),
        date("return_date"),
        FieldCase("currency", json!(["usd"]), json!(["$", 1]), CURRENCY),
    ];
    rows.extend(tail());
    let query = TestBody {
        fields: FlightHistoryQuery::FIELDS,
        minimal: json!({"from_airport": "TLV", "to_airport": "LHR"}),
        read: |body| FlightHistoryQuery::from_body(body).map(|query| query.to_body()),
    };
    query.assert_fields(&rows);
}

#[test]
fn each_hotel_history_parameter_is_validated() {
    let text = |field| FieldCase(field, json!(["Grand Hotel"]), json!(["", 1]), TEXT);
    let id = "a hotel id as returned by resolve, such as \"fr/grand-hotel\": 3 to 300 visible ASCII characters with a \"/\" that \
              is not the first, and without \"..\", \"//\", \"?\", \"#\", \"\\\", \"%\", \"@\", \":\"";
    let mut rows = vec![
        text("hotel_name"),
        text("destination"),
        FieldCase(
            "hotel_booking_id",
            json!(["pt/grand"]),
            json!(["grand", 1]),
            id,
        ),
        date("checkin_date"),
        date("checkin_from"),
        date("checkin_to"),
        date("checkout_date"),
        FieldCase("adults", json!([1]), json!([0, "1"]), POSITIVE),
        FieldCase("children", json!([0]), json!([-1, "0"]), COUNT),
        FieldCase("currency", json!(["usd"]), json!(["$", 1]), CURRENCY),
        FieldCase("proxy_country", json!(["de"]), json!(["d", 1]), COUNTRY),
    ];
    rows.extend(tail());
    let query = TestBody {
        fields: HotelHistoryQuery::FIELDS,
        minimal: json!({}),
        read: |body| HotelHistoryQuery::from_body(body).map(|query| query.to_body()),
    };
    query.assert_fields(&rows);
}

fn flights(more: &[(&'static str, &'static str)]) -> Result<FlightHistoryQuery, Vec<String>> {
    let pairs = [("from_airport", "tlv"), ("to_airport", "lhr")]
        .into_iter()
        .chain(more.iter().copied());
    FlightHistoryQuery::from_query(pairs)
        .map_err(|errors| errors.iter().map(ValidationError::to_string).collect())
}

fn hotels(pairs: &[(&str, &str)]) -> Vec<String> {
    HotelHistoryQuery::from_query(pairs.iter().copied()).map_or_else(
        |errors| errors.iter().map(ValidationError::to_string).collect(),
        |_| Vec::new(),
    )
}

#[test]
fn a_day_and_a_range_of_days_exclude_each_other() {
    let query = flights(&[
        ("departure_from", "2027-01-01"),
        ("departure_to", "2027-01-01"),
        ("limit", "7"),
    ])
    .unwrap();
    assert_eq!(
        (query.from_airport.as_str(), query.limit_or_default().get()),
        ("TLV", 7)
    );
    assert!(flights(&[("departure_date", "2027-01-01")]).is_ok());
    assert!(flights(&[("departure_from", "2027-01-01")]).is_ok());
    let message = "`departure_date`: found \"2027-01-01\"; expected a day without `departure_from` and `departure_to`, or the range alone";
    for end in ["departure_from", "departure_to"] {
        assert_eq!(
            flights(&[("departure_date", "2027-01-01"), (end, "2027-01-02")]).unwrap_err(),
            [message]
        );
    }
    assert_eq!(
        flights(&[
            ("departure_from", "2027-01-02"),
            ("departure_to", "2027-01-01")
        ])
        .unwrap_err(),
        [
            "`departure_to`: found \"2027-01-01\"; expected a date on or after `departure_from` (2027-01-02)"
        ]
    );
    let message = "`checkin_date`: found \"2027-01-01\"; expected a day without `checkin_from` and `checkin_to`, or the range alone";
    for end in ["checkin_from", "checkin_to"] {
        assert_eq!(
            hotels(&[
                ("destination", "Rome"),
                ("checkin_date", "2027-01-01"),
                (end, "2027-01-02")
            ]),
            [message]
        );
    }
    assert_eq!(
        hotels(&[
            ("destination", "Rome"),
            ("checkin_from", "2027-01-02"),
            ("checkin_to", "2027-01-01")
        ])
        .len(),
        1
    );
}

#[test]
fn a_hotel_query_names_exactly_one_subject() {
    let one = "exactly one of `hotel_name`, `destination`, `hotel_booking_id`";
    assert_eq!(
        hotels(&[]),
        [format!("`hotel_name` is missing; expected {one}")]
    );
    for subject in [
        ("hotel_name", "Grand"),
        ("destination", "Rome"),
        ("hotel_booking_id", "pt/grand"),
    ] {
        assert_eq!(
            hotels(&[subject, ("adults", "2"), ("proxy_country", "de")]),
            [""; 0]
        );
    }
    assert_eq!(
        hotels(&[
            ("hotel_booking_id", "pt/grand"),
            ("hotel_name", "Grand"),
            ("destination", "Rome")
        ]),
        [
            format!("`destination`: found \"Rome\"; expected {one}"),
            format!("`hotel_booking_id`: found \"pt/grand\"; expected {one}")
        ]
    );
}

#[test]
fn a_text_parameter_of_digits_stays_text() {
    let query = HotelHistoryQuery::from_query([("hotel_name", "1898"), ("children", "0")]).unwrap();
    assert_eq!(query.hotel_name.unwrap().to_value(), json!("1898"));
    assert_eq!(query.children.unwrap().get(), 0);
}

/// Latest prices: a range of at most 400 days, both ends included, and for hotels exactly one
/// subject.
#[test]
fn a_calendar_has_at_most_400_days() {
    let flights = |from: &'static str, to: &'static str| {
        let route = [
            ("from_airport", "TLV"),
            ("to_airport", "LHR"),
            ("departure_from", from),
            ("departure_to", to),
        ];
        FlightLatestQuery::from_query(route)
            .map(|_| ())
            .map_err(|errors| errors.to_string())
    };
    let hotels = |from: &'static str, to: &'static str, more: &[(&'static str, &'static str)]| {
        let stay = [
            ("hotel_name", "Grand Hotel"),
            ("checkin_from", from),
            ("checkin_to", to),
        ];
        HotelLatestQuery::from_query(stay.into_iter().chain(more.iter().copied()))
            .map(|_| ())
            .map_err(|errors| errors.to_string())
    };
    for (from, to) in [("2027-01-01", "2027-01-01"), ("2027-01-01", "2028-02-04")] {
        assert_eq!(
            (flights(from, to), hotels(from, to, &[])),
            (Ok(()), Ok(())),
            "{from} to {to}"
        );
    }
    let message = |field: &str| {
        format!(
            "`{field}`: found \"2028-02-05\"; expected a date up to 2028-02-04: a calendar has at most 400 days"
        )
    };
    assert_eq!(
        flights("2027-01-01", "2028-02-05"),
        Err(message("departure_to"))
    );
    assert_eq!(
        hotels("2027-01-01", "2028-02-05", &[]),
        Err(message("checkin_to"))
    );
    let two_subjects = hotels("2027-01-01", "2027-01-01", &[("destination", "Rome")]).unwrap_err();
    assert!(
        two_subjects.contains("hotel_name") && two_subjects.contains("destination"),
        "{two_subjects}"
    );
}
