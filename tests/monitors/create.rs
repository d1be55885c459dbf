//! `POST /v1/monitors`, and reading the created monitor.

use jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};

use super::{monitor, with};
use crate::support::app::KEY;
use crate::support::{TestService, array};

#[tokio::test]
async fn a_created_monitor_has_a_next_slot_and_a_forecast() {
    let service = TestService::start().await;
    let body = with(&json!({
        "alerts": [{"type": "price_below", "amount": 200, "rearm_percent": 5}, {"type": "new_low", "days": 30}],
        "max_requests_per_month": 50
    }));
    let answer = service
        .ask("POST", "/v1/monitors", Some(&body))
        .await
        .expect(201);
    let made = answer.json();
    let id = made["id"].as_str().unwrap();
    assert_eq!(answer.header("location"), format!("/v1/monitors/{id}"));
    for field in ["name", "schedule", "scan", "alerts"] {
        assert_eq!(made[field], body[field], "{field}, as given");
    }
    assert_eq!(
        (&made["status"], &made["status_reason"], &made["last_slot"]),
        (&json!("active"), &Value::Null, &Value::Null)
    );
    assert_eq!(
        made["requests"],
        json!({"this_month": 0, "max_per_month": 50})
    );
    assert_eq!(made["key_custody"], json!({"until": null}));

    let next: Timestamp = made["next_slot"].as_str().unwrap().parse().unwrap();
    let london = next.in_tz("Europe/London").unwrap();
    assert_eq!((london.hour(), london.minute()), (6, 0));
    let wait = next.duration_since(Timestamp::now()).as_hours();
    assert!((0..=25).contains(&wait), "{next}");

    let forecast = &made["forecast"];
    let days = {
        let now = Timestamp::now().in_tz("Europe/London").unwrap();
        now.duration_until(&now.checked_add(1.month()).unwrap())
            .as_hours()
            / 24
    };
    let slots = forecast["slots"].as_i64().unwrap();
    assert!(
        (days - 1..=days + 1).contains(&slots),
        "{slots} slots in {days} days"
    );
    assert_eq!(forecast["requests_per_run"], json!({"least": 1, "most": 2}));
    assert_eq!(
        forecast["requests_per_month"],
        json!({"least": slots, "most": 50}),
        "never over the monthly limit"
    );
    let fits: Vec<_> = array(&forecast["plans"])
        .iter()
        .map(|plan| (&plan["plan"], &plan["fit"]))
        .collect();
    assert_eq!(fits[0], (&json!("basic"), &json!("not_possible")));
    assert_eq!(fits[1].1, "included");

    assert_eq!(
        &service.monitor(id).await,
        &made,
        "a single read shows the forecast too"
    );
    assert!(
        !service.dump_database().await.contains(KEY),
        "the key is sealed"
    );
    assert_eq!(
        service
            .count("select count(*) from key_grants where purpose = 'monitor' and wiped_at is null")
            .await,
        1
    );
}

async fn faults(service: &TestService, body: &Value) -> String {
    let before = service.row_counts().await;
    let answer = service.ask("POST", "/v1/monitors", Some(body)).await;
    assert_eq!(answer.kind(), "400 invalid_request", "{body}");
    assert_eq!(service.row_counts().await, before, "nothing is stored");
    answer.message()
}

