//! Scan requests (scans.md, rules 5 to 12).

use super::{DATE, FLAG, FieldCase, POSITIVE, TestBody};
use crate::scans::{
    DateRange, DeleteQuery, ItemsQuery, ResumeRequest, RetryPolicy, RetryRequest, ScanQuery,
    ScanRequest, ScansQuery, SweepValue,
};
use crate::{Endpoint, FieldValue, ValidationErrors};
use serde_json::{Value, json};

const SWEEP_VALUE: &str =
    "a list of at least one value, or for a date field a range {from, to, step_days?, weekdays?}";

fn scan() -> TestBody {
    TestBody {
        fields: ScanRequest::FIELDS,
        minimal: json!({"endpoint": "flights/oneway", "request": {}}),
        read: |body| ScanRequest::from_body(body).map(|scan| scan.to_body()),
    }
}

fn endpoint() -> FieldCase {
    let takes = json!([
        "flights/oneway",
        "flights/roundtrip",
        "hotels/search",
        "hotels/by-name",
        "hotels/rooms"
    ]);
    let refuses = json!(["hotels/resolve", "/v1/flights/oneway", "oneway", "", 1, []]);
    let expected = "one of `flights/oneway`, `flights/roundtrip`, `hotels/search`, `hotels/by-name`, `hotels/rooms`";
    FieldCase("endpoint", takes, refuses, expected)
}

fn max_requests() -> FieldCase {
    FieldCase(
        "max_requests",
        json!([1, 40, 2_147_483_647]),
        json!([0, -1, 2_147_483_648_u64, 1.5, "40", true]),
        POSITIVE,
    )
}

#[test]
fn each_scan_field_is_validated() {
    let tags = |count: usize| json!(vec!["t"; count]);
    scan().assert_fields(&[
        endpoint(),
        FieldCase(
            "request",
            json!([{}, {"to_airport": "LHR", "anything": [null]}]),
            json!([[], "x", 1, true]),
            "an object",
        ),
        FieldCase(
            "sweep",
            json!([{}, {"to_airport": ["LHR", null], "nights": [3], "samples": 10}]),
            json!([[], "x", 1, true]),
            "an object of field names, each with its values",
        ),
        FieldCase(
            "label",
            json!(["", "January", "é".repeat(200)]),
            json!(["é".repeat(201), "a\nb", 1, true, []]),
            "text of at most 200 characters without control characters",
        ),
        FieldCase(
            "tags",
            json!([[], ["demo"], tags(20)]),
            json!([tags(21), "demo", 1, {}]),
            "a list of at most 20, each text of 1 to 50 characters without control characters",
        ),
        max_requests(),
        FieldCase(
            "retry",
            json!([{}, {"max_attempts": 10, "delay_seconds": 0}]),
            json!([[], 3, "x", true]),
            "an object with the fields `max_attempts`, `delay_seconds`",
        ),
        FieldCase(
            "strategy",
            json!([
                {"find": "cheapest"}, {"find": "cheapest", "max_risk": 0.999}, {"find": "below", "below": 99.5},
                {"watch": "cheapest"}, {"watch": "below", "below": 99.5}
            ]),
            json!([[], 3, "x", true]),
            "an object with the fields `find`, `below`, `max_risk`, or an object with the fields `watch`, `below`",
        ),
        FieldCase(
            "max_age_seconds",
            json!([0, 1, 21_600, 2_678_400]),
            json!([2_678_401, -1, 1.5, "6h"]),
            "an integer from 0 to 2678400",
        ),
        FieldCase(
            "priority",
            json!(["interactive", "scheduled"]),
            json!(["high", "Interactive", 1, true]),
            "one of `interactive`, `scheduled`",
        ),
        FieldCase(
            "upstream_filters",
            json!([true, false]),
            json!([0, "true", []]),
            FLAG,
        ),
        FieldCase(
            "upstream_limit",
            json!([1, 50, 200]),
            json!([0, 201, -1, 1.5, "50"]),
            "an integer from 1 to 200",
        ),
    ]);
    scan().assert_elements(&[FieldCase(
        "tags",
        json!(["a", " ", "é".repeat(50)]),
        json!(["", "é".repeat(51), "a\tb", 1, null]),
        "text of 1 to 50 characters without control characters",
    )]);
}

