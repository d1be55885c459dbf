//! Requests that create and change a monitor (monitors.md, rules 1 to 14).

use super::{FieldCase, POSITIVE, TestBody};
use crate::FieldValue;
use crate::monitors::{MonitorPatch, MonitorRequest, Rule, RuleType, ScheduleRequest};
use serde_json::{Value, json};

const CRON: &str = "five cron fields, minute hour day-of-month month day-of-week, such as \"0 6 * * *\" or \"30 7 * * mon-fri\"";
const ZONE: &str = "the name of an IANA time zone, such as \"Europe/London\" or \"UTC\"";
const URL: &str =
    "an https URL of at most 2000 characters, without a user name, a password or a fragment";
const NAME: &str = "text of 1 to 200 characters without control characters, not spaces alone";

fn rows() -> [FieldCase; 8] {
    let schedule = json!({"cron": "0 6 * * *", "timezone": "UTC"});
    let rules = |count: usize| json!(vec![json!({"type": "new_low", "days": 30}); count]);
    let long = |length: usize| {
        format!(
            "https://h.example/{}",
            "a".repeat(length - "https://h.example/".len())
        )
    };
    let urls = json!([
        "https://h.example",
        "https://h.example:8443/x?y=z",
        long(2000)
    ]);
    let no_urls = json!([
        "https://",
        "h.example",
        "https://u:p@h.example",
        "https://u@h.example",
        "https://h.example/#x",
        "https://h.example/a b",
        "ftp://h.example",
        long(2001),
        "",
        1,
        {}
    ]);
    let list = format!("a list of at most 20, each {}", Rule::expected());
    [
        FieldCase(
            "name",
            json!(["a", " a ", "é".repeat(200)]),
            json!(["", " ", "\u{2003}  ", "é".repeat(201), "a\nb", 1, []]),
            NAME,
        ),
        FieldCase(
            "schedule",
            json!([schedule]),
            json!(["0 6 * * *", [], 1]),
            "an object with the fields `cron`, `timezone`",
        ),
        FieldCase(
            "scan",
            json!([{}, {"endpoint": "anything"}]),
            json!([[], "x", 1]),
            "an object",
        ),
        FieldCase(
            "alerts",
            json!([[], rules(20)]),
            json!([rules(21), {}, "x"]),
            Box::leak(list.into_boxed_str()),
        ),
        FieldCase("webhook_url", urls, no_urls, URL),
        FieldCase(
            "notify",
            json!([{"digest_at": "08:00"}, {"quiet_hours": {"from": "22:00", "until": "07:00"}}]),
            json!([[], "08:00", 8]),
            "an object with the fields `quiet_hours`, `digest_at`",
        ),
        FieldCase(
            "channels",
            json!([[], ["chn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b"]]),
            json!([
                "chn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b",
                {},
                vec!["chn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b"; 11]
            ]),
            "a list of at most 10, each the id of a channel: chn_ and 32 hexadecimal digits",
        ),
        FieldCase(
            "max_requests_per_month",
            json!([1, 2_147_483_647]),
            json!([0, -1, 1.5, "9", 2_147_483_648_u64]),
            POSITIVE,
        ),
    ]
}

#[test]
fn each_monitor_field_is_validated() {
    let minimal =
        json!({"name": "n", "schedule": {"cron": "0 6 * * *", "timezone": "UTC"}, "scan": {}});
    let read = |body: &serde_json::Map<String, Value>| {
        MonitorRequest::from_body(body).map(|monitor| monitor.to_body())
    };
    TestBody {
        fields: MonitorRequest::FIELDS,
        minimal,
        read,
    }
    .assert_fields(&rows());
    let read = |body: &serde_json::Map<String, Value>| {
        MonitorPatch::from_body(body).map(|monitor| monitor.to_body())
    };
    TestBody {
        fields: MonitorPatch::FIELDS,
        minimal: json!({}),
        read,
    }
    .assert_fields(&rows());
}

#[test]
fn each_schedule_field_is_validated() {
    let crons = json!([
        "0 6 * * *",
        "*/15 * * * *",
        "30 7 * * MON-fri",
        "0 0 29 2 *",
        "0 6 L * *",
        "5  6 1,15 jan,Jun *"
    ]);
    let long = format!("0 6 {} * *", vec!["1"; 60].join(","));
    let no_crons = json!([
        "",
        "0 6 * *",
        "0 0 6 * * *",
        "@daily",
        "0\t6 * * *",
        "0 6 * * é",
        long,
        6,
        []
    ]);
    let zones = json!(["UTC", "Europe/London", "America/Argentina/Buenos_Aires"]);
    let no_zones = json!([
        "",
        "Mars/Olympus",
        "+01:00",
        "EST5EDT,M3.2.0,M11.1.0",
        "../etc/passwd",
        "a".repeat(65),
        1,
        {}
    ]);
    TestBody {
        fields: ScheduleRequest::FIELDS,
        minimal: json!({"cron": "0 6 * * *", "timezone": "UTC"}),
        read: |body| ScheduleRequest::from_body(body).map(|schedule| schedule.to_body()),
    }
    .assert_fields(&[
        FieldCase("cron", crons, no_crons, CRON),
        FieldCase("timezone", zones, no_zones, ZONE),
    ]);
}

