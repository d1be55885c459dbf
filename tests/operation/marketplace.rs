//! A database belongs to one marketplace: a process with another one neither works on it nor serves
//! from it.

use std::process::ExitStatus;

use farescan::ids::ScanId;
use rust_decimal::Decimal;
use rustix::process::Signal;
use serde_json::json;

use super::process::{CommandResult, farescan, program, run};
use crate::faults::process::FarescanProcess;
use crate::support::db::world_readable_folder;
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::{ScriptedServer, fare};
use crate::worker::fixture::{WorkerFixture, ring_text};

/// The scripted marketplace's price; the sandbox returns other prices.
const PRICE: u64 = 7_777;
/// The dates of a scan that only its own marketplace may answer.
const DATES: i64 = 31;
/// A key that the sandbox accepts too.
const KEY: &str = "sandbox-unlimited";

/// A service with a scan of [`DATES`] items, two of them in flight until the gate opens.
async fn service_with_scan(fixture: &WorkerFixture, gate: &Gate) -> (FarescanProcess, ScanId) {
    fixture.upstream.answer_fares(PRICE);
    let service = FarescanProcess::start(fixture, 2);
    service.wait_for_log("lease acquired").await;
    // Until the marketplace has accepted the key, the lane makes one call at a time.
    fixture
        .wait_until_ended(fixture.submit(1, &json!({"label": "first"})).await)
        .await;
    let gate = gate.clone();
    fixture
        .upstream
        .answer(move |call| Reply::json(json!([fare(PRICE, &call.body)])).gated_by(&gate));
    let scan = fixture.submit(DATES, &json!({})).await;
    fixture.upstream.wait_for_in_flight(2).await;
    (service, scan)
}

/// Number of prices of an ended scan that are not the marketplace's.
async fn wrong_prices(fixture: &WorkerFixture, scan: ScanId) -> usize {
    fixture.wait_until_ended(scan).await;
    let items = fixture.items(scan).await;
    assert_eq!(items.len(), usize::try_from(DATES).unwrap());
    items
        .iter()
        .filter(|item| item.best_price != Some(Decimal::from(PRICE)))
        .count()
}

