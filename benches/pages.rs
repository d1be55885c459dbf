//! Server time and weight of every page of the dashboard, through HTTP, for one caller with two scans
//! of 10,000 items, 499 other scans, 21 monitors with their runs and alerts, and a million observations.
//!
//! The scans run through the program against the benches' marketplace; the observations are filled
//! in by SQL, as `script/bench history` does it. Then each page is requested one time after the
//! other over one connection, as by one person: a time is from the request to the last byte.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use reqwest::header::{ACCEPT_ENCODING, COOKIE, LOCATION, ORIGIN, SET_COOKIE};
use reqwest::redirect::Policy;
use serde_json::{Value, json};
use sqlx::PgPool;

use super::Res;
use super::environment::BenchEnvironment;
use super::load::post;
use super::meter::{Measurement, ProcessSet, Times, ms};
use super::scans::{
    analyze_tables, count, create_callers, open_lanes, scan_request, submit, wait_until_done,
};
use super::upstream::Upstream;

const ITEMS: usize = 10_000;
/// Other scans, and their items.
const SCANS: usize = 499;
const FEW: usize = 10;
const MONITORS: usize = 20;
/// Runs of each monitor, and of the one that compares markets.
const RUNS: usize = 2;
const MARKET_RUNS: usize = 8;
/// Observations: each of these routes on each of these departures on each of these days.
const ROUTES: i64 = 50;
const DATES: i64 = 60;
const DAYS: i64 = 334;
const WARM: usize = 20;
const REQUESTS: usize = 200;
/// The aims: a page's 95th percentile, and its bytes as browsers get them, compressed.
const AIM: Duration = Duration::from_millis(80);
const BYTES: usize = 20_000;

pub async fn run() -> Res<()> {
    println!(
        "\npages: one caller with two scans of {ITEMS} items, {SCANS} other scans, {} monitors and {} observations",
        MONITORS + 1,
        ROUTES * DATES * DAYS
    );
    let env = BenchEnvironment::new().await?;
    let upstream = Upstream::start(0, 2_048)?;
    let unlimited = [
        ("FARESCAN_REQUESTS_PER_SECOND", "1000000".to_owned()),
        ("FARESCAN_REQUEST_BURST", "1000000".to_owned()),
        ("FARESCAN_LOG", "warn,farescan::service=info".to_owned()),
    ];
    let mut serve = env.serve_with(&upstream.url(), &unlimited)?;
    let api = serve.listening().await?.ok_or("no address")?;
    let mut worker = env.worker(&upstream.url(), 200)?;
    worker.listening().await?;
    let begun = Instant::now();
    let key = fill(&env, api).await?;
    worker.stop().await?;
    println!("  filled in {:.0?}", begun.elapsed());

    let visitor = Visitor::sign_in(&format!("http://{api}"), &key).await?;
    let pages = pages(env.pool()).await?;
    let parts = [
        ("API", ProcessSet::Process(serve.pid())),
        ("Postgres", env.postgres()),
        ("bench", ProcessSet::Process(std::process::id())),
    ];
    let measurement = Measurement::start(&parts)?;
    let mut missed = 0;
    println!(
        "  | page | median | 95 % | longest | kB | kB compressed |\n  |---|---|---|---|---|---|"
    );
    for (name, path) in &pages {
        missed += usize::from(!visitor.measure(name, path).await?);
    }
    println!(
        "  {missed} of {} pages miss an aim (95 % within {}, {} kB compressed); {}",
        pages.len(),
        ms(AIM),
        BYTES / 1000,
        measurement.finish()?
    );
    serve.stop().await?;
    env.close().await;
    Ok(())
}

