//! The history under load: latency of its queries over HTTP with millions of observations, and
//! memory of an export.
//!
//! `script/bench history` creates a database, fills it (`FARESCAN_BENCH_OBSERVATIONS`, 8 million),
//! starts `farescan serve`, and sends queries at a fixed rate (an open loop): a latency counts from
//! the planned time, so that one slow response shows in all that wait behind it. A request without
//! the database, at the same rate, shows the share of HTTP and of waking cores. `DATABASE_URL`
//! names a server to fill; without it an embedded one runs without fsync, which does not affect
//! reads. `FARESCAN_BENCH_ONLY=load` or `export` runs one half.

#![allow(clippy::unwrap_used, reason = "a panic ends the bench and shows where")]

mod parent;

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::str::FromStr as _;
use std::time::{Duration, Instant};

use farescan::config::DatabaseConfig;
use farescan::db::embedded::{Durability, EmbeddedServer, ServerOptions};
use farescan::db::{self, Database};
use farescan::search::CallerKey;
use farescan::tenants::{Keyring, store};
use jiff::{Timestamp, ToSpan as _, civil::Date, tz::TimeZone};
use sqlx::postgres::{PgConnectOptions, PgPool};
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

const KEY: &str = "bench-key-0123456789";
const RING: &str = "bench:4242424242424242424242424242424242424242424242424242424242424242";
const NAME: &str = "farescan_bench_history";
/// Departures of each route, observed once a day for a year.
const DATES: i64 = 60;
const DAYS: i64 = 365;
/// Queries per second, and the duration.
const RATE: u64 = 200;
const SECONDS: u64 = 20;
/// Observations of the product that is exported.
const EXPORTED: i64 = 1_000_000;

#[tokio::main]
async fn main() {
    parent::end_with_cargo().unwrap();
    let wanted = setting("FARESCAN_BENCH_OBSERVATIONS", 8_000_000);
    let exported = setting("FARESCAN_BENCH_EXPORTED", EXPORTED);
    let routes = (wanted / (DATES * DAYS)).max(1);
    let (_server, options) = server().await;
    let pool = fresh(&options).await;
    seed(&pool, routes, exported).await;
    pack(&pool).await;
    let only = std::env::var("FARESCAN_BENCH_ONLY").unwrap_or_default();
    if only != "export" {
        let service = Service::start(&options).await;
        for query in Query::ALL {
            measure_query(&service.url, query, routes).await;
        }
        println!("the calendar and the year at the same time:");
        tokio::join!(
            measure_query(&service.url, Query::Calendar, routes),
            measure_query(&service.url, Query::WholeRoute, routes)
        );
    }
    if only == "load" {
        return;
    }
    for form in [
        "text/csv",
        "application/x-ndjson",
        "application/vnd.apache.parquet",
    ] {
        // A process for each export: a second one would reuse freed memory.
        let service = Service::start(&options).await;
        measure_export(&service, form).await;
    }
}

fn setting(name: &str, default: i64) -> i64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// The load averages of the machine.
fn load_average() -> String {
    std::fs::read_to_string("/proc/loadavg").map_or_else(
        |_| "?".to_owned(),
        |text| text.split(' ').take(3).collect::<Vec<_>>().join(" "),
    )
}

async fn server() -> (Option<EmbeddedServer>, PgConnectOptions) {
    if let Ok(url) = std::env::var("DATABASE_URL") {
        return (None, PgConnectOptions::from_str(&url).unwrap());
    }
    let home = PathBuf::from(
        std::env::var("FARESCAN_BENCH_DIR").unwrap_or_else(|_| "/tmp/farescan-bench".to_owned()),
    );
    let options = ServerOptions {
        home,
        pg_bin: None,
        durability: Durability::Scratch,
    };
    let server = tokio::task::spawn_blocking(move || EmbeddedServer::start(&options).unwrap())
        .await
        .unwrap();
    let options = server.connect_options().database("postgres");
    (Some(server), options)
}

