//! The same POST twice.

use futures::future::join_all;
use serde_json::json;

use super::office::{Comes, Office, fares};

#[tokio::test]
async fn twenty_equal_submits_at_once_make_one_scan() {
    let office = Office::open().await;
    let body = fares(31);
    let answers = join_all((0..20).map(|_| office.post_once("january", "/v1/scans", &body))).await;
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
    let made: (i64, i64, i64) = sqlx::query_as(
        "select (select count(*) from scans), (select count(*) from scan_items), (select count(*) from key_grants)",
    )
    .fetch_one(office.db.pool())
    .await
    .unwrap();
    assert_eq!(made, (1, 31, 1));
}

#[tokio::test]
async fn a_repetition_gives_the_first_answer_whatever_has_happened_since() {
    let office = Office::open().await;
    let first = office.post_once("k", "/v1/scans", &fares(2)).await;
    office.work(|_| Comes::Ok(100)).await;
    // The same body in another order of its fields.
    let mut reordered = serde_json::Map::new();
    for name in ["sweep", "request", "endpoint"] {
        reordered.insert(name.to_owned(), fares(2)[name].clone());
    }
    let again = office.post_once("k", "/v1/scans", &reordered.into()).await;
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
async fn another_body_under_the_same_key_is_a_mismatch() {
    let office = Office::open().await;
    office.post_once("k", "/v1/scans", &fares(2)).await;
    let before = office.rows().await;
    let refused = office.post_once("k", "/v1/scans", &fares(3)).await;
    assert_eq!(refused.kind(), "422 idempotency_mismatch");
    assert!(
        refused
            .message()
            .starts_with("the Idempotency-Key `k` was used with another body"),
        "{}",
        refused.message()
    );
    assert_eq!(office.rows().await, before);
}

#[tokio::test]
async fn the_scope_is_the_caller_and_the_path() {
    let office = Office::open().await;
    let id = office.post_once("k", "/v1/scans", &fares(2)).await.json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let theirs = office
        .app
        .request("POST", "/v1/scans")
        .header("x-api-key", "another-key-0123456789")
        .header("idempotency-key", "k");
    let theirs = office.app.send(theirs.json(&fares(2))).await;
    assert_eq!(
        (theirs.status, theirs.header("idempotent-replayed")),
        (202, "")
    );
    assert_ne!(theirs.json()["id"], json!(id));
    office.work(|_| Comes::Degraded("blocked_page")).await;
    let retry = office
        .post_once(
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
async fn failures_are_not_kept() {
    let office = Office::open().await;
    let mut wrong = fares(2);
    wrong["max_requests"] = json!(1);
    assert_eq!(
        office.post_once("k", "/v1/scans", &wrong).await.kind(),
        "400 invalid_request"
    );
    assert_eq!(
        office.post_once("k", "/v1/scans", &fares(2)).await.status,
        202
    );
}

#[tokio::test]
async fn a_key_is_kept_for_48_hours() {
    let office = Office::open().await;
    office.post_once("k", "/v1/scans", &fares(1)).await;
    office.work(|_| Comes::Empty).await;
    sqlx::query("update idempotency_keys set created_at = created_at - interval '48 hours'")
        .execute(office.db.pool())
        .await
        .unwrap();
    let later = office.post_once("k", "/v1/scans", &fares(2)).await;
    assert_eq!(
        (later.status, later.header("idempotent-replayed")),
        (202, "")
    );
}

#[tokio::test]
async fn a_key_must_be_visible_text() {
    let office = Office::open().await;
    let answer = office.post_once("a key", "/v1/scans", &fares(1)).await;
    assert_eq!(answer.kind(), "400 invalid_request");
    assert!(
        answer
            .message()
            .starts_with("`Idempotency-Key` holds a value that is not shown; allowed: "),
        "{}",
        answer.message()
    );
}