/// Fills the account; returns its key.
async fn fill(env: &BenchEnvironment, api: SocketAddr) -> Res<String> {
    let pool = env.pool();
    let key = create_callers(pool, api, "pages", 1).await?.remove(0);
    open_lanes(pool).await?;
    for _ in 0..2 {
        submit(api, &key, &scan_request(ITEMS)).await?;
        wait_until_done(pool).await?;
    }
    // Some at a time: the number of live scans of a caller is limited.
    for number in 2..=SCANS {
        submit(api, &key, &scan_request(FEW)).await?;
        if number % 20 == 0 {
            wait_until_done(pool).await?;
        }
    }
    wait_until_done(pool).await?;
    let create = async |path: &str, body: &Value| created(api, &key, path, body).await;
    // Nobody listens there: its messages wait.
    let channel = json!({"name": "my phone", "kind": "ntfy", "url": "http://127.0.0.1:9/fares"});
    let channel = create("/v1/channels", &channel).await?;
    for number in 0..MONITORS {
        let monitor = create("/v1/monitors", &monitor(number, &channel)).await?;
        run_monitor(pool, api, &key, &monitor, RUNS).await?;
    }
    let monitor = create("/v1/monitors", &monitor_of_markets()).await?;
    run_monitor(pool, api, &key, &monitor, MARKET_RUNS).await?;
    observations(pool).await?;
    analyze_tables(pool).await?;
    Ok(key)
}

/// The id of what a POST creates.
async fn created(api: SocketAddr, key: &str, path: &str, body: &Value) -> Res<String> {
    let (status, answer) = post(api, path, &[("x-api-key", key)], body).await?;
    let text = String::from_utf8_lossy(&answer);
    let made: Value = serde_json::from_str(&text).unwrap_or_default();
    match made["id"]
        .as_str()
        .filter(|_| (201..=202).contains(&status))
    {
        Some(id) => Ok(id.to_owned()),
        None => Err(format!("{path}: {status}: {text}").into()),
    }
}

/// Runs a monitor one time after the other, each until its alerts are decided.
async fn run_monitor(
    pool: &PgPool,
    api: SocketAddr,
    key: &str,
    monitor: &str,
    runs: usize,
) -> Res<()> {
    for _ in 0..runs {
        created(api, key, &format!("/v1/monitors/{monitor}/run"), &json!({})).await?;
        let open = "select count(*) from monitor_slots where evaluated_at is null";
        while count(pool, open).await? > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    Ok(())
}

fn monitor_of_markets() -> Value {
    json!({
        "name": "Markets", "schedule": {"cron": "0 5 * * mon", "timezone": "UTC"},
        "scan": {"endpoint": "hotels/by-name", "request": {"hotel_name": HOTEL},
                 "sweep": {"checkin_date": {"from": "+30d", "to": "+36d"}, "nights": [3], "samples": 3,
                           "proxy_country": ["us", "de", "gb", "jp", "br"]}},
        "alerts": [{"type": "parity_gap_percent", "percent": 5, "baseline": "us"}]
    })
}

fn monitor(number: usize, channel: &str) -> Value {
    json!({
        "name": format!("Monitor {number}"), "channels": [channel], "schedule": {"cron": "0 6 * * *", "timezone": "Europe/London"},
        "scan": {"endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR"},
                 "sweep": {"departure_date": {"from": "+7d", "to": "+36d"}}},
        "alerts": [{"type": "price_below", "amount": 200}, {"type": "new_low", "days": 30}]
    })
}

