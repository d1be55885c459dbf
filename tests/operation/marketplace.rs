//! A database belongs to one marketplace: no process that asks another one works on it, or answers its callers.

use std::process::ExitStatus;

use farescan::ids::ScanId;
use rust_decimal::Decimal;
use rustix::process::Signal;
use serde_json::json;

use super::process::{Ended, farescan, program, run};
use crate::faults::process::Serve;
use crate::support::db::reachable_folder;
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::{Upstream, fare};
use crate::worker::stage::{Stage, ring_text};

/// What the scripted marketplace asks for every fare; the sandbox invents others.
const PRICE: u64 = 7_777;
/// The dates of the scan that must not be answered by anybody else.
const DATES: i64 = 31;
/// A key that the sandbox would take too.
const KEY: &str = "sandbox-unlimited";

/// A service with a scan of [`DATES`] items, two of which are in flight until the gate opens.
async fn busy(stage: &Stage, gate: &Gate) -> (Serve, ScanId) {
    stage
        .upstream
        .on_any()
        .answer(|call| Reply::json(json!([fare(PRICE, &call.body)])));
    let service = Serve::start(stage, 2);
    service.says("a lease was taken").await;
    // Until a key was taken once, one call at a time is made with it.
    stage
        .ended(stage.submit(1, &json!({"label": "first"})).await)
        .await;
    let gate = gate.clone();
    stage
        .upstream
        .on_any()
        .answer(move |call| Reply::json(json!([fare(PRICE, &call.body)])).held_by(&gate));
    let scan = stage.submit(DATES, &json!({})).await;
    stage.upstream.wait_for_in_flight(2).await;
    (service, scan)
}

/// How many of a scan's prices are not the marketplace's, once it has ended.
async fn invented(stage: &Stage, scan: ScanId) -> usize {
    stage.ended(scan).await;
    let items = stage.items(scan).await;
    assert_eq!(items.len(), usize::try_from(DATES).unwrap());
    items
        .iter()
        .filter(|item| item.best_price != Some(Decimal::from(PRICE)))
        .count()
}

