//! Price filters that this service applies itself, so that the engine still returns the price band.

use serde_json::{Value, json};

use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::support::{TestService, fares};

fn filtered(more: &Value) -> Value {
    let mut body = fares(1);
    body["request"].as_object_mut().unwrap().extend(
        json!({"max_price": 150, "sort_type": "Price"})
            .as_object()
            .unwrap()
            .clone(),
    );
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn locally_filtered_offers_are_filtered_out_not_empty() {
    let service = TestService::start().await;
    let worker = service.start_worker(4);
    for (prices, expected) in [
        (vec![164, 151], json!(["ok", "filtered_out", 0, null])),
        (vec![164, 150, 90], json!(["ok", null, 2, 90])),
        (vec![], json!(["empty", null, 0, null])),
    ] {
        let rows: Vec<_> = prices
            .iter()
            .map(|price| fare(*price, &json!({})))
            .collect();
        service.upstream.reply(Reply::json(json!(rows)));
        let id = service.submit(&filtered(&json!({}))).await;
        let ended = service.wait_until_ended(&id).await;
        assert_eq!(ended["status"], json!("completed"), "{prices:?}");
        let item = &service.items(&id).await[0];
        assert_eq!(
            json!([
                item["search_status"],
                item["reason"],
                item["results"],
                item["best_price"]
            ]),
            expected,
            "{prices:?}"
        );
        assert_eq!(
            item["search"]["max_price"],
            json!(150),
            "the search is shown as submitted"
        );
    }
    worker.stop().await;
    for call in service.upstream.calls() {
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
async fn upstream_filters_are_sent_only_on_request() {
    let service = TestService::start().await;
    let worker = service.start_worker(1);
    let id = service
        .submit(&filtered(
            &json!({"upstream_filters": true, "upstream_limit": 20}),
        ))
        .await;
    service.wait_until_ended(&id).await;
    worker.stop().await;
    let body = &service.upstream.calls()[0].body;
    assert_eq!(
        (&body["max_price"], &body["sort_type"], &body["limit"]),
        (&json!(150), &json!("Price"), &json!(20))
    );
}
