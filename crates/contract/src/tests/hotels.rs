//! gateway.md, rules 7 to 9, 27, 28, 30, 32 and 33.

use super::{COUNT, COUNTRY, CURRENCY, DATE, FLAG, FieldCase, POSITIVE, TEXT, body_of, errors};
use crate::primitives::{BudgetPerNight, HotelFilter};
use crate::{Endpoint, FieldValue};
use serde_json::{Value, json};

const BOOKING_ID: &str = "a hotel id as returned by resolve, such as \"fr/grand-hotel\": 3 to 300 visible ASCII characters \
                          with a \"/\" that is not the first, and without \"..\", \"//\", \"?\", \"#\", \"\\\", \
                          \"%\", \"@\", \":\"";

/// gateway.md, rule 28, in its order.
const FILTERS: [&str; 24] = [
    "free_cancellation",
    "breakfast_included",
    "breakfast_and_lunch",
    "breakfast_and_dinner",
    "all_meals_included",
    "all_inclusive",
    "free_wifi",
    "swimming_pool",
    "gym",
    "parking",
    "front_desk_24h",
    "review_score_7",
    "review_score_8",
    "review_score_9",
    "private_bathroom",
    "air_conditioning",
    "stars_3",
    "stars_4",
    "stars_5",
    "pets_allowed",
    "adults_only",
    "sauna",
    "very_good_breakfast",
    "accepts_online_payment",
];

fn a_filter() -> String {
    format!("one of `{}`", FILTERS.join("`, `"))
}

fn text(field: &'static str) -> FieldCase {
    let takes = json!([
        "x",
        " ",
        "São Paulo",
        "東京",
        "x".repeat(300),
        "é".repeat(300)
    ]);
    let refuses = json!([
        "",
        "x".repeat(301),
        "é".repeat(301),
        "a\nb",
        "a\u{0}",
        "\u{7f}",
        "a\u{85}",
        1,
        true,
        [],
        {}
    ]);
    FieldCase(field, takes, refuses, TEXT)
}

fn dates() -> [FieldCase; 2] {
    let refuses = json!([
        "2027-02-29",
        "2027-1-14",
        "20270114",
        "2027-01-14T00:00:00",
        "",
        1,
        true,
        []
    ]);
    [
        FieldCase(
            "checkin_date",
            json!(["2027-01-16", "1999-12-31"]),
            refuses.clone(),
            DATE,
        ),
        FieldCase(
            "checkout_date",
            json!(["2027-01-15", "2028-02-29"]),
            refuses,
            DATE,
        ),
    ]
}

fn party() -> [FieldCase; 4] {
    [
        FieldCase(
            "adults",
            json!([1, 2, 2_147_483_647]),
            json!([0, -1, 2_147_483_648_u64, 1.5, "2", true, []]),
            POSITIVE,
        ),
        FieldCase(
            "children",
            json!([0, 1, 2_147_483_647]),
            json!([-1, 2_147_483_648_u64, 0.5, "0", true, []]),
            COUNT,
        ),
        FieldCase(
            "currency",
            json!(["USD", "eur"]),
            json!(["", "US", "USDT", "U$D", 840, true, []]),
            CURRENCY,
        ),
        country(),
    ]
}

fn country() -> FieldCase {
    FieldCase(
        "proxy_country",
        json!(["us", "DE", "zz"]),
        json!(["", "u", "usa", "u1", "日本", 1, true, []]),
        COUNTRY,
    )
}

fn free_cancellation() -> FieldCase {
    FieldCase(
        "free_cancellation",
        json!([true, false]),
        json!([0, 1, "true", [], {}]),
        FLAG,
    )
}

fn table(first: Vec<FieldCase>, last: Vec<FieldCase>) -> Vec<FieldCase> {
    first.into_iter().chain(last).collect()
}

#[test]
fn each_hotel_search_field_is_validated() {
    let expected: &'static str = format!("a list, each element {}", a_filter()).leak();
    let mut rows = table(vec![text("destination")], dates().into());
    rows.extend(party());
    rows.push(FieldCase(
        "budget_per_night",
        json!([1, 0.01, 99.5, 1e300]),
        json!([0, 0.0, -1, -0.01, "100", true, [], {}]),
        "a number above 0",
    ));
    rows.push(FieldCase(
        "filters",
        json!([[], ["gym"], ["gym", "sauna"]]),
        json!(["gym", 1, true, {}]),
        expected,
    ));
    body_of(Endpoint::HotelsSearch).assert_fields(&rows);
}