#[tokio::test]
async fn all_errors_of_a_body_are_reported_at_once() {
    let service = TestService::start().await;
    let body = json!({
        "name": "", "schedule": {"cron": "*/5 * * * *", "timezone": "Europe/London"},
        "scan": {
            "endpoint": "flights/oneway", "request": {"from_airport": "TL", "departure_date": "2020-01-01"},
            "sweep": {"to_airport": ["LHR", "LHR"]}
        },
        "alerts": [{"type": "price_under"}, {"type": "price_below"}, {"type": "drop_percent", "percent": 0, "per_cent": 3}],
        "webhook_url": "http://example.com", "max_requests_per_month": 0, "webhook": 1
    });
    let message = faults(&service, &body).await;
    for fault in [
        "`name`: found \"\"",
        "`schedule.cron`: found \"*/5 * * * *\"; expected at least 15 minutes between two slots",
        "are 5 minutes apart",
        "`scan.request.from_airport`: found \"TL\"",
        "`scan.request.departure_date`: found \"2020-01-01\"",
        "`scan.sweep.to_airport[1]`: found \"LHR\"",
        "`alerts[0].type`: found \"price_under\"; expected one of `price_below`, `drop_percent`",
        "`alerts[1].amount` is missing",
        "`alerts[2].percent`: found 0",
        "did you mean `percent`?",
        "`webhook_url`: found a value that is not shown; expected an https URL on port 443",
        "`max_requests_per_month`: found 0",
        "did you mean `webhook_url`?",
    ] {
        assert!(message.contains(fault), "{fault}\n{message}");
    }
    assert!(
        faults(&service, &json!({}))
            .await
            .contains("`schedule` is missing")
    );
    let late = json!({"endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR", "departure_date": "7d"}});
    let message = faults(&service, &with(&json!({"scan": late}))).await;
    assert!(
        message.contains("`scan.request.departure_date`: found \"7d\"; expected a date that exists, as YYYY-MM-DD, or days after"),
        "{message}"
    );
    assert!(
        message.contains("the slot's date, from +0d to +999d"),
        "{message}"
    );
}

#[tokio::test]
async fn an_error_of_a_relative_date_shows_the_written_value() {
    let service = TestService::start().await;
    let scan = |from: &str, to: &str| {
        let request = json!({"from_airport": "TLV", "to_airport": "LHR"});
        json!({"endpoint": "flights/oneway", "request": request, "sweep": {"departure_date": {"from": from, "to": to}}})
    };
    let message = faults(&service, &with(&json!({"scan": scan("+8d", "+7d")}))).await;
    assert!(
        message.starts_with("`scan.sweep.departure_date.to`: found \"+7d\" (20")
            && message.contains(" for the slot of 20"),
        "{message}"
    );
    let message = faults(&service, &with(&json!({"scan": scan("+1000d", "+7d")}))).await;
    assert!(
        message.starts_with(
            "`scan.sweep.departure_date.from`: found \"+1000d\"; expected a date that exists"
        ),
        "{message}"
    );
    let mut lacking = scan("+1d", "+2d");
    lacking.as_object_mut().unwrap().remove("endpoint");
    let message = faults(&service, &with(&json!({"scan": lacking}))).await;
    assert!(
        message.starts_with("`scan.endpoint` is missing") && !message.contains("departure_date`"),
        "{message}"
    );
}

#[tokio::test]
async fn a_monthly_limit_below_one_run_is_refused() {
    let service = TestService::start().await;
    let scan = json!({
        "endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR"},
        "sweep": {"departure_date": {"from": "+7d", "to": "+13d"}}
    });
    let body = |ceiling: u32| with(&json!({"scan": scan, "max_requests_per_month": ceiling}));
    let message = faults(&service, &body(6)).await;
    assert_eq!(
        message,
        "`max_requests_per_month`: found 6; expected at least 7, one request for each search of a run"
    );
    let id = service.create_monitor(&body(7)).await;
    let path = format!("/v1/monitors/{id}");
    for change in [
        json!({"max_requests_per_month": 6}),
        json!({"scan": {"endpoint": "flights/oneway", "request": scan["request"],
        "sweep": {"departure_date": {"from": "+7d", "to": "+14d"}}}}),
    ] {
        let answer = service.ask("PATCH", &path, Some(&change)).await;
        assert_eq!(answer.kind(), "400 invalid_request");
        assert!(
            answer
                .message()
                .starts_with("`max_requests_per_month`: found"),
            "{}",
            answer.message()
        );
    }
    let named = service
        .ask(
            "PATCH",
            &path,
            Some(&json!({"name": "a week", "max_requests_per_month": 10})),
        )
        .await
        .json();
    let forecast = &named["forecast"];
    assert_eq!(
        (
            &forecast["requests_per_run"],
            &forecast["requests_per_month"]
        ),
        (
            &json!({"least": 7, "most": 14}),
            &json!({"least": 7, "most": 10})
        )
    );
}

