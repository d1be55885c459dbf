//! Lock waits of one caller and their effect on others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::json;

use super::{ApiClient, p99};
use crate::faults::process::FarescanProcess;
use crate::worker::fixture::{KEY, WorkerFixture, fares};

const WAITING: u32 = 25;
const READS: usize = 200;
const ITEMS: i32 = 300;
/// Number of scans of five items that another caller submits.
const SMALL: usize = 3;

/// 25 requests of one caller always wait for a locked row.
#[tokio::test(flavor = "multi_thread")]
async fn lock_waits_of_one_caller_do_not_block_others() {
    let fixture = WorkerFixture::new().await;
    fixture.upstream.answer_fares(120);
    let service = FarescanProcess::start(&fixture, 16);
    let url = service.url().await;
    let (blocked, other) = (
        ApiClient::new(&url, "the-blocked-callers-key"),
        ApiClient::new(&url, KEY),
    );
    let id = blocked.submit_scan(&fares(1)).await;
    blocked.finished_scan(&id).await;
    other
        .finished_scan(&other.submit_scan(&fares(1)).await)
        .await;

    let mut lock = crate::support::db::begin_holding(fixture.pool()).await;
    let locked = "select from lanes where tenant_id = (select tenant_id from scans where scan_id = $1) for update";
    let scan = uuid::Uuid::parse_str(id.trim_start_matches("scn_")).unwrap();
    execute!(&mut *lock, locked, scan);

    let (stop, refused) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU32::new(0)),
    );
    let waiting: Vec<_> = (0..WAITING)
        .map(|_| {
            let (blocked, path, stop, refused) = (
                blocked.clone(),
                format!("/v1/scans/{id}/retry"),
                Arc::clone(&stop),
                Arc::clone(&refused),
            );
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let answer = blocked
                        .post(&path, &json!({"search_status": ["degraded"]}))
                        .await;
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    assert!(
                        matches!(answer.status, 429 | 503),
                        "{}: {}",
                        answer.status,
                        answer.body
                    );
                    assert!(answer.retry_after.is_some());
                    refused.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    crate::support::wait_until("requests wait", async || {
        refused.load(Ordering::Relaxed) > 0
    })
    .await;

    let begun = Instant::now();
    let (mut statuses, mut times) = (Vec::new(), Vec::new());
    let ordered = other.post("/v1/scans", &fares(ITEMS.into())).await;
    for _ in 0..READS {
        let answer = other.get("/v1/quota").await;
        statuses.push(answer.status);
        times.push(answer.took);
    }
    assert_eq!(ordered.status, 202, "{}", ordered.body);
    let ended = other
        .finished_scan(ordered.body["id"].as_str().unwrap())
        .await;
    let took = begun.elapsed();
    stop.store(true, Ordering::Relaxed);
    lock.rollback().await.unwrap();
    join_all(waiting).await.into_iter().for_each(Result::unwrap);
    let failed = statuses.iter().filter(|status| **status != 200).count();
    let refused = refused.load(Ordering::Relaxed);
    println!(
        "beside {WAITING} waiting requests ({refused} refused): {ITEMS} calls in {took:.2?}, {:.0} a second; {failed} of {READS} quota \
         reads failed, p99 {:.1?}",
        f64::from(ITEMS) / took.as_secs_f64(),
        p99(times)
    );
    assert_eq!(failed, 0, "another caller reads");
    assert_eq!(
        ended["items"]["ok"],
        json!(ITEMS),
        "another caller's items are searched"
    );
}

/// 25 clients of one caller repeatedly submit 10,000 items each and cancel them.
#[tokio::test(flavor = "multi_thread")]
async fn a_small_scan_ends_beside_mass_submit_and_cancel() {
    let fixture = WorkerFixture::new().await;
    fixture.upstream.answer_fares(120);
    let service = FarescanProcess::start(&fixture, 16);
    let url = service.url().await;
    let (greedy, other) = (
        ApiClient::new(&url, "the-greedy-callers-key"),
        ApiClient::new(&url, KEY),
    );
    for caller in [&greedy, &other] {
        caller
            .finished_scan(&caller.submit_scan(&fares(1)).await)
            .await;
    }
    let mut alone = Vec::new();
    for _ in 0..SMALL {
        alone.push(five_items(&other).await);
    }
    let (stop, cancelled) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU32::new(0)),
    );
    let clients: Vec<_> = (0..WAITING)
        .map(|_| {
            let (greedy, stop, cancelled) =
                (greedy.clone(), Arc::clone(&stop), Arc::clone(&cancelled));
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let ordered = greedy.post("/v1/scans", &fares(10_000)).await;
                    assert!(
                        matches!(ordered.status, 202 | 429 | 503),
                        "{}: {}",
                        ordered.status,
                        ordered.body
                    );
                    let Some(id) = ordered.body["id"].as_str() else {
                        continue;
                    };
                    while greedy
                        .post(&format!("/v1/scans/{id}/cancel"), &json!({}))
                        .await
                        .status
                        != 200
                    {}
                    cancelled.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    crate::support::wait_until("a scan was cancelled", async || {
        cancelled.load(Ordering::Relaxed) > 0
    })
    .await;
    let mut beside = Vec::new();
    for _ in 0..SMALL {
        beside.push(five_items(&other).await);
    }
    stop.store(true, Ordering::Relaxed);
    let rounds = cancelled.load(Ordering::Relaxed);
    println!(
        "five items alone: {alone:.2?}; beside 25 clients who order and cancel 10,000 ({rounds} times): {beside:.2?}"
    );
    for client in clients {
        client.abort();
    }
}

/// Submits five items; returns the time until they have ended.
async fn five_items(caller: &ApiClient) -> Duration {
    let begun = Instant::now();
    let id = caller.submit_scan(&fares(5)).await;
    assert_eq!(caller.finished_scan(&id).await["items"]["ok"], json!(5));
    begun.elapsed()
}
