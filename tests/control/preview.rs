//! `POST /v1/scans/preview`: the items and cost of a scan, without submitting it.

use farescan::ids::ScanId;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::{Rng, SearchOutcome, TestService, array, day, fares, fares_with};

async fn preview(service: &TestService, body: &Value) -> Value {
    let answer = service.post("/v1/scans/preview", body).await.expect(200);
    answer.json()
}

/// The kinds of a preview's warnings.
fn warning_kinds(preview: &Value) -> Vec<&str> {
    array(&preview["warnings"])
        .iter()
        .map(|warning| warning["kind"].as_str().unwrap())
        .collect()
}

fn days_from_today(days: i64) -> String {
    let today = Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    today
        .saturating_add(jiff::Span::new().days(days))
        .to_string()
}

/// Dates of the next weeks, which are always on sale.
fn next_days(count: i64) -> Value {
    json!({
        "endpoint": "flights/oneway",
        "request": {"from_airport": "TLV", "to_airport": "LHR"},
        "sweep": {"departure_date": {"from": days_from_today(10), "to": days_from_today(9 + count)}}
    })
}

#[tokio::test]
async fn a_preview_describes_a_scan_without_storing_it() {
    let service = TestService::start().await;
    let before = service.row_counts().await;
    let mut body = next_days(31);
    body["retry"] = json!({"max_attempts": 2});
    let seen = preview(&service, &body).await;
    assert_eq!(
        (service.row_counts().await, service.upstream.count()),
        (before, 0),
        "nothing is stored and no call is made"
    );
    for (field, value) in [
        ("endpoint", json!("flights/oneway")),
        ("items", json!(31)),
        ("requests", json!({"least": 31, "most": 124})),
        (
            "first",
            json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": days_from_today(10)}),
        ),
        (
            "last",
            json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": days_from_today(40)}),
        ),
        ("searches_per_minute", json!(60_000.0)),
        ("seconds", json!(1)),
        ("plan_requests_remaining", json!(null)),
        ("warnings", json!([])),
    ] {
        assert_eq!(seen[field], value, "{field}");
    }
    body["max_requests"] = json!(40);
    let capped = preview(&service, &body).await;
    assert_eq!(
        (&capped["requests"], warning_kinds(&capped)),
        (
            &json!({"least": 31, "most": 40}),
            vec!["budget_may_be_spent"]
        )
    );
    assert!(
        capped["warnings"][0]["message"]
            .as_str()
            .unwrap()
            .contains("124")
    );
}

/// gateway.md, rule 42, for 2,600 searches of one or two requests.
#[tokio::test]
async fn a_preview_shows_the_cost_on_each_plan() {
    let service = TestService::start().await;
    let sweep = |field: &str| json!({field: {"from": day(1), "to": day(260)}, "samples": 10});
    let flights = json!({"endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR"}, "sweep": sweep("departure_date")});
    let mut stays = sweep("checkin_date");
    stays["nights"] = json!([1]);
    let hotels =
        json!({"endpoint": "hotels/by-name", "request": {"hotel_name": "Grand"}, "sweep": stays});
    let rows = async |body: &Value| {
        let plans = array(&preview(&service, body).await["plans"]).clone();
        plans
            .iter()
            .map(|plan| {
                json!([
                    plan["plan"],
                    plan["fit"],
                    plan["requests_left"],
                    plan["overage_requests"]["most"],
                    plan["overage_usd"]
                ])
            })
            .collect::<Vec<_>>()
    };
    let usd = |least: f64, most: f64| json!({"least": least, "most": most});
    let cents = |value: Vec<Value>| {
        value
            .into_iter()
            .map(|row| row.to_string())
            .collect::<Vec<_>>()
    };
    let expected = [
        json!(["basic", "not_possible", 10, 5190, null]),
        json!(["pro", "overage", 2500, 2700, usd(0.3, 8.1)]),
        json!(["ultra", "included", 10_000, 0, {"least": 0, "most": 0}]),
        json!(["mega", "included", 50_000, 0, {"least": 0, "most": 0}]),
    ];
    assert_eq!(cents(rows(&flights).await), cents(expected.to_vec()));
    let expected = [
        json!(["basic", "not_possible", 10, 5190, null]),
        json!(["pro", "overage", 2000, 3200, usd(3.6, 19.2)]),
        json!(["ultra", "included", 6500, 0, {"least": 0, "most": 0}]),
        json!(["mega", "included", 25_000, 0, {"least": 0, "most": 0}]),
    ];
    assert_eq!(cents(rows(&hotels).await), cents(expected.to_vec()));
    assert_eq!(
        rows(&fares(6)).await[0],
        json!(["basic", "may_stop", 10, 2, null]),
        "6 searches fit, 12 requests do not"
    );
    assert_eq!(rows(&fares(5)).await[0][1], json!("included"));
}

