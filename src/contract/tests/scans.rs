//! What orders a scan (jobs-api, "Scans").

use super::{Body, DATE, FLAG, POSITIVE, Row};
use crate::contract::scans::{
    DateRange, DeleteQuery, ItemsQuery, ResumeRequest, RetryPolicy, RetryRequest, ScanQuery,
    ScanRequest, ScansQuery, SweepValue,
};
use crate::contract::{Endpoint, FieldValue};
use serde_json::{Value, json};

const SWEEP_VALUE: &str =
    "a list of at least one value, or for a date field a range {from, to, step_days?, weekdays?}";

fn scan() -> Body {
    Body {
        fields: ScanRequest::FIELDS,
        minimal: json!({"endpoint": "flights/oneway", "request": {}}),
        read: |body| ScanRequest::from_body(body).map(|scan| scan.to_body()),
    }
}

fn endpoint() -> Row {
    let takes = json!([
        "flights/oneway",
        "flights/roundtrip",
        "hotels/search",
        "hotels/by-name",
        "hotels/rooms"
    ]);
    let refuses = json!(["hotels/resolve", "/v1/flights/oneway", "oneway", "", 1, []]);
    let allowed = "one of `flights/oneway`, `flights/roundtrip`, `hotels/search`, `hotels/by-name`, `hotels/rooms`";
    Row("endpoint", takes, refuses, allowed)
}

fn max_requests() -> Row {
    Row(
        "max_requests",
        json!([1, 40, 2_147_483_647]),
        json!([0, -1, 2_147_483_648_u64, 1.5, "40", true]),
        POSITIVE,
    )
}

#[test]
fn every_field_of_a_scan_keeps_its_rule() {
    let tags = |count: usize| json!(vec!["t"; count]);
    scan().holds(&[
        endpoint(),
        Row(
            "request",
            json!([{}, {"to_airport": "LHR", "anything": [null]}]),
            json!([[], "x", 1, true]),
            "an object",
        ),
        Row(
            "sweep",
            json!([{}, {"to_airport": ["LHR", null], "nights": [3], "samples": 10}]),
            json!([[], "x", 1, true]),
            "an object of field names, each with its values",
        ),
        Row(
            "label",
            json!(["", "January", "é".repeat(200)]),
            json!(["é".repeat(201), "a\nb", 1, true, []]),
            "text of at most 200 characters without control characters",
        ),
        Row(
            "tags",
            json!([[], ["demo"], tags(20)]),
            json!([tags(21), "demo", 1, {}]),
            "a list of at most 20, each text of 1 to 50 characters without control characters",
        ),
        max_requests(),
        Row(
            "retry",
            json!([{}, {"max_attempts": 10, "delay_seconds": 0}]),
            json!([[], 3, "x", true]),
            "an object with the fields `max_attempts`, `delay_seconds`",
        ),
        Row(
            "strategy",
            json!([{"coarse_step": 2, "refine": 1}, {"coarse_step": 90, "refine": 90}]),
            json!([[], 3, "x", true]),
            "an object with the fields `coarse_step`, `refine`",
        ),
        Row(
            "priority",
            json!(["interactive", "scheduled"]),
            json!(["high", "Interactive", 1, true]),
            "one of `interactive`, `scheduled`",
        ),
        Row(
            "upstream_filters",
            json!([true, false]),
            json!([0, "true", []]),
            FLAG,
        ),
        Row(
            "upstream_limit",
            json!([1, 50, 200]),
            json!([0, 201, -1, 1.5, "50"]),
            "an integer from 1 to 200",
        ),
    ]);
    scan().elements_hold(&[Row(
        "tags",
        json!(["a", " ", "é".repeat(50)]),
        json!(["", "é".repeat(51), "a\tb", 1, null]),
        "text of 1 to 50 characters without control characters",
    )]);
}

#[test]
fn every_field_of_a_retry_policy_keeps_its_rule() {
    let policy = Body {
        fields: RetryPolicy::FIELDS,
        minimal: json!({}),
        read: |body| RetryPolicy::from_body(body).map(|policy| policy.to_body()),
    };
    policy.holds(&[
        Row(
            "max_attempts",
            json!([1, 2, 10]),
            json!([0, 11, 257, -1, 1.5, "2", true]),
            "an integer from 1 to 10",
        ),
        Row(
            "delay_seconds",
            json!([0, 60, 86_400]),
            json!([86_401, -1, 0.5, "60", true]),
            "an integer from 0 to 86400",
        ),
    ]);
    let silent = RetryPolicy::from_body(&serde_json::Map::new()).unwrap();
    assert_eq!(
        (
            silent.max_attempts_or_default().get(),
            silent.delay_seconds_or_default().get()
        ),
        (1, 60)
    );
}

