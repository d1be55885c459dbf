//! Previews of monitors, and what a read monitor shows.

use serde_json::{Value, json};

use super::{monitor, with};
use crate::support::{SearchOutcome, TestService, array, text};

const UNKNOWN: &str = "mon_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b";

#[tokio::test]
async fn a_preview_shows_slots_and_costs_and_stores_nothing() {
    let service = TestService::start().await;
    let preview = async |body: &Value| {
        service
            .ask("POST", "/v1/monitors/preview", Some(body))
            .await
    };
    let seen = preview(&monitor()).await.expect(200);
    let seen = seen.json();
    assert_eq!(
        (array(&seen["next_slots"]).len(), &seen["schedule_warnings"]),
        (5, &json!([]))
    );
    assert_eq!(
        seen["forecast"]["requests_per_run"],
        json!({"least": 1, "most": 2})
    );
    assert!(
        seen["forecast"]["slots"].as_u64().unwrap() >= 28
            && !array(&seen["forecast"]["plans"]).is_empty()
    );
    let bad = with(
        &json!({"schedule": {"cron": "99 6 * * *", "timezone": "Europe/London"}, "alerts": [{"type": "new_high"}]}),
    );
    let (previewed, made) = (
        preview(&bad).await,
        service.ask("POST", "/v1/monitors", Some(&bad)).await,
    );
    assert_eq!(
        (previewed.kind().as_str(), previewed.message()),
        ("400 invalid_request", made.message())
    );
    for table in [
        "select count(*) from monitors",
        "select count(*) from tenants",
        "select count(*) from key_grants",
    ] {
        assert_eq!(service.count(table).await, 0, "{table}");
    }
    // The created monitor matches the preview.
    service.accept_key_by_steps().await;
    let made = service
        .ask("POST", "/v1/monitors", Some(&monitor()))
        .await
        .json();
    assert_eq!(
        (&made["forecast"], &made["next_slot"]),
        (
            &preview(&monitor()).await.json()["forecast"],
            &seen["next_slots"][0]
        )
    );
}

#[tokio::test]
async fn a_misleading_cron_expression_gets_a_warning() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    for (cron, word) in [
        ("*/90 * * * *", "matches only minute 0"),
        ("0 */5 * * *", "restarts with each day"),
        ("0 6 13 * fri", "match either of them"),
    ] {
        let body = with(&json!({"schedule": {"cron": cron, "timezone": "UTC"}}));
        let preview = service
            .ask("POST", "/v1/monitors/preview", Some(&body))
            .await
            .json();
        let id = service.create_monitor(&body).await;
        let read = service.monitor(&id).await;
        for warnings in [&preview["schedule_warnings"], &read["schedule_warnings"]] {
            assert_eq!(array(warnings).len(), 1, "{cron}: {warnings}");
            assert!(
                warnings[0].as_str().unwrap().contains(word),
                "{cron}: {warnings}"
            );
        }
    }
}