/// An empty, migrated database; with `FARESCAN_BENCH_KEEP=1` the filled one of the last run.
async fn fresh(options: &PgConnectOptions) -> PgPool {
    let mut conn = options.connect().await.unwrap();
    if std::env::var_os("FARESCAN_BENCH_KEEP").is_none() {
        sqlx::raw_sql("drop database if exists farescan_bench_history with (force)")
            .execute(&mut conn)
            .await
            .unwrap();
    }
    // It may be there.
    drop(
        sqlx::raw_sql("create database farescan_bench_history")
            .execute(&mut conn)
            .await,
    );
    conn.close().await.unwrap();
    let url = options.clone().database(NAME).to_url_lossy().to_string();
    let database = Database::open(&DatabaseConfig {
        url: Some(url.into()),
        ..DatabaseConfig::default()
    })
    .await
    .unwrap();
    db::migrate(database.pool()).await.unwrap();
    let pool = database.pool().clone();
    // For as long as the bench runs.
    std::mem::forget(database);
    pool
}

async fn run(pool: &PgPool, sql: &'static str, values: [i64; 3], tenant: uuid::Uuid) {
    let mut conn = pool.acquire().await.unwrap();
    sqlx::raw_sql("set statement_timeout = 0")
        .execute(&mut *conn)
        .await
        .unwrap();
    let [first, second, third] = values;
    sqlx::query(sql)
        .bind(tenant)
        .bind(first)
        .bind(second)
        .bind(third)
        .execute(&mut *conn)
        .await
        .unwrap();
}

/// Fills the history: routes `RAA`, `RAB` … to LHR with daily observations of 60 departures for a
/// year, and one product with very many observations, `TLV` to JFK.
async fn seed(pool: &PgPool, routes: i64, exported: i64) {
    let ring = Keyring::parse(RING).unwrap();
    let tenant = store::find_or_create(
        &mut pool.acquire().await.unwrap(),
        &ring,
        &CallerKey::new(KEY),
        Timestamp::now(),
    )
    .await
    .unwrap()
    .uuid();
    let there: bool = sqlx::query_scalar("select exists (select from series)")
        .fetch_one(pool)
        .await
        .unwrap();
    if there {
        println!("the database is already filled");
        return;
    }
    let begun = Instant::now();
    sqlx::query("select create_partitions(now() - interval '13 months', 14)")
        .execute(pool)
        .await
        .unwrap();
    let series = "insert into series (tenant_id, series, endpoint, product, origin, place, currency)
        select $1, decode(md5('route ' || r), 'hex'), 'flights/oneway', '{\"passengers\": [1], \"sort_type\": \"Overall\"}',
               case when r = $2 then 'TLV' else 'R' || chr((65 + r / 26)::int) || chr((65 + r % 26)::int) end, case when r = $2 then 'JFK' else 'LHR' end, 'USD'
        from generate_series(0, $2) r where $3 is not null and $4 is not null";
    run(pool, series, [routes, 0, 0], tenant).await;
    let observations = "insert into observations (tenant_id, series, first_date, observed_at, price, seller, results, band_low, band_high,
                                  verdict, search_status, reason, item_id, number)
        select $1, decode(md5('route ' || r), 'hex'), current_date + d::int,
               date_trunc('hour', now()) - make_interval(days => ($4 - t)::int, secs => d * 7 + r),
               case when (t + d) % 20 > 0 then 100 + (t * 7 + d * 13 + r * 3) % 300 + 0.25 end, 'Example Air', 12, 150 + (d + r) % 40, 280 + (d * 3 + r) % 90, 'typical',
               case when (t + d) % 20 > 0 then 'ok' else 'degraded' end, case when (t + d) % 20 = 0 then 'upstream_timeout' end,
               gen_random_uuid(), 1
        from generate_series(1, $4) t, generate_series(1, $3) d, generate_series(0, $2 - 1) r";
    run(pool, observations, [routes, DATES, DAYS], tenant).await;
    let many = "insert into observations (tenant_id, series, first_date, observed_at, price, seller, results, band_low, band_high, verdict,
                                  search_status, reason, item_id, number)
        select $1, decode(md5('route ' || $2), 'hex'), current_date + (n % 330)::int,
               now() - interval '12 months' + n * interval '12 months' / $3, 100 + n % 300, 'Example Air', 12, 180, 320, 'typical', 'ok', null,
               gen_random_uuid(), 1
        from generate_series(0, $3 - 1) n where $4 is not null";
    run(pool, many, [routes, exported, 0], tenant).await;
    let latest = "insert into latest_prices (tenant_id, series, first_date, last_date, observed_at, price, seller, band_low, band_high, verdict,
                                  item_id, sampled_at, sample_status, sample_item_id)
        select tenant_id, series, first_date, first_date, observed_at, price, seller, band_low, band_high, verdict, item_id, observed_at, 'ok',
               item_id
        from (select distinct on (series, first_date) * from observations
              where tenant_id = $1 and price is not null and observed_at > now() - interval '3 days' and $2 + $3 + $4 > 0
              order by series, first_date, observed_at desc) newest";
    run(pool, latest, [1, 1, 1], tenant).await;
    let mut conn = pool.acquire().await.unwrap();
    sqlx::raw_sql("set statement_timeout = 0")
        .execute(&mut *conn)
        .await
        .unwrap();
    sqlx::raw_sql("vacuum analyze")
        .execute(&mut *conn)
        .await
        .unwrap();
    let rows: i64 = sqlx::query_scalar("select count(*) from observations")
        .fetch_one(&mut *conn)
        .await
        .unwrap();
    let size: i64 = sqlx::query_scalar("select pg_database_size(current_database())")
        .fetch_one(&mut *conn)
        .await
        .unwrap();
    println!(
        "{rows} observations of {routes} routes and one more in {:.0?}, {} MB on disk",
        begun.elapsed(),
        size / 1_000_000
    );
}

