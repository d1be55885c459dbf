//! `POST /v1/monitors`, and reading what was made.

use jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};

use super::{monitor, with};
use crate::scans::office::Office;
use crate::support::app::KEY;

#[tokio::test]
async fn a_monitor_is_made_with_its_next_slot_and_a_forecast() {
    let office = Office::open().await;
    let body = with(&json!({
        "alerts": [{"type": "price_below", "amount": 200, "rearm_percent": 5}, {"type": "new_low"}],
        "max_requests_per_month": 50
    }));
    let answer = office.ask("POST", "/v1/monitors", Some(&body)).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
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
        "never over the ceiling"
    );
    let fits: Vec<_> = forecast["plans"]
        .as_array()
        .unwrap()
        .iter()
        .map(|plan| (&plan["plan"], &plan["fit"]))
        .collect();
    assert_eq!(fits[0], (&json!("basic"), &json!("not_possible")));
    assert_eq!(fits[1].1, "included");

    assert_eq!(
        &office.monitor(id).await,
        &made,
        "read alone, it has its forecast too"
    );
    assert!(!office.dump().await.contains(KEY), "the key is sealed");
    assert_eq!(
        office
            .count("select count(*) from key_grants where purpose = 'monitor' and wiped_at is null")
            .await,
        1
    );
}

async fn faults(office: &Office, body: &Value) -> String {
    let before = office.rows().await;
    let answer = office.ask("POST", "/v1/monitors", Some(body)).await;
    assert_eq!(answer.kind(), "400 invalid_request", "{body}");
    assert_eq!(office.rows().await, before, "nothing is stored");
    answer.message()
}

#[tokio::test]
async fn what_cannot_be_is_told_all_at_once() {
    let office = Office::open().await;
    let body = json!({
        "name": "", "schedule": {"cron": "*/5 * * * *", "timezone": "Europe/London"},
        "scan": {
            "endpoint": "flights/oneway", "request": {"from_airport": "TL", "departure_date": "2020-01-01"},
            "sweep": {"to_airport": ["LHR", "LHR"]}
        },
        "alerts": [{"type": "price_under"}, {"type": "price_below"}, {"type": "drop_percent", "percent": 0, "per_cent": 3}],
        "webhook_url": "http://example.com", "max_requests_per_month": 0, "webhook": 1
    });
    let told = faults(&office, &body).await;
    for fault in [
        "`name` holds \"\"",
        "`schedule.cron` holds \"*/5 * * * *\"; allowed: at least 15 minutes between two slots",
        "are 5 minutes apart",
        "`scan.request.from_airport` holds \"TL\"",
        "`scan.request.departure_date` holds \"2020-01-01\"",
        "`scan.sweep.to_airport[1]` holds \"LHR\"",
        "`alerts[0].type` holds \"price_under\"; allowed: one of `price_below`, `drop_percent`",
        "`alerts[1].amount` is missing",
        "`alerts[2].percent` holds 0",
        "did you mean `percent`?",
        "`webhook_url` holds a value that is not shown; allowed: an https URL on port 443",
        "`max_requests_per_month` holds 0",
        "did you mean `webhook_url`?",
    ] {
        assert!(told.contains(fault), "{fault}\n{told}");
    }
    assert!(
        faults(&office, &json!({}))
            .await
            .contains("`schedule` is missing")
    );
    let late = json!({"endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR", "departure_date": "7d"}});
    let told = faults(&office, &with(&json!({"scan": late}))).await;
    assert!(
        told.contains("`scan.request.departure_date` holds \"7d\"; allowed: a date that exists, as YYYY-MM-DD, or days after"),
        "{told}"
    );
    assert!(
        told.contains("the slot's own date, from +0d to +999d"),
        "{told}"
    );
}

#[tokio::test]
async fn a_fault_of_a_relative_date_tells_what_was_written() {
    let office = Office::open().await;
    let scan = |from: &str, to: &str| {
        let request = json!({"from_airport": "TLV", "to_airport": "LHR"});
        json!({"endpoint": "flights/oneway", "request": request, "sweep": {"departure_date": {"from": from, "to": to}}})
    };
    let told = faults(&office, &with(&json!({"scan": scan("+8d", "+7d")}))).await;
    assert!(
        told.starts_with("`scan.sweep.departure_date.to` holds \"+7d\" (20")
            && told.contains(" for the slot of 20"),
        "{told}"
    );
    let told = faults(&office, &with(&json!({"scan": scan("+1000d", "+7d")}))).await;
    assert!(
        told.starts_with(
            "`scan.sweep.departure_date.from` holds \"+1000d\"; allowed: a date that exists"
        ),
        "{told}"
    );
    let mut lacking = scan("+1d", "+2d");
    lacking.as_object_mut().unwrap().remove("endpoint");
    let told = faults(&office, &with(&json!({"scan": lacking}))).await;
    assert!(
        told.starts_with("`scan.endpoint` is missing") && !told.contains("departure_date`"),
        "{told}"
    );
}