#[tokio::test]
async fn a_read_monitor_shows_the_standing_of_its_rules() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let rules = json!([
        {"type": "price_below", "amount": 310}, {"type": "new_low", "days": 30}, {"type": "drop_percent", "percent": 10, "scope": "cell"}
    ]);
    let body = with(&json!({"alerts": rules}));
    let made = service
        .ask("POST", "/v1/monitors", Some(&body))
        .await
        .json();
    let id = text(&made["id"]);
    let read = service.monitor(&id).await;
    assert_eq!(read["forecast"], made["forecast"]);
    assert!(read["forecast"]["slots"].is_u64(), "{read}");
    let standing = |read: &Value, field: &str| -> Vec<Value> {
        array(&read["rule_standings"])
            .iter()
            .map(|rule| rule[field].clone())
            .collect()
    };
    assert_eq!(
        standing(&read, "type"),
        [
            json!("price_below"),
            json!("new_low"),
            json!("drop_percent")
        ]
    );
    assert_eq!(
        standing(&read, "armed"),
        [Value::Null, Value::Null, Value::Null],
        "no run yet"
    );

    let slot = service.next_slot(&id).await;
    service.tick(slot).await;
    service.complete_all(|_| SearchOutcome::Ok(300)).await;
    service
        .tick(slot + jiff::SignedDuration::from_mins(1))
        .await;
    let read = service.monitor(&id).await;
    assert_eq!(
        standing(&read, "armed"),
        [json!(false), json!(true), json!(true)]
    );
    assert_eq!(
        standing(&read, "currency"),
        [json!("USD"), json!("USD"), json!("USD")]
    );
    let prices = |field| {
        standing(&read, field)
            .iter()
            .map(|mark| mark["price"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(prices("lowest"), [Value::Null, Value::Null, json!(300)]);
    assert_eq!(prices("last_fired"), [json!(300), Value::Null, Value::Null]);
    assert_eq!(
        standing(&read, "cells"),
        [Value::Null, Value::Null, json!(1)]
    );
    let listed = service.get("/v1/monitors").await["data"][0].clone();
    assert_eq!(
        (&listed["rule_standings"], &listed["forecast"]),
        (&Value::Null, &Value::Null)
    );
}

#[tokio::test]
async fn alerts_of_an_unknown_monitor_are_404() {
    let service = TestService::start().await;
    let paths = [
        format!("/v1/alerts?monitor_id={UNKNOWN}"),
        format!("/v1/deliveries?monitor_id={UNKNOWN}"),
    ];
    for path in &paths {
        assert_eq!(
            service.ask("GET", path, None).await.kind(),
            "404 not_found",
            "{path}: a caller that nobody knows"
        );
    }
    service.accept_key_by_steps().await;
    let id = service.create_monitor(&monitor()).await;
    for path in &paths {
        assert_eq!(
            service.ask("GET", path, None).await.kind(),
            "404 not_found",
            "{path}"
        );
        assert_eq!(
            service
                .ask("GET", &path.replace(UNKNOWN, &id), None)
                .await
                .json()["data"],
            json!([])
        );
    }
}

#[tokio::test]
async fn a_manual_run_is_recorded_at_a_whole_second() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let id = service.create_monitor(&monitor()).await;
    for _ in 0..3 {
        assert_eq!(
            service
                .ask("POST", &format!("/v1/monitors/{id}/run"), None)
                .await
                .status,
            202
        );
        service.complete_all(|_| SearchOutcome::Ok(300)).await;
    }
    let slots = service.slots(&id).await;
    assert_eq!(slots.len(), 3, "three runs in one second: {slots:#?}");
    for slot in &slots {
        let time = slot["slot"].as_str().unwrap();
        assert_eq!(
            (time.len(), slot["kind"].as_str()),
            ("2030-01-01T00:00:00Z".len(), Some("manual")),
            "{time}"
        );
    }
}

/// It spends requests on each run and reports nothing, or not all.
#[tokio::test]
async fn a_watch_below_without_a_rule_of_its_amount_has_a_warning() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let mut body = with(&json!({"alerts": []}));
    body["scan"] = json!({
        "endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR"},
        "sweep": {"departure_date": {"from": "+30d", "to": "+49d"}},
        "strategy": {"watch": "below", "below": 150}, "max_requests": 5
    });
    for (rules, expected) in [
        (json!([]), 1),
        (
            json!([{"type": "price_below", "amount": 120}, {"type": "new_low", "days": 30}]),
            1,
        ),
        (json!([{"type": "price_below", "amount": 150}]), 0),
        (json!([{"type": "price_below", "amount": 150.5}]), 0),
    ] {
        body["alerts"] = rules;
        let ask = |path| service.ask("POST", path, Some(&body));
        let preview = ask("/v1/monitors/preview").await.expect(200).json();
        let created = ask("/v1/monitors").await.expect(201).json();
        for shown in [preview, created] {
            let warnings = array(&shown["schedule_warnings"]);
            assert_eq!(warnings.len(), expected, "{warnings:?}");
            let says = |warning: &Value| warning.as_str().unwrap().contains("below 150");
            assert!(warnings.iter().all(says), "{warnings:?}");
        }
    }
}
