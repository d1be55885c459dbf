//! Postgres is away while calls are in flight: their answers end in the spool, and nothing is lost whatever becomes of the process.

use std::time::Duration;

use farescan::contract::scans::ScanStatus;
use farescan::ids::ScanId;
use rand::RngExt as _;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::books::Books;
use super::process::Serve;
use super::spooled;
use crate::support::db::PrivatePg;
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;
use crate::worker::stage::{KEY, Stage};

/// How many calls are in flight when the database goes.
const IN_FLIGHT: u16 = 16;

/// A service with calls in flight whose database has just gone.
struct Outage {
    server: PrivatePg,
    stage: Stage,
    service: Serve,
    gate: Gate,
    scan: ScanId,
}

impl Outage {
    async fn begin(items: i64) -> Self {
        Self::with(items, json!([fare(120, &json!({}))]), &[]).await
    }

    /// With this answer to every call.
    async fn with(items: i64, answer: Value, settings: &[(&str, &str)]) -> Self {
        let mut server = PrivatePg::start().await;
        let stage = Stage::on(&server.url()).await;
        let gate = Gate::closed();
        stage
            .upstream
            .on_any()
            .reply(Reply::json(answer).held_by(&gate));
        let service = Serve::with(&stage, IN_FLIGHT, settings);
        service.url().await;
        let scan = stage.submit(items, &json!({})).await;
        stage.upstream.wait_for_in_flight(IN_FLIGHT.into()).await;
        server.stop_fast().await;
        Self {
            server,
            stage,
            service,
            gate,
            scan,
        }
    }

    /// All calls end, and their answers are on disk.
    async fn answers_are_spooled(&self) {
        self.gate.open();
        spooled::wait_for(&self.stage, IN_FLIGHT.into()).await;
        assert_eq!(
            self.stage.upstream.count(),
            usize::from(IN_FLIGHT),
            "nothing begins without the database"
        );
    }

