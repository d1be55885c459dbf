//! Plays a month of work through the whole service: HTTP, worker, database and sandbox.

use std::path::Path;
use std::sync::Arc;

use farescan::config::WorkerConfig;
use farescan::upstream::Client;
use farescan::worker::WorkerDeps;
use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;
use serde_json::{Value, json};
use sqlx::PgPool;

use super::marketplace::{KEY, Marketplace};
use super::workload::{DateRange, SESSIONS, ScanWork, Session, Workload};
use crate::support::app::{TestApp, ring};
use crate::support::db::TestDb;
use crate::support::wait_until;
use crate::worker::fixture::{LEASE_SECONDS, RunningWorker};

/// The time between two sessions; the last one of a day is followed by twice as much.
const PAUSE_HOURS: i64 = 6;
/// The first session of a day, after midnight.
const FIRST_HOUR: i64 = 6;

/// How the questions are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Without any option that saves.
    Plain,
    /// With the options that the guide "Spending less" recommends.
    Thrifty,
}

/// A kind of question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Monitor,
    CheapestDate,
    Calendar,
    Search,
}

impl Kind {
    pub(super) const ALL: [Self; 4] = [
        Self::Monitor,
        Self::CheapestDate,
        Self::Calendar,
        Self::Search,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Monitor => "monitor runs",
            Self::CheapestDate => "scans: cheapest date",
            Self::Calendar => "scans: every date",
            Self::Search => "searches",
        }
    }
}

/// The cheapest price that the answer to a question named; `None`: no offer.
pub(super) type Answer = (Kind, Option<Decimal>);

/// What a month came to.
#[derive(Debug, Default)]
pub(super) struct Month {
    /// In the order of the questions.
    pub(super) answers: Vec<Answer>,
    /// By the sandbox's own count.
    pub(super) requests: u64,
    /// The same for each kind, in the order of [`Kind::ALL`].
    pub(super) by_kind: [u64; 4],
}

struct Player {
    way: Way,
    db: TestDb,
    app: TestApp,
    marketplace: Marketplace,
    month: Month,
    /// Synchronous searches that were sent and are to be stored.
    sent: i64,
}

/// Plays the workload. `start` is midnight of its first day, by the sandbox's clock.
pub(super) async fn play(
    way: Way,
    workload: &Workload,
    scenario: &Path,
    seed: u64,
    start: Timestamp,
) -> Month {
    let (db, marketplace) = (TestDb::new().await, Marketplace::new(scenario, seed));
    let upstream = marketplace.serve().await;
    make_partitions(db.pool(), workload.days.len()).await;
    let config = upstream.clone();
    let app = TestApp::builder()
        .database(&db)
        .config(move |app| *app = config);
    let worker = RunningWorker::start(WorkerDeps {
        pool: db.pool().clone(),
        ring: Arc::new(ring()),
        upstream: Client::new(&upstream).unwrap(),
        config: WorkerConfig {
            lease_seconds: LEASE_SECONDS,
            ..WorkerConfig::default()
        },
    });
    let mut player = Player {
        way,
        app: app.start().await,
        db,
        marketplace,
        month: Month::default(),
        sent: 0,
    };
    player.run(workload, start).await;
    worker.stop().await;
    player.month
}

impl Player {
    async fn run(&mut self, workload: &Workload, start: Timestamp) {
        let mut monitors = Vec::new();
        for range in &workload.monitors {
            monitors.push(self.create_monitor(*range).await);
        }
        for (day, sessions) in (0..).zip(&workload.days) {
            for (number, session) in (0..).zip(sessions) {
                let hours = 24 * day + FIRST_HOUR + PAUSE_HOURS * number;
                self.marketplace
                    .set_time(start + SignedDuration::from_hours(hours));
                let due: &[String] = if number == 0 { &monitors } else { &[] };
                self.play_session(due, session).await;
                self.month.requests += self.marketplace.searches_counted().await;
                let is_last = number + 1 == i64::try_from(SESSIONS).unwrap();
                let pause = if is_last {
                    2 * PAUSE_HOURS
                } else {
                    PAUSE_HOURS
                };
                make_older(self.db.pool(), pause).await;
            }
        }
    }

    async fn play_session(&mut self, monitors: &[String], session: &Session) {
        let mut runs = Vec::new();
        for monitor in monitors {
            runs.push(self.start_run(monitor).await);
        }
        self.wait_for(Kind::Monitor, true, &runs).await;
        for scan in &session.scans {
            let kind = if scan.finds_cheapest {
                Kind::CheapestDate
            } else {
                Kind::Calendar
            };
            let submitted = self.post("/v1/scans", &self.scan_body(*scan), 202).await;
            self.wait_for(kind, scan.finds_cheapest, &[id(&submitted)])
                .await;
        }
        for search in &session.searches {
            self.search(*search).await;
        }
        if self.way == Way::Thrifty {
            // Each is stored at the time of its session.
            wait_until("the searches are stored", async || {
                let stored: i64 =
                    value!(self.db.pool(), "select count(*) from scans where verbatim");
                stored == self.sent
            })
            .await;
        }
    }

