//! Moving a caller between two installations, each with a database and processes of its own (docs/scaling.md, "Cells").

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use farescan::ids::TenantId;
use farescan::tenants::relocate::TABLES;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, PgPool};

use crate::control::house::Dice;
use crate::faults::books::Books;
use crate::faults::process::Serve;
use crate::monitors;
use crate::support::db::TestDb;
use crate::support::reply::Reply;
use crate::support::upstream::{Upstream, fare};
use crate::worker::stage::{KEY, Stage, fares, ring_text};

/// Two installations in front of one marketplace, whose ledger is the first one's.
struct Cells {
    stages: [Stage; 2],
    services: [Serve; 2],
    tenant: TenantId,
}

impl Cells {
    /// The caller is known at the first, where a scan of one date has ended.
    async fn open() -> Self {
        let stages = [Stage::new().await, Stage::new().await];
        let marketplace = stages[0].upstream.url().to_owned();
        stages[0].upstream.on_any().answer(|call| {
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
            Serve::start(&stages[0], 4),
            Serve::with(&stages[1], 4, &one_marketplace),
        ];
        services[1].says("listening").await;
        let mut first = fares(1);
        first["request"]["to_airport"] = "CDG".into();
        let order = services[0].post("/v1/scans", &first).await;
        assert_eq!(order.status, 202, "{}", order.body);
        let cells = Self {
            tenant: stages[0].tenant().await,
            stages,
            services,
        };
        cells.ended(0, order.body["id"].as_str().unwrap()).await;
        cells
    }

    fn ledger(&self) -> &Upstream {
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

    /// Asks a cell for a scan until it has ended.
    async fn ended(&self, cell: usize, scan: &str) -> Value {
        for _ in 0..10 {
            let (status, seen) = self.get(cell, &format!("/v1/scans/{scan}?wait=30")).await;
            assert_eq!(status, 200, "{seen}");
            if !seen["finished_at"].is_null() {
                return seen;
            }
        }
        panic!("{scan} does not end");
    }

    fn moving(&self, from: usize) -> Child {
        moving(
            self.tenant,
            self.stages[from].db.url(),
            self.stages[1 - from].db.url(),
            &ring_text(),
        )
    }

    fn moved(&self, from: usize) -> String {
        let Output {
            status,
            stdout,
            stderr,
        } = self.moving(from).wait_with_output().unwrap();
        assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
        String::from_utf8(stdout).unwrap()
    }

    /// How often each date of the route was asked.
    fn asked(&self, to: &str) -> BTreeMap<String, usize> {
        let mut asked = BTreeMap::new();
        for call in self
            .ledger()
            .calls()
            .iter()
            .filter(|call| call.body["to_airport"] == to)
        {
            *asked
                .entry(call.body["departure_date"].as_str().unwrap().to_owned())
                .or_default() += 1;
        }
        asked
    }
}

/// `farescan tenants move` as a process of its own.
fn moving(tenant: TenantId, source: &str, target: &str, ring: &str) -> Child {
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

/// Tables that hold rows of a caller.
async fn holding(pool: &PgPool, tenant: TenantId) -> BTreeSet<&'static str> {
    let mut holding = BTreeSet::new();
    for table in TABLES {
        let count = format!("select count(*) from {table} where tenant_id = $1");
        let rows: i64 = sqlx::query_scalar(AssertSqlSafe(count))
            .bind(tenant.uuid())
            .fetch_one(pool)
            .await
            .unwrap();
        if rows > 0 {
            holding.insert(*table);
        }
    }
    holding
}

fn rows_by(id: &str, list: &Value) -> BTreeMap<String, Value> {
    list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row[id].as_str().unwrap().to_owned(), row.clone()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moved_caller_goes_on_in_the_other_cell() {
    let cells = Cells::open().await;
    let watched = cells.services[0]
        .post("/v1/monitors", &monitors::monitor())
        .await;
    assert_eq!(watched.status, 201, "{}", watched.body);
    let order = cells.services[0].post("/v1/scans", &fares(40)).await;
    assert_eq!(order.status, 202, "{}", order.body);
    let scan = order.body["id"].as_str().unwrap().to_owned();
    cells
        .ledger()
        .wait_for("a quarter of the scan was asked", |calls| calls.len() > 10)
        .await;
    let items = format!("/v1/scans/{scan}/items?limit=500");
    let before = rows_by("id", &cells.get(0, &items).await.1);
    let history = "/v1/history/flights?from_airport=TLV&to_airport=LHR&limit=500";
    let seen_before = cells.get(0, history).await.1;

    let printed = cells.moved(0);
    let asked_at_move = cells.ledger().count();
    assert!(printed.contains("scan_items 41"), "{printed}");

    let end = cells.ended(1, &scan).await;
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
        seen_before["data"]
            .as_array()
            .unwrap()
            .iter()
            .filter(kept)
            .count(),
        seen_before["data"].as_array().unwrap().len()
    );
    let asked = cells.asked("LHR");
    assert_eq!(
        (asked.len(), asked.values().max()),
        (40, Some(&1)),
        "each date is asked once: {asked:?}"
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
        holding(cells.stages[0].pool(), cells.tenant).await,
        BTreeSet::new()
    );
    let books = Books::between(cells.ledger(), cells.stages[1].pool())
        .await
        .complete();
    println!("{printed}moved after {asked_at_move} of 41 calls; {books}");
}

/// Whenever the command dies, one cell at most works for the caller, and the same command finishes the move.
#[tokio::test(flavor = "multi_thread")]
async fn a_move_that_is_killed_is_finished_by_the_next() {
    let cells = Cells::open().await;
    let order = cells.services[0].post("/v1/scans", &fares(120)).await;
    let scan = order.body["id"].as_str().unwrap().to_owned();
    let mut dice = Dice(11);
    let (mut killed, mut at) = (0, 0);
    for _ in 0..6 {
        let mut child = cells.moving(at);
        tokio::time::sleep(Duration::from_millis(dice.below(250))).await;
        child.kill().unwrap();
        killed += usize::from(!child.wait().unwrap().success());
        let printed = cells.moved(at);
        assert!(printed.contains("moved"), "{printed}");
        assert_eq!(
            holding(cells.stages[at].pool(), cells.tenant).await,
            BTreeSet::new(),
            "{printed}"
        );
        at = 1 - at;
    }
    let end = cells.ended(at, &scan).await;
    assert_eq!(end["items"]["ok"], 120, "{end}");
    let asked = cells.asked("LHR");
    assert_eq!(
        (asked.len(), asked.values().max()),
        (120, Some(&1)),
        "each date is asked once: {asked:?}"
    );
    let books = Books::between(cells.ledger(), cells.stages[at].pool())
        .await
        .complete();
    println!("6 moves, {killed} killed; {books}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_the_target_could_not_serve_stays() {
    let cells = Cells::open().await;
    let [here, there] = [cells.stages[0].db.url(), cells.stages[1].db.url()];
    let refused =
        |child: Child| String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
    let other_ring = format!("other:{}", "17".repeat(32));
    let said = refused(moving(cells.tenant, here, there, &other_ring));
    assert!(
        said.contains("the target's master key lacks the entries test"),
        "{said}"
    );
    let said = refused(moving(TenantId::new(), here, there, &ring_text()));
    assert!(said.contains("there is no caller ten_"), "{said}");
    let elsewhere = TestDb::new().await;
    sqlx::query(
        "update installation set marketplace = 'another.example', marketplace_since = now()",
    )
    .execute(elsewhere.pool())
    .await
    .unwrap();
    let said = refused(moving(cells.tenant, here, elsewhere.url(), &ring_text()));
    assert!(said.contains("the target to `another.example`"), "{said}");
    // The target works for it: as a restored backup would.
    let busy = "insert into tenants (tenant_id, created_at) values ($1, now())";
    sqlx::query(busy)
        .bind(cells.tenant.uuid())
        .execute(cells.stages[1].pool())
        .await
        .unwrap();
    let lane =
        "insert into lanes (tenant_id, api, emission, burst, max_in_flight, start_per_minute, start_in_flight, learned_in_flight)
                values ($1, 'flights', '1 s', 1, 1, 60, 1, 1)";
    sqlx::query(lane)
        .bind(cells.tenant.uuid())
        .execute(cells.stages[1].pool())
        .await
        .unwrap();
    let said = refused(moving(cells.tenant, here, there, &ring_text()));
    assert!(said.contains("the target has the caller"), "{said}");
    assert_eq!(
        cells.get(0, "/v1/scans").await.1["data"]
            .as_array()
            .unwrap()
            .len(),
        1,
        "the caller is served where it was"
    );
    assert_eq!(
        cells.stages[0]
            .count("select count(*) from lanes where pause_reason = 'moving'")
            .await,
        0
    );
}

#[tokio::test]
async fn a_move_takes_every_table_with_a_tenant() {
    let db = TestDb::new().await;
    let tables: BTreeSet<String> = sqlx::query_scalar::<_, String>(
        "select c.relname::text from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id' and not a.attisdropped
         where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = 'public'::regnamespace",
    )
    .fetch_all(db.pool())
    .await
    .unwrap()
    .into_iter()
    .collect();
    assert_eq!(
        TABLES
            .iter()
            .map(|table| (*table).to_owned())
            .collect::<BTreeSet<_>>(),
        tables
    );
    let references: Vec<(String, String)> = sqlx::query_as(
        "select conrelid::regclass::text, confrelid::regclass::text from pg_constraint where contype = 'f' and conparentid = 0",
    )
    .fetch_all(db.pool())
    .await
    .unwrap();
    let place = |name: &str| TABLES.iter().position(|table| *table == name).unwrap();
    // What has no tenant is each installation's own.
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
