//! `POST /v1/scans/preview`: what an order would be, without ordering it.

use farescan::ids::ScanId;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::house::{Dice, order};
use crate::scans::office::{Comes, Office, day, fares};
use crate::support::app::TestApp;

async fn preview(office: &Office, body: &Value) -> Value {
    let answer = office.app.post("/v1/scans/preview", body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

/// The kinds of its warnings.
fn kinds(preview: &Value) -> Vec<&str> {
    preview["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|warning| warning["kind"].as_str().unwrap())
        .collect()
}

fn soon(days: i64) -> String {
    let today = Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    today
        .saturating_add(jiff::Span::new().days(days))
        .to_string()
}

/// Dates of the next weeks, which are on sale whenever this runs.
fn next_days(count: i64) -> Value {
    json!({
        "endpoint": "flights/oneway",
        "request": {"from_airport": "TLV", "to_airport": "LHR"},
        "sweep": {"departure_date": {"from": soon(10), "to": soon(9 + count)}}
    })
}

#[tokio::test]
async fn a_preview_says_what_an_order_would_be_and_does_none_of_it() {
    let office = Office::open().await;
    let before = office.rows().await;
    let mut body = next_days(31);
    body["retry"] = json!({"max_attempts": 2});
    let seen = preview(&office, &body).await;
    assert_eq!(
        (office.rows().await, office.app.upstream.count()),
        (before, 0),
        "nothing stored, nobody asked"
    );
    for (field, value) in [
        ("endpoint", json!("flights/oneway")),
        ("items", json!(31)),
        ("requests", json!({"least": 31, "most": 124})),
        (
            "first",
            json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": soon(10)}),
        ),
        (
            "last",
            json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": soon(40)}),
        ),
        ("searches_per_minute", json!(60_000.0)),
        ("seconds", json!(1)),
        ("plan_requests_remaining", json!(null)),
        ("warnings", json!([])),
    ] {
        assert_eq!(seen[field], value, "{field}");
    }
    body["max_requests"] = json!(40);
    let capped = preview(&office, &body).await;
    assert_eq!(
        (&capped["requests"], kinds(&capped)),
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

/// Specification 8, for 2,600 searches of one or two requests.
#[tokio::test]
async fn the_cost_on_each_plan() {
    let office = Office::open().await;
    let sweep = |field: &str| json!({field: {"from": day(1), "to": day(260)}, "samples": 10});
    let flights = json!({"endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR"}, "sweep": sweep("departure_date")});
    let mut stays = sweep("checkin_date");
    stays["nights"] = json!([1]);
    let hotels =
        json!({"endpoint": "hotels/by-name", "request": {"hotel_name": "Grand"}, "sweep": stays});
    let rows = async |body: &Value| {
        let plans = preview(&office, body).await["plans"]
            .as_array()
            .unwrap()
            .clone();
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
async fn the_lane_of_the_caller_gives_pace_quota_and_pauses() {
    let office = Office::open().await;
    office.done(&fares(1), |_| Comes::Ok(1)).await;
    let set = "update lanes set emission = interval '400 ms', plan_limit = 2500, plan_remaining = 20,
                                plan_reset_at = now() + interval '10 days', paused_until = 'infinity', pause_reason = 'key_rejected'";
    sqlx::query(set).execute(office.db.pool()).await.unwrap();
    let before = office.dump().await;
    let seen = preview(&office, &next_days(31)).await;
    assert_eq!(
        office.dump().await,
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
    let current: Vec<_> = seen["plans"]
        .as_array()
        .unwrap()
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
    assert_eq!(kinds(&seen), ["over_quota", "lane_paused"]);
    assert!(
        seen["warnings"][1]["message"]
            .as_str()
            .unwrap()
            .contains("key_rejected")
    );
    let theirs = office
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

    // A month that is over says nothing of the next one.
    sqlx::query("update lanes set plan_reset_at = now() - interval '1 s'")
        .execute(office.db.pool())
        .await
        .unwrap();
    assert_eq!(
        preview(&office, &next_days(31)).await["plan_requests_remaining"],
        json!(null)
    );
}

#[tokio::test]
async fn each_warning_where_it_is_due_and_only_there() {
    let office = Office::open().await;
    let stay = |more: Value| {
        let mut stay = json!({"checkin_date": soon(10), "checkout_date": soon(11)});
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
                "request": {"hotel_name": "Grand", "checkin_date": soon(499), "checkout_date": soon(510), "currency": "EUR"},
            }),
            vec!["dates_not_on_sale"],
        ),
        (
            json!({"endpoint": "hotels/by-name", "request": stay(json!({"hotel_name": "Grand"})), "sweep": {"currency": ["EUR", "USD"]}}),
            vec!["currencies_not_comparable"],
        ),
    ] {
        assert_eq!(kinds(&preview(&office, &body).await), expected, "{body}");
    }
    let far = preview(&office, &next_days(340)).await;
    // A scan's today ends last of all, at UTC-12: the same day, or the one before.
    let today = farescan::scans::plan::earliest_today(Timestamp::now()).to_string();
    let beyond = if today == soon(0) { 19 } else { 20 };
    let message = far["warnings"][0]["message"].as_str().unwrap();
    assert!(
        message.starts_with(&format!("{beyond} of the searches")),
        "{message}"
    );
}

#[tokio::test]
async fn a_long_scan_and_a_full_house_are_told() {
    let office = Office::open().await;
    crate::support::db::strangers(office.db.pool()).await;
    office.order(&fares(1)).await;
    sqlx::query("update lanes set emission = interval '1 minute'")
        .execute(office.db.pool())
        .await
        .unwrap();
    let mut body = next_days(300);
    body["sweep"]["samples"] = json!(5);
    let seen = preview(&office, &body).await;
    assert_eq!(
        (&seen["seconds"], kinds(&seen)),
        (
            &json!(90_000),
            vec!["longer_than_a_day", "too_much_underway"]
        )
    );
    let refused = office.app.post("/v1/scans", &body).await;
    assert_eq!(
        (refused.status, seen["warnings"][1]["message"].as_str()),
        (429, Some(refused.message().as_str()))
    );
}

/// The same bodies to both, over all endpoints: what is refused is refused in the same words, and what is taken becomes the items that
/// were shown.
#[tokio::test]
async fn preview_and_submit_agree() {
    let office = Office::open().await;
    let mut dice = Dice(3);
    let (mut taken, mut refused) = (0, 0);
    for case in 0..40 {
        let body = any_order(&mut dice);
        // A caller of its own for each: one scan at a time until the marketplace has accepted a key.
        let key = format!("key-of-caller-{case:04}");
        let shown = office.post_as(&key, "/v1/scans/preview", &body).await;
        let answer = office.post_as(&key, "/v1/scans", &body).await;
        if answer.status == 400 {
            assert_eq!(
                (shown.status, shown.message()),
                (400, answer.message()),
                "{body}"
            );
            refused += 1;
            continue;
        }
        assert_eq!(
            (shown.status, answer.status),
            (200, 202),
            "{body} {}",
            answer.text()
        );
        let (shown, scan) = (shown.json(), answer.json());
        assert_eq!(
            (&shown["items"], &shown["endpoint"]),
            (&scan["items"]["total"], &scan["endpoint"])
        );
        let id: ScanId = scan["id"].as_str().unwrap().parse().unwrap();
        let page = office
            .get_as(&key, &format!("/v1/scans/{id}/items?limit=500"))
            .await
            .json();
        let items = page["data"].as_array().unwrap();
        assert_eq!(json!(items.len()), shown["items"], "{body}");
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
                Some(shown["first"].to_string()),
                Some(shown["last"].to_string())
            )
        );
        taken += 1;
    }
    assert!(
        taken > 15 && refused > 5,
        "{taken} taken, {refused} refused: too tame"
    );
}

/// An order that may be good or bad.
fn any_order(dice: &mut Dice) -> Value {
    let dates = |dice: &mut Dice| {
        let from = 1 + usize::try_from(dice.below(20)).unwrap();
        let to = from + usize::try_from(dice.below(4)).unwrap();
        match dice.below(4) {
            0 => json!([day(from), day(to + 5)]),
            1 => json!({"from": day(from), "to": day(to), "step_days": 2}),
            2 => json!({"from": day(to + 1), "to": day(from)}),
            _ => json!({"from": day(from), "to": day(to)}),
        }
    };
    let nights = if dice.below(8) == 0 {
        json!([0])
    } else {
        json!([1, 3])
    };
    let samples = json!(1 + dice.below(2));
    let markets = if dice.below(6) == 0 {
        json!(["usa"])
    } else {
        json!(["us", "de", "jp"])
    };
    match dice.below(5) {
        0 => json!({
            "endpoint": "flights/oneway", "request": {"from_airport": "TLV"},
            "sweep": {"departure_date": dates(dice), "to_airport": ["LHR", "CDG"], "samples": samples}
        }),
        1 => json!({
            "endpoint": "flights/roundtrip", "request": {"from_airport": "TLV", "to_airport": "LHR"},
            "sweep": {"departure_date": dates(dice), "nights": nights, "max_stops": [0, 1]}
        }),
        2 => json!({
            "endpoint": "hotels/search", "request": {"destination": "Lisbon"},
            "sweep": {"checkin_date": dates(dice), "nights": nights, "proxy_country": markets}, "max_requests": 1 + dice.below(40)
        }),
        3 => json!({
            "endpoint": "hotels/by-name", "request": {"hotel_name": "Grand"},
            "sweep": {"nights": nights, "checkin_date": dates(dice), "proxy_country": markets, "samples": samples}
        }),
        _ => json!({
            "endpoint": "hotels/rooms", "request": {"hotel_booking_id": "fr/grand", "checkin_date": day(1)},
            "sweep": {"checkout_date": dates(dice), "adults": [1, 2], "currency": ["USD", "EUR"]}
        }),
    }
}

#[tokio::test]
async fn a_body_that_cannot_be_is_told_as_a_submit_tells_it() {
    let office = Office::open().await;
    for body in [
        json!({}),
        json!({"endpoint": "flights/oneway", "request": {}}),
        order(3, &json!({"max_requests": 2})),
    ] {
        let (shown, answer) = (
            office.app.post("/v1/scans/preview", &body).await,
            office.app.post("/v1/scans", &body).await,
        );
        assert_eq!(
            (shown.kind(), shown.message()),
            (answer.kind(), answer.message()),
            "{body}"
        );
        assert_eq!(shown.kind(), "400 invalid_request");
    }
}

#[tokio::test]
async fn without_a_key_to_tell_callers_apart_there_is_no_preview() {
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
