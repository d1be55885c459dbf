//! The disk of the database is full: answers cannot be stored, although calls can still be begun. The worst there is for a caller who
//! pays for each of them.
//!
//! The table of answers is put on `/dev/full`, which takes nothing and says so as a full disk does. No quota and no mount is needed.

use std::path::PathBuf;
use std::time::Duration;

use farescan::contract::scans::ScanStatus;
use rand::RngExt as _;
use serde_json::json;

use super::books::Books;
use super::process::Serve;
use super::spooled;
use crate::support::db::PrivatePg;
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::worker::stage::Stage;

/// The file of this month's answers, which is empty.
async fn answers_file(server: &PrivatePg, stage: &Stage) -> PathBuf {
    let path: String = sqlx::query_scalar(
        "select pg_relation_filepath(to_char(now() at time zone 'UTC', '\"answers_y\"YYYY\"m\"MM')::regclass)",
    )
    .fetch_one(stage.pool())
    .await
    .unwrap();
    server.data_dir().join(path)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_fills_the_spool_and_stops_new_calls_and_all_goes_on_with_room() {
    let mut server = PrivatePg::start().await;
    let mut stage = Stage::on(&server.url()).await;
    // Calls whose answers are not stored count as in flight: an ordinary lane would stop by itself.
    stage.pace.max_in_flight = 1_000;
    let file = answers_file(&server, &stage).await;
    server.stop_fast().await;
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/dev/full", &file).unwrap();
    server.restart().await;

    // Bodies that no compression helps: the spool's one MiB has room for some 120.
    stage.upstream.on_any().answer(|call| {
        let filler: String = (0..8_000)
            .map(|_| char::from(rand::rng().random_range(b' '..b'~')))
            .collect();
        let mut row = fare(120, &call.body);
        row["filler"] = json!(filler);
        Reply::json(json!([row])).delay(Duration::from_millis(20))
    });
    let service = Serve::with(&stage, 8, &[("FARESCAN_SPOOL_MIB", "1")]);
    let items = 300;
    let scan = stage.submit(items, &json!({})).await;
    service.says("the spool has no room left").await;
    stage
        .upstream
        .wait_for("nothing is in flight", |calls| {
            calls.iter().all(|call| call.ended)
        })
        .await;
    let calls = stage.upstream.count();
    assert!(
        calls < 200,
        "{calls} calls were made without a place for their answers"
    );
    let bytes: u64 = spooled::files(&stage, "spool")
        .iter()
        .map(|path| path.metadata().unwrap().len())
        .sum();
    assert!(bytes <= 1024 * 1024, "{bytes}");
    assert_eq!(
        stage
            .count("select count(*) from attempts where ended_at is not null")
            .await,
        0
    );

    server.stop_fast().await;
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, "").unwrap();
    server.give(&file);
    server.restart().await;
    let seen = stage.ended(scan).await;
    assert_eq!(
        (seen.status, i64::from(seen.items.ok)),
        (ScanStatus::Completed, items)
    );
    println!("{}", Books::compare(&stage).await.complete());
    service.kill();
}
