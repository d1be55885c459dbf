//! The question whether one is below a price (scans.md, rule 80).

use serde_json::{Value, json};

use super::watch::manual_runs;
use super::{
    assert_shows, column, decisions, ladder, make_older, run, sell, wait_until_decided,
    with_calendar,
};
use crate::support::reply::Reply;
use crate::support::service::{fares_with, with};

/// A fare scan over the first dates of 2030 that looks for one below a price.
fn looking(dates: usize, below: f64) -> Value {
    fares_with(
        dates,
        &json!({"strategy": {"find": "below", "below": below}}),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn it_ends_with_the_first_price_below() {
    let mut prices = ladder(60);
    let service = with_calendar(&prices, 3).await;
    let preview = service
        .post("/v1/scans/preview", &looking(60, 65.0))
        .await
        .json();
    // If the stored prices are still true, the first two searches find one.
    let range = json!({"least": 2, "expected": 2, "most": 120});
    assert_eq!(preview["requests"], range, "{preview:#}");
    // The first two that are tried have risen.
    prices[28] = Some(73);
    prices[29] = Some(65);
    sell(&service, prices);
    let scan = run(&service, &looking(60, 65.0)).await;
    let found = json!({"find": "below", "below": 65.0, "searched": 4, "ended_by": "found",
                       "risk_of_miss": 0.0, "risk_of_cheaper": null});
    assert_shows(&scan["strategy"], &found);
    assert_eq!(scan["strategy"]["best"]["price"], 60);
    let decisions = decisions(&service, &scan).await;
    assert_eq!(
        column(&decisions, "reason"),
        ["lowest_bound", "lowest_bound", "found"]
    );
    assert_eq!(decisions[0]["searches"], json!([28, 29]), "65 is not below");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_ends_with_a_risk_where_none_is_below() {
    let service = with_calendar(&ladder(60), 3).await;
    let scan = run(&service, &looking(60, 50.0)).await;
    let strategy = &scan["strategy"];
    let risk = strategy["risk_of_miss"].as_f64().unwrap();
    assert!(risk > 0.0 && risk <= 0.05, "{scan:#}");
    assert_eq!(strategy["ended_by"], "nothing_below");
    let near = strategy["searched"].as_u64().unwrap();
    // The farther the price, the fewer searches show that none is below it.
    make_older(service.pool(), 3).await;
    let scan = run(&service, &looking(60, 20.0)).await;
    assert_eq!(scan["strategy"]["ended_by"], "nothing_below", "{scan:#}");
    let far = scan["strategy"]["searched"].as_u64().unwrap();
    assert!(far <= near && near < 40, "{far} {near}");
}

/// A run of a monitor may end with another price than the lowest known one. That one has not risen.
#[tokio::test(flavor = "multi_thread")]
async fn a_dearer_price_below_does_not_look_like_a_rise() {
    let service = with_calendar(&[Some(140), Some(90), Some(140), Some(200)], 0).await;
    let scan = fares_with(
        4,
        &json!({"strategy": {"find": "below", "below": 150, "max_risk": 0.5}}),
    );
    let monitor = service
        .create_monitor(&json!({
            "name": "below", "schedule": {"cron": "0 6 * * *", "timezone": "Europe/London"}, "scan": scan,
            "alerts": [{"type": "price_below", "amount": 100}]
        }))
        .await;
    // What was seen long ago may be the lowest now.
    let age = "update latest_prices set sampled_at = now() - make_interval(days => case when (price = 90) = $1 then 60 else 0 end),
                                        observed_at = now() - make_interval(days => case when (price = 90) = $1 then 60 else 0 end)";
    let mut has_lowest = Vec::new();
    for is_lowest_old in [true, false, true] {
        execute!(service.pool(), age, is_lowest_old);
        let searched = manual_runs(&service, &monitor, 1).await;
        has_lowest.push(searched[0].contains(&1));
    }
    assert_eq!(has_lowest, [true, false, true]);
    let alerts = service.alerts(&monitor).await;
    assert_eq!(alerts.len(), 1, "the price stayed low: {alerts:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_that_finds_one_ends_with_it() {
    let prices = ladder(60);
    let service = with_calendar(&prices, 3).await;
    let before = service.upstream.count();
    service.upstream.reply(Reply::status(502));
    let worker = service.start_worker(4);
    let body = with(looking(60, 65.0), &json!({"max_requests": 4}));
    let id = service.submit(&body).await;
    let scan = wait_until_decided(&service, &id).await;
    assert_eq!(scan["strategy"]["ended_by"], "limit_reached", "{scan:#}");
    sell(&service, prices);
    let raised = json!({"search_status": ["degraded"], "max_requests": 20});
    service.command(&id, "retry", &raised).await;
    let scan = wait_until_decided(&service, &id).await;
    worker.stop().await;
    assert_shows(&scan["strategy"], &json!({"ended_by": "found"}));
    assert_eq!(scan["strategy"]["best"]["price"], 60);
    assert_eq!(
        json!(service.upstream.count() - before),
        scan["requests"]["spent"]
    );
}
