//! Twenty concurrent callers command scans that a worker processes: no search is repeated or lost,
//! and nothing deadlocks.

use serde_json::{Value, json};

use crate::support::app::KEY;
use crate::support::{Rng, TestService, airport_code, assert_counts_add_up, departing_from, fares};

/// Sends random commands, each to one of the scans; only the expected refusals may be returned.
async fn send_random_commands(service: &TestService, ids: &[String], commands: &[&str], seed: u64) {
    let mut rng = Rng(seed);
    for _ in 0..8 {
        let id = &ids[usize::try_from(rng.below(ids.len() as u64)).unwrap()];
        let command = commands[usize::try_from(rng.below(commands.len() as u64)).unwrap()];
        let answer = match command {
            "delete" => {
                service
                    .delete(&format!("/v1/scans/{id}?history=true"))
                    .await
            }
            "retry" => {
                service
                    .post(
                        &format!("/v1/scans/{id}/retry"),
                        &json!({"search_status": ["degraded", "partial"]}),
                    )
                    .await
            }
            command => {
                service
                    .post(&format!("/v1/scans/{id}/{command}"), &json!({}))
                    .await
            }
        };
        let kind = answer.kind();
        let expected = ["200", "202", "204", "404 not_found", "409 invalid_state"];
        assert!(
            expected.contains(&kind.as_str()),
            "{command}: {}",
            answer.text()
        );
    }
}

/// Twenty concurrent callers.
async fn run_concurrent_callers(
    service: &TestService,
    ids: &[String],
    commands: &[&str],
    seed: u64,
) {
    futures::future::join_all(
        (0..20).map(|caller| send_random_commands(service, ids, commands, seed * 100 + caller)),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_commands_lose_and_repeat_no_item() {
    let service = TestService::start().await;
    let worker = service.start_worker(12);
    service.accept_key().await;
    let id = service.submit(&fares(120)).await;
    run_concurrent_callers(
        &service,
        std::slice::from_ref(&id),
        &["pause", "resume", "retry", "pause", "resume"],
        1,
    )
    .await;
    service.command(&id, "resume", &json!({})).await;
    let ended = service.wait_until_ended(&id).await;
    worker.stop().await;
    assert_counts_add_up(&ended);
    assert_eq!(
        (
            &ended["status"],
            &ended["items"]["ok"],
            &ended["requests"]["spent"]
        ),
        (&json!("completed"), &json!(120), &json!(120))
    );
    let calls = service.calls_by_date("TLV");
    assert!(
        calls.len() == 120 && calls.values().all(|times| *times == 1),
        "{calls:?}"
    );
    assert_eq!(
        service
            .count("select count(*) from attempts where ended_at is null")
            .await,
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_cancels_and_deletions_are_atomic() {
    let service = TestService::start().await;
    let workers = [service.start_worker(8), service.start_worker(8)];
    service.accept_key().await;
    let mut ids = Vec::new();
    for number in 0..8 {
        ids.push(
            service
                .submit(&departing_from(&airport_code(number), fares(60)))
                .await,
        );
    }
    let commands = [
        "pause", "resume", "resume", "retry", "cancel", "delete", "delete",
    ];
    run_concurrent_callers(&service, &ids, &commands, 2).await;
    run_concurrent_callers(&service, &ids, &commands, 3).await;
    // One scan is always deleted, so that every run checks what a deletion leaves.
    let first = format!("/v1/scans/{}", ids[0]);
    if service.app.get(&first).await.status != 404 {
        service.post(&format!("{first}/cancel"), &json!({})).await;
        service.wait_until_ended(&ids[0]).await;
        assert_eq!(
            service
                .delete(&format!("{first}?history=true"))
                .await
                .status,
            204
        );
    }
    let mut gone = 0;
    for (number, id) in ids.iter().enumerate() {
        let calls = service.calls_by_date(&airport_code(number));
        assert!(calls.values().all(|times| *times == 1), "{calls:?}");
        let answer = service.app.get(&format!("/v1/scans/{id}")).await;
        if answer.status == 404 {
            gone += 1;
            continue;
        }
        if answer.json()["status"] == "paused" {
            service.command(id, "resume", &json!({})).await;
        }
        let ended = service.wait_until_ended(id).await;
        assert_counts_add_up(&ended);
        let calls = service.calls_by_date(&airport_code(number));
        assert!(calls.values().all(|times| *times == 1), "{calls:?}");
        assert_eq!(ended["requests"]["spent"], json!(calls.len()));
        assert_eq!(
            ended["items"]["ok"],
            json!(calls.len()),
            "every billed call is stored"
        );
    }
    for worker in workers {
        worker.stop().await;
    }
    assert!(gone > 0);
    let orphaned_claims = "select (select count(*) from scan_items i where not exists (select from scans s where s.scan_id = i.scan_id))
                        + (select count(*) from answers a where not exists (select from scan_items i where i.item_id = a.item_id))
                        + (select count(*) from key_grants g where not exists (select from scans s where s.grant_id = g.grant_id))
                        + (select count(*) from observations o where not exists (select from scan_items i where i.item_id = o.item_id))
                        + (select count(*) from latest_prices l where l.price is not null
                           and not exists (select from scan_items i where i.item_id = l.item_id))
                        + (select count(*) from latest_prices l where not exists (select from scan_items i where i.item_id = l.sample_item_id))";
    assert_eq!(service.count(orphaned_claims).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_concurrent_equal_resumes_are_done_once() {
    let service = TestService::start().await;
    let id = service.submit(&fares(5)).await;
    service.command(&id, "pause", &json!({})).await;
    let send = || async {
        let request = service
            .request("POST", &format!("/v1/scans/{id}/resume"))
            .header("x-api-key", KEY);
        service
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