#[tokio::test]
async fn a_preview_uses_the_callers_pace_quota_and_pauses() {
    let service = TestService::start().await;
    service
        .submit_and_complete(&fares(1), |_| SearchOutcome::Ok(1))
        .await;
    let set = "update lanes set emission = interval '400 ms', plan_limit = 2500, plan_remaining = 20,
                                plan_reset_at = now() + interval '10 days', paused_until = 'infinity', pause_reason = 'key_rejected'";
    execute!(service.pool(), set);
    let before = service.dump_database().await;
    let seen = preview(&service, &next_days(31)).await;
    assert_eq!(
        service.dump_database().await,
        before,
        "nothing is stored of a caller who is known either"
    );
    assert_eq!(
        (
            &seen["searches_per_minute"],
            &seen["seconds"],
            &seen["plan_requests_remaining"]
        ),
        (&json!(150.0), &json!(13), &json!(20))
    );
    let current: Vec<_> = array(&seen["plans"])
        .iter()
        .filter(|plan| plan["current"] == true)
        .collect();
    assert_eq!(current.len(), 1);
    assert_eq!(
        (&current[0]["plan"], &current[0]["requests_left"]),
        (&json!("pro"), &json!(20))
    );
    assert_eq!(
        current[0]["overage_requests"],
        json!({"least": 11, "most": 42})
    );
    assert_eq!(
        current[0]["overage_usd"],
        json!({"least": 0.033, "most": 0.126})
    );
    assert_eq!(warning_kinds(&seen), ["over_quota", "lane_paused"]);
    assert!(
        seen["warnings"][1]["message"]
            .as_str()
            .unwrap()
            .contains("key_rejected")
    );
    let theirs = service
        .post_as(
            "another-key-0123456789",
            "/v1/scans/preview",
            &next_days(31),
        )
        .await
        .json();
    assert_eq!(
        (&theirs["plan_requests_remaining"], &theirs["warnings"]),
        (&json!(null), &json!([])),
        "another caller's lane is his"
    );

    // The remaining requests of a past month say nothing about the next one.
    execute!(
        service.pool(),
        "update lanes set plan_reset_at = now() - interval '1 s'"
    );
    assert_eq!(
        preview(&service, &next_days(31)).await["plan_requests_remaining"],
        json!(null)
    );
}