/// Routes `RAA`, `RAB` … to LHR with daily observations of 60 departures for 11 months, packed as a
/// worker does it.
async fn observations(pool: &PgPool) -> Res<()> {
    let tenant: uuid::Uuid = sqlx::query_scalar("select tenant_id from scans limit 1")
        .fetch_one(pool)
        .await?;
    let mut conn = pool.acquire().await?;
    sqlx::raw_sql(
        "set statement_timeout = 0; select create_partitions(now() - interval '13 months', 14)",
    )
    .execute(&mut *conn)
    .await?;
    let series = "insert into series (tenant_id, series, endpoint, product, origin, place, currency)
        select $1, decode(md5('route ' || r), 'hex'), 'flights/oneway', '{\"passengers\": [1], \"sort_type\": \"Overall\"}',
               'R' || chr((65 + r / 26)::int) || chr((65 + r % 26)::int), 'LHR', 'USD'
        from generate_series(0, $2 - 1) r where $3 + $4 > 0";
    let rows = "insert into observations (tenant_id, series, first_date, observed_at, price, seller, results, band_low, band_high,
                                  verdict, search_status, reason, item_id, number)
        select $1, decode(md5('route ' || r), 'hex'), current_date + d::int,
               date_trunc('hour', now()) - make_interval(days => ($4 - t)::int, secs => d * 7 + r),
               case when (t + d) % 20 > 0 then 100 + (t * 7 + d * 13 + r * 3) % 300 + 0.25 end, 'Example Air', 12, 150 + (d + r) % 40, 280 + (d * 3 + r) % 90, 'typical',
               case when (t + d) % 20 > 0 then 'ok' else 'degraded' end, case when (t + d) % 20 = 0 then 'upstream_timeout' end,
               gen_random_uuid(), 1
        from generate_series(1, $4) t, generate_series(1, $3) d, generate_series(0, $2 - 1) r";
    let latest = "insert into latest_prices (tenant_id, series, first_date, last_date, observed_at, price, seller, band_low, band_high, verdict,
                                  item_id, sampled_at, sample_status, sample_item_id)
        select tenant_id, series, first_date, first_date, observed_at, price, seller, band_low, band_high, verdict, item_id, observed_at, 'ok',
               item_id
        from (select distinct on (series, first_date) * from observations
              where tenant_id = $1 and price is not null and observed_at > now() - interval '3 days' and $2 + $3 + $4 > 0
              order by series, first_date, observed_at desc) newest
        on conflict do nothing";
    for sql in [series, rows, latest] {
        let query = sqlx::query(sql).bind(tenant);
        let query = query.bind(ROUTES).bind(DATES).bind(DAYS);
        query.execute(&mut *conn).await?;
    }
    drop(conn);
    farescan::history::daily_pack::pack_past_days(pool, Timestamp::now()).await?;
    sqlx::query("vacuum analyze observed_days")
        .execute(pool)
        .await?;
    Ok(())
}

/// Every page of the account that is read: a name and a path. A new page gets a line here.
async fn pages(pool: &PgPool) -> Res<Vec<(&'static str, String)>> {
    let text = async |sql: &'static str| -> Res<String> {
        Ok(sqlx::query_scalar(sql).fetch_one(pool).await?)
    };
    let id = async |prefix: &str, sql: &'static str| -> Res<String> {
        let id: uuid::Uuid = sqlx::query_scalar(sql).fetch_one(pool).await?;
        Ok(format!("{prefix}_{}", id.simple()))
    };
    let large = id(
        "scn",
        "select scan_id from scans order by total desc, scan_id limit 1",
    )
    .await?;
    let other = id(
        "scn",
        "select scan_id from scans order by total desc, scan_id offset 1 limit 1",
    )
    .await?;
    let small = id(
        "scn",
        "select scan_id from scans order by total, scan_id limit 1",
    )
    .await?;
    let item = id("itm", "select item_id from scan_items limit 1").await?;
    let monitor = id(
        "mon",
        "select monitor_id from monitors order by monitor_id limit 1",
    )
    .await?;
    let markets = id(
        "mon",
        "select monitor_id from monitors order by monitor_id desc limit 1",
    )
    .await?;
    let alert = id("alr", "select alert_id from alerts limit 1").await?;
    let delivery = id("dlv", "select delivery_id from deliveries limit 1").await?;
    let route = "/prices/flights?from_airport=RAB&to_airport=LHR";
    let hotel: String = form_urlencoded::byte_serialize(HOTEL.to_lowercase().as_bytes()).collect();
    let date = text("select (current_date + 20)::text").await?;
    Ok([
        ("sign in", "/login".to_owned()),
        ("overview", "/overview".to_owned()),
        ("ask", "/ask".to_owned()),
        ("question of a quarter", "/ask?q=tlv+lhr+march+to+may+below+200".to_owned()),
        ("question of a hotel", format!("/ask?q=hotel+{hotel}+3+nights+in+february+us+de+gb")),
        ("refused words", "/ask?q=tel+aviv+portland+lodnon+march".to_owned()),
        ("find", "/find?q=LHR".to_owned()),
        ("scans", "/scans".to_owned()),
        ("scans of a word", "/scans?text=LHR".to_owned()),
        ("new scan", "/scans/new".to_owned()),
        (
            "cost of a scan of 10,000",
            "/scans/new?endpoint=flights/roundtrip&from_airport=TLV&to_airport=LHR&departure_date.from=2030-01-01\
             &departure_date.to=2030-12-31&nights=1-27&preview=true\
             &once=01970a1b-2c3d-7e4f-8a9b-0c1d2e3f4a5b"
                .to_owned(),
        ),
        ("scan of 10,000 items", format!("/scans/{large}")),
        ("its degraded items", format!("/scans/{large}?search_status=degraded")),
        ("its comparison", format!("/scans/{large}/compare/{other}")),
        ("scan of 10 items", format!("/scans/{small}")),
        ("choice of a comparison", format!("/scans/{small}/compare")),
        ("item", format!("/items/{item}")),
        ("prices", "/prices".to_owned()),
        ("prices of a route", route.to_owned()),
        ("prices of a route and date", format!("{route}&date={date}")),
        ("prices of a hotel", format!("/prices/hotels?hotel_name={hotel}&nights=3")),
        ("monitors", "/monitors".to_owned()),
        ("monitor", format!("/monitors/{monitor}")),
        ("change of a monitor", format!("/monitors/{monitor}/edit")),
        ("backtest of a monitor", format!("/monitors/{monitor}/backtest")),
        ("markets over time", format!("/monitors/{markets}/parity")),
        ("new monitor", "/monitors/new".to_owned()),
        ("activity", "/activity".to_owned()),
        ("cost of watching a scan", format!("/monitors/new?like={small}")),
        ("channels", "/channels".to_owned()),
        ("alerts", "/alerts".to_owned()),
        ("alert", format!("/alerts/{alert}")),
        ("deliveries", "/deliveries".to_owned()),
        ("delivery", format!("/deliveries/{delivery}")),
        ("usage", "/usage".to_owned()),
        ("usage by scan", "/usage?group=scan".to_owned()),
        ("usage by monitor", "/usage?group=monitor".to_owned()),
    ]
    .into())
}