/// Packs days, as a worker does once a minute.
async fn pack(pool: &PgPool) {
    let begun = Instant::now();
    let days = farescan::history::daily_pack::pack_past_days(pool, Timestamp::now())
        .await
        .unwrap();
    let size: i64 = sqlx::query_scalar(
        "select sum(pg_total_relation_size(inhrelid))::bigint from pg_inherits where inhparent = 'observed_days'::regclass",
    )
    .fetch_one(pool)
    .await
    .unwrap();
    sqlx::raw_sql("vacuum analyze series")
        .execute(pool)
        .await
        .unwrap();
    sqlx::raw_sql("vacuum analyze observed_days")
        .execute(pool)
        .await
        .unwrap();
    println!(
        "{days} days packed in {:.0?}; all of them are {} MB",
        begun.elapsed(),
        size / 1_000_000
    );
}

/// `farescan serve` as a process.
struct Service {
    child: Child,
    url: String,
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Service {
    async fn start(options: &PgConnectOptions) -> Self {
        let log = std::env::temp_dir().join(format!(
            "farescan-bench-{}-{}.log",
            std::process::id(),
            Timestamp::now().as_millisecond()
        ));
        let mut child = parent::ending_with_parent(Path::new(env!("CARGO_BIN_EXE_farescan")))
            .args([
                "serve",
                "--no-worker",
                "--listen",
                "127.0.0.1:0",
                "--admin-listen",
                "127.0.0.1:0",
            ])
            .env(
                "DATABASE_URL",
                options.clone().database(NAME).to_url_lossy().as_str(),
            )
            .env("FARESCAN_FLIGHTS_URL", "http://127.0.0.1:9")
            .env("FARESCAN_HOTELS_URL", "http://127.0.0.1:9")
            .env("FARESCAN_MASTER_KEY", RING)
            .env("FARESCAN_REQUESTS_PER_SECOND", "1000000")
            .env("FARESCAN_REQUEST_BURST", "1000000")
            .env("FARESCAN_LOG_FORMAT", "json")
            // Without request logs.
            .env("FARESCAN_LOG", "warn,farescan::service=info")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        for _ in 0..3_000 {
            let text = std::fs::read_to_string(&log).unwrap();
            let lines = text
                .lines()
                .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
            if let Some(line) = lines
                .into_iter()
                .find(|line| line["message"] == "listening")
            {
                drop(std::fs::remove_file(&log));
                return Self {
                    child,
                    url: format!("http://{}", line["address"].as_str().unwrap()),
                };
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        drop(child.kill());
        drop(child.wait());
        panic!(
            "the service does not listen: {}",
            std::fs::read_to_string(&log).unwrap()
        );
    }

    /// Resident kilobytes of the process: `VmRSS`, or its peak, `VmHWM`.
    fn memory_kb(&self, what: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(what)?.strip_prefix(':'))
            .unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

#[derive(Debug, Clone, Copy)]
enum Query {
    NoDatabase,
    Calendar,
    OneDate,
    WholeRoute,
    WholeRouteElsewhere,
    JudgedCalendar,
    JudgedRoute,
    FirstPage,
}

impl Query {
    const ALL: [Self; 8] = [
        Self::NoDatabase,
        Self::Calendar,
        Self::OneDate,
        Self::WholeRoute,
        Self::WholeRouteElsewhere,
        Self::JudgedCalendar,
        Self::JudgedRoute,
        Self::FirstPage,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::NoDatabase => "no query: a response without the database (/healthz)",
            Self::Calendar => "calendar of 60 dates",
            Self::OneDate => "a year of one route by day, one departure (365 observations)",
            Self::WholeRoute => "a year of one route by day, all departures (21,900 observations)",
            Self::WholeRouteElsewhere => "the same by week in the time zone of New York",
            Self::JudgedCalendar => "calendar of 60 dates with verdicts",
            Self::JudgedRoute => "a year of one route by day, with verdicts",
            Self::FirstPage => "newest 50 observations of a route",
        }
    }

    fn path(self, route: i64) -> String {
        let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
        let day = |days: i64| -> Date { today.saturating_add(days.days()) };
        let letter = |position: i64| char::from(b'A' + u8::try_from(position % 26).unwrap());
        let subject = format!(
            "from_airport=R{}{}&to_airport=LHR",
            letter(route / 26),
            letter(route)
        );
        match self {
            Self::NoDatabase => "/healthz".to_owned(),
            Self::Calendar | Self::JudgedCalendar => {
                let is_judged = matches!(self, Self::JudgedCalendar);
                format!(
                    "/v1/history/flights/latest?{subject}&departure_from={}&departure_to={}&history_verdict={is_judged}",
                    day(1),
                    day(DATES)
                )
            }
            Self::OneDate => format!(
                "/v1/history/flights/series?{subject}&departure_date={}",
                day(1 + route % DATES)
            ),
            Self::WholeRoute => format!("/v1/history/flights/series?{subject}"),
            Self::JudgedRoute => {
                format!("/v1/history/flights/series?{subject}&history_verdict=true")
            }
            Self::WholeRouteElsewhere => {
                format!(
                    "/v1/history/flights/series?{subject}&bucket=week&timezone=America/New_York"
                )
            }
            Self::FirstPage => format!("/v1/history/flights?{subject}"),
        }
    }
}

/// Sends queries at the fixed rate; prints the latencies from the planned times.
async fn measure_query(url: &str, query: Query, routes: i64) {
    let client = reqwest::Client::builder()
        .no_proxy()
        .pool_max_idle_per_host(512)
        .build()
        .unwrap();
    let send = |route: i64| {
        let request = client
            .get(format!("{url}{}", query.path(route)))
            .header("x-api-key", KEY);
        async move {
            let answer = request.send().await.unwrap();
            let status = answer.status();
            (answer.bytes().await.unwrap().len(), status == 200)
        }
    };
    // Warms up plans and pages.
    let mut bytes = 0;
    for route in 0..routes.min(100) {
        bytes = send(route * 7 % routes).await.0;
    }
    assert!(
        bytes > 1_000 || matches!(query, Query::NoDatabase),
        "there is something to answer: {bytes} bytes"
    );
    let rate = u64::try_from(setting("FARESCAN_BENCH_RATE", RATE.try_into().unwrap())).unwrap();
    let before = load_average();
    let mut tasks = JoinSet::new();
    let (begun, mut due) = send_on_schedule(rate);
    let mut number = 0;
    while let Some(due) = due.recv().await {
        let response = send(number * 7919 % routes);
        number += 1;
        tasks.spawn(async move {
            let (_, answered) = response.await;
            (due.elapsed(), answered)
        });
    }
    let responses = tasks.join_all().await;
    let elapsed = begun.elapsed();
    // An overloaded service answers 503; then the latencies are not comparable.
    let refused = responses.iter().filter(|(_, answered)| !answered).count();
    let mut times: Vec<_> = responses.into_iter().map(|(time, _)| time).collect();
    times.sort_unstable();
    let at = |part: usize| times[(times.len() - 1) * part / 1000];
    println!(
        "{}: {rate} a second for {SECONDS} s, {} answers of {} KB in {elapsed:.1?}, {refused} of them refused: median {:.2?}, 90 % {:.2?}, 99 % {:.2?}, most {:.2?}; load average {before} before, {} after",
        query.name(),
        times.len(),
        bytes / 1000,
        at(500),
        at(900),
        at(990),
        at(1000),
        load_average(),
    );
}

/// Signals each send time precisely: the runtime's timers round up to the millisecond, which is as
/// long as a response takes.
#[expect(
    clippy::disallowed_methods,
    reason = "a dedicated thread that only waits"
)]
fn send_on_schedule(rate: u64) -> (Instant, mpsc::UnboundedReceiver<Instant>) {
    let begun = Instant::now();
    let (send, due) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for number in 0..rate * SECONDS {
            let due = begun + Duration::from_micros(number * 1_000_000 / rate);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            send.send(due).unwrap();
        }
    });
    (begun, due)
}