/// Runs the demo with a real service's environment.
fn demo(fixture: &WorkerFixture) -> CommandResult {
    let place = world_readable_folder();
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
    .env("DATABASE_URL", fixture.db.url())
    .env("FARESCAN_FLIGHTS_URL", fixture.upstream.url())
    .env("FARESCAN_HOTELS_URL", fixture.upstream.url())
    .env("FARESCAN_MASTER_KEY", ring_text())
    .env("FARESCAN_DATA_DIR", place.path()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_next_to_a_service_runs_none_of_its_scans() {
    let fixture = WorkerFixture::with_key(KEY).await;
    let gate = Gate::closed();
    let (_service, scan) = service_with_scan(&fixture, &gate).await;
    let output = tokio::task::block_in_place(|| demo(&fixture));
    gate.open();
    let wrong_prices = wrong_prices(&fixture, scan).await;
    let workers = fixture
        .count("select count(distinct worker_id) from attempts")
        .await;
    println!(
        "{wrong_prices} of {DATES} prices are the sandbox's; {workers} workers; the demo said:\n{}{}",
        output.out, output.err
    );
    assert_eq!((wrong_prices, workers), (0, 1));
    assert_eq!(
        fixture.upstream.count(),
        1 + usize::try_from(DATES).unwrap(),
        "each date was asked of the marketplace once"
    );
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(
        output.out.contains("32 requests spent"),
        "the demo shows all that it has: {output:?}"
    );
}

/// Asserts that the error names both marketplaces and the command that changes it.
fn assert_refused(
    (status, output): &(ExitStatus, String),
    marketplace_name: &str,
    fixture: &WorkerFixture,
) {
    assert_eq!(status.code(), Some(1), "{output}");
    let url = fixture.upstream.url();
    for words in [
        format!("marketplace `flights {url}, hotels {url}`"),
        format!("name `{marketplace_name}`"),
        "`farescan marketplace set`".into(),
    ] {
        assert!(output.contains(&words), "{words} is not in: {output}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_does_not_start_on_the_database_of_a_service() {
    let fixture = WorkerFixture::with_key(KEY).await;
    let gate = Gate::closed();
    let (_service, scan) = service_with_scan(&fixture, &gate).await;
    let refused = FarescanProcess::start_sandbox(&fixture)
        .wait_for_failure()
        .await;
    gate.open();
    println!(
        "{} of {DATES} prices are the sandbox's; it said: {}",
        wrong_prices(&fixture, scan).await,
        refused.1
    );
    assert_refused(&refused, "sandbox", &fixture);
    assert_eq!(fixture.count("select count(*) from workers").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_with_another_marketplace_does_not_start() {
    let fixture = WorkerFixture::new().await;
    let first = FarescanProcess::start(&fixture, 1);
    first
        .wait_for_log("bound the database to this marketplace")
        .await;
    let other = ScriptedServer::start().await;
    let urls = [
        ("FARESCAN_FLIGHTS_URL", other.url()),
        ("FARESCAN_HOTELS_URL", other.url()),
    ];
    let marketplace_name = format!("flights {0}, hotels {0}", other.url());
    for started in [
        FarescanProcess::start_with(&fixture, 1, &urls),
        FarescanProcess::start_worker(&fixture, 1, &urls),
        FarescanProcess::start_gateway_with(&fixture, &urls),
    ] {
        assert_refused(
            &started.wait_for_failure().await,
            &marketplace_name,
            &fixture,
        );
    }
    // A process with the same marketplace may start.
    FarescanProcess::start_worker(&fixture, 1, &[])
        .wait_for_log("lease acquired")
        .await;
    assert_eq!(fixture.count("select count(*) from workers").await, 2);
    assert_eq!(other.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_marketplaces_at_first_start_one_is_refused() {
    let fixture = WorkerFixture::new().await;
    let other = ScriptedServer::start().await;
    let urls = [
        ("FARESCAN_FLIGHTS_URL", other.url()),
        ("FARESCAN_HOTELS_URL", other.url()),
    ];
    let services = [
        FarescanProcess::start(&fixture, 1),
        FarescanProcess::start_with(&fixture, 1, &urls),
        FarescanProcess::start(&fixture, 1),
        FarescanProcess::start_with(&fixture, 1, &urls),
    ];
    let started: Vec<bool> =
        futures::future::join_all(services.iter().map(FarescanProcess::wait_for_start)).await;
    assert_eq!((started[0], started[1]), (started[2], started[3]));
    assert_ne!(
        started[0], started[1],
        "one marketplace's processes start, the other's do not"
    );
    let stored: Vec<String> = values!(fixture.pool(), "select marketplace from installation");
    let url = if started[0] {
        fixture.upstream.url()
    } else {
        other.url()
    };
    assert_eq!(stored, [format!("flights {url}, hotels {url}")]);
}

/// Restores the state of a version that stored no marketplace.
async fn clear_marketplace(fixture: &WorkerFixture) {
    let clear_marketplace = "update workers set marketplace = null";
    execute!(fixture.pool(), clear_marketplace);
    let clear_marketplace = "update installation set marketplace = null, marketplace_since = null";
    execute!(fixture.pool(), clear_marketplace);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_rejects_an_old_database_with_callers() {
    let fixture = WorkerFixture::new().await;
    fixture.complete_scan(1).await;
    clear_marketplace(&fixture).await;
    let (status, output) = FarescanProcess::start_sandbox(&fixture)
        .wait_for_failure()
        .await;
    assert_eq!(status.code(), Some(1), "{output}");
    assert!(
        output.contains("no recorded marketplace")
            && output.contains("farescan marketplace set --sandbox"),
        "{output}"
    );
    assert_eq!(
        fixture
            .count("select count(*) from installation where marketplace is null")
            .await,
        1
    );
    FarescanProcess::start(&fixture, 1)
        .wait_for_log("bound the database to this marketplace")
        .await;
}

/// Runs `farescan marketplace …` with this marketplace's settings.
fn marketplace(fixture: &WorkerFixture, upstream: &ScriptedServer, args: &[&str]) -> CommandResult {
    let mut command = farescan(&program(), &[&["marketplace"], args].concat());
    command.env("DATABASE_URL", fixture.db.url());
    if args == ["set"] {
        command
            .env("FARESCAN_FLIGHTS_URL", upstream.url())
            .env("FARESCAN_HOTELS_URL", upstream.url());
    }
    run(&mut command)
}

#[tokio::test(flavor = "multi_thread")]
async fn marketplace_set_waits_until_no_worker_has_a_lease() {
    let fixture = WorkerFixture::new().await;
    let other = ScriptedServer::start().await;
    let of = |upstream: &ScriptedServer| format!("flights {0}, hotels {0}", upstream.url());
    assert!(
        marketplace(&fixture, &other, &["show"])
            .out
            .starts_with("none yet"),
        "before the first start"
    );
    let worker = FarescanProcess::start_worker(&fixture, 1, &[]);
    worker.wait_for_log("lease acquired").await;
    assert_eq!(
        marketplace(&fixture, &other, &["show"]).out.trim(),
        of(&fixture.upstream)
    );

    let refused = marketplace(&fixture, &other, &["set"]);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.err.contains("a worker has a lease until")
            && refused.err.contains("stop every `serve`"),
        "{refused:?}"
    );

    worker.signal(Signal::TERM);
    assert!(worker.wait_for_exit().await.success());
    let moved = marketplace(&fixture, &other, &["set"]);
    assert_eq!((moved.code, moved.err.as_str()), (Some(0), ""), "{moved:?}");
    assert!(
        moved.out.contains(&of(&other)) && moved.out.contains(&of(&fixture.upstream)),
        "{moved:?}"
    );
    let (status, output) = FarescanProcess::start_worker(&fixture, 1, &[])
        .wait_for_failure()
        .await;
    assert!(
        status.code() == Some(1) && output.contains(&of(&other)),
        "{output}"
    );
}

/// A process paused beyond its lease must not continue with the old marketplace.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_missed_a_marketplace_change_ends() {
    let fixture = WorkerFixture::new().await;
    let other = ScriptedServer::start().await;
    let worker = FarescanProcess::start_worker(&fixture, 1, &[]);
    worker.wait_for_log("lease acquired").await;
    worker.signal(Signal::STOP);
    fixture
        .wait_for_count(
            "select count(*) from workers where lease_until < clock_timestamp()",
            1,
        )
        .await;
    assert_eq!(marketplace(&fixture, &other, &["set"]).code, Some(0));
    worker.signal(Signal::CONT);
    worker
        .wait_for_log("lease refused: the database now belongs to another marketplace")
        .await;
    assert_eq!(worker.wait_for_exit().await.code(), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_of_another_marketplaces_database_is_refused() {
    let fixture = WorkerFixture::new().await;
    let replica = WorkerFixture::new().await;
    let started = FarescanProcess::start(&replica, 1);
    started.url().await;
    let (status, output) = FarescanProcess::start_gateway_with(
        &fixture,
        &[("FARESCAN_READ_DATABASE_URL", replica.db.url())],
    )
    .wait_for_failure()
    .await;
    assert_eq!(status.code(), Some(1), "{output}");
    assert!(
        output.contains("the replica belongs to the marketplace")
            && output.contains("FARESCAN_READ_DATABASE_URL"),
        "{output}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_cannot_be_moved_between_marketplaces() {
    let stages = [WorkerFixture::new().await, WorkerFixture::new().await];
    for fixture in &stages {
        FarescanProcess::start(fixture, 1).url().await;
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
            .all(|fixture| refused.err.contains(fixture.upstream.url())),
        "both are named: {refused:?}"
    );
}
