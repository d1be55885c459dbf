use std::collections::HashSet;

use jiff::civil::{Date, date};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{MAX_ITEMS, ScanPlan, earliest_today, plan};
use crate::contract::{Endpoint, Request};

const TODAY: Date = date(2026, 12, 1);

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}

fn body(endpoint: &str, request: Value, sweep: Value) -> Map<String, Value> {
    [
        ("endpoint", endpoint.into()),
        ("request", request),
        ("sweep", sweep),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into_iter()
    .collect()
}

fn bodies(endpoint: &str, request: Value, sweep: Value) -> Vec<Value> {
    let planned =
        plan(&body(endpoint, request, sweep), TODAY).unwrap_or_else(|faults| panic!("{faults}"));
    planned
        .items
        .iter()
        .map(|item| item.to_body().into())
        .collect()
}

fn faults(endpoint: &str, request: Value, sweep: Value) -> Vec<String> {
    let refused = plan(&body(endpoint, request, sweep), TODAY);
    refused
        .expect_err("faults")
        .iter()
        .map(ToString::to_string)
        .collect()
}

/// The named fields of each body, as "a b" lines.
fn columns(bodies: &[Value], fields: &[&str]) -> Vec<String> {
    let row = |body: &Value| {
        fields
            .iter()
            .map(|field| body[*field].as_str().unwrap_or("-"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    bodies.iter().map(row).collect()
}

fn route() -> Value {
    json!({"from_airport": "TLV", "to_airport": "LHR"})
}

fn stay() -> Value {
    json!({"hotel_name": "Grand Hotel", "checkin_date": "2027-01-14", "checkout_date": "2027-01-15"})
}

#[test]
fn without_a_sweep_the_request_is_the_one_item() {
    let request = json!({"from_airport": "tlv", "to_airport": "LHR", "departure_date": "2027-01-14", "currency": null});
    let body = json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2027-01-14"});
    assert_eq!(bodies("flights/oneway", request, json!({})), [body]);
}

#[test]
fn positions_follow_the_field_table_last_field_fastest() {
    let swept = bodies(
        "flights/oneway",
        json!({"from_airport": "TLV"}),
        json!({"departure_date": ["2027-01-02", "2027-01-01"], "to_airport": ["LHR", "CDG"]}),
    );
    assert_eq!(
        columns(&swept, &["to_airport", "departure_date"]),
        [
            "LHR 2027-01-02",
            "LHR 2027-01-01",
            "CDG 2027-01-02",
            "CDG 2027-01-01"
        ]
    );
}

#[test]
fn samples_are_outermost_and_markets_innermost() {
    let request = json!({"hotel_name": "Grand Hotel", "checkin_date": "2027-01-14"});
    let sweep =
        json!({"proxy_country": ["us", "de"], "nights": [1, 2], "currency": ["USD"], "samples": 2});
    let once = [
        "2027-01-15 us",
        "2027-01-15 de",
        "2027-01-16 us",
        "2027-01-16 de",
    ];
    assert_eq!(
        columns(
            &bodies("hotels/by-name", request, sweep),
            &["checkout_date", "proxy_country"]
        ),
        [once, once].concat()
    );
}

#[test]
fn ranges_take_both_ends_steps_and_weekdays() {
    for (range, dates) in [
        (
            json!({"from": "2027-01-30", "to": "2027-02-01"}),
            vec!["2027-01-30", "2027-01-31", "2027-02-01"],
        ),
        (
            json!({"from": "2027-01-01", "to": "2027-01-01"}),
            vec!["2027-01-01"],
        ),
        (
            json!({"from": "2028-02-28", "to": "2028-03-01", "step_days": 1}),
            vec!["2028-02-28", "2028-02-29", "2028-03-01"],
        ),
        (
            json!({"from": "2027-01-01", "to": "2027-01-10", "step_days": 4}),
            vec!["2027-01-01", "2027-01-05", "2027-01-09"],
        ),
        (
            json!({"from": "2027-01-01", "to": "2027-01-10", "step_days": 366}),
            vec!["2027-01-01"],
        ),
        // 2027-01-01 is a Friday.
        (
            json!({"from": "2027-01-01", "to": "2027-01-08", "weekdays": ["thu", "fri"]}),
            vec!["2027-01-01", "2027-01-07", "2027-01-08"],
        ),
        (
            json!({"from": "2027-01-01", "to": "2027-01-08", "step_days": 7, "weekdays": ["fri"]}),
            vec!["2027-01-01", "2027-01-08"],
        ),
        (
            json!({"from": "9999-12-30", "to": "9999-12-31"}),
            vec!["9999-12-30", "9999-12-31"],
        ),
    ] {
        let swept = bodies("flights/oneway", route(), json!({"departure_date": range}));
        assert_eq!(columns(&swept, &["departure_date"]), dates, "{range}");
    }
}

#[test]
fn nights_count_from_each_start_date() {
    let sweep = json!({"departure_date": ["2027-01-30", "2027-02-28"], "nights": [1, 7]});
    assert_eq!(
        columns(
            &bodies("flights/roundtrip", route(), sweep),
            &["departure_date", "return_date"]
        ),
        [
            "2027-01-30 2027-01-31",
            "2027-01-30 2027-02-06",
            "2027-02-28 2027-03-01",
            "2027-02-28 2027-03-07"
        ]
    );
}

#[test]
fn a_list_field_is_swept_with_a_list_of_lists() {
    let sweep = json!({"airline_codes": [[], ["LH"], ["BA", "LH"]]});
    let mut request = route();
    request["departure_date"] = "2027-01-14".into();
    let lists: Vec<_> = bodies("flights/oneway", request, sweep)
        .into_iter()
        .map(|body| body["airline_codes"].clone())
        .collect();
    assert_eq!(lists, [json!([]), json!(["LH"]), json!(["BA", "LH"])]);
}

#[test]
fn an_alias_may_be_swept() {
    let mut request = route();
    request.as_object_mut().unwrap().extend(object(
        json!({"departure_date": "2027-01-14", "return_date": "2027-01-15"}),
    ));
    let swept = bodies("flights/roundtrip", request, json!({"max_stops": [0, 2]}));
    assert_eq!(
        (
            &swept[1]["max_departure_stops"],
            &swept[1]["max_return_stops"]
        ),
        (&json!(2), &json!(2))
    );
    assert_eq!(swept[1].get("max_stops"), None);
}

/// Each row: an invalid request and sweep, and all its messages.
#[test]
fn faults_name_path_found_value_and_allowed_values() {
    let values = "a list of at least one value, or for a date field a range {from, to, step_days?, weekdays?}";
    let day = "a date that exists, as YYYY-MM-DD";
    let airport = "an IATA airport code of three letters, such as \"TLV\"";
    let currency = "an ISO currency code of three letters, such as \"USD\"";
    let later = "a date that has not passed: 2026-12-01 or later";
    let twice = "distinct values: an equal value precedes this one";
    let tlv = || json!({"from_airport": "TLV"});
    for (endpoint, request, sweep, messages) in [
        ("flights/oneway", route(), json!({"departure_date": "2027-01-14"}), vec![
            format!("`sweep.departure_date`: found \"2027-01-14\"; expected {values}"),
        ]),
        ("flights/oneway", route(), json!({"departure_date": ["2027-01-14", "2027-02-30", 5]}), vec![
            format!("`sweep.departure_date[1]`: found \"2027-02-30\"; expected {day}"),
            format!("`sweep.departure_date[2]`: found 5; expected {day}"),
        ]),
        ("flights/oneway", route(), json!({"departure_date": ["2027-01-14", "2026-11-30", "2027-01-14"]}), vec![
            format!("`sweep.departure_date[1]`: found \"2026-11-30\"; expected {later}"),
            format!("`sweep.departure_date[2]`: found \"2027-01-14\"; expected {twice}"),
        ]),
        ("flights/oneway", route(), json!({"departure_date": {"from": "2026-11-30", "to": "2027-11-29"}}), vec![
            format!("`sweep.departure_date.from`: found \"2026-11-30\"; expected {later}"),
        ]),
        ("flights/oneway", route(), json!({"departure_date": {"from": "2027-01-02", "to": "2027-01-01"}}), vec![
            "`sweep.departure_date.to`: found \"2027-01-01\"; expected a date on or after `from` (2027-01-02)".to_owned(),
        ]),
        ("flights/oneway", tlv(), json!({"departure_date": {"to": "2027-1-1", "step_days": 0}, "to_airport": ["TL"]}), vec![
            format!("`sweep.departure_date.from` is missing; expected {day}"),
            format!("`sweep.departure_date.to`: found \"2027-1-1\"; expected {day}"),
            "`sweep.departure_date.step_days`: found 0; expected an integer from 1 to 366".to_owned(),
            format!("`sweep.to_airport[0]`: found \"TL\"; expected {airport}"),
        ]),
        ("flights/oneway", route(), json!({"departure_date": {"from": "2027-01-01", "to": "2027-01-03", "weekdays": ["mon"]}}), vec![
            "`sweep.departure_date.weekdays`: found [\"mon\"]; expected weekdays that occur between `from` and `to` at this step".to_owned(),
        ]),
        ("flights/oneway", json!({"from_airport": "TLV", "departure_date": "2026-11-30"}), json!({"to_airport": []}), vec![
            format!("`sweep.to_airport`: found []; expected {values}"),
            format!("`request.departure_date`: found \"2026-11-30\"; expected {later}"),
        ]),
        ("flights/oneway", tlv(), json!({"departure_date": ["2027-01-14"], "to_airport": {"from": "2027-01-01", "to": "2027-01-02"}}), vec![
            format!("`sweep.to_airport`: found {{\"from\":\"2027-01-01\",\"to\":\"2027-01-02\"}}; expected a list of values, each {airport}"),
        ]),
        ("flights/oneway", route(), json!({"departure_date": ["2027-01-14"], "to_airport": ["CDG"]}), vec![
            "`sweep.to_airport`: found [\"CDG\"]; expected either `request.to_airport` or `sweep.to_airport`, not both".to_owned(),
        ]),
        ("flights/oneway", route(), json!({"departure_date": ["2027-01-14"], "nights": [1]}), vec![
            "`sweep.nights`: found [1]; expected no `nights` in flights/oneway, which has no end date".to_owned(),
        ]),
        ("flights/oneway", route(), json!({"departure_dat": ["2027-01-14"]}), vec![
            "unknown field `sweep.departure_dat` in flights/oneway; did you mean `departure_date`?".to_owned(),
            format!("`request.departure_date` is missing; expected {day}"),
        ]),
        ("hotels/by-name", stay(), json!({"nights": [1, 2, 1], "samples": 11}), vec![
            "`sweep.samples`: found 11; expected an integer from 1 to 10".to_owned(),
            "`sweep.nights`: found [1,2,1]; expected either `nights` or `checkout_date`, not both".to_owned(),
            format!("`sweep.nights[2]`: found 1; expected {twice}"),
        ]),
        ("hotels/by-name", json!({"hotel_name": "Grand", "checkin_date": "2027-01-14", "adults": 0}), json!({"nights": [0, 367, "2"]}), vec![
            "`sweep.nights[0]`: found 0; expected an integer from 1 to 366".to_owned(),
            "`sweep.nights[1]`: found 367; expected an integer from 1 to 366".to_owned(),
            "`sweep.nights[2]`: found \"2\"; expected an integer from 1 to 366".to_owned(),
            "`request.adults`: found 0; expected an integer from 1 to 2147483647".to_owned(),
        ]),
        ("hotels/by-name", stay(), json!({"proxy_country": ["us", "US"], "currency": ["EUR", "eur", null]}), vec![
            format!("`sweep.currency[1]`: found \"eur\"; expected {twice}"),
            format!("`sweep.currency[2]`: found null; expected {currency}"),
            format!("`sweep.proxy_country[1]`: found \"US\"; expected {twice}"),
        ]),
        ("flights/roundtrip", route(), json!({"departure_date": ["2027-01-10", "2027-01-20"], "return_date": ["2027-01-15"]}), vec![
            "`sweep.return_date[0]`: found \"2027-01-15\"; expected a date on or after `departure_date` (2027-01-20)".to_owned(),
        ]),
        ("flights/roundtrip", route(), json!({"departure_date": ["9999-12-30"], "nights": [1, 2]}), vec![
            "`sweep.nights[1]`: found 2; expected nights that end before the year 10000".to_owned(),
        ]),
        ("flights/roundtrip", json!({"from_airport": "TLV", "to_airport": "LH", "currencyy": "USD"}), json!({"nights": [2]}), vec![
            format!("`request.to_airport`: found \"LH\"; expected {airport}"),
            format!("`request.departure_date` is missing; expected {day}"),
            "unknown field `request.currencyy` in flights/roundtrip; did you mean `currency`?".to_owned(),
        ]),
        ("flights/roundtrip",
         json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2027-01-14", "max_return_stops": 1, "max_departure_stops": 1}),
         json!({"return_date": ["2027-01-15"], "max_stops": [0, 1]}), vec![
            "`sweep.max_stops`: found [0,1]; expected no value: max_departure_stops and max_return_stops are given, so it \
             would have no effect".to_owned(),
        ]),
        ("hotels/resolve", json!({"hotel_name": "Grand"}), json!({}), vec![
            "`endpoint`: found \"hotels/resolve\"; expected one of `flights/oneway`, `flights/roundtrip`, `hotels/search`, `hotels/by-name`, \
             `hotels/rooms`".to_owned(),
        ]),
    ] {
        assert_eq!(faults(endpoint, request, sweep.clone()), messages, "{endpoint} {sweep}");
    }
}

#[test]
fn scan_fields_are_checked_together_with_the_sweep() {
    let sweep = json!({"departure_date": {"from": "2027-01-01", "to": "2027-01-31"}});
    let wrong = json!({"endpoint": "flights/oneway", "request": route(), "sweep": sweep, "max_requests": 30});
    let messages = plan(&object(wrong), TODAY).unwrap_err().to_string();
    assert_eq!(
        messages,
        "`max_requests`: found 30; expected at least the number of items, 31: one request each; leave it out for no limit, or add a `strategy` that searches fewer"
    );

    let wrong = json!({
        "endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": 1}, "sweep": {"departure_date": ["x"]},
        "max_requests": 0, "labell": "", "retry": {"max_attempts": 11}
    });
    let messages: Vec<_> = plan(&object(wrong), TODAY)
        .unwrap_err()
        .iter()
        .map(|fault| fault.path.clone())
        .collect();
    let paths = [
        "max_requests",
        "retry.max_attempts",
        "labell",
        "sweep.departure_date[0]",
        "request.to_airport",
    ];
    assert_eq!(messages, paths);
    assert_eq!(
        plan(&Map::new(), TODAY).unwrap_err().len(),
        2,
        "endpoint and request are missing"
    );
}

/// Nobody sells such a flight, and the search would be billed.
#[test]
fn a_flight_to_its_own_departure_airport_is_refused() {
    let dates = json!({"departure_date": ["2027-01-14", "2027-01-15"]});
    let there = faults(
        "flights/oneway",
        json!({"from_airport": "TLV", "to_airport": "tlv"}),
        dates,
    );
    assert_eq!(
        there,
        ["`request.to_airport`: found \"TLV\"; expected an airport other than `from_airport`"]
    );
    let both = json!({"from_airport": ["TLV", "LHR"], "to_airport": ["CDG", "LHR", "TLV"]});
    let back = json!({"departure_date": "2027-01-14", "return_date": "2027-01-15"});
    assert_eq!(
        faults("flights/roundtrip", back, both),
        [
            "`sweep.to_airport[2]`: found \"TLV\"; expected an airport other than `from_airport`",
            "`sweep.to_airport[1]`: found \"LHR\"; expected an airport other than `from_airport`"
        ]
    );
}

#[test]
fn a_sweep_over_the_item_limit_is_counted_not_built() {
    let days = json!({"from": "2027-01-01", "to": "9999-12-31"});
    let hours: Vec<_> = (0..24).collect();
    let message = faults(
        "flights/roundtrip",
        json!({"from_airport": "TLV", "to_airport": "LHR", "currency": "dollars"}),
        json!({
            "departure_date": days, "return_date": days, "departure_departure_time_min": hours, "departure_departure_time_max": hours,
            "departure_arrival_time_min": hours, "departure_arrival_time_max": hours, "return_departure_time_min": hours,
            "return_departure_time_max": hours, "return_arrival_time_min": hours, "return_arrival_time_max": hours, "samples": 10,
        }),
    );
    let long = ["departure_date", "return_date"].map(|field| format!("`{field}` (at least 10001)"));
    let hours = [
        "departure_departure",
        "departure_arrival",
        "return_departure",
        "return_arrival",
    ]
    .map(|leg| format!("`{leg}_time_min` (24), `{leg}_time_max` (24)"));
    let counts = format!("{}, {}, `samples` (10)", long.join(", "), hours.join(", "));
    assert_eq!(
        message[0],
        format!(
            "`sweep`: found {counts}; expected at most 10000 items; this makes at least {}",
            usize::MAX
        )
    );
    let once = |to: &str| {
        let request = json!({"from_airport": "TLV", "to_airport": "LHR"});
        faults(
            "flights/oneway",
            request,
            json!({"departure_date": {"from": "2027-01-01", "to": to}}),
        )
        .concat()
    };
    assert_eq!(
        once("9999-02-02"),
        "`sweep`: found `departure_date` (at least 10001); expected at most 10000 items; this makes at least 10001"
    );
    let lists = json!({"departure_date": {"from": "2027-01-01", "to": "2030-12-31"}, "currency": ["USD", "EUR"], "samples": 4});
    assert_eq!(
        faults(
            "flights/oneway",
            json!({"from_airport": "TLV", "to_airport": "LHR"}),
            lists
        )
        .concat(),
        "`sweep`: found `departure_date` (1461), `currency` (2), `samples` (4); expected at most 10000 items; this makes 11688"
    );
    assert_eq!(
        message[1],
        "`request.currency`: found \"dollars\"; expected an ISO currency code of three letters, such as \"USD\""
    );
    assert_eq!(message.len(), 2);

    let dates = |count: i64| json!({"departure_date": {"from": "2027-01-01", "to": date(2027, 1, 1).saturating_add(jiff::Span::new().days(count - 1)).to_string()}});
    assert_eq!(
        bodies("flights/oneway", route(), dates(10_000)).len(),
        MAX_ITEMS
    );
    assert_eq!(faults("flights/oneway", route(), dates(10_001)).len(), 1);
}

#[test]
fn long_values_times_many_items_are_refused() {
    let codes: Vec<_> = (0..2_000)
        .map(|number| format!("{number:03}")[..3].to_owned())
        .collect();
    let request = json!({"from_airport": "TLV", "to_airport": "LHR", "airline_codes": codes});
    let sweep = json!({"departure_date": {"from": "2027-01-01", "to": "2040-01-01"}});
    let messages = faults("flights/oneway", request, sweep);
    assert!(
        messages[0].starts_with(
            "`request`: found long values; expected at most 20971520 bytes over all items"
        ),
        "{messages:?}"
    );
}

#[test]
fn a_date_has_passed_when_it_has_passed_everywhere() {
    for (now, today) in [
        ("2027-01-02T11:59:59Z", date(2027, 1, 1)),
        ("2027-01-02T12:00:00Z", date(2027, 1, 2)),
    ] {
        assert_eq!(earliest_today(now.parse().unwrap()), today);
    }
}

fn subset(words: &'static [&'static str]) -> impl Strategy<Value = Vec<&'static str>> {
    proptest::sample::subsequence(words, 1..=words.len()).prop_shuffle()
}

/// The fields of an endpoint that may be swept, each with values that are valid with any of the
/// others: in the order of the field table, the market last.
fn sweepable(endpoint: Endpoint) -> Vec<(&'static str, Vec<Value>)> {
    let days = |month: i8| {
        (1..=4)
            .map(|day| json!(date(2027, month, day).to_string()))
            .collect::<Vec<_>>()
    };
    let fields = [
        ("from_airport", vec![json!("TLV"), json!("ATH")]),
        ("to_airport", vec![json!("LHR"), json!("CDG"), json!("JFK")]),
        ("departure_date", days(1)),
        ("return_date", days(2)),
        (
            "airline_codes",
            vec![json!([]), json!(["LH"]), json!(["BA", "LH"])],
        ),
        ("max_price", vec![json!(100), json!(250)]),
        ("seat_type", vec![json!(1), json!(3)]),
        ("destination", vec![json!("Lisbon"), json!("Porto")]),
        ("hotel_name", vec![json!("Grand"), json!("Plaza")]),
        (
            "hotel_booking_id",
            vec![json!("fr/grand"), json!("pt/plaza")],
        ),
        ("checkin_date", days(1)),
        ("checkout_date", days(2)),
        ("adults", vec![json!(1), json!(2), json!(4)]),
        ("currency", vec![json!("USD"), json!("EUR"), json!("GBP")]),
        ("proxy_country", vec![json!("us"), json!("de"), json!("jp")]),
    ];
    let place = |name: &str| {
        endpoint
            .fields()
            .iter()
            .position(|field| field.name == name)
    };
    let mut fields: Vec<_> = fields
        .into_iter()
        .filter(|(name, _)| place(name).is_some())
        .collect();
    fields.sort_by_key(|(name, _)| (*name == "proxy_country", place(name)));
    fields
}

/// Every combination of one value per field, the last field fastest. Independent of the plan's own
/// code.
fn all_combinations(fields: &[(&str, Vec<Value>)]) -> Vec<Vec<(String, Value)>> {
    let Some(((field, values), rest)) = fields.split_first() else {
        return vec![Vec::new()];
    };
    let mut ways = Vec::new();
    for value in values {
        for way in all_combinations(rest) {
            ways.push([vec![((*field).to_owned(), value.clone())], way].concat());
        }
    }
    ways
}

/// The endpoint, its fields with their values, which of them are swept, the samples, and a seed for
/// the order of the sweep's keys.
type AnySweep = (
    Endpoint,
    Vec<(&'static str, Vec<Value>)>,
    HashSet<&'static str>,
    usize,
    usize,
);

/// A sweep over some of an endpoint's fields; the request has the required fields that are not
/// swept.
fn any_sweep() -> impl Strategy<Value = AnySweep> {
    proptest::sample::select(Endpoint::SEARCHES.to_vec()).prop_flat_map(|endpoint| {
        let fields: Vec<_> = sweepable(endpoint)
            .into_iter()
            .map(|(field, values)| {
                let most = values.len();
                (
                    Just(field),
                    proptest::sample::subsequence(values, 1..=most).prop_shuffle(),
                )
            })
            .collect();
        let names: Vec<_> = sweepable(endpoint)
            .iter()
            .map(|(field, _)| *field)
            .collect();
        let swept = proptest::sample::subsequence(names.clone(), 0..=names.len().min(5))
            .prop_map(HashSet::from_iter);
        (Just(endpoint), fields, swept, 1_usize..=3, any::<usize>())
    })
}

proptest! {
    /// For every endpoint and any choice of swept fields, values and samples: the items are exactly
    /// the combinations in the order of their positions, and each is a valid body.
    #[test]
    fn items_are_the_combinations_in_position_order(
        (endpoint, fields, swept, samples, order) in any_sweep(),
    ) {
        let fixed: Map<_, _> = fields
            .iter()
            .filter(|(field, _)| !swept.contains(field) && endpoint.field(field).is_some_and(|field| field.required))
            .map(|(field, values)| ((*field).to_owned(), values[0].clone()))
            .collect();
        let fields: Vec<_> = fields.into_iter().filter(|(field, _)| swept.contains(field)).collect();
        // The order of the sweep's keys has no effect.
        let mut words: Vec<_> = fields.iter().map(|(field, values)| ((*field).to_owned(), json!(values))).collect();
        let turn = words.len().max(1);
        words.rotate_left(order % turn);
        let sweep: Map<_, _> = words.into_iter().chain([("samples".to_owned(), json!(samples))]).collect();
        let planned = plan(&body(endpoint.as_str(), fixed.clone().into(), sweep.into()), TODAY);
        let planned = planned.map_err(|faults| TestCaseError::fail(faults.to_string()))?.items;

        let ways = all_combinations(&fields);
        prop_assert_eq!(planned.len(), ways.len() * samples);
        for (position, item) in planned.iter().enumerate() {
            let mut expected = fixed.clone();
            expected.extend(ways[position % ways.len()].clone());
            let checked = Request::check(endpoint, &expected).map_err(|faults| TestCaseError::fail(faults.to_string()))?;
            prop_assert_eq!(item, &checked.request, "position {}", position);
            let again = Request::check(endpoint, &item.to_body()).map_err(|faults| TestCaseError::fail(faults.to_string()))?;
            prop_assert_eq!(&again.request, item, "what is stored is checked to the same");
        }
    }

    #[test]
    fn items_are_all_combinations_each_a_valid_body(
        to in subset(&["LHR", "CDG", "JFK"]),
        days in proptest::collection::hash_set(0_i64..400, 1..6),
        currencies in subset(&["USD", "EUR", "GBP"]),
        stops in proptest::option::of(proptest::collection::hash_set(0_u32..4, 1..3)),
        samples in 1_usize..=3,
    ) {
        let days: Vec<_> = days.into_iter().map(|day| date(2027, 1, 1).saturating_add(jiff::Span::new().days(day)).to_string()).collect();
        let stops: Option<Vec<_>> = stops.map(|stops| stops.into_iter().collect());
        let sweep = json!({"currency": currencies, "max_stops": stops, "departure_date": days, "to_airport": to, "samples": samples});
        let planned = plan(&body("flights/oneway", json!({"from_airport": "TLV"}), sweep), TODAY).unwrap().items;

        let mut expected = Vec::new();
        for _ in 0..samples {
            for to in &to {
                for day in &days {
                    for stops in stops.as_ref().map_or(vec![None], |stops| stops.iter().map(Some).collect()) {
                        for currency in &currencies {
                            expected.push(json!({"from_airport": "TLV", "to_airport": to, "departure_date": day, "max_stops": stops, "currency": currency}));
                        }
                    }
                }
            }
        }
        let expected: Vec<_> = expected
            .into_iter()
            .map(|body| Request::check(Endpoint::FlightsOneway, &object(body)).unwrap().request)
            .collect();
        prop_assert_eq!(&planned, &expected);
        let distinct: HashSet<_> = planned.iter().map(|item| Value::Object(item.to_body()).to_string()).collect();
        prop_assert_eq!(distinct.len() * samples, planned.len());
    }

    #[test]
    fn any_sweep_is_planned_or_refused_with_faults(
        word in proptest::sample::select(vec!["departure_date", "return_date", "nights", "samples", "to_airport", "airline_codes", "x"]),
        value in any_json(),
    ) {
        let request = json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2027-01-14"});
        match plan(&body("flights/roundtrip", request, json!({word: value})), TODAY) {
            Ok(ScanPlan { items, .. }) => prop_assert!(!items.is_empty() && items.len() <= MAX_ITEMS),
            Err(faults) => prop_assert!(!faults.is_empty()),
        }
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0_i64..12).prop_map(Value::from),
        "[a-z]{0,4}".prop_map(Value::from),
        Just(json!("2027-01-20")),
        Just(json!("9999-12-31")),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec(
                (
                    prop_oneof![
                        Just("from"),
                        Just("to"),
                        Just("step_days"),
                        Just("weekdays"),
                        Just("y")
                    ],
                    inner
                ),
                0..4
            )
            .prop_map(|pairs| pairs
                .into_iter()
                .map(|(word, value)| (word.to_owned(), value))
                .collect::<Map<_, _>>()
                .into()),
        ]
    })
}