#[test]
fn every_field_of_a_retry_keeps_its_rule() {
    let statuses = "each one of `partial`, `degraded`, `failed`";
    let retry = Body {
        fields: RetryRequest::FIELDS,
        minimal: json!({"search_status": ["degraded"]}),
        read: |body| RetryRequest::from_body(body).map(|retry| retry.to_body()),
    };
    let reason = "a reason as items state it, such as \"upstream_timeout\": 1 to 100 letters, digits and underscores";
    retry.holds(&[
        Row(
            "search_status",
            json!([["degraded"], ["partial", "failed"]]),
            json!([[], "degraded", 1, {}]),
            format!("a list of at least 1, {statuses}").leak(),
        ),
        Row(
            "reasons",
            json!([["worker_lost"]]),
            json!([[], "worker_lost"]),
            format!("a list of at least 1, each {reason}").leak(),
        ),
        max_requests(),
    ]);
    retry.elements_hold(&[
        Row(
            "search_status",
            json!(["degraded"]),
            json!(["ok", "empty", "", 1]),
            "one of `partial`, `degraded`, `failed`",
        ),
        Row(
            "reasons",
            json!(["upstream_status_503", "A", "x".repeat(100)]),
            json!(["", "a b", "a-b", "x".repeat(101), 1]),
            reason,
        ),
    ]);
}

#[test]
fn every_field_of_a_resume_and_a_deletion_keeps_its_rule() {
    let resume = Body {
        fields: ResumeRequest::FIELDS,
        minimal: json!({}),
        read: |body| ResumeRequest::from_body(body).map(|resume| resume.to_body()),
    };
    resume.holds(&[max_requests()]);
    let history =
        |text| DeleteQuery::from_query([("history", text)]).map(|query| query.history_or_default());
    assert_eq!(
        (history("true"), history("false"), history("")),
        (Ok(true), Ok(false), Ok(false))
    );
    assert_eq!(
        history("1").unwrap_err().to_string(),
        "`history` holds 1; allowed: true or false"
    );
}

fn sweep_faults(sweep: &Value) -> Vec<String> {
    let body = scan().with("sweep", sweep);
    ScanRequest::from_body(&body)
        .err()
        .map_or_else(Vec::new, |faults| {
            faults.iter().map(ToString::to_string).collect()
        })
}

#[test]
fn a_sweep_is_lists_ranges_nights_and_samples() {
    let sweep = json!({
        "to_airport": ["LHR", "CDG"],
        "departure_date": {"from": "2027-01-01", "to": "2027-01-31", "step_days": 7, "weekdays": ["thu", "fri"]},
        "passengers": [[1], [1, 1]],
        "nights": [3, 7],
        "samples": 2,
        "children": null
    });
    let read = ScanRequest::from_body(&scan().with("sweep", &sweep))
        .unwrap()
        .sweep
        .unwrap();
    let names: Vec<_> = read.fields.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["to_airport", "departure_date", "passengers"]);
    assert_eq!(
        read.fields[0].1,
        SweepValue::Values(vec![json!("LHR"), json!("CDG")])
    );
    let SweepValue::Range(range) = &read.fields[1].1 else {
        panic!("not a range")
    };
    assert_eq!(
        (
            range.from.to_string().as_str(),
            range.step_days_or_default().get()
        ),
        ("2027-01-01", 7)
    );
    assert_eq!(
        read.nights
            .as_ref()
            .unwrap()
            .as_slice()
            .iter()
            .map(|nights| nights.get())
            .collect::<Vec<_>>(),
        [3, 7]
    );
    assert_eq!(read.samples.unwrap().get(), 2);
    let mut written = sweep.as_object().unwrap().clone();
    written.remove("children");
    assert_eq!(read.to_value(), Value::Object(written));
}

#[test]
fn a_fault_in_a_sweep_is_named_by_its_path() {
    for (sweep, told) in [
        (json!({"to_airport": []}), format!("`sweep.to_airport` holds []; allowed: {SWEEP_VALUE}")),
        (json!({"to_airport": "LHR"}), format!("`sweep.to_airport` holds \"LHR\"; allowed: {SWEEP_VALUE}")),
        (json!({"nights": []}), "`sweep.nights` holds []; allowed: a list of at least 1, each an integer from 1 to 366".into()),
        (json!({"nights": [3, 0]}), "`sweep.nights[1]` holds 0; allowed: an integer from 1 to 366".into()),
        (json!({"nights": [367]}), "`sweep.nights[0]` holds 367; allowed: an integer from 1 to 366".into()),
        (json!({"samples": 0}), "`sweep.samples` holds 0; allowed: an integer from 1 to 10".into()),
        (json!({"samples": 11}), "`sweep.samples` holds 11; allowed: an integer from 1 to 10".into()),
        (
            json!({"departure_date": {"from": "2027-01-02", "to": "2027-01-01"}}),
            "`sweep.departure_date.to` holds \"2027-01-01\"; allowed: a date on or after `from` (2027-01-02)".into(),
        ),
        (json!({"departure_date": {"from": "2027-01-02"}}), format!("`sweep.departure_date.to` is missing; allowed: {DATE}")),
    ] {
        assert_eq!(sweep_faults(&sweep), [told]);
    }
    assert_eq!(
        sweep_faults(&json!({"nights": [1, 366], "samples": 1})),
        [""; 0]
    );
    let all =
        json!({"a": 1, "departure_date": {"from": "x", "to": "y", "step": 1}, "samples": "2"});
    assert_eq!(sweep_faults(&all).len(), 5);
}

