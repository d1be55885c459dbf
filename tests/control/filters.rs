//! Filters that are applied here, so that the engine's price band survives.

use serde_json::{Value, json};

use super::house::{House, fares};
use crate::support::reply::Reply;
use crate::support::upstream::fare;

fn filtered(more: &Value) -> Value {
    let mut order = fares(1);
    order["request"].as_object_mut().unwrap().extend(
        json!({"max_price": 150, "sort_type": "Price"})
            .as_object()
            .unwrap()
            .clone(),
    );
    order
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    order
}

#[tokio::test(flavor = "multi_thread")]
async fn what_falls_to_a_filter_of_ours_is_filtered_out_and_never_empty() {
    let house = House::open().await;
    let worker = house.worker(4);
    for (prices, shown) in [
        (vec![164, 151], json!(["ok", "filtered_out", 0, null])),
        (vec![164, 150, 90], json!(["ok", null, 2, 90])),
        (vec![], json!(["empty", null, 0, null])),
    ] {
        let rows: Vec<_> = prices
            .iter()
            .map(|price| fare(*price, &json!({})))
            .collect();
        house.app.upstream.on_any().reply(Reply::json(json!(rows)));
        let id = house.order(&filtered(&json!({}))).await;
        let ended = house.ended(&id).await;
        assert_eq!(ended["status"], json!("completed"), "{prices:?}");
        let item = &house.items(&id).await[0];
        assert_eq!(
            json!([
                item["search_status"],
                item["reason"],
                item["results"],
                item["best_price"]
            ]),
            shown,
            "{prices:?}"
        );
        assert_eq!(
            item["search"]["max_price"],
            json!(150),
            "the search is shown as ordered"
        );
    }
    worker.stop().await;
    for call in house.app.upstream.calls() {
        assert!(
            call.body.get("max_price").is_none() && call.body.get("sort_type").is_none(),
            "{}",
            call.body
        );
        assert_eq!(
            (&call.body["strict"], &call.body["limit"]),
            (&json!(true), &json!(50))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn upstream_filters_are_sent_when_the_caller_says_so() {
    let house = House::open().await;
    let worker = house.worker(1);
    let id = house
        .order(&filtered(
            &json!({"upstream_filters": true, "upstream_limit": 20}),
        ))
        .await;
    house.ended(&id).await;
    worker.stop().await;
    let body = &house.app.upstream.calls()[0].body;
    assert_eq!(
        (&body["max_price"], &body["sort_type"], &body["limit"]),
        (&json!(150), &json!("Price"), &json!(20))
    );
}