#[tokio::test]
async fn a_ceiling_that_no_run_fits_under_is_refused() {
    let office = Office::open().await;
    let scan = json!({
        "endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR"},
        "sweep": {"departure_date": {"from": "+7d", "to": "+13d"}}
    });
    let body = |ceiling: u32| with(&json!({"scan": scan, "max_requests_per_month": ceiling}));
    let told = faults(&office, &body(6)).await;
    assert_eq!(
        told,
        "`max_requests_per_month` holds 6; allowed: at least 7: one request for each search of a run"
    );
    let id = office.watch(&body(7)).await;
    let path = format!("/v1/monitors/{id}");
    for change in [
        json!({"max_requests_per_month": 6}),
        json!({"scan": {"endpoint": "flights/oneway", "request": scan["request"],
        "sweep": {"departure_date": {"from": "+7d", "to": "+14d"}}}}),
    ] {
        let answer = office.ask("PATCH", &path, Some(&change)).await;
        assert_eq!(answer.kind(), "400 invalid_request");
        assert!(
            answer
                .message()
                .starts_with("`max_requests_per_month` holds"),
            "{}",
            answer.message()
        );
    }
    let named = office
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

/// A month in season, whenever it is asked.
#[tokio::test]
async fn a_forecast_begins_with_the_next_slot() {
    let office = Office::open().await;
    let schedule = json!({"cron": "0 6 1-10 3 *", "timezone": "UTC"});
    let made = office
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
async fn a_scan_that_is_too_long_to_keep_is_refused() {
    let office = Office::open().await;
    let hotels: Vec<_> = (0..3_000)
        .map(|hotel| format!("The Grand Hotel of Number {hotel}"))
        .collect();
    let scan = json!({
        "endpoint": "hotels/by-name", "request": {"checkin_date": "+30d", "checkout_date": "+32d"}, "sweep": {"hotel_name": hotels}
    });
    let told = faults(&office, &with(&json!({"scan": scan}))).await;
    assert!(
        told.starts_with("`scan` holds ") && told.contains("at most 65536 bytes"),
        "{told}"
    );
}

#[tokio::test]
async fn a_rule_fits_its_scan() {
    let office = Office::open().await;
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
            "`alerts[0].type` holds \"parity_gap_percent\"; allowed: a scan of hotels/by-name",
        ),
        (
            json!({"scan": stays(json!({})), "alerts": parity("us")}),
            "sweeps `proxy_country` over two markets",
        ),
        (
            json!({"scan": stays(markets.clone()), "alerts": parity("jp")}),
            "`alerts[0].baseline` holds \"jp\"; allowed: one of the swept markets, `US`, `de`",
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
        let told = faults(&office, &with(&body)).await;
        assert!(told.contains(says), "{told}");
    }
    office
        .watch(&with(
            &json!({"scan": stays(markets), "alerts": parity("us")}),
        ))
        .await;
}

