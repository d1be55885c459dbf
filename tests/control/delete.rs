//! Deleting scans that have ended, with and without what they saw.

use serde_json::json;

use super::house::{House, fares};
use crate::scans::office::{Comes, Office};
use crate::support::reply::Reply;
use crate::support::upstream::fare;

const OF_SCANS: [&str; 6] = [
    "select count(*) from scans",
    "select count(*) from scan_items",
    "select count(*) from attempts",
    "select count(*) from answers",
    "select count(*) from key_grants",
    "select count(*) from idempotency_keys where path <> '/v1/scans'",
];

/// A scan of three dates at this price.
async fn seen(house: &House, price: u64) -> String {
    house
        .app
        .upstream
        .on_any()
        .answer(move |call| Reply::json(json!([fare(price, &call.body)])));
    let id = house.order(&fares(3)).await;
    house.ended(&id).await;
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_goes_with_all_that_belongs_to_it_but_what_it_saw() {
    let house = House::open().await;
    let worker = house.worker(4);
    let id = seen(&house, 164).await;
    let retried = house
        .app
        .request("POST", &format!("/v1/scans/{id}/retry"))
        .header("x-api-key", crate::support::app::KEY);
    house
        .app
        .send(
            retried
                .header("idempotency-key", "k")
                .json(&json!({"search_status": ["degraded"]})),
        )
        .await;
    worker.stop().await;
    let before = house.count("select count(*) from observations").await;
    let path = format!("/v1/scans/{id}");
    let answer = house.delete(&path).await;
    assert_eq!((answer.status, answer.text().as_str()), (204, ""));
    for table in OF_SCANS {
        assert_eq!(house.count(table).await, 0, "{table}");
    }
    assert_eq!(
        (
            before,
            house.count("select count(*) from observations").await
        ),
        (3, 3)
    );
    assert_eq!(
        house
            .count("select count(*) from latest_prices where price = 164")
            .await,
        3
    );
    for gone in [path.clone(), format!("{path}/items")] {
        assert_eq!(house.app.get(&gone).await.kind(), "404 not_found");
    }
    assert_eq!(
        house.delete(&path).await.kind(),
        "404 not_found",
        "again there is no such scan"
    );
    assert_eq!(
        house.delete(&format!("{path}?histori=true")).await.kind(),
        "400 invalid_request"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn with_its_history_latest_prices_fall_back_to_what_is_left() {
    let house = House::open().await;
    let worker = house.worker(4);
    let old = seen(&house, 164).await;
    let new = seen(&house, 120).await;
    let newest = seen(&house, 140).await;
    worker.stop().await;
    let latest = "select count(*) from latest_prices where price = ";
    let prices = |price: u32| house.count(Box::leak(format!("{latest}{price}").into_boxed_str()));
    assert_eq!(
        (
            prices(140).await,
            house.count("select count(*) from observations").await
        ),
        (3, 9)
    );
    for (id, left, observations) in [(&old, 140, 6), (&newest, 120, 3)] {
        assert_eq!(
            house
                .delete(&format!("/v1/scans/{id}?history=true"))
                .await
                .status,
            204
        );
        assert_eq!(prices(left).await, 3, "{left}");
        assert_eq!(
            house.count("select count(*) from observations").await,
            observations
        );
    }
    assert_eq!(
        house
            .delete(&format!("/v1/scans/{new}?history=true"))
            .await
            .status,
        204
    );
    assert_eq!(house.count("select count(*) from latest_prices").await, 0);
    assert_eq!(house.count("select count(*) from observations").await, 0);
}

#[tokio::test]
async fn a_scan_that_has_not_ended_stays() {
    let office = Office::open().await;
    let delete = async |id: &str| {
        let path = format!("/v1/scans/{id}?history=false");
        office
            .app
            .send(
                office
                    .app
                    .request("DELETE", &path)
                    .header("x-api-key", crate::support::app::KEY),
            )
            .await
    };
    let id = office.order(&fares(3)).await;
    assert_eq!(delete(&id).await.kind(), "409 invalid_state");
    let claims = office.claim().await;
    office.begin(&claims[0]).await;
    office
        .app
        .post(&format!("/v1/scans/{id}/pause"), &json!({}))
        .await;
    assert!(delete(&id).await.message().contains("paused"));
    office
        .app
        .post(&format!("/v1/scans/{id}/cancel"), &json!({}))
        .await;
    let refused = delete(&id).await;
    assert!(
        refused.kind() == "409 invalid_state" && refused.message().contains("in flight"),
        "{}",
        refused.message()
    );
    assert_eq!(office.scan(&id).await["items"]["running"], json!(1));
    office.end(&claims[0], Comes::Ok(9)).await;
    assert_eq!(delete(&id).await.status, 204);
}
