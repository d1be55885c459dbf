//! `GET /v1/usage` compared with the marketplace's ledger.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use crate::support::reply::Reply;
use crate::support::service::with;
use crate::support::upstream::fare;
use crate::support::{SearchOutcome, TestService, array, billed, departing_from, fares, total};

async fn usage(service: &TestService, query: &str) -> Value {
    service.get(&format!("/v1/usage?{query}")).await
}

/// The billed requests of each row.
fn rows(usage: &Value) -> BTreeMap<String, u64> {
    let row = |row: &Value| {
        (
            row["key"].as_str().unwrap_or("none").to_owned(),
            row["billed"].as_u64().unwrap(),
        )
    };
    array(&usage["data"]).iter().map(row).collect()
}

fn stays() -> Value {
    let stay = json!({"hotel_name": "Grand Hotel", "checkout_date": "2030-02-01"});
    json!({"endpoint": "hotels/by-name", "request": stay, "sweep": {"checkin_date": {"from": "2030-01-01", "to": "2030-01-06"}}})
}

/// Every second search is first answered 502, so it is billed twice; of the others one is refused,
/// one does not complete.
fn answer_with_mixed_outcomes(service: &TestService) {
    let mut asked = HashMap::<String, usize>::new();
    service.upstream.answer(move |call| {
        let date = call.body["departure_date"]
            .as_str()
            .or(call.body["checkin_date"].as_str())
            .unwrap();
        let first = asked.insert(format!("{}{date}", call.path), 1).is_none();
        match date {
            "2030-01-03" => Reply::status(422).with_json(json!({"detail": "no such airport"})),
            "2030-01-05" => Reply::search_incomplete("blocked_page"),
            even if first && even.ends_with(['2', '4', '6', '8']) => Reply::status(502),
            _ => match call.body.get("hotel_name") {
                Some(name) => Reply::json(json!({"name": name, "available": true, "price": 420})),
                None => Reply::json(json!([fare(164, &call.body)])),
            },
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_equals_the_marketplaces_ledger_after_deletions() {
    let service = TestService::start().await;
    let worker = service.start_worker(6);
    service.accept_key().await;
    answer_with_mixed_outcomes(&service);
    let ids = [
        service.submit(&fares(9)).await,
        service.submit(&departing_from("ZZZ", fares(4))).await,
        service.submit(&stays()).await,
    ];
    for id in &ids {
        service.wait_until_ended(id).await;
    }
    worker.stop().await;

    let calls = service.upstream.calls();
    let of = |path: &str| calls.iter().filter(|call| call.path.contains(path)).count() as u64;
    let all = usage(&service, "").await;
    assert_eq!(billed(&all), calls.len() as u64);
    let of_api = |api: &str| {
        let total = &all["totals"][api];
        (
            total["billed"].as_u64().unwrap(),
            total["attempts"].clone(),
            total["search_status"].clone(),
        )
    };
    // 422 thrice, blocked twice.
    assert_eq!(
        of_api("flights"),
        (
            of("oneway"),
            json!(1 + 9 + 4),
            json!({"ok": 11, "empty": 0, "partial": 0, "degraded": 1, "none": 2})
        )
    );
    assert_eq!(
        of_api("hotels"),
        (
            of("hotel_by_name"),
            json!(6),
            json!({"ok": 4, "empty": 0, "partial": 0, "degraded": 1, "none": 1})
        )
    );
    let by_api = |api: &str| -> u64 {
        let rows = array(&all["data"]).iter().filter(|row| row["api"] == api);
        rows.map(|row| row["billed"].as_u64().unwrap()).sum()
    };
    assert_eq!(
        [by_api("flights"), by_api("hotels")],
        [of("oneway"), of("hotel_by_name")]
    );
    let by_endpoint = rows(&usage(&service, "group=endpoint").await);
    assert_eq!(
        by_endpoint,
        BTreeMap::from([
            ("flights/oneway".to_owned(), of("oneway")),
            ("hotels/by-name".to_owned(), of("hotel_by_name"))
        ])
    );
    let by_scan = rows(&usage(&service, "group=scan").await);
    let from_airport = |airport: &str| service.call_count(airport) as u64;
    assert_eq!(by_scan.len(), 4, "the first one that warmed the lane too");
    assert_eq!(
        ids.each_ref().map(|id| by_scan[id]),
        [
            from_airport("TLV"),
            from_airport("ZZZ"),
            of("hotel_by_name")
        ],
        "scan by scan"
    );

    let days = all["data"].clone();
    for (deleted, id) in ids[..2].iter().enumerate() {
        assert_eq!(
            service
                .delete(&format!("/v1/scans/{id}?history=true"))
                .await
                .status,
            204
        );
        assert_eq!(
            usage(&service, "").await["totals"],
            all["totals"],
            "{deleted}: what was billed stays billed"
        );
    }
    assert_eq!(usage(&service, "").await["data"], days);
    assert_eq!(rows(&usage(&service, "group=endpoint").await), by_endpoint);
    let left = usage(&service, "group=scan").await;
    assert_eq!(left["totals"], all["totals"]);
    assert_eq!(
        rows(&left)["none"],
        from_airport("TLV") + from_airport("ZZZ"),
        "the deleted ones together"
    );
    assert_eq!(left["data"][0]["key"], json!(null), "and first");
    assert_eq!(rows(&left).len(), 3);
}

#[tokio::test]
async fn usage_has_utc_days_and_pages_of_scans() {
    let service = TestService::start().await;
    let mut ids = Vec::new();
    for time in [
        "2026-10-31T23:59:59.999Z",
        "2026-11-01T00:00:00Z",
        "2026-11-02T23:59:59Z",
        "2026-11-03T00:00:00Z",
    ] {
        let id = service
            .submit_and_complete(&fares(2), |_| SearchOutcome::Ok(9))
            .await;
        let moved = format!(
            "update daily_usage set day = ('{time}'::timestamptz at time zone 'UTC')::date where day > now() - interval '2 days'"
        );
        execute!(service.pool(), AssertSqlSafe(moved));
        ids.push(id);
    }
    let days = service
        .get("/v1/usage?since=2026-11-01&until=2026-11-02")
        .await;
    assert_eq!(
        rows(&days),
        BTreeMap::from([("2026-11-01".into(), 2), ("2026-11-02".into(), 2)])
    );
    assert_eq!(
        (total(&days, "attempts"), &days["next_cursor"]),
        (4, &json!(null))
    );

    let first = service
        .app
        .get("/v1/usage?since=2026-10-01&until=2026-11-30&group=scan&limit=3")
        .await;
    let page = first.json();
    let keys = |page: &Value| {
        array(&page["data"])
            .iter()
            .map(|row| row["key"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        keys(&page),
        [json!(ids[3]), json!(ids[2]), json!(ids[1])],
        "newest first"
    );
    assert_eq!(billed(&page), 8, "of the whole range");
    let next = first
        .header("link")
        .split(['<', '>'])
        .nth(1)
        .unwrap()
        .to_owned();
    let rest = service.get(&next).await;
    assert_eq!(
        (keys(&rest), &rest["next_cursor"], &rest["totals"]),
        (vec![json!(ids[0])], &json!(null), &page["totals"])
    );
}

#[tokio::test]
async fn invalid_usage_queries_are_refused() {
    let service = TestService::start().await;
    service
        .submit_and_complete(&fares(1), |_| SearchOutcome::Ok(9))
        .await;
    for (query, says) in [
        (
            "since=2026-11-02&until=2026-11-01",
            "`until`: found \"2026-11-01\"; expected a date on or after `since`",
        ),
        (
            "since=2999-01-01",
            "`since`: found \"2999-01-01\"; expected a date up to ",
        ),
        (
            "since=2025-01-01&until=2026-11-01",
            "`until`: found \"2026-11-01\"; expected a date up to 2026-02-04: a range has at most 400 days",
        ),
        (
            "since=2020-01-01",
            "`until` is missing; expected a date up to 2021-02-03",
        ),
        (
            "group=week",
            "`group`: found \"week\"; expected one of `day`, `endpoint`, `scan`",
        ),
        (
            "limit=5",
            "`limit`: found 5; expected no value unless `group` is `scan` or `monitor`",
        ),
        ("group=scan&cursor=6974", "`cursor`: found"),
        ("scince=2020-01-01", "did you mean `since`?"),
    ] {
        let answer = service.app.get(&format!("/v1/usage?{query}")).await;
        assert_eq!(answer.kind(), "400 invalid_request", "{query}");
        assert!(
            answer.message().contains(says),
            "{query}: {}",
            answer.message()
        );
    }
    let stranger = service
        .get_as(
            "another-key-0123456789",
            "/v1/usage?since=2026-11-01&until=2026-11-30",
        )
        .await
        .json();
    let nothing = json!({
        "asked": 0, "billed": 0, "reused": 0, "not_needed": 0, "attempts": 0,
        "search_status": {"ok": 0, "empty": 0, "partial": 0, "degraded": 0, "none": 0}, "money": null
    });
    assert_eq!(
        stranger,
        json!({
            "since": "2026-11-01", "until": "2026-11-30", "group": "day", "data": [], "next_cursor": null,
            "totals": {"flights": nothing, "hotels": nothing}, "forecast": {"flights": null, "hotels": null}
        })
    );
}

/// Of a year of two callers with many scans a month of one caller is read by the index.
#[tokio::test]
async fn a_month_of_a_large_bill_is_read_by_its_index() {
    let service = TestService::start().await;
    service
        .submit_and_complete(&fares(1), |_| SearchOutcome::Ok(9))
        .await;
    let other = "other-key-0123456789";
    service.submit_as(other, &fares(1)).await;
    let mut conn = service.pool().acquire().await.unwrap();
    for sql in [
        // The service's limit is for its own statements.
        "set statement_timeout = 0",
        "delete from daily_usage",
        "insert into daily_usage (tenant_id, day, endpoint, single, scan_id, attempts, billed, ok)
         select t.tenant_id, date '2026-01-01' + n % 365, 'flights/oneway', false, gen_random_uuid(), 1, 1, 1
         from tenants t, generate_series(1, 40000) n",
        "analyze daily_usage",
    ] {
        execute!(&mut *conn, sql);
    }
    let tenant: String = value!(&mut *conn, "select tenant_id::text from tenants limit 1");
    let plan: Vec<String> = values!(
        &mut *conn,
        AssertSqlSafe(format!(
            "explain select day, sum(billed) from daily_usage
             where tenant_id = '{tenant}' and day between '2026-03-01' and '2026-03-31' group by 1"
        ))
    );
    let plan = plan.join("\n");
    assert!(!plan.contains("Seq Scan"), "{plan}");
    let answered = service
        .get("/v1/usage?since=2026-03-01&until=2026-03-31")
        .await;
    assert_eq!(array(&answered["data"]).len(), 31);
    let counted = (1..=40_000)
        .filter(|n| (59..90).contains(&(n % 365)))
        .count();
    assert_eq!(billed(&answered), counted as u64);
}

/// `reused` of each row.
fn reused(usage: &Value) -> BTreeMap<String, Value> {
    let row = |row: &Value| {
        let key = row["key"].as_str().unwrap_or("none").to_owned();
        (key, row["reused"].clone())
    };
    array(&usage["data"]).iter().map(row).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_that_took_an_answer_are_counted_beside_those_that_cost() {
    let service = TestService::start().await;
    let worker = service.start_worker(4);
    let first = service.submit(&fares(3)).await;
    service.wait_until_ended(&first).await;
    let reusing = |dates| with(fares(dates), &json!({"max_age_seconds": 3600}));
    let longer = service.submit(&reusing(5)).await;
    service.wait_until_ended(&longer).await;
    let same = service.submit(&reusing(5)).await;
    service.wait_until_ended(&same).await;
    worker.stop().await;

    let by_scan = usage(&service, "group=scan").await;
    assert_eq!(billed(&by_scan), service.upstream.count() as u64);
    assert_eq!(total(&by_scan, "reused"), 8);
    assert_eq!(
        reused(&by_scan),
        BTreeMap::from([
            (first, json!(0)),
            (longer.clone(), json!(3)),
            (same.clone(), json!(5))
        ])
    );
    assert_eq!(rows(&by_scan)[&same], 0, "it has cost nothing");

    // Deleted scans count on.
    for id in [&longer, &same] {
        service
            .app
            .delete(&format!("/v1/scans/{id}"))
            .await
            .expect(204);
    }
    for group in ["day", "endpoint", "scan", "monitor"] {
        let usage = usage(&service, &format!("group={group}")).await;
        assert_eq!(usage["totals"], by_scan["totals"], "by {group}");
        let sum: u64 = array(&usage["data"])
            .iter()
            .filter_map(|row| row["reused"].as_u64())
            .sum();
        assert_eq!(sum, 8, "by {group}: {usage:#}");
    }
}
