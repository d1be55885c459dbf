//! Moving a caller between two installations, each with its own database and processes
//! (docs/scaling.md, "Cells").

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use farescan::ids::TenantId;
use farescan::tenants::relocate::TABLES;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, PgPool};

use crate::faults::ledger::LedgerCheck;
use crate::faults::process::FarescanProcess;
use crate::monitors;
use crate::support::db::TestDb;
use crate::support::reply::Reply;
use crate::support::upstream::{ScriptedServer, fare};
use crate::support::{Rng, array, text};
use crate::worker::fixture::{KEY, WorkerFixture, fares, ring_text};

/// Two installations with one marketplace, the first one's.
struct Cells {
    stages: [WorkerFixture; 2],
    services: [FarescanProcess; 2],
    tenant: TenantId,
}

impl Cells {
    /// Starts both. The caller has one ended scan of one date at the first.
    async fn open() -> Self {
        let stages = [WorkerFixture::new().await, WorkerFixture::new().await];
        let marketplace = stages[0].upstream.url().to_owned();
        stages[0].upstream.answer(|call| {
            let day: u64 = call.body["departure_date"].as_str().unwrap()[8..]
                .parse()
                .unwrap();
            Reply::json(json!([fare(100 + day, &call.body)])).delay(Duration::from_millis(20))
        });
        let one_marketplace = [
            ("FARESCAN_FLIGHTS_URL", marketplace.as_str()),
            ("FARESCAN_HOTELS_URL", marketplace.as_str()),
        ];
        let services = [
            FarescanProcess::start(&stages[0], 4),
            FarescanProcess::start_with(&stages[1], 4, &one_marketplace),
        ];
        services[1].wait_for_log("listening").await;
        let mut first = fares(1);
        first["request"]["to_airport"] = "CDG".into();
        let order = services[0].post("/v1/scans", &first).await;
        assert_eq!(order.status, 202, "{}", order.body);
        let cells = Self {
            tenant: stages[0].tenant().await,
            stages,
            services,
        };
        cells
            .wait_until_ended(0, order.body["id"].as_str().unwrap())
            .await;
        cells
    }

    fn ledger(&self) -> &ScriptedServer {
        &self.stages[0].upstream
    }

