//! Postgres restarts under load, and cuts connections.

use std::time::Duration;

use farescan::contract::scans::ScanStatus;
use serde_json::json;

use super::books::Books;
use super::process::Serve;
use crate::history::archive::Archive;
use crate::support::db::{PrivatePg, connect};
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::worker::stage::Stage;

fn answered_after(stage: &Stage, delay: Duration) {
    stage
        .upstream
        .on_any()
        .answer(move |call| Reply::json(json!([fare(120, &call.body)])).delay(delay));
}

#[tokio::test(flavor = "multi_thread")]
async fn restarted_under_load_it_costs_no_answer_and_no_second_call() {
    let mut server = PrivatePg::start().await;
    let stage = Stage::on(&server.url()).await;
    answered_after(&stage, Duration::from_millis(150));
    let services = [Serve::start(&stage, 10), Serve::worker(&stage, 10, &[])];
    services[0].url().await;
    let scan = stage.submit(360, &json!({})).await;
    let mut pauses = Vec::new();
    for (calls, is_fast) in [(40, false), (120, true), (200, false), (260, true)] {
        stage
            .upstream
            .wait_for("it is in the middle", |ledger| ledger.len() >= calls)
            .await;
        if is_fast {
            server.stop_fast().await;
        } else {
            server.stop_immediate().await;
        }
        let before = stage.upstream.count();
        server.restart().await;
        let up = tokio::time::Instant::now();
        stage
            .upstream
            .wait_for("it goes on", |ledger| ledger.len() > before)
            .await;
        pauses.push(format!("{:.1} s", up.elapsed().as_secs_f64()));
    }
    let seen = stage.ended(scan).await;
    assert_eq!(
        (seen.status, seen.items.ok, stage.upstream.count()),
        (ScanStatus::Completed, 360, 360)
    );
    println!(
        "went on after {}; {}",
        pauses.join(", "),
        Books::compare(&stage).await.complete()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_cut_again_and_again_cost_nothing() {
    let server = PrivatePg::start().await;
    let stage = Stage::on(&server.url()).await;
    answered_after(&stage, Duration::from_millis(50));
    let services = [Serve::start(&stage, 10), Serve::worker(&stage, 10, &[])];
    services[0].url().await;
    let scan = stage.submit(300, &json!({})).await;
    let cut = "select count(pg_terminate_backend(pid)) from pg_stat_activity
               where datname = current_database() and pid <> pg_backend_pid() and application_name = 'farescan' and random() < 0.5";
    let mut connections = 0;
    while stage.scan(scan).await.finished_at.is_none() {
        // The test's own may be among them.
        connections += sqlx::query_scalar::<_, i64>(cut)
            .fetch_one(stage.pool())
            .await
            .unwrap_or_default();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let seen = stage.scan(scan).await;
    assert_eq!(
        (seen.status, seen.items.ok, stage.upstream.count()),
        (ScanStatus::Completed, 300, 300)
    );
    println!(
        "{connections} connections cut; {}",
        Books::compare(&stage).await.complete()
    );
}

/// A reader takes an idle connection without trying it first.
#[tokio::test(flavor = "multi_thread")]
async fn who_reads_does_not_notice_that_idle_connections_were_cut() {
    let archive = Archive::open().await;
    archive
        .keep(&[archive.fare("2030-01-01", 0, Some(200))])
        .await;
    let read = async || {
        let path = "/v1/history/flights/latest?from_airport=TLV&to_airport=LHR&departure_from=2030-01-01&departure_to=2030-01-31";
        let answer = archive.app.get(path).await;
        assert_eq!(
            (answer.status, answer.text().contains("\"price\":200")),
            (200, true),
            "{}",
            answer.text()
        );
    };
    let mut conn = connect(&archive.db.connect_options()).await;
    for _ in 0..3 {
        futures::future::join_all((0..30).map(|_| read())).await;
        let cut = "select count(pg_terminate_backend(pid)) from pg_stat_activity
                   where datname = current_database() and pid <> pg_backend_pid()";
        let cut: i64 = sqlx::query_scalar(cut).fetch_one(&mut conn).await.unwrap();
        assert!(cut > 2, "several were idle: {cut}");
        for _ in 0..10 {
            read().await;
        }
    }
}
