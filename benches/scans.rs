//! Callers that submit scans over HTTP, and their lanes, which are paused until a measurement
//! begins.
//!
//! A lane's pace is at most a thousand calls a second. The benches measure the queue and not the
//! pace, so they set a pace that no call reaches.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures::future::try_join_all;
use serde_json::{Value, json};
use sqlx::PgPool;
use tokio::time::sleep;

use super::Res;
use super::load::{get, post};

/// The days of a scan; a larger one has several destinations.
const DAYS: usize = 250;
/// Callers that are created at once.
const CREATED_AT_ONCE: usize = 8;
/// How often the end of all scans is polled.
const POLL: Duration = Duration::from_millis(10);

/// The request of a scan with this many items.
pub fn scan_request(items: usize) -> Value {
    let first = jiff::Timestamp::now()
        .to_zoned(jiff::tz::TimeZone::UTC)
        .date()
        .saturating_add(jiff::Span::new().days(30));
    let days = items.min(DAYS);
    let last =
        first.saturating_add(jiff::Span::new().days(i64::try_from(days - 1).unwrap_or_default()));
    let mut sweep = json!({"departure_date": {"from": first.to_string(), "to": last.to_string()}});
    let mut request = json!({"from_airport": "TLV", "currency": "USD"});
    if items > DAYS {
        sweep["to_airport"] = airports().take(items / DAYS).collect();
    } else {
        request["to_airport"] = "LHR".into();
    }
    json!({"endpoint": "flights/oneway", "request": request, "sweep": sweep})
}

/// Airports that a scan takes: those that exist, but for the one of departure.
fn airports() -> impl Iterator<Item = String> {
    let codes = (0..26_u32.pow(3)).filter_map(|number| {
        let letters = [number / 676, number / 26 % 26, number % 26];
        let letters = letters.map(|letter| char::from_u32(u32::from('A') + letter));
        letters.into_iter().collect::<Option<String>>()
    });
    codes.filter(|code| code != "TLV" && farescan_ask::places::exists(code))
}

/// Submits a scan; returns the latency of its 202.
pub async fn submit(api: SocketAddr, caller: &str, order: &Value) -> Res<Duration> {
    let begun = Instant::now();
    let (status, body) = post(api, "/v1/scans", &[("x-api-key", caller)], order).await?;
    let took = begun.elapsed();
    if status != 202 {
        return Err(format!(
            "the scan was not accepted: {status} {}",
            String::from_utf8_lossy(&body)
        )
        .into());
    }
    Ok(took)
}

/// Creates callers with paused lanes: their scans wait. The marketplace accepts their keys first: of others only a few
/// may submit within a minute (security.md, rule 15).
pub async fn create_callers(
    pool: &PgPool,
    api: SocketAddr,
    name: &str,
    count: usize,
) -> Res<Vec<String>> {
    let callers: Vec<_> = (0..count)
        .map(|number| format!("bench-caller-{name}-{number}"))
        .collect();
    // The marketplace takes its time for each key.
    for some in callers.chunks(CREATED_AT_ONCE) {
        try_join_all(some.iter().map(|caller| create_caller(api, caller))).await?;
    }
    wait_until_done(pool).await?;
    pause_lanes(pool).await?;
    Ok(callers)
}

async fn create_caller(api: SocketAddr, caller: &str) -> Res<()> {
    let (status, body) = get(api, "/v1/verify", &[("x-api-key", caller)]).await?;
    if status != 200 {
        let body = String::from_utf8_lossy(&body);
        return Err(format!("the key was not accepted: {status} {body}").into());
    }
    submit(api, caller, &scan_request(1)).await?;
    Ok(())
}

async fn pause_lanes(pool: &PgPool) -> Res<()> {
    let shut = "update lanes set paused_until = 'infinity', pause_reason = 'key_rejected', next_at = null,
                                 emission = interval '1 microsecond', burst = 1000000, max_in_flight = 1000";
    sqlx::query(shut).execute(pool).await?;
    Ok(())
}

/// Analyzes the tables as autovacuum does within a minute: until then plans assume empty tables.
pub async fn analyze_tables(pool: &PgPool) -> Res<()> {
    for table in [
        "scan_items",
        "scans",
        "lanes",
        "attempts",
        "key_grants",
        "answers",
        "observations",
        "series",
        "latest_prices",
        "item_offers",
    ] {
        sqlx::query(sqlx::AssertSqlSafe(format!("vacuum analyze {table}")))
            .execute(pool)
            .await?;
    }
    Ok(())
}

/// Resumes all lanes at once.
pub async fn open_lanes(pool: &PgPool) -> Res<()> {
    let open =
        "with opened as (update lanes set paused_until = null, pause_reason = null, next_at = clock_timestamp() returning 1)
                select pg_notify('farescan_lane', '') from opened limit 1";
    sqlx::query(open).execute(pool).await?;
    Ok(())
}

/// Returns when all scans have ended.
pub async fn wait_until_done(pool: &PgPool) -> Res<()> {
    loop {
        let unfinished: bool =
            sqlx::query_scalar("select exists (select from scans where finished_at is null)")
                .fetch_one(pool)
                .await?;
        if !unfinished {
            return Ok(());
        }
        sleep(POLL).await;
    }
}

/// The count of a query.
pub async fn count(pool: &PgPool, sql: &'static str) -> Res<i64> {
    Ok(sqlx::query_scalar(sql).fetch_one(pool).await?)
}