const HOTEL: &str = "Hotel Arts, Barcelona";

/// A signed-in browser.
struct Visitor {
    client: reqwest::Client,
    url: String,
    cookie: String,
}

impl Visitor {
    async fn sign_in(url: &str, key: &str) -> Res<Self> {
        let client = reqwest::Client::builder()
            .no_proxy()
            .no_gzip()
            .no_zstd()
            .redirect(Policy::none())
            .build()?;
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair("key", key)
            .finish();
        let login = client.post(format!("{url}/login")).header(ORIGIN, url);
        let response = login.body(form).send().await?;
        let header = |name| {
            let value = response.headers().get(name).ok_or("not signed in")?;
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(value.to_str()?.to_owned())
        };
        if header(LOCATION)? != "/overview" {
            return Err("not signed in".into());
        }
        let set = header(SET_COOKIE)?;
        let cookie = set.split(';').next().unwrap_or_default().to_owned();
        Ok(Self {
            client,
            url: url.to_owned(),
            cookie,
        })
    }

    /// The bytes of a page.
    async fn get(&self, path: &str, encoding: &str) -> Res<usize> {
        let mut request = self
            .client
            .get(format!("{}{path}", self.url))
            .header("accept", "text/html")
            .header(ACCEPT_ENCODING, encoding);
        if path != "/login" {
            request = request.header(COOKIE, &self.cookie);
        }
        let response = request.send().await?.error_for_status()?;
        if response.status() != 200 {
            return Err(format!("{path}: {}", response.status()).into());
        }
        Ok(response.bytes().await?.len())
    }

    /// Prints a page's figures; returns whether it meets the aims.
    async fn measure(&self, name: &str, path: &str) -> Res<bool> {
        for _ in 0..WARM {
            self.get(path, "identity").await?;
        }
        let mut times = Vec::new();
        let mut bytes = 0;
        for _ in 0..REQUESTS {
            let begun = Instant::now();
            bytes = self.get(path, "identity").await?;
            times.push(begun.elapsed());
        }
        let compressed = self.get(path, "br").await?;
        let times = Times::of(times);
        println!(
            "  | {name} | {} | {} | {} | {} | {} |",
            ms(times.median()),
            ms(times.p95()),
            ms(times.longest()),
            bytes.div_ceil(1000),
            compressed.div_ceil(1000)
        );
        Ok(times.p95() < AIM && compressed <= BYTES)
    }
}
