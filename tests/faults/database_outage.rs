//! Postgres is unavailable while calls are in flight: the process spools their answers and loses
//! none, even if it is killed.

use std::time::Duration;

use farescan::contract::scans::ScanStatus;
use farescan::ids::ScanId;
use rand::RngExt as _;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::ledger::LedgerCheck;
use super::process::FarescanProcess;
use super::spool_files;
use crate::support::db::PrivatePg;
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;
use crate::worker::fixture::{KEY, WorkerFixture};

/// How many calls are in flight when the database stops.
const IN_FLIGHT: u16 = 16;

/// A service with calls in flight whose database has just stopped.
struct Outage {
    server: PrivatePg,
    fixture: WorkerFixture,
    service: FarescanProcess,
    gate: Gate,
    scan: ScanId,
}

impl Outage {
    async fn begin(items: i64) -> Self {
        Self::begin_with(items, json!([fare(120, &json!({}))]), &[]).await
    }

    /// The same with this answer to every call and more settings.
    async fn begin_with(items: i64, answer: Value, settings: &[(&str, &str)]) -> Self {
        let mut server = PrivatePg::start().await;
        let fixture = WorkerFixture::on(&server.url()).await;
        let gate = Gate::closed();
        fixture.upstream.reply(Reply::json(answer).gated_by(&gate));
        let service = FarescanProcess::start_with(&fixture, IN_FLIGHT, settings);
        service.url().await;
        let scan = fixture.submit(items, &json!({})).await;
        fixture.upstream.wait_for_in_flight(IN_FLIGHT.into()).await;
        server.stop_fast().await;
        Self {
            server,
            fixture,
            service,
            gate,
            scan,
        }
    }

    /// Lets all calls end and waits until their answers are spooled.
    async fn spool_answers(&self) {
        self.gate.open();
        spool_files::wait_for(&self.fixture, IN_FLIGHT.into()).await;
        assert_eq!(
            self.fixture.upstream.count(),
            usize::from(IN_FLIGHT),
            "nothing begins without the database"
        );
    }