#[test]
fn every_field_of_a_range_keeps_its_rule() {
    let range = Body {
        fields: DateRange::FIELDS,
        minimal: json!({"from": "2027-01-01", "to": "2027-01-31"}),
        read: |body| DateRange::from_body(body).map(|range| range.to_body()),
    };
    let day = "one of `mon`, `tue`, `wed`, `thu`, `fri`, `sat`, `sun`";
    range.holds(&[
        Row(
            "from",
            json!(["2027-01-31", "2026-12-31"]),
            json!(["+7d", "", 1]),
            DATE,
        ),
        Row(
            "to",
            json!(["2027-01-01", "2028-02-29"]),
            json!(["+7d", "", 1]),
            DATE,
        ),
        Row(
            "step_days",
            json!([1, 366]),
            json!([0, 367, -1, "1"]),
            "an integer from 1 to 366",
        ),
        Row(
            "weekdays",
            json!([["mon"]]),
            json!([[], "mon"]),
            format!("a list of at least 1, each {day}").leak(),
        ),
    ]);
    let days = json!(["mon", "tue", "wed", "thu", "fri", "sat", "sun"]);
    range.elements_hold(&[Row("weekdays", days, json!(["Mon", "monday", 1]), day)]);
}

#[test]
fn what_a_scan_does_not_say_has_a_default() {
    let silent = ScanRequest::from_body(scan().minimal.as_object().unwrap()).unwrap();
    assert_eq!(
        (silent.endpoint.get(), silent.sweep.clone()),
        (Endpoint::FlightsOneway, None)
    );
    assert_eq!(
        (
            silent.priority_or_default().as_str(),
            silent.upstream_limit_or_default().get()
        ),
        ("interactive", 50)
    );
    assert!(!silent.upstream_filters_or_default());
}

#[test]
fn lists_are_asked_by_query() {
    let query = ScansQuery::from_query([
        ("status", "running"),
        ("limit", "500"),
        ("tag", "7"),
        ("cursor", ""),
    ])
    .unwrap();
    assert_eq!(
        (
            query.limit_or_default().get(),
            query.tag.unwrap().as_str(),
            query.cursor
        ),
        (500, "7", None)
    );
    assert_eq!(
        ScansQuery::from_query([]).unwrap().limit_or_default().get(),
        50
    );
    let query =
        ItemsQuery::from_query([("expand", "answer"), ("sort", "price"), ("reason", "503")])
            .unwrap();
    assert_eq!(
        (
            query.reason.as_ref().unwrap().as_str(),
            query.sort_or_default().as_str()
        ),
        ("503", "price")
    );

    let told = |pairs: &[(&str, &str)]| {
        ItemsQuery::from_query(pairs.iter().copied())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        told(&[("limit", "501")]),
        "`limit` holds 501; allowed: an integer from 1 to 500"
    );
    assert_eq!(
        told(&[("limit", "0")]),
        "`limit` holds 0; allowed: an integer from 1 to 500"
    );
    assert_eq!(
        told(&[("limit", "ten")]),
        "`limit` holds \"ten\"; allowed: an integer from 1 to 500"
    );
    assert_eq!(
        told(&[("limit", "[1]")]),
        "`limit` holds \"[1]\"; allowed: an integer from 1 to 500"
    );
    assert_eq!(
        told(&[("sort", "price"), ("sort", "position")]),
        "`sort` holds \"price\"; allowed: one value; it is given more than once"
    );
    assert!(told(&[("stat", "done")]).contains("did you mean `state`?"));
    let long = "x".repeat(201);
    assert_eq!(
        told(&[("cursor", &long)]).split("; ").nth(1),
        Some("allowed: the `next_cursor` of the page before")
    );
    for cursor in ["x", &long[1..], "!~"] {
        assert_eq!(
            ItemsQuery::from_query([("cursor", cursor)])
                .unwrap()
                .cursor
                .unwrap()
                .as_str(),
            cursor
        );
    }
    let all = told(&[
        ("sort", "price"),
        ("sort", "price"),
        ("limit", "0"),
        ("stat", "done"),
    ]);
    assert_eq!(all.matches("allowed: ").count(), 3, "{all}");
    let wait = |seconds| {
        ScanQuery::from_query([("wait", seconds)]).map(|query| query.wait_or_default().get())
    };
    assert_eq!(
        (
            wait("0"),
            wait("60"),
            ScanQuery::from_query([]).unwrap().wait_or_default().get()
        ),
        (Ok(0), Ok(60), 0)
    );
    assert_eq!(
        wait("61").unwrap_err().to_string(),
        "`wait` holds 61; allowed: an integer from 0 to 60"
    );
    for cursor in ["a b", "é"] {
        assert!(ItemsQuery::from_query([("cursor", cursor)]).is_err());
    }
}