#[tokio::test]
async fn a_forecast_begins_with_the_next_slot() {
    let service = TestService::start().await;
    let schedule = json!({"cron": "0 6 1-10 3 *", "timezone": "UTC"});
    let made = service
        .ask(
            "POST",
            "/v1/monitors",
            Some(&with(&json!({"schedule": schedule}))),
        )
        .await
        .json();
    let (slots, today) = (
        made["forecast"]["slots"].as_i64().unwrap(),
        Timestamp::now().in_tz("UTC").unwrap().date(),
    );
    let in_season = today.month() == 3 && today.day() < 11;
    assert!(slots == 10 || in_season && slots > 0, "{made}");
}

#[tokio::test]
async fn a_scan_that_is_too_large_is_refused() {
    let service = TestService::start().await;
    let hotels: Vec<_> = (0..3_000)
        .map(|hotel| format!("The Grand Hotel of Number {hotel}"))
        .collect();
    let scan = json!({
        "endpoint": "hotels/by-name", "request": {"checkin_date": "+30d", "checkout_date": "+32d"}, "sweep": {"hotel_name": hotels}
    });
    let message = faults(&service, &with(&json!({"scan": scan}))).await;
    assert!(
        message.starts_with("`scan`: found ") && message.contains("at most 65536 bytes"),
        "{message}"
    );
}

#[tokio::test]
async fn a_rule_that_does_not_fit_its_scan_is_refused() {
    let service = TestService::start().await;
    let stays = |sweep: Value| {
        let request =
            json!({"hotel_name": "Grand Hotel", "checkin_date": "+30d", "checkout_date": "+32d"});
        json!({"endpoint": "hotels/by-name", "request": request, "sweep": sweep})
    };
    let markets = json!({"proxy_country": ["US", "de"], "samples": 2});
    let parity = |baseline: &str| json!([{"type": "parity_gap_percent", "percent": 5, "baseline": baseline}]);
    for (body, says) in [
        (
            json!({"alerts": parity("us")}),
            "`alerts[0].type`: found \"parity_gap_percent\"; expected a scan of hotels/by-name",
        ),
        (
            json!({"scan": stays(json!({})), "alerts": parity("us")}),
            "sweeps `proxy_country` over at least two markets",
        ),
        (
            json!({"scan": stays(markets.clone()), "alerts": parity("jp")}),
            "`alerts[0].baseline`: found \"jp\"; expected one of the swept markets, `US`, `de`",
        ),
        (
            json!({"scan": stays(markets.clone()), "alerts": [{"type": "verdict"}]}),
            "hotels have no verdict",
        ),
        (
            json!({"scan": stays(json!({"currency": ["USD", "EUR"]})), "alerts": [{"type": "price_below", "amount": 9}]}),
            "several currencies",
        ),
    ] {
        let message = faults(&service, &with(&body)).await;
        assert!(message.contains(says), "{message}");
    }
    service
        .create_monitor(&with(
            &json!({"scan": stays(markets), "alerts": parity("us")}),
        ))
        .await;
}

/// Also by a later update.
#[tokio::test]
async fn a_parity_rule_that_could_never_fire_or_rearm_is_refused() {
    let service = TestService::start().await;
    let stays = |samples: Value| {
        let request =
            json!({"hotel_name": "Grand Hotel", "checkin_date": "+30d", "checkout_date": "+32d"});
        let sweep = json!({"proxy_country": ["us", "de"], "samples": samples});
        json!({"endpoint": "hotels/by-name", "request": request, "sweep": sweep})
    };
    let rules = |rearm: Value| json!([{"type": "stale"}, {"type": "parity_gap_percent", "percent": 1.5, "baseline": "us", "rearm_percent": rearm}]);
    let once = "`scan.sweep.samples`: found 1; expected at least 2 with the rule `alerts[1]`";
    let never = "`alerts[1].rearm_percent`: found 1.5; expected less than the rule's `percent`";
    let refused = [
        (stays(json!(1)), rules(json!(1)), vec![once]),
        (stays(Value::Null), rules(Value::Null), vec![once]),
        (stays(json!(2)), rules(json!(1.5)), vec![never]),
        (stays(json!(1)), rules(json!(1.5)), vec![once, never]),
    ];
    for (scan, rules, says) in &refused {
        let message = faults(&service, &with(&json!({"scan": scan, "alerts": rules}))).await;
        for says in says {
            assert!(message.contains(says), "{message}");
        }
        assert_eq!(message.matches("expected").count(), says.len(), "{message}");
    }
    let message = faults(
        &service,
        &with(&json!({"scan": stays(json!("two")), "alerts": rules(json!(1))})),
    )
    .await;
    assert!(
        message.contains("`scan.sweep.samples`: found \"two\"")
            && !message.contains("at least 2 with"),
        "{message}"
    );

    let id = service
        .create_monitor(&with(
            &json!({"scan": stays(json!(2)), "alerts": rules(Value::Null)}),
        ))
        .await;
    let before = service.dump_database().await;
    for (patch, says) in [
        (json!({"scan": stays(json!(1))}), once),
        (json!({"scan": stays(Value::Null)}), once),
        (json!({"alerts": rules(json!(1.5))}), never),
    ] {
        let answer = service
            .ask("PATCH", &format!("/v1/monitors/{id}"), Some(&patch))
            .await;
        assert_eq!(answer.kind(), "400 invalid_request", "{patch}");
        assert!(answer.message().contains(says), "{}", answer.message());
    }
    assert_eq!(service.dump_database().await, before);
}

