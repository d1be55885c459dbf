//! `max_requests`: a hard limit, retries included.

use farescan::contract::Endpoint;
use serde_json::{Value, json};

use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::support::{
    Rng, TestService, airport_code, assert_counts_add_up, departing_from, fares_with,
};

/// The scan is paused at its budget, and no call is in flight.
fn spent_up(scan: &Value) -> bool {
    scan["status_reason"] == "budget_spent" && scan["items"]["running"] == 0
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spent_budget_pauses_until_a_resume_raises_it() {
    let service = TestService::start().await;
    let worker = service.start_worker(1);
    service.upstream.reply(Reply::status(502));
    let id = service
        .submit(&fares_with(6, &json!({"max_requests": 7})))
        .await;
    // One item at a time, each with a second try: three pairs, and one request left for a fourth
    // item.
    let paused = service
        .wait_for_scan(&id, "its budget is spent", spent_up)
        .await;
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
    assert_eq!(service.upstream.count(), 7);

    for (body, message) in [
        (
            json!({}),
            "`max_requests` is missing; expected at least 8: 7 requests are spent",
        ),
        (
            json!({"max_requests": 7}),
            "`max_requests`: found 7; expected at least 8: 7 requests are spent",
        ),
    ] {
        let answer = service.post(&format!("/v1/scans/{id}/resume"), &body).await;
        assert_eq!(
            (answer.kind().as_str(), answer.message().as_str()),
            ("400 invalid_request", message)
        );
    }
    assert_eq!(
        service.scan(&id).await["status_reason"],
        json!("budget_spent"),
        "nothing was changed"
    );

    service
        .command(&id, "resume", &json!({"max_requests": 8}))
        .await;
    let again = service
        .wait_for_scan(&id, "the one more is spent", |scan| {
            scan["requests"]["spent"] == 8 && spent_up(scan)
        })
        .await;
    assert_eq!(
        (&again["items"]["degraded"], service.upstream.count()),
        (&json!(5), 8)
    );
    service.upstream.answer_fares(164);
    service
        .command(&id, "resume", &json!({"max_requests": 20}))
        .await;
    let ended = service.wait_until_ended(&id).await;
    worker.stop().await;
    assert_counts_add_up(&ended);
    assert_eq!(
        (&ended["items"]["ok"], &ended["requests"]),
        (&json!(1), &json!({"planned": 6, "spent": 9, "max": 20}))
    );
}

/// 32 concurrent scans, a marketplace that fails in every way, two workers, budgets that are often
/// too low, resumes that raise them a little: at every pause and at the end the ledger equals the
/// requests spent, and never exceeds the budget.
#[tokio::test(flavor = "multi_thread")]
async fn spending_matches_the_ledger_and_never_exceeds_the_budget() {
    let service = TestService::start().await;
    let workers = [service.start_worker(16), service.start_worker(16)];
    service.accept_key().await;
    let mut rng = Rng(7);
    service
        .upstream
        .on(Endpoint::FlightsOneway)
        .answer(move |call| match rng.below(10) {
            0..=2 => Reply::status([500, 502, 503, 504][usize::try_from(rng.below(4)).unwrap()]),
            3..=4 => Reply::search_incomplete("blocked_page"),
            5 => Reply::reset(),
            6 => Reply::json(json!([])),
            _ => Reply::json(json!([fare(100 + rng.below(100), &call.body)])),
        });
    let mut rng = Rng(11);
    let mut scans = Vec::new();
    for number in 0..32 {
        let items = 1 + rng.below(8);
        // Most budgets are too low, because the order of answers varies and too few pauses would
        // prove nothing.
        let (attempts, max) = (1 + rng.below(3), items + rng.below(items));
        let more =
            json!({"max_requests": max, "retry": {"max_attempts": attempts, "delay_seconds": 0}});
        let body = departing_from(
            &airport_code(number),
            fares_with(usize::try_from(items).unwrap(), &more),
        );
        scans.push((service.submit(&body).await, airport_code(number), attempts));
    }
    let stopped = |scan: &Value| {
        scan["items"]["running"] == 0
            && (scan["finished_at"].is_string() || scan["status_reason"] == "budget_spent")
    };
    let (mut pauses, mut second_tries, mut again) = (0, 0, 0);
    for (id, origin, attempts) in &scans {
        loop {
            let scan = service
                .wait_for_scan(id, "it ends or its budget is spent", stopped)
                .await;
            assert_counts_add_up(&scan);
            let (spent, max) = (
                scan["requests"]["spent"].as_u64().unwrap(),
                scan["requests"]["max"].as_u64().unwrap(),
            );
            assert_eq!(service.call_count(origin) as u64, spent, "{scan:#}");
            assert!(spent <= max, "{scan:#}");
            if scan["finished_at"].is_string() {
                break;
            }
            assert_eq!(
                spent, max,
                "a budget that is spent has nothing left: {scan:#}"
            );
            pauses += 1;
            service
                .command(
                    id,
                    "resume",
                    &json!({"max_requests": max + 1 + rng.below(4)}),
                )
                .await;
        }
        for item in service.items(id).await {
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
    let ledger = service.upstream.count();
    assert_eq!(
        service
            .count("select sum(requests_spent)::bigint from attempts")
            .await,
        i64::try_from(ledger).unwrap()
    );
    assert!(
        pauses > 5 && second_tries > 5 && again > 5,
        "{pauses} pauses, {second_tries} second tries, {again} retries: too few"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_keeps_the_budget_and_a_retry_can_raise_it() {
    let service = TestService::start().await;
    let worker = service.start_worker(4);
    service
        .upstream
        .reply(Reply::search_incomplete("blocked_page"));
    let id = service
        .submit(&fares_with(3, &json!({"max_requests": 3})))
        .await;
    let ended = service.wait_until_ended(&id).await;
    assert_eq!(
        (&ended["status"], &ended["requests"]["spent"]),
        (&json!("incomplete"), &json!(3))
    );
    // Without a higher budget the retry sends nothing.
    service
        .command(&id, "retry", &json!({"search_status": ["degraded"]}))
        .await;
    service
        .wait_for_scan(&id, "its budget is spent", |scan| {
            scan["status_reason"] == "budget_spent"
        })
        .await;
    assert_eq!(service.upstream.count(), 3);
    service.upstream.answer_fares(164);
    service
        .command(&id, "resume", &json!({"max_requests": 6}))
        .await;
    let ended = service.wait_until_ended(&id).await;
    worker.stop().await;
    assert_eq!(
        (&ended["status"], &ended["requests"]["spent"]),
        (&json!("completed"), &json!(6))
    );
    assert_eq!(
        service
            .calls_by_date("TLV")
            .values()
            .copied()
            .collect::<Vec<_>>(),
        [2, 2, 2]
    );
    assert_counts_add_up(&ended);
}
