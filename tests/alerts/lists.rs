//! Lists of alerts: filters, pages and tenants.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{AlertTest, fares, monitor};
use crate::support::{array, text};

const OTHER: &str = "another-key-0123456789";

fn ids(page: &Value) -> Vec<String> {
    array(&page["data"])
        .iter()
        .map(|alert| text(&alert["id"]))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn alerts_are_listed_newest_first_by_pages_and_filters() {
    let test = AlertTest::open().await;
    let rules = json!([{"type": "price_below", "amount": 500, "scope": "cell", "rearm_percent": 0}, {"type": "verdict"}]);
    test.respond_with(|asked| {
        let day: u64 = asked["departure_date"].as_str().unwrap()[8..]
            .parse()
            .unwrap();
        fares(&[200 + day], asked)
    });
    test.accept_key().await;
    let (one, two) = (
        test.monitor(&monitor(5, &rules)).await,
        test.monitor(&monitor(1, &rules)).await,
    );
    // Two runs of both monitors.
    test.run(&one).await;
    test.run(&one).await;
    let get = async |path: &str| test.get(path).await;

    let all = get("/v1/alerts").await;
    let all = array(&all["data"]);
    let times: Vec<_> = all
        .iter()
        .map(|alert| super::time(&alert["fired_at"]))
        .collect();
    assert!(times.is_sorted_by(|one, other| one >= other), "{times:?}");
    // Six, two, and the date that the second day added.
    assert_eq!(
        (all.len(), all[0]["type"].clone()),
        (9, json!("price_below"))
    );
    assert_eq!(
        get(&format!("/v1/alerts?monitor_id={two}")).await["data"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(
        array(&get("/v1/alerts?type=verdict").await["data"]).len(),
        2
    );
    assert_eq!(
        get(&format!("/v1/monitors/{one}/alerts?type=verdict")).await["data"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let earliest = text(&all[all.len() - 1]["fired_at"]);
    let (before, since) = (
        get(&format!("/v1/alerts?until={earliest}")).await,
        get(&format!("/v1/alerts?since={earliest}")).await,
    );
    assert_eq!((ids(&before).len(), ids(&since).len()), (0, 9));
    // Of one run, the whole scan first, then the strongest.
    let of_run: Vec<_> = get(&format!("/v1/monitors/{one}/alerts")).await["data"]
        .as_array()
        .unwrap()[1..]
        .to_vec();
    assert_eq!(of_run[0]["type"], "verdict");
    let prices: Vec<_> = of_run[1..]
        .iter()
        .map(|alert| alert["price"].as_u64().unwrap())
        .collect();
    assert!(prices.is_sorted(), "{prices:?}");

    let mut seen = Vec::new();
    let mut next = Some("/v1/alerts?limit=2&type=price_below".to_owned());
    while let Some(path) = next {
        let page = get(&path).await;
        seen.extend(ids(&page));
        next = page["next_cursor"]
            .as_str()
            .map(|cursor| format!("/v1/alerts?limit=2&type=price_below&cursor={cursor}"));
    }
    let whole = ids(&get("/v1/alerts?type=price_below").await);
    assert_eq!(seen, whole);
    assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), 7);

    let answer = test
        .ask(
            "GET",
            "/v1/alerts?type=nonsense&since=yesterday&limit=0&monitor_id=scn_1",
            None,
        )
        .await;
    assert_eq!(answer.kind(), "400 invalid_request");
    for field in [
        "`type`: found",
        "`since`: found",
        "`limit`: found",
        "`monitor_id`: found",
    ] {
        assert!(answer.message().contains(field), "{}", answer.message());
    }
    for path in [
        "/v1/alerts".to_owned(),
        format!("/v1/monitors/{one}/alerts"),
    ] {
        let answer = test
            .ask(
                "GET",
                &format!("{path}?since=2026-02-01T00:00:00Z&until=2026-01-01T00:00:00Z"),
                None,
            )
            .await;
        assert_eq!(answer.kind(), "400 invalid_request", "{path}");
        let words = "`since`: found \"2026-02-01T00:00:00Z\"; expected a time before 2026-01-01T00:00:00Z, where the range ends";
        assert!(
            answer.message().starts_with(words),
            "{path}: {}",
            answer.message()
        );
    }
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn alerts_of_another_tenant_are_not_found() {
    let test = AlertTest::open().await;
    let id = test
        .monitor(&monitor(
            1,
            &json!([{"type": "price_below", "amount": 500}]),
        ))
        .await;
    test.respond_with(|asked| fares(&[200], asked));
    test.run(&id).await;
    let alert = text(&test.alerts(&id).await[0]["id"]);
    // Before the other tenant exists, and after.
    for _ in 0..2 {
        assert_eq!(
            test.get_as(OTHER, "/v1/alerts").await.json()["data"],
            json!([])
        );
        assert_eq!(
            test.get_as(OTHER, &format!("/v1/alerts?monitor_id={id}"))
                .await
                .kind(),
            "404 not_found"
        );
        assert_eq!(
            test.get_as(OTHER, &format!("/v1/alerts/{alert}"))
                .await
                .kind(),
            "404 not_found"
        );
        assert_eq!(
            test.get_as(OTHER, &format!("/v1/monitors/{id}/alerts"))
                .await
                .kind(),
            "404 not_found"
        );
        test.post_as(OTHER, "/v1/monitors", &monitor(1, &json!([])))
            .await;
    }
    test.close().await;
}
