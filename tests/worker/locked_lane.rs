//! A lane that another transaction locks: the claimer waits, and only its own caller's answers do.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use farescan::config::WorkerConfig;
use farescan::metrics;
use farescan::upstream::Client;
use farescan::worker::WorkerDeps;
use serde_json::json;
use tempfile::TempDir;

use super::fixture::{LEASE_SECONDS, RunningWorker, WorkerFixture};
use crate::support::app::{ring, tenant};
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;
use crate::support::{TestService, fares};

/// How often a claimer of this process has claimed.
fn claim_count() -> u32 {
    let text = metrics::render();
    let count = text
        .lines()
        .find_map(|line| line.strip_prefix(r#"farescan_queue_batch_size_count{step="claim"} "#));
    count.map_or(0, |count| count.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claimer_backs_off_from_a_locked_lane() {
    metrics::start();
    let fixture = WorkerFixture::new().await;
    let scan = fixture.submit(1, &json!({})).await;
    let mut holder = crate::support::db::begin_holding(fixture.pool()).await;
    execute!(&mut *holder, "select from lanes for update");
    let worker = fixture.start_worker();
    let begun = Instant::now();
    while claim_count() < 60 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let took = begun.elapsed();
    println!("60 claims took {took:?}");
    // The waits between 60 claims are 2, 4, 8, 16, 32 and then 50 ms, unless a notification ends
    // one early.
    assert!(took.as_millis() > 2_000, "{took:?}");
    holder.rollback().await.unwrap();
    fixture.wait_until_ended(scan).await;
    worker.stop().await;
}

/// A worker of the service with this spool folder.
fn start_worker(service: &TestService, spool: Option<&Path>) -> RunningWorker {
    RunningWorker::start(WorkerDeps {
        pool: service.pool().clone(),
        ring: Arc::new(ring()),
        upstream: Client::new(&service.upstream.config()).unwrap(),
        config: WorkerConfig {
            worker_concurrency: 20,
            lease_seconds: LEASE_SECONDS,
            spool_dir: spool.map(Path::to_owned),
            ..WorkerConfig::default()
        },
    })
}

/// Two callers' answers arrive together, while a report locks the lane of one of them. Its plan is
/// near its end, so its answer needs the lane.
async fn answers_of_two_callers(spool: Option<&Path>) {
    let service = TestService::start().await;
    let gate = Gate::closed();
    let call_gate = gate.clone();
    service.upstream.answer(move |call| {
        let reply = Reply::json(json!([fare(120, &call.body)])).gated_by(&call_gate);
        if call.key == "locked" {
            reply
                .header("x-ratelimit-requests-limit", "2500")
                .header("x-ratelimit-requests-remaining", "50")
        } else {
            reply
        }
    });
    let locked = service.submit_as("locked", &fares(2)).await;
    let free = service.submit_as("free", &fares(6)).await;
    let worker = start_worker(&service, spool);
    service.upstream.wait_for_in_flight(8).await;
    let tenant = tenant(service.pool(), &ring(), "locked").await;
    let mut holder = crate::support::db::begin_holding(service.pool()).await;
    let lock = "select from lanes where tenant_id = $1 for update";
    assert_eq!(execute!(&mut *holder, lock, tenant.uuid()), 1);

    gate.open();
    let begun = Instant::now();
    service.wait_for_scan_as("free", &free).await;
    let first = begun.elapsed();
    let path = format!("/v1/scans/{locked}");
    let waiting = service.get_as("locked", &path).await.json();
    assert_eq!(waiting["items"]["running"], 2, "{waiting:#}");
    // The next answers do not wait either.
    let begun = Instant::now();
    let next = service.submit_as("free", &fares(3)).await;
    service.wait_for_scan_as("free", &next).await;
    let second = begun.elapsed();

    holder.rollback().await.unwrap();
    service.wait_for_scan_as("locked", &locked).await;
    // What such a scan takes on this machine at this time when nothing is locked.
    let begun = Instant::now();
    let reference = service.submit_as("free", &fares(6)).await;
    service.wait_for_scan_as("free", &reference).await;
    let usual = begun.elapsed();
    println!("two scans beside the lock took {first:?} and {second:?}, one without it {usual:?}");
    assert!(first.max(second) < Duration::from_millis(2_500) + 4 * usual);
    worker.stop().await;
    assert_eq!(service.upstream.count(), 17, "no call is made twice");
    println!("{}", service.check_ledger().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_lane_delays_only_its_caller_with_a_spool() {
    let spool = TempDir::new().unwrap();
    answers_of_two_callers(Some(spool.path())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_lane_delays_only_its_caller_without_a_spool() {
    answers_of_two_callers(None).await;
}
