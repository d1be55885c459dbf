//! Services with wrong clocks next to one with a right clock, on one database.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use farescan::config::{
    AdminConfig, HttpConfig, MasterKeyConfig, PaceConfig, RateLimitConfig, RetentionConfig,
    WebhookConfig, WorkerConfig,
};
use farescan::db::clock::{Clock, DatabaseTime};
use farescan::service::{Service, ServiceError, Settings};
use jiff::{SignedDuration, Timestamp, ToSpan as _, tz::TimeZone};
use serde_json::{Value, json};
use sqlx::PgPool;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::support::db::TestDb;
use crate::support::upstream::ScriptedServer;
use crate::support::wait_until;
use crate::worker::fixture::{KEY, fares, ring_text};

/// The clock that was ahead has been corrected.
static IS_SET: AtomicBool = AtomicBool::new(false);

fn days_ahead() -> Timestamp {
    let ahead = if IS_SET.load(Ordering::Relaxed) {
        0
    } else {
        150 * 24
    };
    Timestamp::now() + SignedDuration::from_hours(ahead)
}

fn hour_behind() -> Timestamp {
    Timestamp::now() - SignedDuration::from_hours(1)
}

/// A service with a worker in this process.
struct ServiceInstance {
    api: String,
    admin: String,
    http: reqwest::Client,
    stop: CancellationToken,
    running: JoinHandle<Result<(), ServiceError>>,
}

impl ServiceInstance {
    async fn start(db: &TestDb, upstream: &ScriptedServer, clock: Clock) -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (any, admin) = ("127.0.0.1:0".parse().unwrap(), free.local_addr().unwrap());
        drop(free);
        let spool = tempfile::tempdir().unwrap().keep();
        let settings = Settings {
            http: Some(HttpConfig {
                listen: any,
                trusted_proxies: Vec::new(),
            }),
            admin: AdminConfig {
                admin_listen: Some(admin),
            },
            limits: RateLimitConfig::default(),
            upstream: upstream.config(),
            database: db.config(),
            keys: MasterKeyConfig {
                master_key: Some(ring_text().into()),
                ..MasterKeyConfig::default()
            },
            pace: PaceConfig {
                flights_per_minute: 60_000,
                hotels_per_minute: 60_000,
                max_in_flight: 100,
            },
            webhooks: WebhookConfig::default(),
            channels: farescan::config::ChannelConfig::default(),
            worker: Some(WorkerConfig {
                lease_seconds: 2,
                spool_dir: Some(spool),
                retention: RetentionConfig {
                    upkeep_seconds: 1,
                    ..RetentionConfig::default()
                },
                ..WorkerConfig::default()
            }),
            clock,
        };
        let stop = CancellationToken::new();
        let service = Service::start(settings, stop.clone()).await.unwrap();
        let api = format!("http://{}", service.address().unwrap());
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self {
            api,
            admin: format!("http://{admin}"),
            http,
            stop,
            running: tokio::spawn(service.run()),
        }
    }

    async fn ready(&self) -> (u16, Value) {
        let answer = self
            .http
            .get(format!("{}/readyz", self.admin))
            .send()
            .await
            .unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let answer = self
            .http
            .post(format!("{}{path}", self.api))
            .header("x-api-key", KEY)
            .header("cache-control", "max-age=60")
            .json(body)
            .send()
            .await
            .unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    /// Submits a scan and waits until it has ended.
    async fn scan(&self, dates: i64) {
        let (status, scan) = self.post("/v1/scans", &fares(dates)).await;
        assert_eq!(status, 202, "{scan}");
        let path = format!("{}/v1/scans/{}", self.api, scan["id"].as_str().unwrap());
        wait_until("the scan has ended", async || {
            let answer = self
                .http
                .get(&path)
                .header("x-api-key", KEY)
                .send()
                .await
                .unwrap();
            answer.json::<Value>().await.unwrap()["status"] == "completed"
        })
        .await;
    }

    async fn end(self) {
        self.stop.cancel();
        self.running.await.unwrap().unwrap();
    }
}

/// Rows that a wrong clock would delete or change.
#[derive(Debug, PartialEq, Eq)]
struct StoredState {
    partitions: Vec<String>,
    answers: i64,
    keys: i64,
    /// Idempotency keys of submits.
    orders: i64,
    slots: Vec<String>,
    next_slot: String,
}

async fn stored_state(pool: &PgPool) -> StoredState {
    let count = async |sql: &'static str| value!(pool, sql);
    let list = async |sql: &'static str| values!(pool, sql, => String);
    StoredState {
        partitions: list(
            "select c.relname::text from pg_inherits i join pg_class c on c.oid = i.inhrelid
             where i.inhparent = 'answers'::regclass order by 1",
        )
        .await,
        answers: count("select count(*) from answers").await,
        keys: count("select count(*) from key_grants where wiped_at is null").await,
        orders: count("select count(*) from idempotency_keys").await,
        slots: list("select outcome from monitor_slots order by slot").await,
        next_slot: list("select next_slot::text from monitors").await.concat(),
    }
}

