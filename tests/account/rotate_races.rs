//! Rotations at the same time as orders, resumes and each other: no key that has passed on is left in a grant, and no caller is lost.

use std::collections::HashSet;

use futures::future::{join, join_all};
use serde_json::json;

use super::rotate::{NEW, held_keys, rotate_to};
use crate::control::house::{airport, fares, from};
use crate::scans::office::{Comes, Office};
use crate::support::app::KEY;

/// Orders, resumes and retries with the old key while it passes on: what was taken before is the new key's, what came after is a
/// stranger's, and each key is held for its own tenant alone.
#[tokio::test(flavor = "multi_thread")]
async fn orders_at_the_same_time_are_taken_before_or_after_never_between() {
    for round in 0..5_usize {
        let office = Office::open().await;
        office.done(&fares(1), |_| Comes::Ok(9)).await;
        let paused = office.order(&from(&airport(99), fares(2))).await;
        office
            .post_as(KEY, &format!("/v1/scans/{paused}/pause"), &json!({}))
            .await;
        let orders = join_all((0..12).map(|number| {
            let (office, paused) = (&office, &paused);
            async move {
                match number % 3 {
                    0 => {
                        office
                            .post_as(KEY, &format!("/v1/scans/{paused}/resume"), &json!({}))
                            .await
                            .status
                    }
                    _ => {
                        office
                            .post_as(KEY, "/v1/scans", &from(&airport(number), fares(1)))
                            .await
                            .status
                    }
                }
            }
        }));
        let rotation = async {
            // Not always first, so that both orders of things are seen.
            for _ in 0..round {
                office.get("/v1/scans").await;
            }
            rotate_to(&office.app, KEY, NEW).await
        };
        let (statuses, rotated) = join(orders, rotation).await;
        assert_eq!(rotated.status, 200, "{}", rotated.text());
        // A stranger may have one scan until the marketplace has accepted the key.
        assert!(
            statuses
                .iter()
                .all(|status| [200, 202, 404, 429].contains(status)),
            "{statuses:?}"
        );
        let tenant_of = async |key: &str| {
            office.get_as(key, "/v1/scans?limit=500").await.json()["data"]
                .as_array()
                .unwrap()
                .len()
        };
        let taken = statuses.iter().filter(|status| **status == 202).count();
        assert_eq!(
            tenant_of(NEW).await + tenant_of(KEY).await,
            2 + taken,
            "{statuses:?}"
        );
        let keys: HashSet<_> = held_keys(&office.db).await.into_iter().collect();
        let tenants: HashSet<_> = keys.iter().map(|(tenant, _)| *tenant).collect();
        assert_eq!(
            keys.len(),
            tenants.len(),
            "no tenant has two keys held: {keys:?}"
        );
        assert!(
            keys.iter().any(|(_, key)| key == NEW),
            "the paused scan's is the new one"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_rotations_of_one_key_one_is_first() {
    let office = Office::open().await;
    office.order(&fares(2)).await;
    let news: Vec<_> = (0..6)
        .map(|number| format!("new-key-number-{number}"))
        .collect();
    let answers = join_all(news.iter().map(|new| rotate_to(&office.app, KEY, new))).await;
    let kinds: Vec<_> = answers.iter().map(|answer| answer.kind()).collect();
    assert_eq!(
        kinds.iter().filter(|kind| *kind == "200").count(),
        1,
        "{kinds:?}"
    );
    assert_eq!(
        kinds.iter().filter(|kind| *kind == "404 not_found").count(),
        5,
        "{kinds:?}"
    );
    let winner = &news[kinds.iter().position(|kind| kind == "200").unwrap()];
    let keys = held_keys(&office.db).await;
    assert_eq!(
        keys.iter().map(|(_, key)| key).collect::<Vec<_>>(),
        [winner]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_callers_who_want_one_key_one_gets_it() {
    let office = Office::open().await;
    let olds: Vec<_> = (0..4)
        .map(|number| format!("old-key-number-{number}"))
        .collect();
    for old in &olds {
        assert_eq!(
            office.post_as(old, "/v1/scans", &fares(1)).await.status,
            202
        );
    }
    let answers = join_all(olds.iter().map(|old| rotate_to(&office.app, old, NEW))).await;
    let kinds: Vec<_> = answers.iter().map(|answer| answer.kind()).collect();
    assert_eq!(
        kinds.iter().filter(|kind| *kind == "200").count(),
        1,
        "{kinds:?}"
    );
    assert_eq!(
        kinds
            .iter()
            .filter(|kind| *kind == "409 invalid_state")
            .count(),
        3,
        "{kinds:?}"
    );
    assert_eq!(held_keys(&office.db).await.len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_order_with_the_new_key_makes_no_second_tenant() {
    for _ in 0..5 {
        let office = Office::open().await;
        office.done(&fares(1), |_| Comes::Ok(9)).await;
        let (ordered, rotated) = join(
            office.post_as(NEW, "/v1/scans", &from("ZZZ", fares(1))),
            rotate_to(&office.app, KEY, NEW),
        )
        .await;
        assert_eq!(ordered.status, 202, "{}", ordered.text());
        let scans = office.get_as(NEW, "/v1/scans").await.json()["data"]
            .as_array()
            .unwrap()
            .len();
        match rotated.kind().as_str() {
            "200" => assert_eq!(
                scans, 2,
                "the order came after, to the tenant that is the new key's"
            ),
            "409 invalid_state" => assert_eq!(
                scans, 1,
                "the order came first, so the new key owned something"
            ),
            other => panic!("{other}: {}", rotated.text()),
        }
    }
}
