//! Callers who order scans over HTTP, and their lanes, which are held shut until a measurement begins.
//!
//! A lane's pace is a promise to the marketplace's plan, a thousand a second at most; here the queue is measured and not the promise, so the
//! lanes are given a pace that nothing meets.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sqlx::PgPool;
use tokio::time::sleep;

use super::Res;
use super::load::post;

/// The days of an order; a larger one goes to several places.
const DAYS: usize = 250;
/// How often it is looked whether all is done.
const POLL: Duration = Duration::from_millis(10);

/// A scan of so many items.
pub fn order(items: usize) -> Value {
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
        sweep["to_airport"] = (0..items / DAYS).map(airport).collect();
    } else {
        request["to_airport"] = "LHR".into();
    }
    json!({"endpoint": "flights/oneway", "request": request, "sweep": sweep})
}

fn airport(number: usize) -> String {
    let letter = |at: usize| char::from(b'A' + u8::try_from(at % 26).unwrap_or_default());
    format!("X{}{}", letter(number / 26), letter(number))
}

/// Orders a scan; returns when it is promised, with how long that took.
pub async fn submit(api: SocketAddr, caller: &str, order: &Value) -> Res<Duration> {
    let begun = Instant::now();
    let (status, body) = post(api, "/v1/scans", &[("x-api-key", caller)], order).await?;
    let took = begun.elapsed();
    if status != 202 {
        return Err(format!(
            "the scan was not taken: {status} {}",
            String::from_utf8_lossy(&body)
        )
        .into());
    }
    Ok(took)
}

/// Callers whose lanes are there and shut: what they order waits.
pub async fn callers(pool: &PgPool, api: SocketAddr, name: &str, count: usize) -> Res<Vec<String>> {
    let callers: Vec<_> = (0..count)
        .map(|number| format!("bench-caller-{name}-{number}"))
        .collect();
    for caller in &callers {
        submit(api, caller, &order(1)).await?;
    }
    all_done(pool).await?;
    shut(pool).await?;
    Ok(callers)
}

async fn shut(pool: &PgPool) -> Res<()> {
    let shut = "update lanes set paused_until = 'infinity', pause_reason = 'key_rejected', next_at = null,
                                 emission = interval '1 microsecond', burst = 1000000, max_in_flight = 1000";
    sqlx::query(shut).execute(pool).await?;
    Ok(())
}

/// As autovacuum does within the minute: until then a fresh database works by plans that were made for empty tables.
pub async fn settle(pool: &PgPool) -> Res<()> {
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

/// Opens all lanes at once.
pub async fn open(pool: &PgPool) -> Res<()> {
    let open =
        "with opened as (update lanes set paused_until = null, pause_reason = null, next_at = clock_timestamp() returning 1)
                select pg_notify('farescan_lane', '') from opened limit 1";
    sqlx::query(open).execute(pool).await?;
    Ok(())
}

/// Returns when no scan is live.
pub async fn all_done(pool: &PgPool) -> Res<()> {
    loop {
        let live: bool =
            sqlx::query_scalar("select exists (select from scans where finished_at is null)")
                .fetch_one(pool)
                .await?;
        if !live {
            return Ok(());
        }
        sleep(POLL).await;
    }
}

/// A number from the tables.
pub async fn count(pool: &PgPool, sql: &'static str) -> Res<i64> {
    Ok(sqlx::query_scalar(sql).fetch_one(pool).await?)
}
