//! Repeated POSTs with an `Idempotency-Key`.

use futures::future::join_all;
use serde_json::json;

use crate::support::{SearchOutcome, TestService, fares};

#[tokio::test]
async fn twenty_concurrent_equal_submits_make_one_scan() {
    let service = TestService::start().await;
    let body = fares(31);
    let answers =
        join_all((0..20).map(|_| service.post_with_key("january", "/v1/scans", &body))).await;
    let first = answers[0].json();
    for answer in &answers {
        assert_eq!((answer.status, answer.json()), (202, first.clone()));
    }
    assert_eq!(
        answers
            .iter()
            .filter(|answer| answer.header("idempotent-replayed") == "true")
            .count(),
        19
    );
    let made: (i64, i64, i64) = row!(
        service.pool(),
        "select (select count(*) from scans), (select count(*) from scan_items), (select count(*) from key_grants)"
    );
    assert_eq!(made, (1, 31, 1));
}

#[tokio::test]
async fn a_repeated_submit_returns_the_first_response() {
    let service = TestService::start().await;
    let first = service.post_with_key("k", "/v1/scans", &fares(2)).await;
    service.complete_all(|_| SearchOutcome::Ok(100)).await;
    // The same body with its fields in another order.
    let mut reordered = serde_json::Map::new();
    for name in ["sweep", "request", "endpoint"] {
        reordered.insert(name.to_owned(), fares(2)[name].clone());
    }
    let again = service
        .post_with_key("k", "/v1/scans", &reordered.into())
        .await;
    assert_eq!((again.status, again.text()), (202, first.text()));
    assert_eq!(again.header("location"), first.header("location"));
    assert_eq!(
        (
            first.header("idempotent-replayed"),
            again.header("idempotent-replayed")
        ),
        ("", "true")
    );
}

#[tokio::test]
async fn another_body_with_the_same_key_is_a_mismatch() {
    let service = TestService::start().await;
    service.post_with_key("k", "/v1/scans", &fares(2)).await;
    let before = service.row_counts().await;
    let refused = service.post_with_key("k", "/v1/scans", &fares(3)).await;
    assert_eq!(refused.kind(), "422 idempotency_mismatch");
    assert!(
        refused
            .message()
            .starts_with("the Idempotency-Key `k` was used with another body"),
        "{}",
        refused.message()
    );
    assert_eq!(service.row_counts().await, before);
}

#[tokio::test]
async fn the_scope_is_the_caller_and_the_path() {
    let service = TestService::start().await;
    let id = service
        .post_with_key("k", "/v1/scans", &fares(2))
        .await
        .json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let theirs = service
        .request("POST", "/v1/scans")
        .header("x-api-key", "another-key-0123456789")
        .header("idempotency-key", "k");
    let theirs = service.send(theirs.json(&fares(2))).await;
    assert_eq!(
        (theirs.status, theirs.header("idempotent-replayed")),
        (202, "")
    );
    assert_ne!(theirs.json()["id"], json!(id));
    service
        .complete_all(|_| SearchOutcome::Degraded("blocked_page"))
        .await;
    let retry = service
        .post_with_key(
            "k",
            &format!("/v1/scans/{id}/retry"),
            &json!({"search_status": ["degraded"]}),
        )
        .await;
    assert_eq!(
        (retry.status, retry.header("idempotent-replayed")),
        (202, "")
    );
}

#[tokio::test]
async fn failed_requests_are_not_stored_under_their_key() {
    let service = TestService::start().await;
    let mut wrong = fares(2);
    wrong["max_requests"] = json!(1);
    assert_eq!(
        service.post_with_key("k", "/v1/scans", &wrong).await.kind(),
        "400 invalid_request"
    );
    assert_eq!(
        service
            .post_with_key("k", "/v1/scans", &fares(2))
            .await
            .status,
        202
    );
}

#[tokio::test]
async fn an_idempotency_key_is_stored_for_48_hours() {
    let service = TestService::start().await;
    service.post_with_key("k", "/v1/scans", &fares(1)).await;
    service.complete_all(|_| SearchOutcome::Empty).await;
    execute!(
        service.pool(),
        "update idempotency_keys set created_at = created_at - interval '48 hours'"
    );
    let later = service.post_with_key("k", "/v1/scans", &fares(2)).await;
    assert_eq!(
        (later.status, later.header("idempotent-replayed")),
        (202, "")
    );
}

#[tokio::test]
async fn a_key_must_be_visible_text() {
    let service = TestService::start().await;
    let answer = service.post_with_key("a key", "/v1/scans", &fares(1)).await;
    assert_eq!(answer.kind(), "400 invalid_request");
    assert!(
        answer
            .message()
            .starts_with("`Idempotency-Key`: found a value that is not shown; expected "),
        "{}",
        answer.message()
    );
}
