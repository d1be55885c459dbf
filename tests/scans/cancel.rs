//! Cancelling a scan.

use farescan::queue::store::BeginVerdict;
use serde_json::json;

use crate::support::{SearchOutcome, TestService, fares};

#[tokio::test]
async fn no_call_begins_after_a_cancel_and_running_calls_finish() {
    let service = TestService::start().await;
    let id = service.submit(&fares(5)).await;
    let claims = service.claim().await;
    service.begin(&claims[0]).await;
    service.begin(&claims[1]).await;
    service.finish(&claims[0], SearchOutcome::Ok(100)).await;

    let answer = service
        .post(&format!("/v1/scans/{id}/cancel"), &json!({}))
        .await
        .expect(200);
    let scan = answer.json();
    assert_eq!(
        (
            &scan["status"],
            &scan["items"]["cancelled"],
            &scan["items"]["running"]
        ),
        (&json!("cancelled"), &json!(3), &json!(1))
    );
    assert_eq!(scan["finished_at"], json!(null));
    assert!(
        scan["key_custody"]["until"].is_string(),
        "one call is in flight"
    );
    assert_eq!(service.try_begin(&claims[2]).await, BeginVerdict::ClaimLost);
    assert_eq!(service.claim().await.len(), 0);

    service.finish(&claims[1], SearchOutcome::Ok(90)).await;
    let scan = service.scan(&id).await;
    assert_eq!(
        (
            &scan["status"],
            &scan["items"]["ok"],
            &scan["best"]["price"]
        ),
        (&json!("cancelled"), &json!(2), &json!(90))
    );
    assert!(scan["finished_at"].is_string());
    assert_eq!(
        scan["key_custody"],
        json!(null),
        "the key goes with the last call"
    );
}

#[tokio::test]
async fn a_cancel_without_running_calls_ends_the_scan_at_once() {
    let service = TestService::start().await;
    let id = service.submit(&fares(2)).await;
    let path = format!("/v1/scans/{id}/cancel");
    let first = service.post(&path, &json!({})).await;
    assert_eq!(
        (
            first.status,
            &first.json()["key_custody"],
            first.json()["progress"].clone()
        ),
        (200, &json!(null), json!(1.0))
    );
    let again = service.post(&path, &json!({})).await;
    assert_eq!((again.status, again.json()), (200, first.json()));
    let bare = service
        .send(
            service
                .request("POST", &path)
                .header("x-api-key", crate::support::app::KEY),
        )
        .await;
    assert_eq!(bare.status, 200, "no body is required");
    let hex = "select max(octet_length(ciphertext) + octet_length(nonce)) from key_grants";
    assert_eq!(value!(service.pool(), hex, => i32), 0, "wiped");
}

#[tokio::test]
async fn a_scan_that_has_ended_cannot_be_cancelled() {
    let service = TestService::start().await;
    for (outcome, status) in [
        (SearchOutcome::Ok(1), "completed"),
        (SearchOutcome::Failed, "incomplete"),
    ] {
        let id = service.submit_and_complete(&fares(1), |_| outcome).await;
        let answer = service
            .post(&format!("/v1/scans/{id}/cancel"), &json!({}))
            .await;
        assert_eq!(answer.kind(), "409 invalid_state");
        assert!(answer.message().contains(status), "{}", answer.message());
    }
}
