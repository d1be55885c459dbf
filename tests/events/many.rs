//! Many clients at once: what they cost, how many there may be, and that a slow one is nobody else's matter.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use farescan::config::{DatabaseConfig, WorkerConfig};
use farescan::db::{self, Database};
use farescan::ids::TenantId;
use farescan::scans::watch::{Follower, Watch, WatchSettings};
use farescan::upstream::Client;
use farescan::worker::WorkerDeps;
use futures::future::{join, join_all};
use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::{Value, json};
use sqlx::postgres::PgPoolOptions;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::client::{Event, Events, ask, by_id, mirror, parsed};
use crate::scans::office::{Comes, Office, fares};
use crate::support::app::{KEY, TestApp, ring};
use crate::support::db::PrivatePg;
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::worker::stage::Running;

/// How many streams, and how many waits beside them.
const CLIENTS: usize = 500;
const ITEMS: usize = 100;

/// A thousand connections have two thousand ends in this process.
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

/// Statements that the server ran for sessions that have it log them, as its own log says.
fn statements(server: &PrivatePg) -> Vec<String> {
    let log = server.log();
    let ran = |line: &&str| line.contains("LOG:  execute ") || line.contains("LOG:  statement: ");
    log.lines().filter(ran).map(str::to_owned).collect()
}

/// The service's sessions have every statement logged by the server, the worker's have none: so what is counted is what the clients cost,
/// whoever asks for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_clients_cost_one_query_a_second() {
    allow_many_files();
    let server = PrivatePg::start().await;
    let config = DatabaseConfig {
        url: Some(server.url().into()),
        ..DatabaseConfig::default()
    };
    let database = Database::open(&config).await.unwrap();
    db::migrate(database.pool()).await.unwrap();
    crate::support::db::accept_at_once(database.pool()).await;
    let logged = database
        .connect_options()
        .clone()
        .options([("log_statement", "all")]);
    let pool = PgPoolOptions::new()
        .max_connections(10)
        .acquire_timeout(Duration::from_secs(60))
        .connect_lazy_with(logged.clone());
    // Comments come by time alone, and here every byte of all streams is compared.
    let settings = WatchSettings {
        comments: Duration::from_secs(3_600),
        ..WatchSettings::default()
    };
    let app = TestApp::builder()
        .watch(settings)
        .orders(pool, logged)
        .start()
        .await;
    app.upstream.on_any().answer(|call| {
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
            // Only on a machine that takes a minute for it all.
            asked_again.fetch_add(1, Ordering::Relaxed);
        }
    }));
    let measured = async {
        here.subscribe()
            .wait_for(|count| *count == CLIENTS)
            .await
            .unwrap();
        // Each request finds out who calls; after that it costs nothing by itself.
        while look_ups(&server) < of_the_order + 2 * CLIENTS {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let (before, began) = (statements(&server).len(), Instant::now());
        let worker = Running::start(WorkerDeps {
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
    let most = seconds as usize + 2 + asked_again.into_inner();
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
        by_id(items["data"].as_array().unwrap()),
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
        (items.len(), mirror(&first)),
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
async fn a_caller_and_a_process_have_so_many_and_no_more() {
    let settings = WatchSettings {
        clients: 3,
        clients_of_one: 2,
        ..WatchSettings::default()
    };
    let office = Office::with(TestApp::builder().watch(settings)).await;
    let id = office.order(&fares(1)).await;
    let other = "another-key-0123456789";
    let theirs = office.post_as(other, "/v1/scans", &fares(1)).await.json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let first = Events::open(&office.app, &id, None).await;
    let _second = Events::open(&office.app, &id, None).await;
    let refused = office.app.get(&format!("/v1/scans/{id}/events")).await;
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
        office
            .app
            .get(&format!("/v1/scans/{id}?wait=1"))
            .await
            .kind(),
        "429 too_many_requests"
    );
    assert_eq!(
        office.app.get(&format!("/v1/scans/{id}")).await.status,
        200,
        "who does not wait is not refused"
    );

    let _third = Events::of(ask(&office.app, other, &theirs, None).await);
    let full = office
        .get_as(other, &format!("/v1/scans/{theirs}/events"))
        .await;
    assert_eq!(
        (full.kind().as_str(), full.header("retry-after")),
        ("503 unavailable", "5")
    );
    // A client that goes leaves its place.
    drop(first);
    while ask(&office.app, KEY, &id, None).await.status() != 200 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn taken(follower: &mut Follower, events: &mut Vec<Event>) -> bool {
    let Some(text) = follower.next().await else {
        return false;
    };
    events.extend(parsed(text).await);
    true
}

/// It takes nothing while others see all; then it takes what is kept nowhere but in the database.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_falls_behind_reads_for_itself() {
    let office = Office::open().await;
    let id = office.order(&fares(12)).await;
    let tenant: uuid::Uuid = sqlx::query_scalar("select tenant_id from scans")
        .fetch_one(office.db.pool())
        .await
        .unwrap();
    let (tenant, scan) = (TenantId::from(tenant), id.parse().unwrap());
    let settings = WatchSettings {
        gap: Duration::from_millis(5),
        kept: Duration::ZERO,
        ..WatchSettings::default()
    };
    let stop = CancellationToken::new();
    let watch = Watch::start(
        office.db.pool().clone(),
        office.db.connect_options(),
        settings,
        &stop,
    );
    let mut slow = watch.follow(tenant, scan, None).await.unwrap().unwrap();
    let mut swift = watch.follow(tenant, scan, None).await.unwrap().unwrap();
    let (mut late, mut soon) = (Vec::new(), Vec::new());
    // Both begin with the scan as it is before anything happens.
    assert!(taken(&mut slow, &mut late).await && taken(&mut swift, &mut soon).await);
    let in_state = |soon: &[Event], state: &str| {
        mirror(soon)
            .values()
            .filter(|item| item["state"] == state)
            .count()
    };
    let claims = office.claim().await;
    for claimed in &claims {
        office.begin(claimed).await;
    }
    while in_state(&soon, "running") < 12 {
        assert!(taken(&mut swift, &mut soon).await);
    }
    for (round, some) in claims.chunks(4).enumerate() {
        for claimed in some {
            office.end(claimed, Comes::Ok(100)).await;
        }
        while in_state(&soon, "done") < 4 * (round + 1) {
            assert!(taken(&mut swift, &mut soon).await);
        }
    }
    while taken(&mut slow, &mut late).await {}
    let items: Vec<Value> = office.get(&format!("/v1/scans/{id}/items")).await["data"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(mirror(&late), by_id(&items));
    assert_eq!(mirror(&soon), by_id(&items));
    assert_eq!(late.last().unwrap().data, office.scan(&id).await);
    assert!(
        late.len() < soon.len(),
        "what changed twice meanwhile is told once: {} and {}",
        late.len(),
        soon.len()
    );
}