#[tokio::test]
async fn a_repeated_create_request_makes_one_monitor() {
    let service = TestService::start().await;
    let first = service
        .post_with_key("one", "/v1/monitors", &monitor())
        .await;
    let again = service
        .post_with_key("one", "/v1/monitors", &monitor())
        .await;
    assert_eq!(
        (
            first.status,
            again.status,
            again.header("idempotent-replayed")
        ),
        (201, 201, "true")
    );
    assert_eq!(first.json(), again.json());
    assert_eq!(
        service
            .post_with_key("one", "/v1/monitors", &with(&json!({"name": "b"})))
            .await
            .kind(),
        "422 idempotency_mismatch"
    );
    assert_eq!(service.count("select count(*) from monitors").await, 1);
}

#[tokio::test]
async fn monitors_are_listed_newest_first_page_by_page() {
    let service = TestService::start().await;
    let mut made = Vec::new();
    for name in ["a", "b", "c"] {
        made.push(service.create_monitor(&with(&json!({"name": name}))).await);
    }
    service
        .ask("POST", &format!("/v1/monitors/{}/pause", made[1]), None)
        .await;
    let first = service.app.get("/v1/monitors?limit=2").await;
    let (page, link) = (first.json(), first.header("link").to_owned());
    let names = |page: &Value| {
        array(&page["data"])
            .iter()
            .map(|m| m["name"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&page), ["c", "b"]);
    let next = link
        .strip_prefix('<')
        .and_then(|link| link.strip_suffix(">; rel=\"next\""))
        .unwrap();
    let rest = service.get(next).await;
    assert_eq!(
        (names(&rest), &rest["next_cursor"]),
        (vec![json!("a")], &Value::Null)
    );
    assert_eq!(
        names(&service.get("/v1/monitors?status=paused").await),
        ["b"]
    );
    assert_eq!(
        names(&service.get("/v1/monitors?status=active").await),
        ["c", "a"]
    );
    assert_eq!(
        service.app.get("/v1/monitors?status=gone").await.kind(),
        "400 invalid_request"
    );
    assert_eq!(
        service
            .get_as("nobody-0123456789", "/v1/monitors")
            .await
            .json()["data"],
        json!([])
    );
}

#[tokio::test]
async fn a_tenant_has_at_most_a_thousand_monitors() {
    let service = TestService::start().await;
    service.create_monitor(&monitor()).await;
    execute!(service.pool(), "insert into monitors (tenant_id, monitor_id, name, cron, timezone, scan, api, next_slot, grant_id, created_at, updated_at)
         select tenant_id, gen_random_uuid(), name, cron, timezone, scan, api, next_slot, grant_id, created_at, updated_at
         from monitors, generate_series(1, 999)");
    let answer = service.ask("POST", "/v1/monitors", Some(&monitor())).await;
    assert_eq!(answer.kind(), "409 invalid_state");
    assert!(
        answer.message().contains("may have at most 1000"),
        "{}",
        answer.message()
    );
    assert_eq!(service.count("select count(*) from monitors").await, 1000);
    // Monitors of another tenant do not count.
    assert_eq!(
        service
            .ask_as(
                "another-key-0123456789",
                "POST",
                "/v1/monitors",
                Some(&monitor())
            )
            .await
            .status,
        201
    );
}
