//! Postgres restarts under load and cuts connections.

use std::time::Duration;

use farescan::contract::scans::ScanStatus;
use farescan::scans::read;
use serde_json::json;
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use super::chaos::books::{LONGEST_WAIT, longest_wait};
use super::ledger::LedgerCheck;
use super::process::FarescanProcess;
use crate::history::fixture::HistoryFixture;
use crate::support::db::{PrivatePg, connect};
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;
use crate::worker::fixture::WorkerFixture;

fn answer_after(fixture: &WorkerFixture, delay: Duration) {
    fixture
        .upstream
        .answer(move |call| Reply::json(json!([fare(120, &call.body)])).delay(delay));
}

#[tokio::test(flavor = "multi_thread")]
async fn restarted_under_load_it_loses_and_repeats_no_call() {
    let mut server = PrivatePg::start().await;
    let fixture = WorkerFixture::on(&server.url()).await;
    answer_after(&fixture, Duration::from_millis(150));
    let services = [
        FarescanProcess::start(&fixture, 10),
        FarescanProcess::start_worker(&fixture, 10, &[]),
    ];
    services[0].url().await;
    let scan = fixture.submit(360, &json!({})).await;
    let mut pauses = Vec::new();
    for (calls, is_fast) in [(40, false), (120, true), (200, false), (260, true)] {
        fixture
            .upstream
            .wait_for("the scan is underway", |ledger| ledger.len() >= calls)
            .await;
        if is_fast {
            server.stop_fast().await;
        } else {
            server.stop_immediate().await;
        }
        let before = fixture.upstream.count();
        server.restart().await;
        let up = tokio::time::Instant::now();
        fixture
            .upstream
            .wait_for("calls continue", |ledger| ledger.len() > before)
            .await;
        pauses.push(format!("{:.1} s", up.elapsed().as_secs_f64()));
    }
    let seen = fixture.wait_until_ended(scan).await;
    assert_eq!(
        (seen.status, seen.items.ok, fixture.upstream.count()),
        (ScanStatus::Completed, 360, 360)
    );
    println!(
        "went on after {}; {}",
        pauses.join(", "),
        LedgerCheck::run(&fixture).await.without_losses()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_cut_repeatedly_lose_and_repeat_no_call() {
    let server = PrivatePg::start().await;
    let fixture = WorkerFixture::on(&server.url()).await;
    answer_after(&fixture, Duration::from_millis(50));
    let services = [
        FarescanProcess::start(&fixture, 10),
        FarescanProcess::start_worker(&fixture, 10, &[]),
    ];
    services[0].url().await;
    let scan = fixture.submit(300, &json!({})).await;
    // Its connections have another name, so they are not cut.
    let (tenant, own) = (
        fixture.tenant().await,
        PgPool::connect(&server.url()).await.unwrap(),
    );
    let seen = async || read::scan(&own, tenant, scan).await.unwrap().unwrap();
    let cut = "select count(pg_terminate_backend(pid)) from pg_stat_activity
               where datname = current_database() and application_name = 'farescan' and random() < 0.5";
    let mut connections = 0;
    while seen().await.finished_at.is_none() {
        connections += sqlx::query_scalar::<_, i64>(cut)
            .fetch_one(&own)
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let seen = seen().await;
    assert_eq!(
        (seen.status, seen.items.ok, fixture.upstream.count()),
        (ScanStatus::Completed, 300, 300)
    );
    println!(
        "{connections} connections cut; {}",
        LedgerCheck::run(&fixture).await.without_losses()
    );
}

/// A reader takes an idle connection without trying it first.
#[tokio::test(flavor = "multi_thread")]
async fn readers_replace_idle_connections_that_were_cut() {
    let fixture = HistoryFixture::open().await;
    fixture
        .insert(&[fixture.fare("2030-01-01", 0, Some(200))])
        .await;
    let read = async || {
        let path = "/v1/history/flights/latest?from_airport=TLV&to_airport=LHR&departure_from=2030-01-01&departure_to=2030-01-31";
        let answer = fixture.app.get(path).await;
        assert_eq!(
            (answer.status, answer.text().contains("\"price\":200")),
            (200, true),
            "{}",
            answer.text()
        );
    };
    let mut conn = connect(&fixture.db.connect_options()).await;
    for _ in 0..3 {
        futures::future::join_all((0..30).map(|_| read())).await;
        let cut = "select count(pg_terminate_backend(pid)) from pg_stat_activity
                   where datname = current_database() and pid <> pg_backend_pid()";
        let cut: i64 = value!(&mut conn, cut);
        assert!(cut > 2, "{cut} idle connections");
        for _ in 0..10 {
            read().await;
        }
    }
}

/// Postgres restarts while searches wait for equal ones whose calls are in flight.
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_an_answer_has_it_soon_after_a_restart() {
    const DATES: i64 = 8;
    let mut server = PrivatePg::start().await;
    let fixture = WorkerFixture::on(&server.url()).await;
    let gate = Gate::closed();
    let answer = gate.clone();
    fixture
        .upstream
        .answer(move |call| Reply::json(json!([fare(120, &call.body)])).gated_by(&answer));
    let service = FarescanProcess::start(&fixture, 16);
    service.url().await;
    let sharing = json!({"max_age_seconds": 3600});
    let first = fixture.submit(DATES, &sharing).await;
    fixture.upstream.wait_for_in_flight(8).await;
    let second = fixture.submit(DATES, &sharing).await;
    let waiting = "select count(*) from shared_searches where waits";
    fixture.wait_for_count(waiting, DATES).await;
    server.stop_immediate().await;
    gate.open();
    server.restart().await;
    let stop = CancellationToken::new();
    let waits = tokio::spawn(longest_wait(fixture.pool().clone(), stop.clone()));
    let first = fixture.wait_until_ended(first).await;
    let second = fixture.wait_until_ended(second).await;
    stop.cancel();
    let waited = waits.await.unwrap();
    println!("waited {waited:.1?} for an answer that was there");
    assert!(waited < LONGEST_WAIT, "{waited:?}");
    assert_eq!((first.items.ok, second.items.ok), (8, 8));
    assert_eq!(
        fixture.upstream.count(),
        8,
        "{}",
        LedgerCheck::run(&fixture).await
    );
}