    async fn get(&self, cell: usize, path: &str) -> (u16, Value) {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let url = self.services[cell].url().await;
        let answer = client
            .get(format!("{url}{path}"))
            .header("x-api-key", KEY)
            .send()
            .await
            .unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    /// Polls a cell until the scan has ended.
    async fn wait_until_ended(&self, cell: usize, scan: &str) -> Value {
        for _ in 0..10 {
            let (status, seen) = self.get(cell, &format!("/v1/scans/{scan}?wait=30")).await;
            assert_eq!(status, 200, "{seen}");
            if !seen["finished_at"].is_null() {
                return seen;
            }
        }
        panic!("{scan} does not end");
    }

    fn start_move(&self, from: usize) -> Child {
        start_move(
            self.tenant,
            self.stages[from].db.url(),
            self.stages[1 - from].db.url(),
            &ring_text(),
        )
    }

    fn run_move(&self, from: usize) -> String {
        let Output {
            status,
            stdout,
            stderr,
        } = self.start_move(from).wait_with_output().unwrap();
        assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
        String::from_utf8(stdout).unwrap()
    }

    /// Calls by date of a route.
    fn calls_by_date(&self, to: &str) -> BTreeMap<String, usize> {
        let mut calls_by_date = BTreeMap::new();
        for call in self
            .ledger()
            .calls()
            .iter()
            .filter(|call| call.body["to_airport"] == to)
        {
            *calls_by_date
                .entry(text(&call.body["departure_date"]))
                .or_default() += 1;
        }
        calls_by_date
    }
}

/// Starts `farescan tenants move`.
fn start_move(tenant: TenantId, source: &str, target: &str, ring: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_farescan"))
        .args(["tenants", "move", "--tenant", &tenant.to_string()])
        .env("DATABASE_URL", source)
        .env("FARESCAN_TARGET_DATABASE_URL", target)
        .env("FARESCAN_MASTER_KEY", ring)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Tables with rows of a caller.
async fn tables_with_rows(pool: &PgPool, tenant: TenantId) -> BTreeSet<&'static str> {
    let mut tables_with_rows = BTreeSet::new();
    for table in TABLES {
        let count = format!("select count(*) from {table} where tenant_id = $1");
        let rows: i64 = value!(pool, AssertSqlSafe(count), tenant.uuid());
        if rows > 0 {
            tables_with_rows.insert(*table);
        }
    }
    tables_with_rows
}

fn rows_by(id: &str, list: &Value) -> BTreeMap<String, Value> {
    array(&list["data"])
        .iter()
        .map(|row| (text(&row[id]), row.clone()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moved_caller_continues_in_the_other_cell() {
    let cells = Cells::open().await;
    let watched = cells.services[0]
        .post("/v1/monitors", &monitors::monitor())
        .await;
    assert_eq!(watched.status, 201, "{}", watched.body);
    let order = cells.services[0].post("/v1/scans", &fares(40)).await;
    assert_eq!(order.status, 202, "{}", order.body);
    let scan = text(&order.body["id"]);
    cells
        .ledger()
        .wait_for("a quarter of the scan was asked", |calls| calls.len() > 10)
        .await;
    let items = format!("/v1/scans/{scan}/items?limit=500");
    let before = rows_by("id", &cells.get(0, &items).await.1);
    let history = "/v1/history/flights?from_airport=TLV&to_airport=LHR&limit=500";
    let seen_before = cells.get(0, history).await.1;

    let printed = cells.run_move(0);
    let asked_at_move = cells.ledger().count();
    assert!(printed.contains("scan_items 41"), "{printed}");

    let end = cells.wait_until_ended(1, &scan).await;
    assert_eq!(end["status"], "completed", "{end}");
    let after = rows_by("id", &cells.get(1, &items).await.1);
    assert_eq!(
        after.keys().collect::<Vec<_>>(),
        before.keys().collect::<Vec<_>>(),
        "the same items"
    );
    for (id, item) in before.iter().filter(|(_, item)| item["state"] == "done") {
        assert_eq!(&after[id], item, "what was found before the move");
    }
    let seen_after = cells.get(1, history).await.1["data"]
        .as_array()
        .unwrap()
        .clone();
    let kept = |row: &&Value| seen_after.contains(row);
    assert_eq!(
        array(&seen_before["data"]).iter().filter(kept).count(),
        array(&seen_before["data"]).len()
    );
    let calls_by_date = cells.calls_by_date("LHR");
    assert_eq!(
        (calls_by_date.len(), calls_by_date.values().max()),
        (40, Some(&1)),
        "each date is asked once: {calls_by_date:?}"
    );

    let monitor = format!("/v1/monitors/{}", watched.body["id"].as_str().unwrap());
    let (status, there) = cells.get(1, &monitor).await;
    assert_eq!(
        (status, &there["next_slot"], &there["status"]),
        (200, &watched.body["next_slot"], &watched.body["status"])
    );
    for path in [format!("/v1/scans/{scan}"), items, monitor] {
        assert_eq!(cells.get(0, &path).await.0, 404, "{path} at the old cell");
    }
    assert_eq!(
        tables_with_rows(cells.stages[0].pool(), cells.tenant).await,
        BTreeSet::new()
    );
    let ledger = LedgerCheck::run_on(cells.ledger(), cells.stages[1].pool())
        .await
        .without_losses();
    println!("{printed}moved after {asked_at_move} of 41 calls; {ledger}");
}

/// Whenever the command dies, at most one cell works for the caller.
#[tokio::test(flavor = "multi_thread")]
async fn the_next_move_finishes_a_killed_one() {
    let cells = Cells::open().await;
    let order = cells.services[0].post("/v1/scans", &fares(120)).await;
    let scan = text(&order.body["id"]);
    let mut rng = Rng(11);
    let (mut killed, mut at) = (0, 0);
    for _ in 0..6 {
        let mut child = cells.start_move(at);
        tokio::time::sleep(Duration::from_millis(rng.below(250))).await;
        child.kill().unwrap();
        killed += usize::from(!child.wait().unwrap().success());
        let printed = cells.run_move(at);
        assert!(printed.contains("moved"), "{printed}");
        assert_eq!(
            tables_with_rows(cells.stages[at].pool(), cells.tenant).await,
            BTreeSet::new(),
            "{printed}"
        );
        at = 1 - at;
    }
    let end = cells.wait_until_ended(at, &scan).await;
    assert_eq!(end["items"]["ok"], 120, "{end}");
    let calls_by_date = cells.calls_by_date("LHR");
    assert_eq!(
        (calls_by_date.len(), calls_by_date.values().max()),
        (120, Some(&1)),
        "each date is asked once: {calls_by_date:?}"
    );
    let ledger = LedgerCheck::run_on(cells.ledger(), cells.stages[at].pool())
        .await
        .without_losses();
    println!("6 moves, {killed} killed; {ledger}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_stays_if_the_target_cannot_serve_it() {
    let cells = Cells::open().await;
    let [here, there] = [cells.stages[0].db.url(), cells.stages[1].db.url()];
    let refused =
        |child: Child| String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
    let other_ring = format!("other:{}", "17".repeat(32));
    let said = refused(start_move(cells.tenant, here, there, &other_ring));
    assert!(
        said.contains("the target's master key lacks the entries test"),
        "{said}"
    );
    let said = refused(start_move(TenantId::new(), here, there, &ring_text()));
    assert!(said.contains("there is no caller ten_"), "{said}");
    let elsewhere = TestDb::new().await;
    execute!(
        elsewhere.pool(),
        "update installation set marketplace = 'another.example', marketplace_since = now()"
    );
    let said = refused(start_move(
        cells.tenant,
        here,
        elsewhere.url(),
        &ring_text(),
    ));
    assert!(said.contains("the target to `another.example`"), "{said}");
    // The target already works for the caller, as after a restored backup.
    let busy = "insert into tenants (tenant_id, created_at) values ($1, now())";
    execute!(cells.stages[1].pool(), busy, cells.tenant.uuid());
    let lane =
        "insert into lanes (tenant_id, api, emission, burst, max_in_flight, start_per_minute, start_in_flight, learned_in_flight)
                values ($1, 'flights', '1 s', 1, 1, 60, 1, 1)";
    execute!(cells.stages[1].pool(), lane, cells.tenant.uuid());
    let said = refused(start_move(cells.tenant, here, there, &ring_text()));
    assert!(said.contains("the target has the caller"), "{said}");
    assert_eq!(
        cells.get(0, "/v1/scans").await.1["data"]
            .as_array()
            .unwrap()
            .len(),
        1,
        "the source still serves the caller"
    );
    assert_eq!(
        cells.stages[0]
            .count("select count(*) from lanes where pause_reason = 'moving'")
            .await,
        0
    );
}

#[tokio::test]
async fn a_move_copies_every_table_with_a_tenant() {
    let db = TestDb::new().await;
    let tables: BTreeSet<String> = values!(db.pool(), "select c.relname::text from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id' and not a.attisdropped
         where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = 'public'::regnamespace", => String)
    .into_iter()
    .collect();
    assert_eq!(
        TABLES
            .iter()
            .map(|table| (*table).to_owned())
            .collect::<BTreeSet<_>>(),
        tables
    );
    let references: Vec<(String, String)> = rows!(
        db.pool(),
        "select conrelid::regclass::text, confrelid::regclass::text from pg_constraint where contype = 'f' and conparentid = 0"
    );
    let place = |name: &str| TABLES.iter().position(|table| *table == name).unwrap();
    // Tables without a tenant belong to each installation.
    for (from, to) in references
        .into_iter()
        .filter(|(from, _)| tables.contains(from))
    {
        assert!(
            place(&to) < place(&from),
            "{from} refers to {to}, which has to be copied before it"
        );
    }
}
