//! Removal of callers that no marketplace accepted.

use farescan::tenants::acceptance::{MAX_NEW_CALLERS_PER_MINUTE, MAX_UNACCEPTED_CALLERS};
use farescan::tenants::store::acceptance::remove_unaccepted;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::service;
use crate::support::db::require_key_acceptance;
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::support::{SearchOutcome, TestService, array, departing_from, fares};

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_caller_is_removed_after_a_day() {
    let service = TestService::start().await;
    require_key_acceptance(service.pool()).await;
    service.upstream.reply(Reply::status(401));
    let before = service.row_counts().await;
    let worker = service.start_worker(2);
    let id = service.submit(&fares(10)).await;
    service
        .wait_for_scan(&id, "its lane is paused", |scan| {
            scan["status_reason"] == "key_rejected"
        })
        .await;
    worker.stop().await;
    let (pool, now) = (service.pool(), Timestamp::now());
    assert_eq!(
        remove_unaccepted(pool, 10, now + SignedDuration::from_hours(23))
            .await
            .unwrap(),
        0,
        "the caller stays for a day"
    );
    assert_eq!(
        remove_unaccepted(pool, 10, now + SignedDuration::from_hours(25))
            .await
            .unwrap(),
        1
    );
    let mut left = Vec::new();
    for (table, rows) in before {
        let count = sqlx::AssertSqlSafe(format!("select count(*) from {table}"));
        let now: i64 = value!(pool, count);
        if now != rows && !matches!(table.as_str(), "workers") {
            left.push((table, rows, now));
        }
    }
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn accepted_and_waiting_callers_are_not_removed() {
    let service = service().await;
    service.upstream.answer(|call| match call.key.as_str() {
        "refused" => Reply::status(401),
        _ => Reply::json(json!([fare(120, &call.body)])),
    });
    for key in ["accepted", "refused"] {
        service.submit_as(key, &fares(3)).await;
    }
    let worker = service.start_worker(2);
    while service
        .count(
            "select count(*) from tenants where accepted_at is not null or refused_at is not null",
        )
        .await
        < 2
    {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    worker.stop().await;
    service
        .submit_as("waiting", &departing_from("ZZZ", fares(3)))
        .await;
    let paused = service.submit_as("cancelled", &fares(3)).await;
    assert_eq!(
        service
            .ask_as(
                "cancelled",
                "POST",
                &format!("/v1/scans/{paused}/cancel"),
                None
            )
            .await
            .status,
        200
    );
    let later = Timestamp::now() + SignedDuration::from_hours(24 * 30);
    assert_eq!(
        remove_unaccepted(service.pool(), 1, later).await.unwrap(),
        1,
        "at most one per pass"
    );
    assert_eq!(
        remove_unaccepted(service.pool(), 100, later).await.unwrap(),
        1
    );
    for (key, scans) in [
        ("accepted", 1),
        ("waiting", 1),
        ("refused", 0),
        ("cancelled", 0),
    ] {
        let list = service.ask_as(key, "GET", "/v1/scans", None).await.json();
        assert_eq!(array(&list["data"]).len(), scans, "{key}");
    }
    service.submit_as("refused", &fares(3)).await;
}

#[tokio::test]
async fn unaccepted_callers_are_bounded_in_total() {
    for (age, most) in [
        ("0 seconds", MAX_NEW_CALLERS_PER_MINUTE),
        ("1 hour", MAX_UNACCEPTED_CALLERS),
    ] {
        let service = service().await;
        let fill = "insert into tenants (tenant_id, created_at) select gen_random_uuid(), now() - $2::interval from generate_series(1, $1)";
        execute!(
            service.pool(),
            sqlx::AssertSqlSafe(fill.replace("$2", &format!("'{age}'"))),
            most - 1
        );
        service.submit_as("the-last-one", &fares(3)).await;
        let refused = service
            .ask_as("one-too-many", "POST", "/v1/scans", Some(&fares(3)))
            .await;
        assert_eq!(
            (refused.kind().as_str(), refused.header("retry-after")),
            ("429 too_many_requests", "60"),
            "{age}"
        );
        assert!(
            refused.message().starts_with("too many callers"),
            "{}",
            refused.message()
        );
        assert_eq!(
            service.count("select count(*) from tenants").await,
            most,
            "a refused submission stores no caller"
        );
        assert_eq!(
            service
                .ask_as("one-too-many", "GET", "/v1/verify", None)
                .await
                .status,
            200
        );
        service.submit_as("one-too-many", &fares(3)).await;
    }
}

#[tokio::test]
async fn a_submission_during_the_removal_is_not_lost() {
    let service = TestService::start().await;
    require_key_acceptance(service.pool()).await;
    let later = Timestamp::now() + SignedDuration::from_hours(25);
    let id = service.submit(&fares(2)).await;
    let cancelled = service
        .post(&format!("/v1/scans/{id}/cancel"), &json!({}))
        .await;
    assert_eq!(cancelled.status, 200);
    let pool = service.pool();
    execute!(
        pool,
        "update tenants set ordered_at = ordered_at - interval '25 hours'"
    );
    let order = fares(2);
    let (_, ordered) = tokio::join!(
        remove_unaccepted(pool, 10, later),
        service.post("/v1/scans", &order)
    );
    assert_eq!(ordered.status, 202, "{}", ordered.text());
    service.complete_all(|_| SearchOutcome::Empty).await;
}
