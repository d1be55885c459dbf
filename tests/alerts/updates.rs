//! The effect of updates of a monitor, and of retries of its scans, on the states of its rules.

use serde_json::json;

use super::{AlertTest, MOMENT, fares, monitor, of_one_date};
use crate::support::text;

#[tokio::test(flavor = "multi_thread")]
async fn only_a_changed_rule_loses_its_state() {
    let test = AlertTest::open().await;
    let below = |amount: u32| json!({"type": "price_below", "amount": amount});
    let id = test
        .monitor(&monitor(
            1,
            &json!([below(200), {"type": "new_low", "days": 30}, below(150)]),
        ))
        .await;
    test.respond_with(|asked| fares(&[140], asked));
    assert_eq!(test.run(&id).await["judged"]["fired"], 2);

    // Another name, and equivalent rules in another notation.
    let same = json!([{"type": "price_below", "amount": 200.0, "scope": "scan", "rearm_percent": 2}, {"type": "new_low", "days": 30}, below(150)]);
    test.patch(&id, &json!({"name": "another", "alerts": same}))
        .await;
    assert_eq!(test.run(&id).await["judged"]["fired"], 0, "no rule is new");

    test.patch(
        &id,
        &json!({"alerts": [below(200), {"type": "new_low", "days": 30}, below(151)]}),
    )
    .await;
    assert_eq!(test.run(&id).await["judged"]["fired"], 1, "one of them is");
    assert_eq!(test.alerts(&id).await[0]["rule"]["amount"], 151);

    // Removed and added again, a rule has lost its state.
    test.patch(&id, &json!({"alerts": [below(151)]})).await;
    test.patch(&id, &json!({"alerts": [below(200), below(151)]}))
        .await;
    assert_eq!(test.run(&id).await["judged"]["fired"], 1);
    assert_eq!(test.alerts(&id).await[0]["rule"]["amount"], 200);
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_search_is_not_compared_with_earlier_runs() {
    let test = AlertTest::open().await;
    let rules = json!([{"type": "new_low", "days": 30}, {"type": "price_below", "amount": 200}]);
    let id = test.monitor(&of_one_date(&rules)).await;
    test.respond_with(|asked| fares(&[250], asked));
    test.run(&id).await;
    // Another destination, while a run of the old search has not ended.
    let slot = test.next_slot(&id).await;
    test.respond_with(|asked| fares(&[100], asked));
    test.tick(slot).await;
    let mut scan = of_one_date(&rules)["scan"].clone();
    scan["request"]["to_airport"] = json!("CDG");
    test.patch(&id, &json!({"scan": scan})).await;
    test.all_ended().await;
    test.tick(slot + MOMENT).await;
    assert_eq!(
        test.alerts(&id).await,
        Vec::<serde_json::Value>::new(),
        "the run of the old search is not evaluated"
    );
    let judged = test.run(&id).await["judged"].clone();
    assert_eq!(
        judged["fired"], 1,
        "100 is no new low of the new question: {judged}"
    );
    assert_eq!(test.alerts(&id).await[0]["type"], "price_below");
    // The label is not part of the search.
    scan["label"] = json!("of the label");
    test.patch(&id, &json!({"scan": scan})).await;
    test.respond_with(|asked| fares(&[90], asked));
    test.run(&id).await;
    assert_eq!(test.alerts(&id).await[0]["type"], "new_low");
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_of_an_evaluated_run_fires_nothing() {
    let test = AlertTest::open().await;
    let id = test
        .monitor(&monitor(
            1,
            &json!([{"type": "price_below", "amount": 200}]),
        ))
        .await;
    test.respond_with(|_| crate::support::reply::Reply::search_incomplete("blocked_page"));
    let slot = test.run(&id).await;
    assert_eq!(slot["judged"]["fired"], 0);
    test.respond_with(|asked| fares(&[150], asked));
    let scan = slot["scan_id"].as_str().unwrap();
    test.ask(
        "POST",
        &format!("/v1/scans/{scan}/retry"),
        Some(&json!({"search_status": ["degraded"]})),
    )
    .await
    .expect(202);
    test.all_ended().await;
    assert_eq!(test.scan(scan).await["best"]["price"], 150);
    assert_eq!(
        test.tick(super::time(&slot["slot"]) + MOMENT)
            .await
            .evaluated,
        0
    );
    assert_eq!(test.alerts(&id).await.len(), 0);
    assert_eq!(
        test.run(&id).await["judged"]["fired"],
        1,
        "the next run sees it"
    );
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn alerts_and_states_are_deleted_with_their_monitor() {
    let test = AlertTest::open().await;
    let id = test
        .monitor(&monitor(
            1,
            &json!([{"type": "price_below", "amount": 200}]),
        ))
        .await;
    test.respond_with(|asked| fares(&[150], asked));
    test.run(&id).await;
    let alert = text(&test.alerts(&id).await[0]["id"]);
    assert_eq!(
        test.ask("DELETE", &format!("/v1/monitors/{id}"), None)
            .await
            .status,
        204
    );
    assert_eq!(
        test.ask("GET", &format!("/v1/alerts/{alert}"), None)
            .await
            .status,
        404
    );
    assert_eq!(
        test.count("select (select count(*) from alerts) + (select count(*) from rule_states)")
            .await,
        0
    );
    test.close().await;
}