#[tokio::test]
async fn each_warning_appears_only_when_it_applies() {
    let service = TestService::start().await;
    let stay = |more: Value| {
        let mut stay =
            json!({"checkin_date": days_from_today(10), "checkout_date": days_from_today(11)});
        stay.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        stay
    };
    let flight = |more: Value| {
        let mut body = next_days(2);
        body["request"]
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        body
    };
    let with = |mut body: Value, name: &str, value: Value| {
        body[name] = value;
        body
    };
    let markets = json!({"proxy_country": ["us", "de"]});
    for (body, expected) in [
        (next_days(2), vec![]),
        (
            flight(json!({"max_price": 200, "sort_type": "Price"})),
            vec![],
        ),
        (
            with(
                flight(json!({"max_price": 200})),
                "upstream_filters",
                json!(true),
            ),
            vec!["band_lost"],
        ),
        (
            with(
                flight(json!({"sort_type": "Price"})),
                "upstream_filters",
                json!(true),
            ),
            vec!["band_lost"],
        ),
        (
            with(
                flight(json!({"sort_type": "Duration"})),
                "upstream_filters",
                json!(true),
            ),
            vec![],
        ),
        (next_days(320), vec![]),
        (next_days(340), vec!["dates_not_on_sale"]),
        (
            json!({"endpoint": "hotels/search", "request": stay(json!({"destination": "Lisbon"})), "sweep": markets}),
            vec!["markets_not_comparable"],
        ),
        (
            json!({"endpoint": "hotels/search", "request": stay(json!({"destination": "Lisbon", "proxy_country": "de"}))}),
            vec![],
        ),
        (
            json!({"endpoint": "hotels/by-name", "request": stay(json!({"hotel_name": "Grand"})), "sweep": markets}),
            vec![],
        ),
        (
            json!({
                "endpoint": "hotels/by-name",
                "request": {"hotel_name": "Grand", "checkin_date": days_from_today(499), "checkout_date": days_from_today(510), "currency": "EUR"},
            }),
            vec!["dates_not_on_sale"],
        ),
        (
            json!({"endpoint": "hotels/by-name", "request": stay(json!({"hotel_name": "Grand"})), "sweep": {"currency": ["EUR", "USD"]}}),
            vec!["currencies_not_comparable"],
        ),
    ] {
        assert_eq!(
            warning_kinds(&preview(&service, &body).await),
            expected,
            "{body}"
        );
    }
    let far = preview(&service, &next_days(340)).await;
    // A scan's today ends at UTC-12: it is the same date or the one before.
    let today = farescan::scans::plan::earliest_today(Timestamp::now()).to_string();
    let beyond = if today == days_from_today(0) { 19 } else { 20 };
    let message = far["warnings"][0]["message"].as_str().unwrap();
    assert!(
        message.starts_with(&format!("{beyond} of the searches")),
        "{message}"
    );
}

#[tokio::test]
async fn a_preview_warns_of_long_scans_and_exceeded_limits() {
    let service = TestService::start().await;
    crate::support::db::require_key_acceptance(service.pool()).await;
    service.submit(&fares(1)).await;
    execute!(
        service.pool(),
        "update lanes set emission = interval '1 minute'"
    );
    let mut body = next_days(300);
    body["sweep"]["samples"] = json!(5);
    let seen = preview(&service, &body).await;
    assert_eq!(
        (&seen["seconds"], warning_kinds(&seen)),
        (
            &json!(90_000),
            vec!["longer_than_a_day", "too_much_underway"]
        )
    );
    let refused = service.post("/v1/scans", &body).await;
    assert_eq!(
        (refused.status, seen["warnings"][1]["message"].as_str()),
        (429, Some(refused.message().as_str()))
    );
}

/// The same bodies to both, over all endpoints: both refuse with the same message, or the submit
/// stores the items that the preview shows.
#[tokio::test]
async fn preview_and_submit_agree() {
    let service = TestService::start().await;
    let mut rng = Rng(3);
    let (mut taken, mut refused) = (0, 0);
    for case in 0..40 {
        let body = any_scan_request(&mut rng);
        // A new caller for each: a caller may have one scan until the marketplace has accepted its
        // key.
        let key = format!("key-of-caller-{case:04}");
        let previewed = service.post_as(&key, "/v1/scans/preview", &body).await;
        let answer = service.post_as(&key, "/v1/scans", &body).await;
        if answer.status == 400 {
            assert_eq!(
                (previewed.status, previewed.message()),
                (400, answer.message()),
                "{body}"
            );
            refused += 1;
            continue;
        }
        assert_eq!(
            (previewed.status, answer.status),
            (200, 202),
            "{body} {}",
            answer.text()
        );
        let (previewed, scan) = (previewed.json(), answer.json());
        assert_eq!(
            (&previewed["items"], &previewed["endpoint"]),
            (&scan["items"]["total"], &scan["endpoint"])
        );
        let id: ScanId = scan["id"].as_str().unwrap().parse().unwrap();
        let page = service
            .get_as(&key, &format!("/v1/scans/{id}/items?limit=500"))
            .await
            .json();
        let items = array(&page["data"]);
        assert_eq!(json!(items.len()), previewed["items"], "{body}");
        assert!(
            items
                .iter()
                .enumerate()
                .all(|(place, item)| item["position"] == json!(place))
        );
        let body_of = |item: Option<&Value>| item.map(|item| item["search"].to_string());
        assert_eq!(
            (body_of(items.first()), body_of(items.last())),
            (
                Some(previewed["first"].to_string()),
                Some(previewed["last"].to_string())
            )
        );
        taken += 1;
    }
    assert!(
        taken > 15 && refused > 5,
        "{taken} taken, {refused} refused: too few"
    );
}