#[test]
fn each_hotel_by_name_field_is_validated() {
    let mut rows = table(vec![text("hotel_name")], dates().into());
    rows.push(text("area"));
    rows.extend(party());
    rows.push(free_cancellation());
    body_of(Endpoint::HotelsByName).assert_fields(&rows);
}

#[test]
fn each_hotel_rooms_field_is_validated() {
    let takes = json!([
        "a/b",
        "fr/grand-hotel_1.html",
        format!("a/{}", "x".repeat(298)),
        "!/~",
        "a/b.c./d"
    ]);
    let refuses = json!([
        "a/",
        "",
        format!("a/{}", "x".repeat(299)),
        "abc",
        "a/../b",
        "/ab",
        "//host/a",
        "a//b",
        "a/%2e%2e",
        "a@b/c",
        "a:80/c",
        "a/..",
        "..a/b",
        "a/b?c",
        "a/b#c",
        "a/b\\c",
        "a/b c",
        "a/\u{7f}",
        "a/b\n",
        "a/é",
        1,
        true,
        [],
        {}
    ]);
    let mut rows = table(
        vec![FieldCase("hotel_booking_id", takes, refuses, BOOKING_ID)],
        dates().into(),
    );
    rows.extend(party());
    rows.push(free_cancellation());
    body_of(Endpoint::HotelsRooms).assert_fields(&rows);
}

#[test]
fn each_resolve_field_is_validated() {
    body_of(Endpoint::HotelsResolve).assert_fields(&[text("hotel_name"), country()]);
}

#[test]
fn a_budget_converts_to_a_number() {
    let budget = |value: Value| BudgetPerNight::read(&value).unwrap().get();
    assert!(
        (budget(json!(99.5)) - 99.5).abs() < f64::EPSILON
            && (budget(json!(100)) - 100.0).abs() < f64::EPSILON
    );
}

#[test]
fn only_the_24_filters_are_accepted_and_errors_list_them() {
    let expected: &'static str = a_filter().leak();
    let takes: Value = FILTERS.into();
    let refuses = json!([
        "wifi",
        "Gym",
        "gym ",
        "stars_2",
        "stars_6",
        "review_score_6",
        "",
        1,
        null,
        true
    ]);
    body_of(Endpoint::HotelsSearch)
        .assert_elements(&[FieldCase("filters", takes, refuses, expected)]);
    assert_eq!(
        HotelFilter::ALL
            .iter()
            .map(|filter| filter.as_str())
            .collect::<Vec<_>>(),
        FILTERS
    );
}

#[test]
fn a_stay_has_at_least_one_night() {
    for endpoint in [
        Endpoint::HotelsSearch,
        Endpoint::HotelsByName,
        Endpoint::HotelsRooms,
    ] {
        let stay = |from: &str, to: &str| {
            errors(
                endpoint,
                &json!({"checkin_date": from, "checkout_date": to}),
            )
        };
        assert_eq!(stay("2027-01-14", "2027-01-15"), [""; 0]);
        assert_eq!(
            stay("2027-01-14", "2027-01-14"),
            [
                "`checkout_date`: found \"2027-01-14\"; expected a date after `checkin_date` (2027-01-14)"
            ]
        );
        assert_eq!(stay("2027-01-14", "2027-01-13").len(), 1);
    }
}

#[test]
fn location_is_refused_with_the_required_fields() {
    let message = "unknown field `location` in hotels/search; its required fields are \
                `destination`, `checkin_date`, `checkout_date`";
    assert_eq!(
        errors(Endpoint::HotelsSearch, &json!({"location": "Lisbon"})),
        [message]
    );
    let instead = errors(
        Endpoint::HotelsSearch,
        &json!({"location": "Lisbon", "destination": null}),
    );
    assert_eq!(
        instead,
        [
            format!("`destination` is missing; expected {TEXT}"),
            message.to_owned()
        ]
    );
    // In other bodies it is an ordinary unknown field.
    let elsewhere = errors(Endpoint::HotelsByName, &json!({"location": "Lisbon"}));
    assert!(
        elsewhere[0].contains("in hotels/by-name; its fields are `hotel_name`"),
        "{elsewhere:?}"
    );
}