    /// Back; the scan ends with every answer, within the 30 s of the table on a machine that is not overloaded.
    async fn ends_complete(mut self, items: u32) {
        self.server.restart().await;
        let seen = self.stage.ended(self.scan).await;
        assert_eq!((seen.status, seen.items.ok), (ScanStatus::Completed, items));
        assert_eq!(
            spooled::files(&self.stage, "spool").len(),
            0,
            "it is drained and gone"
        );
        println!("{}", Books::compare(&self.stage).await.complete());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn its_calls_end_in_the_spool_the_gateway_is_unaffected_and_all_is_drained() {
    let outage = Outage::begin(40).await;
    outage.answers_are_spooled().await;
    let search =
        json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-01-14"});
    assert_eq!(
        outage
            .service
            .post("/v1/flights/oneway", &search)
            .await
            .status,
        200
    );
    let refused = outage
        .service
        .post("/v1/scans", &crate::worker::stage::fares(3))
        .await;
    assert_eq!(
        (refused.status, &refused.body["error"]["type"]),
        (503, &json!("unavailable"))
    );
    assert!(refused.headers.contains_key("retry-after"));
    for file in spooled::files(&outage.stage, "spool") {
        let bytes = std::fs::read(file).unwrap();
        assert!(
            !bytes
                .windows(KEY.len())
                .any(|window| window == KEY.as_bytes()),
            "no key is ever in the spool"
        );
    }
    if super::is_soak() {
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    // The gateway's own call carried no attempt.
    let Outage {
        mut server,
        stage,
        service,
        scan,
        ..
    } = outage;
    server.restart().await;
    let seen = stage.ended(scan).await;
    assert_eq!((seen.status, seen.items.ok), (ScanStatus::Completed, 40));
    service.says("stored from the spool").await;
    assert_eq!(spooled::files(&stage, "spool").len(), 0);
    println!("{}", Books::compare(&stage).await.complete());
    service.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_the_database_is_away_it_has_lost_nothing() {
    let outage = Outage::begin(40).await;
    outage.answers_are_spooled().await;
    let Outage {
        server,
        stage,
        service,
        gate,
        scan,
    } = outage;
    service.kill();
    // The next start finds the database away too, and waits for it.
    let service = Serve::start(&stage, IN_FLIGHT);
    service.says("the database is away").await;
    Outage {
        server,
        stage,
        service,
        gate,
        scan,
    }
    .ends_complete(40)
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn told_to_end_while_the_database_is_away_it_spools_what_it_has_and_ends_well() {
    let outage = Outage::begin(40).await;
    let Outage {
        server,
        stage,
        service,
        gate,
        scan,
    } = outage;
    service.signal(Signal::TERM);
    gate.open();
    let status = service.ended().await;
    assert!(status.success(), "{status}");
    assert_eq!(spooled::count(&stage), usize::from(IN_FLIGHT));
    let service = Serve::start(&stage, IN_FLIGHT);
    Outage {
        server,
        stage,
        service,
        gate,
        scan,
    }
    .ends_complete(40)
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn given_up_by_the_others_a_spooled_answer_completes_its_item_all_the_same() {
    let outage = Outage::begin(i64::from(IN_FLIGHT)).await;
    outage.answers_are_spooled().await;
    let Outage {
        mut server,
        stage,
        service,
        scan,
        ..
    } = outage;
    service.kill();
    server.restart().await;
    // A process of another machine: it cannot see the spool.
    let other = tempfile::TempDir::new().unwrap();
    let elsewhere = Serve::with(
        &stage,
        4,
        &[("FARESCAN_SPOOL_DIR", other.path().to_str().unwrap())],
    );
    let seen = stage.ended(scan).await;
    assert_eq!(
        (seen.status, seen.items.degraded),
        (ScanStatus::Incomplete, u32::from(IN_FLIGHT))
    );
    let home = Serve::start(&stage, 4);
    let all = u32::from(IN_FLIGHT);
    let seen = stage
        .scan_when(scan, "the late answers are in", |scan| scan.items.ok == all)
        .await;
    assert_eq!(
        (seen.status, seen.items.degraded, seen.requests.spent),
        (ScanStatus::Completed, 0, all)
    );
    home.says("stored from the spool").await;
    println!("{}", Books::compare(&stage).await.complete());
    home.kill();
    elsewhere.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_that_was_deleted_meanwhile_leaves_nothing_to_drain() {
    let outage = Outage::begin(i64::from(IN_FLIGHT)).await;
    outage.answers_are_spooled().await;
    let Outage {
        mut server,
        stage,
        service,
        scan,
        ..
    } = outage;
    service.kill();
    server.restart().await;
    sqlx::query("delete from scans where scan_id = $1")
        .bind(scan.uuid())
        .execute(stage.pool())
        .await
        .unwrap();
    let service = Serve::start(&stage, 4);
    service.says("stored from the spool").await;
    assert_eq!(stage.count("select count(*) from answers").await, 0);
    let other = stage.submit(3, &json!({})).await;
    assert_eq!(stage.ended(other).await.items.ok, 3, "it works on");
    service.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_database_refuses_is_set_aside_and_keeps_nobody_else_waiting() {
    let outage = Outage::begin(i64::from(IN_FLIGHT)).await;
    outage.answers_are_spooled().await;
    let Outage {
        mut server,
        stage,
        service,
        scan,
        ..
    } = outage;
    service.kill();
    server.restart().await;
    sqlx::raw_sql(
        "create function refuse() returns trigger language plpgsql as $$ begin
             if new.item_id = (select i.item_id from scan_items i where i.position = 3) then
                 raise exception 'never' using errcode = '22000';
             end if;
             return new;
         end $$;
         create trigger refuse before insert on answers for each row execute function refuse()",
    )
    .execute(stage.pool())
    .await
    .unwrap();
    let service = Serve::start(&stage, 4);
    service.says("an answer was set aside").await;
    let seen = stage.ended(scan).await;
    assert_eq!(
        (seen.status, seen.items.ok, seen.items.degraded),
        (ScanStatus::Incomplete, u32::from(IN_FLIGHT) - 1, 1)
    );
    assert_eq!(
        spooled::files(&stage, "spool").len(),
        0,
        "it is not tried again"
    );
    assert_eq!(
        spooled::files(&stage, "refused").len(),
        1,
        "and not thrown away"
    );
    println!("{}", Books::compare(&stage).await);
    service.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_disk_will_not_have_waits_in_memory() {
    let filler: String = (0..200_000)
        .map(|_| char::from(rand::rng().random_range(b' '..b'~')))
        .collect();
    let mut row = fare(120, &json!({}));
    row["filler"] = json!(filler);
    // Sixteen such answers are three times what the spool may hold.
    let outage = Outage::with(40, json!([row]), &[("FARESCAN_SPOOL_MIB", "1")]).await;
    outage.gate.open();
    outage.service.says("answers cannot be spooled").await;
    let spooled = spooled::count(&outage.stage);
    assert!((1..usize::from(IN_FLIGHT)).contains(&spooled), "{spooled}");
    outage.ends_complete(40).await;
}
