//! What a change of a monitor, or of its scans, makes of what its rules remember.

use serde_json::json;

use super::{MOMENT, Watch, fares, monitor};

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_is_changed_forgets_and_the_others_do_not() {
    let watch = Watch::open().await;
    let below = |amount: u32| json!({"type": "price_below", "amount": amount});
    let id = watch
        .monitor(&monitor(
            1,
            &json!([below(200), {"type": "new_low"}, below(150)]),
        ))
        .await;
    watch.market(|asked| fares(&[140], asked));
    assert_eq!(watch.run(&id).await["judged"]["fired"], 2);

    // Another name, and the same rules written otherwise.
    let same = json!([{"type": "price_below", "amount": 200.0, "scope": "scan", "rearm_percent": 2}, {"type": "new_low"}, below(150)]);
    watch
        .change(&id, &json!({"name": "another", "alerts": same}))
        .await;
    assert_eq!(
        watch.run(&id).await["judged"]["fired"],
        0,
        "none of them is new"
    );

    watch
        .change(
            &id,
            &json!({"alerts": [below(200), {"type": "new_low"}, below(151)]}),
        )
        .await;
    assert_eq!(watch.run(&id).await["judged"]["fired"], 1, "one of them is");
    assert_eq!(watch.alerts(&id).await[0]["rule"]["amount"], 151);

    // Taken away and put back: it has forgotten.
    watch.change(&id, &json!({"alerts": [below(151)]})).await;
    watch
        .change(&id, &json!({"alerts": [below(200), below(151)]}))
        .await;
    assert_eq!(watch.run(&id).await["judged"]["fired"], 1);
    assert_eq!(watch.alerts(&id).await[0]["rule"]["amount"], 200);
    watch.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_searched_anew_is_not_compared_with_what_was_before() {
    let watch = Watch::open().await;
    let id = watch
        .monitor(&monitor(
            1,
            &json!([{"type": "new_low"}, {"type": "price_below", "amount": 200}]),
        ))
        .await;
    watch.market(|asked| fares(&[250], asked));
    watch.run(&id).await;
    // Another place, while a run of the old one is underway.
    let slot = watch.office.next_slot(&id).await;
    watch.market(|asked| fares(&[100], asked));
    watch.office.tick(slot).await;
    let mut scan = monitor(1, &json!([]))["scan"].clone();
    scan["request"]["to_airport"] = json!("CDG");
    watch.change(&id, &json!({"scan": scan})).await;
    watch.all_ended().await;
    watch.office.tick(slot + MOMENT).await;
    assert_eq!(
        watch.alerts(&id).await,
        Vec::<serde_json::Value>::new(),
        "the run of the old question is judged by none"
    );
    let judged = watch.run(&id).await["judged"].clone();
    assert_eq!(
        judged["fired"], 1,
        "100 is no new low of the new question: {judged}"
    );
    assert_eq!(watch.alerts(&id).await[0]["type"], "price_below");
    // Its label is no part of the question.
    scan["label"] = json!("of the label");
    watch.change(&id, &json!({"scan": scan})).await;
    watch.market(|asked| fares(&[90], asked));
    watch.run(&id).await;
    assert_eq!(watch.alerts(&id).await[0]["type"], "new_low");
    watch.close().await;
}

/// A run is judged once: what a retry sees later is the next run's to tell.
#[tokio::test(flavor = "multi_thread")]
async fn a_retry_of_a_run_that_was_judged_tells_nothing() {
    let watch = Watch::open().await;
    let id = watch
        .monitor(&monitor(
            1,
            &json!([{"type": "price_below", "amount": 200}]),
        ))
        .await;
    watch.market(|_| crate::support::reply::Reply::search_incomplete("blocked_page"));
    let slot = watch.run(&id).await;
    assert_eq!(slot["judged"]["fired"], 0);
    watch.market(|asked| fares(&[150], asked));
    let scan = slot["scan_id"].as_str().unwrap();
    let retry = watch
        .office
        .ask(
            "POST",
            &format!("/v1/scans/{scan}/retry"),
            Some(&json!({"search_status": ["degraded"]})),
        )
        .await;
    assert_eq!(retry.status, 202, "{}", retry.text());
    watch.all_ended().await;
    assert_eq!(watch.office.scan(scan).await["best"]["price"], 150);
    assert_eq!(
        watch
            .office
            .tick(super::time(&slot["slot"]) + MOMENT)
            .await
            .judged,
        0
    );
    assert_eq!(watch.alerts(&id).await.len(), 0);
    assert_eq!(
        watch.run(&id).await["judged"]["fired"],
        1,
        "the next run sees it"
    );
    watch.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn alerts_and_what_rules_remember_go_with_their_monitor() {
    let watch = Watch::open().await;
    let id = watch
        .monitor(&monitor(
            1,
            &json!([{"type": "price_below", "amount": 200}]),
        ))
        .await;
    watch.market(|asked| fares(&[150], asked));
    watch.run(&id).await;
    let alert = watch.alerts(&id).await[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        watch
            .office
            .ask("DELETE", &format!("/v1/monitors/{id}"), None)
            .await
            .status,
        204
    );
    assert_eq!(
        watch
            .office
            .ask("GET", &format!("/v1/alerts/{alert}"), None)
            .await
            .status,
        404
    );
    assert_eq!(
        watch
            .office
            .count("select (select count(*) from alerts) + (select count(*) from rule_states)")
            .await,
        0
    );
    watch.close().await;
}
