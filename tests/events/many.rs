//! Many clients at once: their cost, their limits, and that a slow one does not affect the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use farescan::config::WorkerConfig;
use farescan::db;
use farescan::ids::TenantId;
use farescan::scans::watch::{Follower, ScanWatch, WatchSettings};
use farescan::upstream::Client;
use farescan::worker::WorkerDeps;
use futures::future::{join, join_all};
use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::{Value, json};
use sqlx::postgres::PgPoolOptions;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::client::{Event, Events, ask, by_id, item_states, parsed};
use crate::support::app::{KEY, TestApp, ring};
use crate::support::db::PrivatePg;
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::support::{SearchOutcome, TestService, array, fares};
use crate::worker::fixture::RunningWorker;

/// The number of streams and of concurrent waits.
const CLIENTS: usize = 500;
const ITEMS: usize = 100;
/// The best price of an ended scan is read and judged once for all clients (decision 39): its item,
/// and the earlier prices of its product.
const QUERIES_OF_THE_BEST: usize = 2;

/// A thousand connections need two thousand sockets in this process.
fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(
        Resource::Nofile,
        rustix::process::Rlimit {
            current: limit.maximum,
            ..limit
        },
    )
    .unwrap();
}

/// The statements in the server's log, of the sessions that log them.
fn statements(server: &PrivatePg) -> Vec<String> {
    let log = server.log();
    let ran = |line: &&str| line.contains("LOG:  execute ") || line.contains("LOG:  statement: ");
    log.lines().filter(ran).map(str::to_owned).collect()
}

