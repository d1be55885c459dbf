//! Ending a scan by its caller's word.

use farescan::queue::store::Verdict;
use serde_json::json;

use super::office::{Comes, Office, fares};

#[tokio::test]
async fn nothing_begins_after_the_answer_and_what_is_in_flight_is_kept() {
    let office = Office::open().await;
    let id = office.order(&fares(5)).await;
    let claims = office.claim().await;
    office.begin(&claims[0]).await;
    office.begin(&claims[1]).await;
    office.end(&claims[0], Comes::Ok(100)).await;

    let answer = office
        .app
        .post(&format!("/v1/scans/{id}/cancel"), &json!({}))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text());
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
    assert_eq!(office.try_begin(&claims[2]).await, Verdict::Gone);
    assert_eq!(office.claim().await.len(), 0);

    office.end(&claims[1], Comes::Ok(90)).await;
    let scan = office.scan(&id).await;
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
async fn with_nothing_in_flight_it_ends_at_once_and_again_is_fine() {
    let office = Office::open().await;
    let id = office.order(&fares(2)).await;
    let path = format!("/v1/scans/{id}/cancel");
    let first = office.app.post(&path, &json!({})).await;
    assert_eq!(
        (
            first.status,
            &first.json()["key_custody"],
            first.json()["progress"].clone()
        ),
        (200, &json!(null), json!(1.0))
    );
    let again = office.app.post(&path, &json!({})).await;
    assert_eq!((again.status, again.json()), (200, first.json()));
    let bare = office
        .app
        .send(
            office
                .app
                .request("POST", &path)
                .header("x-api-key", crate::support::app::KEY),
        )
        .await;
    assert_eq!(bare.status, 200, "no body is needed");
    let hex = sqlx::query_scalar::<_, i32>(
        "select max(octet_length(ciphertext) + octet_length(nonce)) from key_grants",
    );
    assert_eq!(hex.fetch_one(office.db.pool()).await.unwrap(), 0, "wiped");
}

#[tokio::test]
async fn what_has_ended_by_itself_cannot_be_cancelled() {
    let office = Office::open().await;
    for (comes, status) in [(Comes::Ok(1), "completed"), (Comes::Refused, "incomplete")] {
        let id = office.done(&fares(1), |_| comes).await;
        let answer = office
            .app
            .post(&format!("/v1/scans/{id}/cancel"), &json!({}))
            .await;
        assert_eq!(answer.kind(), "409 invalid_state");
        assert!(answer.message().contains(status), "{}", answer.message());
    }
}
