//! Deleting scans that have ended, with and without their observations.

use serde_json::json;

use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::support::{SearchOutcome, TestService, fares};

const OF_SCANS: [&str; 6] = [
    "select count(*) from scans",
    "select count(*) from scan_items",
    "select count(*) from attempts",
    "select count(*) from answers",
    "select count(*) from key_grants",
    "select count(*) from idempotency_keys where path <> '/v1/scans'",
];

/// A completed scan of three dates at this price.
async fn completed_scan(service: &TestService, price: u64) -> String {
    service
        .upstream
        .answer(move |call| Reply::json(json!([fare(price, &call.body)])));
    let id = service.submit(&fares(3)).await;
    service.wait_until_ended(&id).await;
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_scan_leaves_only_its_observations() {
    let service = TestService::start().await;
    let worker = service.start_worker(4);
    let id = completed_scan(&service, 164).await;
    let retried = service
        .request("POST", &format!("/v1/scans/{id}/retry"))
        .header("x-api-key", crate::support::app::KEY);
    service
        .send(
            retried
                .header("idempotency-key", "k")
                .json(&json!({"search_status": ["degraded"]})),
        )
        .await;
    worker.stop().await;
    let before = service.count("select count(*) from observations").await;
    let path = format!("/v1/scans/{id}");
    let answer = service.delete(&path).await;
    assert_eq!((answer.status, answer.text().as_str()), (204, ""));
    for table in OF_SCANS {
        assert_eq!(service.count(table).await, 0, "{table}");
    }
    assert_eq!(
        (
            before,
            service.count("select count(*) from observations").await
        ),
        (3, 3)
    );
    assert_eq!(
        service
            .count("select count(*) from latest_prices where price = 164")
            .await,
        3
    );
    for gone in [path.clone(), format!("{path}/items")] {
        assert_eq!(service.app.get(&gone).await.kind(), "404 not_found");
    }
    assert_eq!(
        service.delete(&path).await.kind(),
        "404 not_found",
        "the scan no longer exists"
    );
    assert_eq!(
        service.delete(&format!("{path}?histori=true")).await.kind(),
        "400 invalid_request"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_history_restores_older_latest_prices() {
    let service = TestService::start().await;
    let worker = service.start_worker(4);
    let old = completed_scan(&service, 164).await;
    let new = completed_scan(&service, 120).await;
    let newest = completed_scan(&service, 140).await;
    worker.stop().await;
    let latest = "select count(*) from latest_prices where price = ";
    let prices = |price: u32| service.count(Box::leak(format!("{latest}{price}").into_boxed_str()));
    assert_eq!(
        (
            prices(140).await,
            service.count("select count(*) from observations").await
        ),
        (3, 9)
    );
    for (id, left, observations) in [(&old, 140, 6), (&newest, 120, 3)] {
        assert_eq!(
            service
                .delete(&format!("/v1/scans/{id}?history=true"))
                .await
                .status,
            204
        );
        assert_eq!(prices(left).await, 3, "{left}");
        assert_eq!(
            service.count("select count(*) from observations").await,
            observations
        );
    }
    assert_eq!(
        service
            .delete(&format!("/v1/scans/{new}?history=true"))
            .await
            .status,
        204
    );
    assert_eq!(service.count("select count(*) from latest_prices").await, 0);
    assert_eq!(service.count("select count(*) from observations").await, 0);
}

#[tokio::test]
async fn a_scan_that_has_not_ended_cannot_be_deleted() {
    let service = TestService::start().await;
    let delete = async |id: &str| {
        let path = format!("/v1/scans/{id}?history=false");
        service
            .send(
                service
                    .request("DELETE", &path)
                    .header("x-api-key", crate::support::app::KEY),
            )
            .await
    };
    let id = service.submit(&fares(3)).await;
    assert_eq!(delete(&id).await.kind(), "409 invalid_state");
    let claims = service.claim().await;
    service.begin(&claims[0]).await;
    service
        .post(&format!("/v1/scans/{id}/pause"), &json!({}))
        .await;
    assert!(delete(&id).await.message().contains("paused"));
    service
        .post(&format!("/v1/scans/{id}/cancel"), &json!({}))
        .await;
    let refused = delete(&id).await;
    assert!(
        refused.kind() == "409 invalid_state" && refused.message().contains("in flight"),
        "{}",
        refused.message()
    );
    assert_eq!(service.scan(&id).await["items"]["running"], json!(1));
    service.finish(&claims[0], SearchOutcome::Ok(9)).await;
    assert_eq!(delete(&id).await.status, 204);
}
