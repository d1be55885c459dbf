//! Twenty callers' words at once over scans that a worker works on: nothing is asked twice, nothing is lost, nothing deadlocks.

use serde_json::{Value, json};

use super::house::{Dice, House, adds_up, airport, fares, from};
use crate::support::app::KEY;

/// Says words at random, each to one of the scans; only the words' own refusals may come back.
async fn talk(house: &House, ids: &[String], words: &[&str], seed: u64) {
    let mut dice = Dice(seed);
    for _ in 0..8 {
        let id = &ids[usize::try_from(dice.below(ids.len() as u64)).unwrap()];
        let word = words[usize::try_from(dice.below(words.len() as u64)).unwrap()];
        let answer = match word {
            "delete" => house.delete(&format!("/v1/scans/{id}?history=true")).await,
            "retry" => {
                house
                    .app
                    .post(
                        &format!("/v1/scans/{id}/retry"),
                        &json!({"search_status": ["degraded", "partial"]}),
                    )
                    .await
            }
            word => {
                house
                    .app
                    .post(&format!("/v1/scans/{id}/{word}"), &json!({}))
                    .await
            }
        };
        let kind = answer.kind();
        let expected = ["200", "202", "204", "404 not_found", "409 invalid_state"];
        assert!(
            expected.contains(&kind.as_str()),
            "{word}: {}",
            answer.text()
        );
    }
}

/// Twenty at once.
async fn crowd(house: &House, ids: &[String], words: &[&str], seed: u64) {
    futures::future::join_all((0..20).map(|caller| talk(house, ids, words, seed * 100 + caller)))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pauses_resumes_and_retries_at_once_lose_nothing_and_repeat_nothing() {
    let house = House::open().await;
    let worker = house.worker(12);
    house.warm().await;
    let id = house.order(&fares(120)).await;
    crowd(
        &house,
        std::slice::from_ref(&id),
        &["pause", "resume", "retry", "pause", "resume"],
        1,
    )
    .await;
    house.say(&id, "resume", &json!({})).await;
    let ended = house.ended(&id).await;
    worker.stop().await;
    adds_up(&ended);
    assert_eq!(
        (
            &ended["status"],
            &ended["items"]["ok"],
            &ended["requests"]["spent"]
        ),
        (&json!("completed"), &json!(120), &json!(120))
    );
    let asked = house.asked("TLV");
    assert!(
        asked.len() == 120 && asked.values().all(|times| *times == 1),
        "{asked:?}"
    );
    assert_eq!(
        house
            .count("select count(*) from attempts where ended_at is null")
            .await,
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn cancels_and_deletions_among_them_leave_scans_whole_or_gone() {
    let house = House::open().await;
    let workers = [house.worker(8), house.worker(8)];
    house.warm().await;
    let mut ids = Vec::new();
    for number in 0..8 {
        ids.push(house.order(&from(&airport(number), fares(60))).await);
    }
    let words = [
        "pause", "resume", "resume", "retry", "cancel", "delete", "delete",
    ];
    crowd(&house, &ids, &words, 2).await;
    crowd(&house, &ids, &words, 3).await;
    // One is deleted whatever the crowd came to, so that what a deletion leaves behind is always looked at.
    let first = format!("/v1/scans/{}", ids[0]);
    if house.app.get(&first).await.status != 404 {
        house.app.post(&format!("{first}/cancel"), &json!({})).await;
        house.ended(&ids[0]).await;
        assert_eq!(
            house.delete(&format!("{first}?history=true")).await.status,
            204
        );
    }
    let mut gone = 0;
    for (number, id) in ids.iter().enumerate() {
        let asked = house.asked(&airport(number));
        assert!(asked.values().all(|times| *times == 1), "{asked:?}");
        let answer = house.app.get(&format!("/v1/scans/{id}")).await;
        if answer.status == 404 {
            gone += 1;
            continue;
        }
        if answer.json()["status"] == "paused" {
            house.say(id, "resume", &json!({})).await;
        }
        let ended = house.ended(id).await;
        adds_up(&ended);
        let asked = house.asked(&airport(number));
        assert!(asked.values().all(|times| *times == 1), "{asked:?}");
        assert_eq!(ended["requests"]["spent"], json!(asked.len()));
        assert_eq!(
            ended["items"]["ok"],
            json!(asked.len()),
            "every call that was paid for is kept"
        );
    }
    for worker in workers {
        worker.stop().await;
    }
    assert!(gone > 0);
    let orphans = "select (select count(*) from scan_items i where not exists (select from scans s where s.scan_id = i.scan_id))
                        + (select count(*) from answers a where not exists (select from scan_items i where i.item_id = a.item_id))
                        + (select count(*) from key_grants g where not exists (select from scans s where s.grant_id = g.grant_id))
                        + (select count(*) from observations o where not exists (select from scan_items i where i.item_id = o.item_id))
                        + (select count(*) from latest_prices l where l.price is not null
                           and not exists (select from scan_items i where i.item_id = l.item_id))
                        + (select count(*) from latest_prices l where not exists (select from scan_items i where i.item_id = l.look_item_id))";
    assert_eq!(house.count(orphans).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_resume_sent_twenty_times_with_one_key_is_done_once() {
    let house = House::open().await;
    let id = house.order(&fares(5)).await;
    house.say(&id, "pause", &json!({})).await;
    let send = || async {
        let request = house
            .app
            .request("POST", &format!("/v1/scans/{id}/resume"))
            .header("x-api-key", KEY);
        house
            .app
            .send(
                request
                    .header("idempotency-key", "one")
                    .json(&json!({"max_requests": 6})),
            )
            .await
    };
    let answers = futures::future::join_all((0..20).map(|_| send())).await;
    let first: Vec<_> = answers
        .iter()
        .filter(|answer| answer.header("idempotent-replayed").is_empty())
        .collect();
    assert_eq!(first.len(), 1);
    let body: Value = first[0].json();
    assert!(
        answers
            .iter()
            .all(|answer| answer.status == 200 && answer.json() == body)
    );
}