/// A valid or invalid scan request.
fn any_scan_request(rng: &mut Rng) -> Value {
    let dates = |rng: &mut Rng| {
        let from = 1 + usize::try_from(rng.below(20)).unwrap();
        let to = from + usize::try_from(rng.below(4)).unwrap();
        match rng.below(4) {
            0 => json!([day(from), day(to + 5)]),
            1 => json!({"from": day(from), "to": day(to), "step_days": 2}),
            2 => json!({"from": day(to + 1), "to": day(from)}),
            _ => json!({"from": day(from), "to": day(to)}),
        }
    };
    let nights = if rng.below(8) == 0 {
        json!([0])
    } else {
        json!([1, 3])
    };
    let samples = json!(1 + rng.below(2));
    let markets = if rng.below(6) == 0 {
        json!(["usa"])
    } else {
        json!(["us", "de", "jp"])
    };
    match rng.below(5) {
        0 => json!({
            "endpoint": "flights/oneway", "request": {"from_airport": "TLV"},
            "sweep": {"departure_date": dates(rng), "to_airport": ["LHR", "CDG"], "samples": samples}
        }),
        1 => json!({
            "endpoint": "flights/roundtrip", "request": {"from_airport": "TLV", "to_airport": "LHR"},
            "sweep": {"departure_date": dates(rng), "nights": nights, "max_stops": [0, 1]}
        }),
        2 => json!({
            "endpoint": "hotels/search", "request": {"destination": "Lisbon"},
            "sweep": {"checkin_date": dates(rng), "nights": nights, "proxy_country": markets}, "max_requests": 1 + rng.below(40)
        }),
        3 => json!({
            "endpoint": "hotels/by-name", "request": {"hotel_name": "Grand"},
            "sweep": {"nights": nights, "checkin_date": dates(rng), "proxy_country": markets, "samples": samples}
        }),
        _ => json!({
            "endpoint": "hotels/rooms", "request": {"hotel_booking_id": "fr/grand", "checkin_date": day(1)},
            "sweep": {"checkout_date": dates(rng), "adults": [1, 2], "currency": ["USD", "EUR"]}
        }),
    }
}

#[tokio::test]
async fn a_preview_reports_the_same_faults_as_a_submit() {
    let service = TestService::start().await;
    for body in [
        json!({}),
        json!({"endpoint": "flights/oneway", "request": {}}),
        fares_with(3, &json!({"max_requests": 2})),
    ] {
        let (previewed, answer) = (
            service.post("/v1/scans/preview", &body).await,
            service.post("/v1/scans", &body).await,
        );
        assert_eq!(
            (previewed.kind(), previewed.message()),
            (answer.kind(), answer.message()),
            "{body}"
        );
        assert_eq!(previewed.kind(), "400 invalid_request");
    }
}

#[tokio::test]
async fn a_preview_needs_key_custody_and_an_api_key() {
    let app = TestApp::start().await;
    assert_eq!(
        app.post("/v1/scans/preview", &next_days(31)).await.kind(),
        "503 key_custody_disabled"
    );
    let bare = app
        .send(app.request("POST", "/v1/scans/preview").json(&next_days(1)))
        .await;
    assert_eq!(bare.kind(), "401 missing_api_key");
}
