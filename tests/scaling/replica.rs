//! A replica for the history, simulated by a second database with other contents, which shows which
//! database an answer comes from.

use farescan::config::DatabaseConfig;
use farescan::db::Database;
use farescan::history;
use farescan::ids::TenantId;
use farescan::search::CallerKey;
use farescan::tenants::store;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::faults::process::FarescanProcess;
use crate::history::fixture::HistoryFixture;
use crate::support::app::{KEY, TestApp};
use crate::support::array;
use crate::support::db::TestDb;
use crate::worker::fixture::WorkerFixture;

const LISTS: [&str; 4] = [
    "/v1/history/flights?from_airport=TLV&to_airport=LHR",
    "/v1/history/flights/latest?from_airport=TLV&to_airport=LHR&departure_from=2030-01-01&departure_to=2030-01-31",
    "/v1/history/flights/series?from_airport=TLV&to_airport=LHR",
    "/v1/history/flights/grid?from_airport=TLV&to_airport=LHR&departure_from=2030-01-01&departure_to=2030-01-01&rows=departure_date",
];

/// Inserts the tenant, as replication would.
async fn insert_tenant(replica: &TestDb, tenant: TenantId) {
    let row = sqlx::query("insert into tenants (tenant_id, created_at) values ($1, now())");
    row.bind(tenant.uuid())
        .execute(replica.pool())
        .await
        .unwrap();
}

/// The prices of an answer of any history route.
fn prices(answer: &Value) -> Vec<i64> {
    let row = |row: &Value| {
        row["price"]
            .as_i64()
            .or(row["minimum"].as_i64())
            .or(row["cells"][0]["price"].as_i64())
    };
    array(&answer["data"]).iter().filter_map(row).collect()
}

async fn with_replica(fixture: &HistoryFixture, url: &str) -> TestApp {
    let config = DatabaseConfig {
        read_url: Some(url.into()),
        ..fixture.db.config()
    };
    let database = Database::open(&config).await.unwrap();
    let reads = database.replica().unwrap().clone();
    TestApp::builder()
        .database(&fixture.db)
        .state(move |app| app.with_replica(reads))
        .start()
        .await
}

#[tokio::test]
async fn only_the_history_is_read_from_the_replica() {
    let fixture = HistoryFixture::open().await;
    let replica = TestDb::new().await;
    fixture
        .insert(&[fixture.fare("2030-01-01", -60, Some(100))])
        .await;
    insert_tenant(&replica, fixture.tenant).await;
    let mut conn = replica.pool().acquire().await.unwrap();
    history::insert(&mut conn, &[fixture.fare("2030-01-01", -60, Some(200))])
        .await
        .unwrap();
    let app = with_replica(&fixture, replica.url()).await;
    for path in LISTS {
        assert_eq!(
            prices(&fixture.app.get(path).await.json()),
            [100],
            "{path}: without one"
        );
        assert_eq!(prices(&app.get(path).await.json()), [200], "{path}");
    }
    for path in &LISTS[..3] {
        let file = app
            .send(
                app.request("GET", path)
                    .header("x-api-key", KEY)
                    .header("accept", "application/x-ndjson"),
            )
            .await;
        let row: Value = serde_json::from_str(file.text().trim_end()).unwrap();
        assert_eq!(
            row["price"].as_i64().or(row["minimum"].as_i64()),
            Some(200),
            "{path}"
        );
    }
    // Scans are written to and read from the primary.
    let order = json!({"endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR"}, "sweep": {"departure_date": ["2030-01-01"]}});
    assert_eq!(app.post("/v1/scans", &order).await.status, 202);
    assert_eq!(array(&app.get("/v1/scans").await.json()["data"]).len(), 1);
    let scans: i64 = value!(replica.pool(), "select count(*) from scans");
    assert_eq!(scans, 0);
}

/// No fallback: the primary would get the load that the replica takes off it.
#[tokio::test]
async fn without_the_replica_only_the_history_is_unavailable() {
    let fixture = HistoryFixture::open().await;
    fixture
        .insert(&[fixture.fare("2030-01-01", -60, Some(100))])
        .await;
    let app = with_replica(
        &fixture,
        "postgres://nobody@127.0.0.1:1/none?sslmode=disable",
    )
    .await;
    for path in LISTS {
        let answer = app.get(path).await;
        assert_eq!(
            (answer.kind().as_str(), answer.header("retry-after")),
            ("503 unavailable", "5"),
            "{path}"
        );
    }
    for path in ["/v1/scans", "/v1/usage", "/v1/quota"] {
        assert_eq!(app.get(path).await.status, 200, "{path}");
    }
    assert_eq!(
        app.admin("/readyz").await.status,
        200,
        "scans are accepted and run"
    );
}

#[tokio::test]
async fn replica_sessions_are_read_only() {
    let replica = TestDb::new().await;
    let config = DatabaseConfig {
        read_url: Some(replica.url().into()),
        ..replica.config()
    };
    let database = Database::open(&config).await.unwrap();
    let write = sqlx::query("insert into tenants values (gen_random_uuid(), now())")
        .execute(database.replica().unwrap())
        .await;
    let error = write.unwrap_err();
    assert!(
        error
            .as_database_error()
            .is_some_and(|error| error.code().is_some_and(|code| code == "25006")),
        "{error}"
    );
    assert!(
        sqlx::query("insert into tenants values (gen_random_uuid(), now())")
            .execute(database.pool())
            .await
            .is_ok()
    );
    let wrong = DatabaseConfig {
        read_url: Some("mysql://me:hunter2@host/x".into()),
        ..replica.config()
    };
    let error = Database::open(&wrong).await.unwrap_err().to_string();
    assert!(
        error.starts_with("FARESCAN_READ_DATABASE_URL is not") && !error.contains("hunter2"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_configures_the_replica() {
    let worker_fixture = WorkerFixture::new().await;
    let replica = TestDb::new().await;
    let mut conn = worker_fixture.pool().acquire().await.unwrap();
    let tenant = store::find_or_create(
        &mut conn,
        &worker_fixture.ring,
        &CallerKey::new(crate::worker::fixture::KEY),
        Timestamp::now(),
    )
    .await
    .unwrap();
    insert_tenant(&replica, tenant).await;
    let mut reads = replica.pool().acquire().await.unwrap();
    let fixture = HistoryFixture::open().await;
    let seen = history::Observation {
        tenant,
        ..fixture.fare("2030-01-01", -60, Some(200))
    };
    history::insert(&mut reads, &[seen]).await.unwrap();
    let service = FarescanProcess::start_gateway_with(
        &worker_fixture,
        &[("FARESCAN_READ_DATABASE_URL", replica.url())],
    );
    let url = service.url().await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let answer = client
        .get(format!("{url}{}", LISTS[0]))
        .header("x-api-key", crate::worker::fixture::KEY)
        .send()
        .await
        .unwrap();
    assert_eq!(prices(&answer.json().await.unwrap()), [200]);
}