#[test]
fn each_retry_policy_field_is_validated() {
    let policy = TestBody {
        fields: RetryPolicy::FIELDS,
        minimal: json!({}),
        read: |body| RetryPolicy::from_body(body).map(|policy| policy.to_body()),
    };
    policy.assert_fields(&[
        FieldCase(
            "max_attempts",
            json!([1, 2, 10]),
            json!([0, 11, 257, -1, 1.5, "2", true]),
            "an integer from 1 to 10",
        ),
        FieldCase(
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
fn each_retry_field_is_validated() {
    let statuses = "each one of `partial`, `degraded`, `failed`";
    let retry = TestBody {
        fields: RetryRequest::FIELDS,
        minimal: json!({"search_status": ["degraded"]}),
        read: |body| RetryRequest::from_body(body).map(|retry| retry.to_body()),
    };
    let reason = "a `reason` of items, such as \"upstream_timeout\": 1 to 100 letters, digits and underscores";
    retry.assert_fields(&[
        FieldCase(
            "search_status",
            json!([["degraded"], ["partial", "failed"]]),
            json!([[], "degraded", 1, {}]),
            format!("a list of at least 1, {statuses}").leak(),
        ),
        FieldCase(
            "reasons",
            json!([["worker_lost"]]),
            json!([[], "worker_lost"]),
            format!("a list of at least 1, each {reason}").leak(),
        ),
        max_requests(),
    ]);
    retry.assert_elements(&[
        FieldCase(
            "search_status",
            json!(["degraded"]),
            json!(["ok", "empty", "", 1]),
            "one of `partial`, `degraded`, `failed`",
        ),
        FieldCase(
            "reasons",
            json!(["upstream_status_503", "A", "x".repeat(100)]),
            json!(["", "a b", "a-b", "x".repeat(101), 1]),
            reason,
        ),
    ]);
}

#[test]
fn each_resume_and_delete_field_is_validated() {
    let resume = TestBody {
        fields: ResumeRequest::FIELDS,
        minimal: json!({}),
        read: |body| ResumeRequest::from_body(body).map(|resume| resume.to_body()),
    };
    resume.assert_fields(&[max_requests()]);
    let history =
        |text| DeleteQuery::from_query([("history", text)]).map(|query| query.history_or_default());
    assert_eq!(
        (history("true"), history("false"), history("")),
        (Ok(true), Ok(false), Ok(false))
    );
    assert_eq!(
        history("1").unwrap_err().to_string(),
        "`history`: found 1; expected true or false"
    );
}

#[test]
fn a_sought_text_is_trimmed_and_not_blank() {
    let text = |text| {
        let query = ScansQuery::from_query([("text", text)])?;
        Ok::<_, ValidationErrors>(query.text.map(|text| text.as_str().to_owned()))
    };
    assert_eq!(text(" Hotel Arts "), Ok(Some("Hotel Arts".to_owned())));
    assert_eq!(text(""), Ok(None));
    for wrong in ["  ", "\u{3000}", "a\0b"] {
        let error = text(wrong).unwrap_err().to_string();
        assert!(error.contains("expected text of 1 to 200"), "{error}");
    }
}

fn sweep_faults(sweep: &Value) -> Vec<String> {
    let body = scan().with("sweep", sweep);
    ScanRequest::from_body(&body)
        .err()
        .map_or_else(Vec::new, |errors| {
            errors.iter().map(ToString::to_string).collect()
        })
}

#[test]
fn a_sweep_has_lists_ranges_nights_and_samples() {
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
fn an_error_in_a_sweep_has_its_path() {
    for (sweep, message) in [
        (json!({"to_airport": []}), format!("`sweep.to_airport`: found []; expected {SWEEP_VALUE}")),
        (json!({"to_airport": "LHR"}), format!("`sweep.to_airport`: found \"LHR\"; expected {SWEEP_VALUE}")),
        (json!({"nights": []}), "`sweep.nights`: found []; expected a list of at least 1, each an integer from 1 to 366".into()),
        (json!({"nights": [3, 0]}), "`sweep.nights[1]`: found 0; expected an integer from 1 to 366".into()),
        (json!({"nights": [367]}), "`sweep.nights[0]`: found 367; expected an integer from 1 to 366".into()),
        (json!({"samples": 0}), "`sweep.samples`: found 0; expected an integer from 1 to 10".into()),
        (json!({"samples": 11}), "`sweep.samples`: found 11; expected an integer from 1 to 10".into()),
        (
            json!({"departure_date": {"from": "2027-01-02", "to": "2027-01-01"}}),
            "`sweep.departure_date.to`: found \"2027-01-01\"; expected a date on or after `from` (2027-01-02)".into(),
        ),
        (json!({"departure_date": {"from": "2027-01-02"}}), format!("`sweep.departure_date.to` is missing; expected {DATE}")),
    ] {
        assert_eq!(sweep_faults(&sweep), [message]);
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
fn each_date_range_field_is_validated() {
    let range = TestBody {
        fields: DateRange::FIELDS,
        minimal: json!({"from": "2027-01-01", "to": "2027-01-31"}),
        read: |body| DateRange::from_body(body).map(|range| range.to_body()),
    };
    let day = "one of `mon`, `tue`, `wed`, `thu`, `fri`, `sat`, `sun`";
    range.assert_fields(&[
        FieldCase(
            "from",
            json!(["2027-01-31", "2026-12-31"]),
            json!(["+7d", "", 1]),
            DATE,
        ),
        FieldCase(
            "to",
            json!(["2027-01-01", "2028-02-29"]),
            json!(["+7d", "", 1]),
            DATE,
        ),
        FieldCase(
            "step_days",
            json!([1, 366]),
            json!([0, 367, -1, "1"]),
            "an integer from 1 to 366",
        ),
        FieldCase(
            "weekdays",
            json!([["mon"]]),
            json!([[], "mon"]),
            format!("a list of at least 1, each {day}").leak(),
        ),
    ]);
    let days = json!(["mon", "tue", "wed", "thu", "fri", "sat", "sun"]);
    range.assert_elements(&[FieldCase(
        "weekdays",
        days,
        json!(["Mon", "monday", 1]),
        day,
    )]);
}

#[test]
fn omitted_scan_fields_have_their_defaults() {
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
fn list_queries_are_read_and_validated() {
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

    let message = |pairs: &[(&str, &str)]| {
        ItemsQuery::from_query(pairs.iter().copied())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        message(&[("limit", "501")]),
        "`limit`: found 501; expected an integer from 1 to 500"
    );
    assert_eq!(
        message(&[("limit", "0")]),
        "`limit`: found 0; expected an integer from 1 to 500"
    );
    assert_eq!(
        message(&[("limit", "ten")]),
        "`limit`: found \"ten\"; expected an integer from 1 to 500"
    );
    assert_eq!(
        message(&[("limit", "[1]")]),
        "`limit`: found \"[1]\"; expected an integer from 1 to 500"
    );
    assert_eq!(
        message(&[("sort", "price"), ("sort", "position")]),
        "`sort`: found \"price\"; expected one value; it is given more than once"
    );
    assert!(message(&[("stat", "done")]).contains("did you mean `state`?"));
    let long = "x".repeat(201);
    assert_eq!(
        message(&[("cursor", &long)]).split("; ").nth(1),
        Some("expected the `next_cursor` of the previous page")
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
    let all = message(&[
        ("sort", "price"),
        ("sort", "price"),
        ("limit", "0"),
        ("stat", "done"),
    ]);
    assert_eq!(all.matches("expected ").count(), 2, "{all}");
    assert!(all.contains("unknown field `stat`"), "{all}");
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
        "`wait`: found 61; expected an integer from 0 to 60"
    );
    for cursor in ["a b", "é"] {
        assert!(ItemsQuery::from_query([("cursor", cursor)]).is_err());
    }
}
