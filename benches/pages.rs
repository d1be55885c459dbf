//! Server time and weight of every page of the dashboard, through HTTP, for one caller with a scan
//! of 10,000 items, 499 other scans, 20 monitors, one of six markets with its runs, and a million
//! observations.
//!
//! The scans run through the program against the benches' marketplace; the observations are filled
//! in by SQL, as `script/bench history` does it. Then each page is requested one time after the
//! other over one connection, as by one person: a time is from the request to the last byte.

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
    analyze_tables, create_callers, open_lanes, scan_request, submit, wait_until_done,
};
use super::upstream::Upstream;

const ITEMS: usize = 10_000;
/// Other scans, and their items.
const SCANS: usize = 499;
const FEW: usize = 10;
const MONITORS: usize = 20;
/// Observations: each of these routes on each of these departures on each of these days.
const ROUTES: i64 = 50;
const DATES: i64 = 60;
const DAYS: i64 = 334;
const WARM: usize = 20;
const REQUESTS: usize = 200;
/// The aims: a page's 95th percentile, and its bytes as a browser gets them.
const AIM: Duration = Duration::from_millis(80);
const BYTES: usize = 20_000;
/// Markets of one hotel, samples of each in a run, and runs.
const MARKETS: [&str; 6] = ["us", "gb", "de", "fr", "jp", "br"];
const SAMPLES: usize = 3;
const RUNS: usize = 12;

pub async fn run() -> Res<()> {
    println!(
        "\npages: one caller with a scan of {ITEMS} items, {SCANS} other scans, {MONITORS} monitors and {} observations",
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
async fn fill(env: &BenchEnvironment, api: std::net::SocketAddr) -> Res<String> {
    let pool = env.pool();
    let key = create_callers(pool, api, "pages", 1).await?.remove(0);
    submit(api, &key, &scan_request(ITEMS)).await?;
    open_lanes(pool).await?;
    wait_until_done(pool).await?;
    // Some at a time: the number of live scans of a caller is limited.
    for number in 2..=SCANS {
        submit(api, &key, &scan_request(FEW)).await?;
        if number % 20 == 0 {
            wait_until_done(pool).await?;
        }
    }
    wait_until_done(pool).await?;
    let command = async |path: &str, body: &Value| -> Res<Value> {
        let (status, body) = post(api, path, &[("x-api-key", &key)], body).await?;
        if !(200..300).contains(&status) {
            return Err(format!("{path}: {status}: {}", String::from_utf8_lossy(&body)).into());
        }
        Ok(serde_json::from_slice(&body)?)
    };
    for number in 0..MONITORS {
        command("/v1/monitors", &monitor(number)).await?;
    }
    let markets = command("/v1/monitors", &monitor_of_markets()).await?;
    let id = markets["id"].as_str().ok_or("a monitor without an id")?;
    open_lanes(pool).await?;
    for _ in 0..RUNS {
        command(&format!("/v1/monitors/{id}/run"), &json!({})).await?;
        wait_until_done(pool).await?;
    }
    observations(pool).await?;
    analyze_tables(pool).await?;
    Ok(key)
}

fn monitor(number: usize) -> Value {
    json!({
        "name": format!("Monitor {number}"), "schedule": {"cron": "0 6 * * *", "timezone": "Europe/London"},
        "scan": {"endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR"},
                 "sweep": {"departure_date": {"from": "+7d", "to": "+36d"}}},
        "alerts": [{"type": "price_below", "amount": 150}, {"type": "new_low", "days": 30}]
    })
}

fn monitor_of_markets() -> Value {
    json!({
        "name": "Markets", "schedule": {"cron": "0 6 * * 1", "timezone": "Europe/London"},
        "scan": {"endpoint": "hotels/by-name",
                 "request": {"hotel_name": "Grand Hotel", "currency": "USD"},
                 "sweep": {"checkin_date": {"from": "+60d", "to": "+60d"}, "nights": [2], "proxy_country": MARKETS, "samples": SAMPLES}},
        "alerts": [{"type": "parity_gap_percent", "percent": 5, "baseline": "us"}]
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

/// The key of a page with buttons, as its redirect adds one.
const KEY: &str = "once=01970a1b-2c3d-7e4f-8a9b-0c1d2e3f4a5b";

/// Every page of the account: a name and a path.
async fn pages(pool: &PgPool) -> Res<Vec<(&'static str, String)>> {
    let id = async |sql: &'static str| -> Res<String> {
        let id: uuid::Uuid = sqlx::query_scalar(sql).fetch_one(pool).await?;
        Ok(id.simple().to_string())
    };
    let large = id("select scan_id from scans order by total desc limit 1").await?;
    let small = id("select scan_id from scans order by total, scan_id limit 1").await?;
    let item = id("select item_id from scan_items limit 1").await?;
    let monitor = id("select monitor_id from monitors where name <> 'Markets' limit 1").await?;
    let markets = id("select monitor_id from monitors where name = 'Markets'").await?;
    let route = "/prices/flights?from_airport=RAB&to_airport=LHR";
    let date: String = sqlx::query_scalar("select (current_date + 20)::text")
        .fetch_one(pool)
        .await?;
    Ok([
        ("sign in", "/login".to_owned()),
        ("overview", "/overview".to_owned()),
        ("scans", "/scans".to_owned()),
        ("question in words", format!("/ask?q=TLV+to+LHR+next+month&{KEY}")),
        (
            "question with known prices",
            format!("/ask?q=TLV+to+LHR+{date}+below+150&{KEY}"),
        ),
        ("find", "/find?q=TLV".to_owned()),
        ("new scan", "/scans/new".to_owned()),
        (
            "cost of a scan of 10,000",
            "/scans/new?endpoint=flights/roundtrip&from_airport=TLV&to_airport=LHR&departure_date.from=2030-01-01\
             &departure_date.to=2030-12-31&nights=1-27&preview=true\
             &once=01970a1b-2c3d-7e4f-8a9b-0c1d2e3f4a5b"
                .to_owned(),
        ),
        ("scan of 10,000 items", format!("/scans/scn_{large}")),
        ("its degraded items", format!("/scans/scn_{large}?search_status=degraded")),
        ("scan of 10 items", format!("/scans/scn_{small}")),
        ("item", format!("/items/itm_{item}")),
        ("prices", "/prices".to_owned()),
        ("prices of a route", route.to_owned()),
        ("prices of a route and date", format!("{route}&date={date}")),
        ("monitors", "/monitors".to_owned()),
        ("monitor", format!("/monitors/mon_{monitor}")),
        ("markets over time", format!("/monitors/mon_{markets}/parity")),
        ("new monitor", "/monitors/new".to_owned()),
        ("channels", "/channels".to_owned()),
        ("activity", "/activity".to_owned()),
        ("alerts", "/alerts".to_owned()),
        ("deliveries", "/deliveries".to_owned()),
        ("usage", "/usage".to_owned()),
        ("usage by scan", "/usage?group=scan".to_owned()),
    ]
    .into())
}

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
        Ok(times.p95() <= AIM && compressed <= BYTES)
    }
}