/// A rule that could never fire, or never again, is a mistake that is told; a later change cannot bring it about either.
#[tokio::test]
async fn a_parity_rule_can_fire_and_be_armed_again() {
    let office = Office::open().await;
    let stays = |samples: Value| {
        let request =
            json!({"hotel_name": "Grand Hotel", "checkin_date": "+30d", "checkout_date": "+32d"});
        let sweep = json!({"proxy_country": ["us", "de"], "samples": samples});
        json!({"endpoint": "hotels/by-name", "request": request, "sweep": sweep})
    };
    let rules = |rearm: Value| json!([{"type": "stale"}, {"type": "parity_gap_percent", "percent": 1.5, "baseline": "us", "rearm_percent": rearm}]);
    let once = "`scan.sweep.samples` holds 1; allowed: at least 2 with the rule `alerts[1]`";
    let never = "`alerts[1].rearm_percent` holds 1.5; allowed: less than its `percent`";
    let refused = [
        (stays(json!(1)), rules(json!(1)), vec![once]),
        (stays(Value::Null), rules(Value::Null), vec![once]),
        (stays(json!(2)), rules(json!(1.5)), vec![never]),
        (stays(json!(1)), rules(json!(1.5)), vec![once, never]),
    ];
    for (scan, rules, says) in &refused {
        let told = faults(&office, &with(&json!({"scan": scan, "alerts": rules}))).await;
        for says in says {
            assert!(told.contains(says), "{told}");
        }
        assert_eq!(told.matches("allowed").count(), says.len(), "{told}");
    }
    let told = faults(
        &office,
        &with(&json!({"scan": stays(json!("two")), "alerts": rules(json!(1))})),
    )
    .await;
    assert!(
        told.contains("`scan.sweep.samples` holds \"two\"") && !told.contains("at least 2 with"),
        "{told}"
    );

    let id = office
        .watch(&with(
            &json!({"scan": stays(json!(2)), "alerts": rules(Value::Null)}),
        ))
        .await;
    let before = office.dump().await;
    for (patch, says) in [
        (json!({"scan": stays(json!(1))}), once),
        (json!({"scan": stays(Value::Null)}), once),
        (json!({"alerts": rules(json!(1.5))}), never),
    ] {
        let answer = office
            .ask("PATCH", &format!("/v1/monitors/{id}"), Some(&patch))
            .await;
        assert_eq!(answer.kind(), "400 invalid_request", "{patch}");
        assert!(answer.message().contains(says), "{}", answer.message());
    }
    assert_eq!(office.dump().await, before);
}

#[tokio::test]
async fn the_same_order_twice_is_one_monitor() {
    let office = Office::open().await;
    let first = office.post_once("one", "/v1/monitors", &monitor()).await;
    let again = office.post_once("one", "/v1/monitors", &monitor()).await;
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
        office
            .post_once("one", "/v1/monitors", &with(&json!({"name": "b"})))
            .await
            .kind(),
        "422 idempotency_mismatch"
    );
    assert_eq!(office.count("select count(*) from monitors").await, 1);
}

#[tokio::test]
async fn monitors_are_listed_newest_first_page_by_page() {
    let office = Office::open().await;
    let mut made = Vec::new();
    for name in ["a", "b", "c"] {
        made.push(office.watch(&with(&json!({"name": name}))).await);
    }
    office
        .ask("POST", &format!("/v1/monitors/{}/pause", made[1]), None)
        .await;
    let first = office.app.get("/v1/monitors?limit=2").await;
    let (page, link) = (first.json(), first.header("link").to_owned());
    let names = |page: &Value| {
        page["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|m| m["name"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&page), ["c", "b"]);
    let next = link
        .strip_prefix('<')
        .and_then(|link| link.strip_suffix(">; rel=\"next\""))
        .unwrap();
    let rest = office.get(next).await;
    assert_eq!(
        (names(&rest), &rest["next_cursor"]),
        (vec![json!("a")], &Value::Null)
    );
    assert_eq!(
        names(&office.get("/v1/monitors?status=paused").await),
        ["b"]
    );
    assert_eq!(
        names(&office.get("/v1/monitors?status=active").await),
        ["c", "a"]
    );
    assert_eq!(
        office.app.get("/v1/monitors?status=gone").await.kind(),
        "400 invalid_request"
    );
    assert_eq!(
        office
            .get_as("nobody-0123456789", "/v1/monitors")
            .await
            .json()["data"],
        json!([])
    );
}

#[tokio::test]
async fn a_caller_has_a_thousand_monitors_at_most() {
    let office = Office::open().await;
    office.watch(&monitor()).await;
    sqlx::raw_sql(
        "insert into monitors (tenant_id, monitor_id, name, cron, timezone, scan, api, next_slot, grant_id, created_at, updated_at)
         select tenant_id, gen_random_uuid(), name, cron, timezone, scan, api, next_slot, grant_id, created_at, updated_at
         from monitors, generate_series(1, 999)",
    )
    .execute(office.db.pool())
    .await
    .unwrap();
    let answer = office.ask("POST", "/v1/monitors", Some(&monitor())).await;
    assert_eq!(answer.kind(), "409 invalid_state");
    assert!(
        answer.message().contains("a caller may have 1000"),
        "{}",
        answer.message()
    );
    assert_eq!(office.count("select count(*) from monitors").await, 1000);
    // Another caller's do not count.
    assert_eq!(
        office
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
