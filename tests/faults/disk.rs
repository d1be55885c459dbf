//! The disk of the database is full: answers cannot be stored, although calls can still begin, each
//! at the caller's cost.
//!
//! The table of answers is linked to `/dev/full`, which fails every write as a full disk does. No
//! quota and no mount is needed.

use std::path::PathBuf;
use std::time::Duration;

use farescan::contract::scans::ScanStatus;
use rand::RngExt as _;
use serde_json::json;

use super::ledger::LedgerCheck;
use super::process::FarescanProcess;
use super::spool_files;
use crate::support::db::PrivatePg;
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::worker::fixture::WorkerFixture;

/// The file of this month's partition of answers, which is empty.
async fn answers_file(server: &PrivatePg, fixture: &WorkerFixture) -> PathBuf {
    let path: String = value!(
        fixture.pool(),
        "select pg_relation_filepath(to_char(now() at time zone 'UTC', '\"answers_y\"YYYY\"m\"MM')::regclass)"
    );
    server.data_dir().join(path)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_fills_the_spool_then_stops_new_calls() {
    let mut server = PrivatePg::start().await;
    let mut fixture = WorkerFixture::on(&server.url()).await;
    // Calls whose answers are not stored count as in flight: a lane with the default limit would
    // stop by itself.
    fixture.pace.max_in_flight = 1_000;
    let file = answers_file(&server, &fixture).await;
    server.stop_fast().await;
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/dev/full", &file).unwrap();
    server.restart().await;

    // Incompressible bodies: the spool's 1 MiB holds about 120.
    fixture.upstream.answer(|call| {
        let filler: String = (0..8_000)
            .map(|_| char::from(rand::rng().random_range(b' '..b'~')))
            .collect();
        let mut row = fare(120, &call.body);
        row["filler"] = json!(filler);
        Reply::json(json!([row])).delay(Duration::from_millis(20))
    });
    let service = FarescanProcess::start_with(&fixture, 8, &[("FARESCAN_SPOOL_MIB", "1")]);
    let items = 300;
    let scan = fixture.submit(items, &json!({})).await;
    service.wait_for_log("spool full").await;
    fixture
        .upstream
        .wait_for("nothing is in flight", |calls| {
            calls.iter().all(|call| call.ended)
        })
        .await;
    let calls = fixture.upstream.count();
    assert!(
        calls < 200,
        "{calls} calls were made without spool space for their answers"
    );
    let bytes: u64 = spool_files::files(&fixture, "spool")
        .iter()
        .map(|path| path.metadata().unwrap().len())
        .sum();
    assert!(bytes <= 1024 * 1024, "{bytes}");
    assert_eq!(
        fixture
            .count("select count(*) from attempts where ended_at is not null")
            .await,
        0
    );

    server.stop_fast().await;
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, "").unwrap();
    server.chown_to_server(&file);
    server.restart().await;
    let seen = fixture.wait_until_ended(scan).await;
    assert_eq!(
        (seen.status, i64::from(seen.items.ok)),
        (ScanStatus::Completed, items)
    );
    println!("{}", LedgerCheck::run(&fixture).await.without_losses());
    service.kill();
}