/// Exports the large product; prints time and memory.
async fn measure_export(service: &Service, form: &str) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let get = |path: &str| {
        client
            .get(format!("{}{path}", service.url))
            .header("x-api-key", KEY)
    };
    // Warms up with a similar request.
    get("/v1/history/flights?from_airport=TLV&to_airport=JFK&limit=500")
        .send()
        .await
        .unwrap()
        .bytes()
        .await
        .unwrap();
    std::fs::write(format!("/proc/{}/clear_refs", service.child.id()), "5").unwrap();
    let (before, begun) = (service.memory_kb("VmRSS"), Instant::now());
    let mut answer = get("/v1/history/flights?from_airport=TLV&to_airport=JFK")
        .header("accept", form)
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 200);
    let mut file = std::env::var_os("FARESCAN_BENCH_FILES").map(|folder| {
        std::fs::File::create(PathBuf::from(folder).join(form.replace('/', "_"))).unwrap()
    });
    let (mut bytes, mut lines) = (0, 0);
    while let Some(chunk) = answer.chunk().await.unwrap() {
        bytes += chunk.len();
        lines += chunk.split(|byte| *byte == b'\n').count() - 1;
        if let Some(file) = &mut file {
            std::io::Write::write_all(file, &chunk).unwrap();
        }
    }
    let most = service.memory_kb("VmHWM");
    let lines = if form.ends_with("parquet") {
        String::new()
    } else {
        format!("{lines} lines, ")
    };
    println!(
        "export as {form}: {lines}{} MB in {:.1?}; {before} kB before, {most} kB at most: {} kB more; load average {}",
        bytes / 1_000_000,
        begun.elapsed(),
        most.saturating_sub(before),
        load_average(),
    );
}
