//! What is left of callers that no marketplace accepted is removed.

use farescan::tenants::acceptance::{MOST_CALLERS, NEW_CALLERS_A_MINUTE};
use farescan::tenants::store::acceptance::remove_left;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{house, send};
use crate::control::house::{fares, from};
use crate::scans::office::{Comes, Office};
use crate::support::db::strangers;
use crate::support::reply::Reply;
use crate::support::upstream::fare;

#[tokio::test(flavor = "multi_thread")]
async fn a_day_after_the_refusal_nothing_of_the_caller_is_left() {
    let office = Office::open().await;
    strangers(office.db.pool()).await;
    office.app.upstream.on_any().reply(Reply::status(401));
    let before = office.rows().await;
    let house = crate::control::house::House {
        db: office.db,
        app: office.app,
    };
    let worker = house.worker(2);
    let id = house.order(&fares(10)).await;
    house
        .scan_when(&id, "its lane is paused", |scan| {
            scan["status_reason"] == "key_rejected"
        })
        .await;
    worker.stop().await;
    let (pool, now) = (house.db.pool(), Timestamp::now());
    assert_eq!(
        remove_left(pool, 10, now + SignedDuration::from_hours(23))
            .await
            .unwrap(),
        0,
        "it is kept for a day"
    );
    assert_eq!(
        remove_left(pool, 10, now + SignedDuration::from_hours(25))
            .await
            .unwrap(),
        1
    );
    let mut left = Vec::new();
    for (table, rows) in before {
        let count = sqlx::AssertSqlSafe(format!("select count(*) from {table}"));
        let now: i64 = sqlx::query_scalar(count).fetch_one(pool).await.unwrap();
        if now != rows && !matches!(table.as_str(), "workers") {
            left.push((table, rows, now));
        }
    }
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_accepted_or_waits_for_the_marketplace_stays() {
    let house = house().await;
    house
        .app
        .upstream
        .on_any()
        .answer(|call| match call.key.as_str() {
            "refused" => Reply::status(401),
            _ => Reply::json(json!([fare(120, &call.body)])),
        });
    for key in ["accepted", "refused"] {
        house.order_as(key, &fares(3)).await;
    }
    let worker = house.worker(2);
    while house
        .count(
            "select count(*) from tenants where accepted_at is not null or refused_at is not null",
        )
        .await
        < 2
    {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    worker.stop().await;
    house.order_as("waiting", &from("ZZZ", fares(3))).await;
    let paused = house.order_as("cancelled", &fares(3)).await;
    assert_eq!(
        send(
            &house.app,
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
        remove_left(house.db.pool(), 1, later).await.unwrap(),
        1,
        "so many in one pass"
    );
    assert_eq!(remove_left(house.db.pool(), 100, later).await.unwrap(), 1);
    for (key, scans) in [
        ("accepted", 1),
        ("waiting", 1),
        ("refused", 0),
        ("cancelled", 0),
    ] {
        let list = send(&house.app, key, "GET", "/v1/scans", None).await.json();
        assert_eq!(list["data"].as_array().unwrap().len(), scans, "{key}");
    }
    house.order_as("refused", &fares(3)).await;
}

#[tokio::test]
async fn callers_that_are_not_accepted_are_bounded_together() {
    for (age, most) in [
        ("0 seconds", NEW_CALLERS_A_MINUTE),
        ("1 hour", MOST_CALLERS),
    ] {
        let house = house().await;
        let fill = "insert into tenants (tenant_id, created_at) select gen_random_uuid(), now() - $2::interval from generate_series(1, $1)";
        sqlx::query(sqlx::AssertSqlSafe(fill.replace("$2", &format!("'{age}'"))))
            .bind(most - 1)
            .execute(house.db.pool())
            .await
            .unwrap();
        house.order_as("the-last-one", &fares(3)).await;
        let refused = send(
            &house.app,
            "one-too-many",
            "POST",
            "/v1/scans",
            Some(&fares(3)),
        )
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
            house.count("select count(*) from tenants").await,
            most,
            "a refusal stores nobody"
        );
        assert_eq!(
            send(&house.app, "one-too-many", "GET", "/v1/verify", None)
                .await
                .status,
            200
        );
        house.order_as("one-too-many", &fares(3)).await;
    }
}

#[tokio::test]
async fn an_order_beside_the_removal_is_not_lost() {
    let office = Office::open().await;
    strangers(office.db.pool()).await;
    let later = Timestamp::now() + SignedDuration::from_hours(25);
    let id = office.order(&fares(2)).await;
    let cancelled = office
        .app
        .post(&format!("/v1/scans/{id}/cancel"), &json!({}))
        .await;
    assert_eq!(cancelled.status, 200);
    let pool = office.db.pool();
    sqlx::query("update tenants set ordered_at = ordered_at - interval '25 hours'")
        .execute(pool)
        .await
        .unwrap();
    let order = fares(2);
    let (_, ordered) = tokio::join!(
        remove_left(pool, 10, later),
        office.app.post("/v1/scans", &order)
    );
    assert_eq!(ordered.status, 202, "{}", ordered.text());
    office.work(|_| Comes::Empty).await;
}