    /// Restarts the database; the scan ends with every answer.
    async fn assert_complete_after_restart(mut self, items: u32) {
        self.server.restart().await;
        let seen = self.fixture.wait_until_ended(self.scan).await;
        assert_eq!((seen.status, seen.items.ok), (ScanStatus::Completed, items));
        assert_eq!(
            spool_files::files(&self.fixture, "spool").len(),
            0,
            "the drained file is removed"
        );
        println!("{}", LedgerCheck::run(&self.fixture).await.without_losses());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_spooled_and_stored_after_the_outage() {
    let outage = Outage::begin(40).await;
    outage.spool_answers().await;
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
        .post("/v1/scans", &crate::worker::fixture::fares(3))
        .await;
    assert_eq!(
        (refused.status, &refused.body["error"]["type"]),
        (503, &json!("unavailable"))
    );
    assert!(refused.headers.contains_key("retry-after"));
    for file in spool_files::files(&outage.fixture, "spool") {
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
    // The synchronous search has no attempt.
    let Outage {
        mut server,
        fixture,
        service,
        scan,
        ..
    } = outage;
    server.restart().await;
    let seen = fixture.wait_until_ended(scan).await;
    assert_eq!((seen.status, seen.items.ok), (ScanStatus::Completed, 40));
    service.wait_for_log("spooled answers stored").await;
    assert_eq!(spool_files::files(&fixture, "spool").len(), 0);
    println!("{}", LedgerCheck::run(&fixture).await.without_losses());
    service.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_during_an_outage_it_loses_nothing() {
    let outage = Outage::begin(40).await;
    outage.spool_answers().await;
    let Outage {
        server,
        fixture,
        service,
        gate,
        scan,
    } = outage;
    service.kill();
    // The next process finds the database unavailable and waits for it.
    let service = FarescanProcess::start(&fixture, IN_FLIGHT);
    service.wait_for_log("database unavailable").await;
    Outage {
        server,
        fixture,
        service,
        gate,
        scan,
    }
    .assert_complete_after_restart(40)
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_during_an_outage_spools_the_answers_in_flight() {
    let outage = Outage::begin(40).await;
    let Outage {
        server,
        fixture,
        service,
        gate,
        scan,
    } = outage;
    service.signal(Signal::TERM);
    gate.open();
    let status = service.wait_for_exit().await;
    assert!(status.success(), "{status}");
    assert_eq!(spool_files::count(&fixture), usize::from(IN_FLIGHT));
    let service = FarescanProcess::start(&fixture, IN_FLIGHT);
    Outage {
        server,
        fixture,
        service,
        gate,
        scan,
    }
    .assert_complete_after_restart(40)
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spooled_answer_completes_an_abandoned_item() {
    let outage = Outage::begin(i64::from(IN_FLIGHT)).await;
    outage.spool_answers().await;
    let Outage {
        mut server,
        fixture,
        service,
        scan,
        ..
    } = outage;
    service.kill();
    server.restart().await;
    // A process on another machine cannot read the spool.
    let other = tempfile::TempDir::new().unwrap();
    let other_host = FarescanProcess::start_with(
        &fixture,
        4,
        &[("FARESCAN_SPOOL_DIR", other.path().to_str().unwrap())],
    );
    let seen = fixture.wait_until_ended(scan).await;
    assert_eq!(
        (seen.status, seen.items.degraded),
        (ScanStatus::Incomplete, u32::from(IN_FLIGHT))
    );
    let same_host = FarescanProcess::start(&fixture, 4);
    let all = u32::from(IN_FLIGHT);
    let seen = fixture
        .wait_for_scan(scan, "the late answers are in", |scan| scan.items.ok == all)
        .await;
    assert_eq!(
        (seen.status, seen.items.degraded, seen.requests.spent),
        (ScanStatus::Completed, 0, all)
    );
    same_host.wait_for_log("spooled answers stored").await;
    println!("{}", LedgerCheck::run(&fixture).await.without_losses());
    same_host.kill();
    other_host.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn spooled_answers_of_a_deleted_scan_are_dropped() {
    let outage = Outage::begin(i64::from(IN_FLIGHT)).await;
    outage.spool_answers().await;
    let Outage {
        mut server,
        fixture,
        service,
        scan,
        ..
    } = outage;
    service.kill();
    server.restart().await;
    execute!(
        fixture.pool(),
        "delete from scans where scan_id = $1",
        scan.uuid()
    );
    let service = FarescanProcess::start(&fixture, 4);
    service.wait_for_log("spooled answers stored").await;
    assert_eq!(fixture.count("select count(*) from answers").await, 0);
    let other = fixture.submit(3, &json!({})).await;
    assert_eq!(
        fixture.wait_until_ended(other).await.items.ok,
        3,
        "the service continues"
    );
    service.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_the_database_rejects_is_set_aside() {
    let outage = Outage::begin(i64::from(IN_FLIGHT)).await;
    outage.spool_answers().await;
    let Outage {
        mut server,
        fixture,
        service,
        scan,
        ..
    } = outage;
    service.kill();
    server.restart().await;
    execute!(
        fixture.pool(),
        "create function refuse() returns trigger language plpgsql as $$ begin
             if new.item_id = (select i.item_id from scan_items i where i.position = 3) then
                 raise exception 'never' using errcode = '22000';
             end if;
             return new;
         end $$;
         create trigger refuse before insert on answers for each row execute function refuse()"
    );
    let service = FarescanProcess::start(&fixture, 4);
    service.wait_for_log("answer quarantined").await;
    // An item that was abandoned before its answer was stored gets it late.
    service.wait_for_log("spooled answers stored").await;
    let seen = fixture.wait_until_ended(scan).await;
    assert_eq!(
        (seen.status, seen.items.ok, seen.items.degraded),
        (ScanStatus::Incomplete, u32::from(IN_FLIGHT) - 1, 1)
    );
    assert_eq!(
        spool_files::files(&fixture, "spool").len(),
        0,
        "it is not tried again"
    );
    assert_eq!(
        spool_files::files(&fixture, "refused").len(),
        1,
        "but not deleted"
    );
    println!("{}", LedgerCheck::run(&fixture).await);
    service.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_beyond_the_spool_limit_wait_in_memory() {
    let filler: String = (0..200_000)
        .map(|_| char::from(rand::rng().random_range(b' '..b'~')))
        .collect();
    let mut row = fare(120, &json!({}));
    row["filler"] = json!(filler);
    // Sixteen such answers are three times the spool's limit.
    let outage = Outage::begin_with(40, json!([row]), &[("FARESCAN_SPOOL_MIB", "1")]).await;
    outage.gate.open();
    outage.service.wait_for_log("spool write failed").await;
    let spooled = spool_files::count(&outage.fixture);
    assert!((1..usize::from(IN_FLIGHT)).contains(&spooled), "{spooled}");
    outage.assert_complete_after_restart(40).await;
}