/// A demo in the shell of whoever has set up a real service.
fn demo(stage: &Stage) -> Ended {
    let place = reachable_folder();
    run(farescan(
        &program(),
        &[
            "demo",
            "--exit",
            "--listen",
            "127.0.0.1:0",
            "--admin-listen",
            "127.0.0.1:0",
        ],
    )
    .env("DATABASE_URL", stage.db.url())
    .env("FARESCAN_FLIGHTS_URL", stage.upstream.url())
    .env("FARESCAN_HOTELS_URL", stage.upstream.url())
    .env("FARESCAN_MASTER_KEY", ring_text())
    .env("FARESCAN_DATA_DIR", place.path()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_beside_a_service_answers_none_of_its_scans() {
    let stage = Stage::with_key(KEY).await;
    let gate = Gate::closed();
    let (_service, scan) = busy(&stage, &gate).await;
    let told = tokio::task::block_in_place(|| demo(&stage));
    gate.open();
    let invented = invented(&stage, scan).await;
    let workers = stage
        .count("select count(distinct worker_id) from attempts")
        .await;
    println!(
        "{invented} of {DATES} prices are the sandbox's; {workers} workers; the demo said:\n{}{}",
        told.out, told.err
    );
    assert_eq!((invented, workers), (0, 1));
    assert_eq!(
        stage.upstream.count(),
        1 + usize::try_from(DATES).unwrap(),
        "each date was asked of the marketplace once"
    );
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(
        told.out.contains("32 requests spent"),
        "the demo shows all that it has: {told:?}"
    );
}

/// Refused with both marketplaces and the command that changes it.
fn assert_refused((status, said): &(ExitStatus, String), asks: &str, stage: &Stage) {
    assert_eq!(status.code(), Some(1), "{said}");
    let url = stage.upstream.url();
    for words in [
        format!("marketplace `flights {url}, hotels {url}`"),
        format!("name `{asks}`"),
        "`farescan marketplace set`".into(),
    ] {
        assert!(said.contains(&words), "{words} is not in: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_does_not_start_on_the_database_of_a_service() {
    let stage = Stage::with_key(KEY).await;
    let gate = Gate::closed();
    let (_service, scan) = busy(&stage, &gate).await;
    let refused = Serve::sandbox(&stage).words().await;
    gate.open();
    println!(
        "{} of {DATES} prices are the sandbox's; it said: {}",
        invented(&stage, scan).await,
        refused.1
    );
    assert_refused(&refused, "sandbox", &stage);
    assert_eq!(stage.count("select count(*) from workers").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_another_marketplace_does_not_start_on_a_database() {
    let stage = Stage::new().await;
    let first = Serve::start(&stage, 1);
    first
        .says("the database belongs to this marketplace from now on")
        .await;
    let other = Upstream::start().await;
    let urls = [
        ("FARESCAN_FLIGHTS_URL", other.url()),
        ("FARESCAN_HOTELS_URL", other.url()),
    ];
    let asks = format!("flights {0}, hotels {0}", other.url());
    for started in [
        Serve::with(&stage, 1, &urls),
        Serve::worker(&stage, 1, &urls),
        Serve::gateway_with(&stage, &urls),
    ] {
        assert_refused(&started.words().await, &asks, &stage);
    }
    // One that has the same is welcome.
    Serve::worker(&stage, 1, &[])
        .says("a lease was taken")
        .await;
    assert_eq!(stage.count("select count(*) from workers").await, 2);
    assert_eq!(other.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_marketplaces_at_a_first_start_one_is_refused() {
    let stage = Stage::new().await;
    let other = Upstream::start().await;
    let urls = [
        ("FARESCAN_FLIGHTS_URL", other.url()),
        ("FARESCAN_HOTELS_URL", other.url()),
    ];
    let services = [
        Serve::start(&stage, 1),
        Serve::with(&stage, 1, &urls),
        Serve::start(&stage, 1),
        Serve::with(&stage, 1, &urls),
    ];
    let started: Vec<bool> = futures::future::join_all(services.iter().map(Serve::starts)).await;
    assert_eq!((started[0], started[1]), (started[2], started[3]));
    assert_ne!(
        started[0], started[1],
        "one marketplace's processes start, the other's do not"
    );
    let held: Vec<String> = sqlx::query_scalar("select marketplace from installation")
        .fetch_all(stage.pool())
        .await
        .unwrap();
    let url = if started[0] {
        stage.upstream.url()
    } else {
        other.url()
    };
    assert_eq!(held, [format!("flights {url}, hotels {url}")]);
}

/// As a version left it that noted no marketplace.
async fn forget(stage: &Stage) {
    let forget = "update workers set marketplace = null";
    sqlx::query(forget).execute(stage.pool()).await.unwrap();
    let forget = "update installation set marketplace = null, marketplace_since = null";
    sqlx::query(forget).execute(stage.pool()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_before_with_callers_is_not_a_sandboxs() {
    let stage = Stage::new().await;
    stage.ended_by_a_worker(1).await;
    forget(&stage).await;
    let (status, said) = Serve::sandbox(&stage).words().await;
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(
        said.contains("does not say which marketplace")
            && said.contains("farescan marketplace set --sandbox"),
        "{said}"
    );
    assert_eq!(
        stage
            .count("select count(*) from installation where marketplace is null")
            .await,
        1
    );
    Serve::start(&stage, 1)
        .says("the database belongs to this marketplace from now on")
        .await;
}

/// `farescan marketplace …` with the settings that reach this marketplace.
fn marketplace(stage: &Stage, upstream: &Upstream, args: &[&str]) -> Ended {
    let mut command = farescan(&program(), &[&["marketplace"], args].concat());
    command.env("DATABASE_URL", stage.db.url());
    if args == ["set"] {
        command
            .env("FARESCAN_FLIGHTS_URL", upstream.url())
            .env("FARESCAN_HOTELS_URL", upstream.url());
    }
    run(&mut command)
}

#[tokio::test(flavor = "multi_thread")]
async fn marketplace_set_moves_a_database_once_nobody_works_on_it() {
    let stage = Stage::new().await;
    let other = Upstream::start().await;
    let of = |upstream: &Upstream| format!("flights {0}, hotels {0}", upstream.url());
    assert!(
        marketplace(&stage, &other, &["show"])
            .out
            .starts_with("none yet"),
        "before the first start"
    );
    let worker = Serve::worker(&stage, 1, &[]);
    worker.says("a lease was taken").await;
    assert_eq!(
        marketplace(&stage, &other, &["show"]).out.trim(),
        of(&stage.upstream)
    );

    let refused = marketplace(&stage, &other, &["set"]);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.err.contains("a worker has a lease until")
            && refused.err.contains("stop every `serve`"),
        "{refused:?}"
    );

    worker.signal(Signal::TERM);
    assert!(worker.ended().await.success());
    let moved = marketplace(&stage, &other, &["set"]);
    assert_eq!((moved.code, moved.err.as_str()), (Some(0), ""), "{moved:?}");
    assert!(
        moved.out.contains(&of(&other)) && moved.out.contains(&of(&stage.upstream)),
        "{moved:?}"
    );
    let (status, said) = Serve::worker(&stage, 1, &[]).words().await;
    assert!(
        status.code() == Some(1) && said.contains(&of(&other)),
        "{said}"
    );
}

/// A process that stood still past its lease does not go on with the old marketplace.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_slept_through_a_move_ends() {
    let stage = Stage::new().await;
    let other = Upstream::start().await;
    let worker = Serve::worker(&stage, 1, &[]);
    worker.says("a lease was taken").await;
    worker.signal(Signal::STOP);
    stage
        .becomes(
            "select count(*) from workers where lease_until < clock_timestamp()",
            1,
        )
        .await;
    assert_eq!(marketplace(&stage, &other, &["set"]).code, Some(0));
    worker.signal(Signal::CONT);
    worker
        .says("the database was moved to another marketplace")
        .await;
    assert_eq!(worker.ended().await.code(), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_of_another_marketplaces_database_is_refused() {
    let stage = Stage::new().await;
    let replica = Stage::new().await;
    let started = Serve::start(&replica, 1);
    started.url().await;
    let (status, said) =
        Serve::gateway_with(&stage, &[("FARESCAN_READ_DATABASE_URL", replica.db.url())])
            .words()
            .await;
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(
        said.contains("the replica belongs to the marketplace")
            && said.contains("FARESCAN_READ_DATABASE_URL"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_does_not_move_to_another_marketplaces_database() {
    let stages = [Stage::new().await, Stage::new().await];
    for stage in &stages {
        Serve::start(stage, 1).url().await;
    }
    let tenant = farescan::ids::TenantId::new().to_string();
    let refused = run(
        farescan(&program(), &["tenants", "move", "--tenant", &tenant])
            .env("DATABASE_URL", stages[0].db.url())
            .env("FARESCAN_TARGET_DATABASE_URL", stages[1].db.url())
            .env("FARESCAN_MASTER_KEY", ring_text()),
    );
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        stages
            .iter()
            .all(|stage| refused.err.contains(stage.upstream.url())),
        "both are named: {refused:?}"
    );
}