/// Creates rows that upkeep could delete: a monitor, its stored key, answers of several months.
async fn seed(pool: &PgPool, machine: &ServiceInstance) {
    machine.scan(3).await;
    let first = Timestamp::now()
        .to_zoned(TimeZone::UTC)
        .checked_sub(2.months())
        .unwrap()
        .timestamp();
    let made =
        sqlx::query("select create_partitions($1, 2)").bind(jiff_sqlx::Timestamp::from(first));
    made.execute(pool).await.unwrap();
    let monitor = json!({
        "name": "a week ahead", "schedule": {"cron": "0 6 * * *", "timezone": "UTC"},
        "scan": {"endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR", "departure_date": "+7d"}},
    });
    let (status, made) = machine.post("/v1/monitors", &monitor).await;
    assert_eq!(status, 201, "{made}");
    // Far enough ahead that no slot is due during the test.
    let sql = "update monitors set next_slot = date_trunc('hour', clock_timestamp()) + interval '12 hours'";
    execute!(pool, sql);
}

/// One clock is 150 days ahead, one an hour behind, one is right.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_with_a_wrong_clock_makes_no_decisions() {
    let (db, upstream) = (TestDb::new().await, ScriptedServer::start().await);
    let right = ServiceInstance::start(&db, &upstream, Clock::default()).await;
    seed(db.pool(), &right).await;
    let before = stored_state(db.pool()).await;
    println!("before: {before:#?}");

    let ahead = ServiceInstance::start(&db, &upstream, Clock::new(days_ahead)).await;
    let behind = ServiceInstance::start(&db, &upstream, Clock::new(hour_behind)).await;
    for (machine, difference) in [(&ahead, " s ahead of"), (&behind, " s behind")] {
        let (status, body) = machine.ready().await;
        println!("{status} {body}");
        assert_eq!(status, 503);
        assert!(body.to_string().contains(difference), "{body}");
        let (status, refused) = machine.post("/v1/scans", &fares(1)).await;
        assert_eq!(
            (status, &refused["error"]["type"]),
            (503, &json!("unavailable")),
            "{refused}"
        );
    }
    search(&ahead, 2).await;
    search(&behind, 3).await;
    search(&right, 4).await;
    assert_eq!(right.ready().await.0, 200);
    // Work for the right one; meanwhile the others have time for upkeep, sweeps and ticks.
    for _ in 0..5 {
        right.scan(5).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let after = stored_state(db.pool()).await;
    println!("after: {after:#?}");
    // Those of the scans, and of the right one's single search.
    wait_until("the single search is stored", async || {
        stored_state(db.pool()).await.answers >= before.answers + 26
    })
    .await;
    assert_eq!(stored_state(db.pool()).await.answers, before.answers + 26);
    assert_eq!(
        StoredState {
            answers: before.answers,
            ..after
        },
        before
    );
    let workers: i64 = value!(db.pool(), "select count(*) from workers");
    assert_eq!(workers, 1, "who is not right takes no lease");
    let far = "select count(*) from attempts where abs(extract(epoch from clock_timestamp() - started_at)) > 600";
    assert_eq!(value!(db.pool(), far, => i64), 0);

    // The corrected clock allows work without a restart; a wrong one then stops it cleanly.
    IS_SET.store(true, Ordering::Relaxed);
    wait_until("the clock is right", async || ahead.ready().await.0 == 200).await;
    right.end().await;
    ahead.scan(2).await;
    IS_SET.store(false, Ordering::Relaxed);
    wait_until("the clock is wrong", async || ahead.ready().await.0 == 503).await;
    let leases = "select count(*) from workers";
    wait_until("the lease is given back", async || {
        value!(db.pool(), leases, => i64) == 0
    })
    .await;
    // An ended process has stored or dropped all searches.
    ahead.end().await;
    behind.end().await;
    let recorded =
        "select body ->> 'departure_date' from scan_items where body ->> 'from_airport' = 'HFA'";
    let recorded = values!(db.pool(), recorded, => String);
    assert_eq!(
        recorded,
        ["2030-01-04"],
        "who is not right stores no single search"
    );
}

/// One search, made and billed, of this day.
async fn search(machine: &ServiceInstance, day: u32) {
    let date = format!("2030-01-{day:02}");
    let body = json!({"from_airport": "HFA", "to_airport": "LHR", "departure_date": date});
    let (status, answer) = machine.post("/v1/flights/oneway", &body).await;
    assert_eq!(status, 200, "{answer}");
}

/// The monotonic clock advances it.
#[tokio::test]
async fn database_time_is_never_ahead_of_the_database() {
    let db = TestDb::new().await;
    for _ in 0..50 {
        let read = DatabaseTime::read(db.pool()).await.unwrap();
        tokio::task::yield_now().await;
        let ours = read.now();
        let theirs = DatabaseTime::read(db.pool()).await.unwrap().now();
        assert!(ours <= theirs, "{ours} {theirs}");
    }
}
