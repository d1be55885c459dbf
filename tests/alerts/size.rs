//! The largest run there is.

use std::time::Instant;

use jiff::Timestamp;
use serde_json::{Value, json};
use sqlx::postgres::PgPoolOptions;

use super::MOMENT;
use crate::scans::office::Office;

/// Kilobytes of this process: `VmRSS`, or the highest there was of it, `VmHWM`.
#[cfg(target_os = "linux")]
fn memory_kb(what: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(what)?.strip_prefix(':'))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// How many runs a pass judges, on connections that may wait for the rules as long as they take.
async fn judged(office: &Office, now: Timestamp) -> usize {
    let wait = "set idle_in_transaction_session_timeout = 0";
    let pool = PgPoolOptions::new()
        .after_connect(move |conn, _| {
            Box::pin(async move { sqlx::query(wait).execute(conn).await.map(drop) })
        })
        .connect_with(office.db.connect_options())
        .await
        .unwrap();
    let judged = crate::monitors::ticker(&pool)
        .judge_ended(|| now)
        .await
        .unwrap()
        .judged;
    pool.close().await;
    judged
}

/// The states of one rule are in memory at a time, and a long key is kept as a short one: what twenty rules take is hardly more than the
/// run itself, whose values are what is large here.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn twenty_rules_over_cells_with_long_keys_are_judged_in_bounds() {
    const CELLS: u64 = 3_000;
    const MOST_KB: u64 = 70_000;
    let list = |number: u8| {
        (0..80_u8)
            .map(|n| {
                format!(
                    "{}{}",
                    char::from(b'A' + number % 26),
                    (number / 26 + n) % 10
                )
            })
            .collect::<Vec<_>>()
    };
    let lists: Vec<_> = (0..100).map(list).collect();
    let office = Office::open().await;
    let drop = |number| json!({"type": "drop_percent", "percent": 10 + number, "runs": 30, "scope": "cell"});
    let mut body = super::monitor(1, &(0..20).map(drop).collect());
    body["scan"]["sweep"] = json!({"airline_codes": lists, "exclude_airline_codes": lists[..30]});
    let id = office.watch(&body).await;
    let mut before = None;
    for round in 1..=3 {
        let slot = office.next_slot(&id).await;
        office.tick(slot).await;
        end_all(&office, CELLS, 1.0).await;
        // What was freed stays with the process: only the first run begins with nothing of it.
        let (before, begin) = (
            *before.get_or_insert_with(|| memory_kb("VmRSS")),
            Instant::now(),
        );
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        assert_eq!(judged(&office, slot + MOMENT).await, 1);
        let (kilobytes, took) = (memory_kb("VmHWM").saturating_sub(before), begin.elapsed());
        let bytes = office
            .count("select max(octet_length(states))::bigint from rule_states")
            .await;
        println!(
            "{CELLS} cells, 20 rules, run {round}: {kilobytes} KB, {took:.1?}; states of a rule: {bytes} bytes"
        );
        assert!(kilobytes < MOST_KB, "run {round} took {kilobytes} KB");
        assert_eq!(office.slots(&id).await[0]["reason"], Value::Null);
    }
}

/// The scan's searches end, each with a price.
async fn end_all(office: &Office, searches: u64, factor: f64) {
    let ended = "update scan_items set state = 'done', search_status = 'ok', results = 1, calls = 1, observed_at = now(),
                        best_price = (100 + position % 100) * $1, currency = 'USD'
                 where state <> 'done'";
    let ended = sqlx::query(ended)
        .bind(factor)
        .execute(office.db.pool())
        .await
        .unwrap();
    assert_eq!(ended.rows_affected(), searches);
    let ended = "update scans set status = 'completed', ok = total, finished_at = now() where finished_at is null";
    sqlx::raw_sql(ended)
        .execute(office.db.pool())
        .await
        .unwrap();
}

/// Ten thousand cells before eight rules: judged in a few statements, without their bodies.
#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_cells_are_judged_by_eight_rules() {
    let office = Office::open().await;
    let rules: Vec<Value> = (0..4)
        .flat_map(|number| {
            let scope = if number % 2 == 0 { "cell" } else { "scan" };
            [
                json!({"type": "price_below", "amount": 150 + number, "scope": scope}),
                json!({"type": "drop_percent", "percent": 10 + number, "runs": 30, "scope": scope}),
            ]
        })
        .collect();
    let airports: Vec<_> = (0..100_u8)
        .map(|n| {
            format!(
                "{}{}A",
                char::from(b'A' + n / 26),
                char::from(b'A' + n % 26)
            )
        })
        .collect();
    let mut body = super::monitor(100, &json!(rules));
    body["scan"]["sweep"]["to_airport"] = json!(airports);
    body["scan"]["request"]
        .as_object_mut()
        .unwrap()
        .remove("to_airport");
    let id = office.watch(&body).await;
    for (number, factor) in [1.0, 0.5].into_iter().enumerate() {
        let slot = office.next_slot(&id).await;
        office.tick(slot).await;
        end_all(&office, 10_000, factor).await;
        let begin = Instant::now();
        assert_eq!(judged(&office, slot + MOMENT).await, 1);
        let took = begin.elapsed();
        let judged = office.slots(&id).await[0]["judged"].clone();
        let bytes = office
            .count("select sum(octet_length(states))::bigint from rule_states")
            .await;
        println!(
            "run {}: 10,000 cells, 8 rules: {took:.2?}, {judged}, states {bytes} bytes",
            number + 1
        );
        assert_eq!(judged["alerts"], 1_000, "as many as are kept");
        assert!(judged["fired"].as_u64().unwrap() > 10_000, "{judged}");
    }
    assert_eq!(office.count("select count(*) from alerts").await, 2_000);
}