/// The server logs every statement of the service's sessions and none of the worker's, so the log
/// counts the cost of the clients only.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_clients_cost_one_query_a_second() {
    allow_many_files();
    let server = PrivatePg::start().await;
    let database = server.open().await;
    db::migrate(database.pool()).await.unwrap();
    crate::support::db::accept_new_tenants(database.pool()).await;
    let logged = database
        .connect_options()
        .clone()
        .options([("log_statement", "all")]);
    let pool = PgPoolOptions::new()
        .max_connections(10)
        .acquire_timeout(Duration::from_secs(60))
        .connect_lazy_with(logged.clone());
    // No comments, because the test compares all bytes of all streams.
    let settings = WatchSettings {
        keep_alive_interval: Duration::from_secs(3_600),
        ..WatchSettings::default()
    };
    let app = TestApp::builder()
        .watch(settings)
        .scan_api(pool, logged)
        .start()
        .await;
    app.upstream.answer(|call| {
        Reply::json(json!([fare(120, &call.body)])).delay(Duration::from_millis(200))
    });
    let id = app.post("/v1/scans", &fares(ITEMS)).await.json()["id"]
        .as_str()
        .unwrap()
        .to_owned();

    let here = watch::Sender::new(0);
    let streams = join_all((0..CLIENTS).map(async |_| {
        let mut response = ask(&app, KEY, &id, None).await;
        let mut text = response.chunk().await.unwrap().unwrap().to_vec();
        here.send_modify(|count| *count += 1);
        while let Some(chunk) = response.chunk().await.unwrap() {
            text.extend(chunk);
        }
        text
    }));
    let path = format!("/v1/scans/{id}?wait=60");
    let look_ups = |server: &PrivatePg| {
        statements(server)
            .iter()
            .filter(|line| line.contains("tenant_keys"))
            .count()
    };
    let of_the_order = look_ups(&server);
    let asked_again = AtomicUsize::new(0);
    let waits = join_all((0..CLIENTS).map(async |_| {
        loop {
            let scan = app.get(&path).await.json();
            if scan["finished_at"].is_string() {
                return scan;
            }
            // Only on a machine that needs a minute for all of it.
            asked_again.fetch_add(1, Ordering::Relaxed);
        }
    }));
    let measured = async {
        here.subscribe()
            .wait_for(|count| *count == CLIENTS)
            .await
            .unwrap();
        // Each request finds its tenant; after that it needs no query of its own.
        while look_ups(&server) < of_the_order + 2 * CLIENTS {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let (before, began) = (statements(&server).len(), Instant::now());
        let worker = RunningWorker::start(WorkerDeps {
            pool: database.pool().clone(),
            ring: Arc::new(ring()),
            upstream: Client::new(&app.upstream.config()).unwrap(),
            config: WorkerConfig {
                worker_concurrency: 4,
                lease_seconds: 30,
                ..WorkerConfig::default()
            },
        });
        (worker, before, began)
    };
    let ((seen, waited), (worker, before, began)) = join(join(streams, waits), measured).await;
    let (seconds, queries) = (
        began.elapsed().as_secs_f64(),
        statements(&server).len() - before,
    );
    worker.stop().await;

    println!(
        "{CLIENTS} streams and {CLIENTS} waits over {seconds:.1} s of a scan: {queries} queries, {:.2} a second",
        {
            #[expect(clippy::cast_precision_loss, reason = "some dozens")]
            let queries = queries as f64;
            queries / seconds
        }
    );
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "some seconds"
    )]
    let most = seconds as usize + 2 + QUERIES_OF_THE_BEST + asked_again.into_inner();
    assert!(
        (1..=most).contains(&queries),
        "{queries} in {seconds} s: {:#?}",
        &statements(&server)[before..]
    );
    let items = app
        .get(&format!("/v1/scans/{id}/items?limit=500"))
        .await
        .json();
    let (items, scan) = (
        by_id(array(&items["data"])),
        app.get(&format!("/v1/scans/{id}")).await.json(),
    );
    let first = parsed(seen[0].clone().into()).await;
    assert_eq!(
        (
            first[0].data["status"].as_str(),
            &first.last().unwrap().data
        ),
        (Some("queued"), &scan)
    );
    assert_eq!(
        (items.len(), item_states(&first)),
        (ITEMS, items),
        "every item as it ended"
    );
    assert!(
        seen.iter().all(|text| *text == seen[0]),
        "every client is sent every event"
    );
    assert!(waited.iter().all(|answer| *answer == scan));
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_limited_per_caller_and_per_process() {
    let settings = WatchSettings {
        max_clients: 3,
        max_clients_per_tenant: 2,
        ..WatchSettings::default()
    };
    let service = TestService::start_with(TestApp::builder().watch(settings)).await;
    let id = service.submit(&fares(1)).await;
    let other = "another-key-0123456789";
    let theirs = service.post_as(other, "/v1/scans", &fares(1)).await.json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let first = Events::open(&service, &id, None).await;
    let _second = Events::open(&service, &id, None).await;
    let refused = service.app.get(&format!("/v1/scans/{id}/events")).await;
    assert_eq!(
        (refused.kind().as_str(), refused.header("retry-after")),
        ("429 too_many_requests", "5")
    );
    assert!(
        refused
            .message()
            .starts_with("2 requests of this caller watch scans"),
        "{}",
        refused.message()
    );
    assert_eq!(
        service
            .app
            .get(&format!("/v1/scans/{id}?wait=1"))
            .await
            .kind(),
        "429 too_many_requests"
    );
    assert_eq!(
        service.app.get(&format!("/v1/scans/{id}")).await.status,
        200,
        "who does not wait is not refused"
    );

    let _third = Events::of(ask(&service, other, &theirs, None).await);
    let full = service
        .get_as(other, &format!("/v1/scans/{theirs}/events"))
        .await;
    assert_eq!(
        (full.kind().as_str(), full.header("retry-after")),
        ("503 unavailable", "5")
    );
    // A client that disconnects frees its place.
    drop(first);
    while ask(&service, KEY, &id, None).await.status() != 200 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn take_events(follower: &mut Follower, events: &mut Vec<Event>) -> bool {
    let Some(text) = follower.next().await else {
        return false;
    };
    events.extend(parsed(text).await);
    true
}

/// It reads nothing until the feed has evicted its events; then it reads them from the database.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_client_reads_from_the_database() {
    let service = TestService::start().await;
    let id = service.submit(&fares(12)).await;
    let tenant: uuid::Uuid = value!(service.pool(), "select tenant_id from scans");
    let (tenant, scan) = (TenantId::from(tenant), id.parse().unwrap());
    let settings = WatchSettings {
        min_read_interval: Duration::from_millis(5),
        event_retention: Duration::ZERO,
        ..WatchSettings::default()
    };
    let stop = CancellationToken::new();
    let watch = ScanWatch::start(
        service.pool().clone(),
        service.db.connect_options(),
        settings,
        &stop,
    );
    let mut slow = watch.follow(tenant, scan, None).await.unwrap().unwrap();
    let mut swift = watch.follow(tenant, scan, None).await.unwrap().unwrap();
    let (mut late, mut soon) = (Vec::new(), Vec::new());
    // Both begin with the initial scan.
    assert!(take_events(&mut slow, &mut late).await && take_events(&mut swift, &mut soon).await);
    let in_state = |soon: &[Event], state: &str| {
        item_states(soon)
            .values()
            .filter(|item| item["state"] == state)
            .count()
    };
    let claims = service.claim().await;
    for claimed in &claims {
        service.begin(claimed).await;
    }
    while in_state(&soon, "running") < 12 {
        assert!(take_events(&mut swift, &mut soon).await);
    }
    for (round, some) in claims.chunks(4).enumerate() {
        for claimed in some {
            service.finish(claimed, SearchOutcome::Ok(100)).await;
        }
        while in_state(&soon, "done") < 4 * (round + 1) {
            assert!(take_events(&mut swift, &mut soon).await);
        }
    }
    while take_events(&mut slow, &mut late).await {}
    let items: Vec<Value> = service.page(&format!("/v1/scans/{id}/items")).await;
    assert_eq!(item_states(&late), by_id(&items));
    assert_eq!(item_states(&soon), by_id(&items));
    assert_eq!(late.last().unwrap().data, service.scan(&id).await);
    assert!(
        late.len() < soon.len(),
        "an item that changed twice is sent once: {} and {}",
        late.len(),
        soon.len()
    );
}