/// The invalid field and its valid values.
#[test]
fn a_cron_error_names_the_invalid_field() {
    const MINUTE: &str = "minute (0 to 59)";
    const HOUR: &str = "hour (0 to 23)";
    const DAY: &str = "day of the month (1 to 31, L for the last)";
    const MONTH: &str = "month (1 to 12, jan to dec)";
    const WEEKDAY: &str = "day of the week (0 to 7, sun to sat)";
    for (cron, wrong) in [
        ("61 * * * *", vec![("61", MINUTE)]),
        ("60 * * * *", vec![("60", MINUTE)]),
        (
            "*/0 * * * *",
            vec![("*/0", "minute (0 to 59, in steps of 1 or more)")],
        ),
        ("0-70 * * * *", vec![("0-70", MINUTE)]),
        ("x * * * *", vec![("x", MINUTE)]),
        ("0 24 * * *", vec![("24", HOUR)]),
        ("0 6 32 * *", vec![("32", DAY)]),
        ("0 6 0 * *", vec![("0", DAY)]),
        ("0 6 * 13 *", vec![("13", MONTH)]),
        ("0 6 * juni *", vec![("juni", MONTH)]),
        ("0 6 * * 8", vec![("8", WEEKDAY)]),
        ("0 6 * * xyz", vec![("xyz", WEEKDAY)]),
        ("99 * * 1-13 *", vec![("99", MINUTE), ("1-13", MONTH)]),
    ] {
        let message = ScheduleRequest::read(&json!({"cron": cron, "timezone": "UTC"}))
            .unwrap_err()
            .to_string();
        let wrong: Vec<_> = wrong
            .iter()
            .map(|(found, expected)| format!("`{found}` is not a valid {expected}"))
            .collect();
        assert_eq!(
            message,
            format!(
                "`cron`: found \"{cron}\"; expected {CRON}; {}",
                wrong.join(", ")
            )
        );
    }
}

#[test]
fn a_rule_has_the_fields_of_its_type() {
    for rule in [
        json!({"type": "price_below", "amount": 199.5, "scope": "cell", "rearm_percent": 5}),
        json!({"type": "price_below", "amount": 200}),
        json!({"type": "drop_percent", "percent": 10, "runs": 14}),
        json!({"type": "verdict"}),
        json!({"type": "new_low", "days": 365, "rearm_percent": 0}),
        json!({"type": "available", "scope": "cell"}),
        json!({"type": "sold_out"}),
        json!({"type": "parity_gap_percent", "percent": 2.5, "baseline": "us"}),
        json!({"type": "stale", "runs": 3}),
        json!({"type": "every_run"}),
    ] {
        let read = Rule::read(&rule).unwrap();
        assert_eq!(
            (read.to_value(), json!(read)),
            (rule.clone(), rule.clone()),
            "as it was written"
        );
        assert_eq!(serde_json::from_value::<Rule>(rule).unwrap(), read);
    }
    let Rule::DropPercent(defaults) =
        Rule::read(&json!({"type": "drop_percent", "percent": 3})).unwrap()
    else {
        panic!()
    };
    assert_eq!(defaults.runs_or_default().get(), 7);
    assert_eq!(defaults.scope_or_default().as_str(), "scan");
    assert_eq!(
        defaults.rearm_percent_or_default().get(),
        rust_decimal::Decimal::TWO
    );
    assert_eq!(defaults.percent.get().to_string(), "3");
    for (rule, expected) in [
        (
            json!({}),
            "`type` is missing; expected one of `price_below`, `drop_percent`, `verdict`",
        ),
        (json!({"type": "below"}), "`type`: found \"below\""),
        (json!({"type": "price_below"}), "`amount` is missing"),
        (
            json!({"type": "new_low"}),
            "`days` is missing; expected an integer from 1 to 365",
        ),
        (
            json!({"type": "below_typical"}),
            "`type`: found \"below_typical\"",
        ),
        (
            json!({"type": "price_below", "amount": "200"}),
            "`amount`: found \"200\"; expected a number above 0",
        ),
        (
            json!({"type": "price_below", "amount": 1, "percent": 3}),
            "unknown field `percent` in price_below",
        ),
        (
            json!({"type": "drop_percent", "percent": 0, "runs": 366, "rearm_percent": 101}),
            "`runs`: found 366",
        ),
        (
            json!({"type": "parity_gap_percent", "percent": 5}),
            "`baseline` is missing",
        ),
        (
            json!({"type": "verdict", "rearm_percent": 2}),
            "unknown field `rearm_percent` in verdict",
        ),
        (json!("price_below"), "expected an object with a `type`"),
    ] {
        let message = Rule::read(&rule).unwrap_err().to_string();
        assert!(message.contains(expected), "{rule}: {message}");
    }
}

#[test]
fn each_rule_type_has_its_own_schema() {
    let schema = json!(Rule::schema());
    let shapes = schema["oneOf"].as_array().unwrap();
    assert_eq!(shapes.len(), RuleType::ALL.len());
    let mut nested_components = Vec::new();
    Rule::nested_components(&mut nested_components);
    for ((shape, (name, part)), rule_type) in
        shapes.iter().zip(&nested_components).zip(RuleType::ALL)
    {
        assert_eq!(
            shape,
            &json!({"$ref": format!("#/components/schemas/{name}")})
        );
        let shape = json!(part);
        assert_eq!(shape["properties"]["type"]["enum"], json!([rule_type]));
        assert_eq!(
            (&shape["required"][0], &shape["additionalProperties"]),
            (&json!("type"), &json!(false))
        );
        assert!(
            Rule::read(&shape["examples"][0]).is_ok(),
            "{}",
            shape["examples"][0]
        );
    }
}