    async fn create_monitor(&self, range: DateRange) -> String {
        let work = ScanWork {
            range,
            finds_cheapest: true,
        };
        // It is run by hand: nothing decides slots here.
        let body = json!({
            "name": "daily", "schedule": {"cron": "0 6 * * *", "timezone": "UTC"}, "scan": self.scan_body(work)
        });
        let created = self.post("/v1/monitors", &body, 201).await;
        id(&created)
    }

    /// Runs of one monitor are at different seconds.
    async fn start_run(&self, monitor: &str) -> String {
        let path = format!("/v1/monitors/{monitor}/run");
        let mut run = Value::Null;
        wait_until("the monitor runs", async || {
            let response = self.app.ask_as(KEY, "POST", &path, None).await;
            run = response.json();
            response.status == 202
        })
        .await;
        id(&run)
    }

    fn scan_body(&self, scan: ScanWork) -> Value {
        let mut body = scan.range.scan();
        if self.way == Way::Thrifty {
            // Younger than the run of the day before.
            body["max_age_seconds"] = json!(86_400);
            if scan.finds_cheapest {
                body["strategy"] = json!({"find": "cheapest"});
                body["max_age_seconds"] = json!(21_600);
            }
        }
        body
    }

    /// Waits until the scans have ended and adds their answers.
    async fn wait_for(&mut self, kind: Kind, finds_cheapest: bool, scans: &[String]) {
        let decides = finds_cheapest && self.way == Way::Thrifty;
        let mut requests = 0;
        for scan in scans {
            let path = format!("/v1/scans/{scan}?wait=5");
            let mut read = Value::Null;
            wait_until("the scan has ended", async || {
                read = self.app.get_as(KEY, &path).await.expect(200).json();
                read["finished_at"].is_string()
                    && (!decides || read["strategy"]["ended_by"].is_string())
            })
            .await;
            assert_eq!(read["status"], "completed", "{read:#}");
            requests += read["requests"]["spent"].as_u64().unwrap();
            let price = serde_json::from_value(read["best"]["price"].clone()).unwrap();
            self.month.answers.push((kind, price));
        }
        self.count(kind, requests);
    }

    async fn search(&mut self, range: DateRange) {
        let request = self.app.request("POST", "/v1/flights/oneway");
        let mut request = request.header("x-api-key", KEY).json(&range.search());
        if self.way == Way::Thrifty {
            request = request.header("cache-control", "max-age=43200");
        }
        let response = self.app.send(request).await.expect(200);
        let requests: u64 = response.header("x-upstream-requests").parse().unwrap();
        self.sent += i64::try_from(requests).unwrap();
        let rows = response.json();
        let prices = rows.as_array().unwrap().iter().filter_map(|row| {
            let price: Decimal = serde_json::from_value(row["price_as_number"].clone()).ok()?;
            Some(price).filter(|price| !price.is_zero())
        });
        self.month.answers.push((Kind::Search, prices.min()));
        self.count(Kind::Search, requests);
    }

    async fn post(&self, path: &str, body: &Value, status: u16) -> Value {
        let response = self.app.post_as(KEY, path, body).await;
        response.expect(status).json()
    }

    fn count(&mut self, kind: Kind, requests: u64) {
        let place = Kind::ALL.iter().position(|other| *other == kind).unwrap();
        self.month.by_kind[place] += requests;
    }
}

fn id(resource: &Value) -> String {
    resource["id"].as_str().unwrap().to_owned()
}

/// Partitions for answers that become up to so many days old.
async fn make_partitions(pool: &PgPool, days: usize) {
    let months = i32::try_from(days / 28 + 1).unwrap();
    let make = "select create_partitions(now() - make_interval(months => $1), $1)";
    execute!(pool, make, months);
}

/// Everything stored is so many hours older: to the service it is always the same day, and the past
/// moves away. Nothing of the service runs on these rows.
async fn make_older(pool: &PgPool, hours: i64) {
    let mut statements = vec!["set local session_replication_role = replica".to_owned()];
    for (table, columns) in [
        ("attempts", &["started_at", "ended_at"][..]),
        ("scan_items", &["observed_at", "reused_at"]),
        ("answers", &["observed_at"]),
        ("observations", &["observed_at"]),
        ("latest_prices", &["observed_at", "sampled_at"]),
        ("scans", &["created_at", "started_at", "finished_at"]),
    ] {
        let changes = columns
            .iter()
            .map(|column| format!("{column} = {column} - interval '{hours} hours'"));
        let changes = changes.collect::<Vec<_>>().join(", ");
        statements.push(format!("update {table} set {changes}"));
    }
    let statements = format!("begin; {}; commit", statements.join("; "));
    sqlx::raw_sql(sqlx::AssertSqlSafe(statements))
        .execute(pool)
        .await
        .unwrap();
}
