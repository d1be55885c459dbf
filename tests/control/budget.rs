//! `max_requests`: a hard ceiling, whatever is tried again.

use farescan::contract::Endpoint;
use serde_json::{Value, json};

use super::house::{Dice, House, adds_up, airport, from, order};
use crate::support::reply::Reply;
use crate::support::upstream::fare;

/// It has stopped at its ceiling, and what was in flight is recorded.
fn spent_up(scan: &Value) -> bool {
    scan["status_reason"] == "budget_spent" && scan["items"]["running"] == 0
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spent_budget_pauses_and_a_resume_with_more_goes_on() {
    let house = House::open().await;
    let worker = house.worker(1);
    house.app.upstream.on_any().reply(Reply::status(502));
    let id = house.order(&order(6, &json!({"max_requests": 7}))).await;
    // One at a time, each with a second try: three pairs, and one place that is left for a fourth.
    let paused = house.scan_when(&id, "its budget is spent", spent_up).await;
    assert_eq!(
        (&paused["status"], &paused["requests"]),
        (
            &json!("paused"),
            &json!({"planned": 6, "spent": 7, "max": 7})
        )
    );
    assert_eq!(
        (&paused["items"]["degraded"], &paused["items"]["pending"]),
        (&json!(4), &json!(2))
    );
    assert_eq!(house.app.upstream.count(), 7);

    for (body, said) in [
        (
            json!({}),
            "`max_requests` is missing; allowed: at least 8: 7 requests are spent",
        ),
        (
            json!({"max_requests": 7}),
            "`max_requests` holds 7; allowed: at least 8: 7 requests are spent",
        ),
    ] {
        let answer = house
            .app
            .post(&format!("/v1/scans/{id}/resume"), &body)
            .await;
        assert_eq!(
            (answer.kind().as_str(), answer.message().as_str()),
            ("400 invalid_request", said)
        );
    }
    assert_eq!(
        house.scan(&id).await["status_reason"],
        json!("budget_spent"),
        "nothing was changed"
    );

    house.say(&id, "resume", &json!({"max_requests": 8})).await;
    let again = house
        .scan_when(&id, "the one more is spent", |scan| {
            scan["requests"]["spent"] == 8 && spent_up(scan)
        })
        .await;
    assert_eq!(
        (&again["items"]["degraded"], house.app.upstream.count()),
        (&json!(5), 8)
    );
    house
        .app
        .upstream
        .on_any()
        .answer(|call| Reply::json(json!([fare(164, &call.body)])));
    house.say(&id, "resume", &json!({"max_requests": 20})).await;
    let ended = house.ended(&id).await;
    worker.stop().await;
    adds_up(&ended);
    assert_eq!(
        (&ended["items"]["ok"], &ended["requests"]),
        (&json!(1), &json!({"planned": 6, "spent": 9, "max": 20}))
    );
}

/// 32 scans at once over a marketplace that fails in every way, two workers, ceilings that are often too low, resumes with a little more:
/// at every stop and in the end the marketplace's ledger holds what the scan says was spent, and never more than its ceiling.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_spent_is_what_the_ledger_holds_and_never_over_the_ceiling() {
    let house = House::open().await;
    let workers = [house.worker(16), house.worker(16)];
    house.warm().await;
    let mut dice = Dice(7);
    house
        .app
        .upstream
        .on(Endpoint::FlightsOneway)
        .answer(move |call| match dice.below(10) {
            0..=2 => Reply::status([500, 502, 503, 504][usize::try_from(dice.below(4)).unwrap()]),
            3..=4 => Reply::search_incomplete("blocked_page"),
            5 => Reply::reset(),
            6 => Reply::json(json!([])),
            _ => Reply::json(json!([fare(100 + dice.below(100), &call.body)])),
        });
    let mut dice = Dice(11);
    let mut scans = Vec::new();
    for number in 0..32 {
        let items = 1 + dice.below(8);
        // Most ceilings are too low: answers come in any order, so what is thrown for whom differs from run to run, and too few
        // pauses would prove nothing.
        let (attempts, max) = (1 + dice.below(3), items + dice.below(items));
        let more =
            json!({"max_requests": max, "retry": {"max_attempts": attempts, "delay_seconds": 0}});
        let body = from(
            &airport(number),
            order(usize::try_from(items).unwrap(), &more),
        );
        scans.push((house.order(&body).await, airport(number), attempts));
    }
    let stopped = |scan: &Value| {
        scan["items"]["running"] == 0
            && (scan["finished_at"].is_string() || scan["status_reason"] == "budget_spent")
    };
    let (mut pauses, mut second_tries, mut again) = (0, 0, 0);
    for (id, origin, attempts) in &scans {
        loop {
            let scan = house
                .scan_when(id, "it ends or its budget is spent", stopped)
                .await;
            adds_up(&scan);
            let (spent, max) = (
                scan["requests"]["spent"].as_u64().unwrap(),
                scan["requests"]["max"].as_u64().unwrap(),
            );
            assert_eq!(house.calls(origin) as u64, spent, "{scan:#}");
            assert!(spent <= max, "{scan:#}");
            if scan["finished_at"].is_string() {
                break;
            }
            assert_eq!(
                spent, max,
                "a budget that is spent has nothing left: {scan:#}"
            );
            pauses += 1;
            house
                .say(
                    id,
                    "resume",
                    &json!({"max_requests": max + 1 + dice.below(4)}),
                )
                .await;
        }
        for item in house.items(id).await {
            let (tried, spent) = (
                item["attempts"].as_u64().unwrap(),
                item["requests_spent"].as_u64().unwrap(),
            );
            assert!(tried <= *attempts && spent <= 2 * tried, "{item:#}");
            again += u64::from(tried > 1);
            second_tries += spent - tried;
        }
    }
    for worker in workers {
        worker.stop().await;
    }
    let ledger = house.app.upstream.count();
    assert_eq!(
        house
            .count("select sum(requests_spent)::bigint from attempts")
            .await,
        i64::try_from(ledger).unwrap()
    );
    assert!(
        pauses > 5 && second_tries > 5 && again > 5,
        "{pauses} pauses, {second_tries} second tries, {again} retries: too tame"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_keeps_the_budget_and_a_retry_may_raise_it() {
    let house = House::open().await;
    let worker = house.worker(4);
    house
        .app
        .upstream
        .on_any()
        .reply(Reply::search_incomplete("blocked_page"));
    let id = house.order(&order(3, &json!({"max_requests": 3}))).await;
    let ended = house.ended(&id).await;
    assert_eq!(
        (&ended["status"], &ended["requests"]["spent"]),
        (&json!("incomplete"), &json!(3))
    );
    // Without a higher ceiling the retry begins nothing.
    house
        .say(&id, "retry", &json!({"search_status": ["degraded"]}))
        .await;
    house
        .scan_when(&id, "its budget is spent", |scan| {
            scan["status_reason"] == "budget_spent"
        })
        .await;
    assert_eq!(house.app.upstream.count(), 3);
    house
        .app
        .upstream
        .on_any()
        .answer(|call| Reply::json(json!([fare(164, &call.body)])));
    house.say(&id, "resume", &json!({"max_requests": 6})).await;
    let ended = house.ended(&id).await;
    worker.stop().await;
    assert_eq!(
        (&ended["status"], &ended["requests"]["spent"]),
        (&json!("completed"), &json!(6))
    );
    assert_eq!(
        house.asked("TLV").values().copied().collect::<Vec<_>>(),
        [2, 2, 2]
    );
    adds_up(&ended);
}
