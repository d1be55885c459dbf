//! The largest runs.

use std::time::Instant;

use jiff::Timestamp;
use serde_json::{Value, json};
use sqlx::postgres::PgPoolOptions;

use super::MOMENT;
use crate::support::{TestService, airport_code};

/// Kilobytes of this process: resident (`VmRSS`) or their peak (`VmHWM`).
#[cfg(target_os = "linux")]
fn memory_kb(what: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(what)?.strip_prefix(':'))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// The number of runs that a pass evaluates, without a timeout for idle transactions.
async fn evaluate_runs(service: &TestService, now: Timestamp) -> usize {
    let wait = "set idle_in_transaction_session_timeout = 0";
    let pool = PgPoolOptions::new()
        .after_connect(move |conn, _| {
            Box::pin(async move { sqlx::query(wait).execute(conn).await.map(drop) })
        })
        .connect_with(service.db.connect_options())
        .await
        .unwrap();
    let judged = crate::monitors::ticker(&pool)
        .evaluate_ended_runs(|| now)
        .await
        .unwrap()
        .evaluated;
    pool.close().await;
    judged
}

/// Only the states of one rule are in memory at a time, with shortened keys, so twenty rules need
/// hardly more memory than the run itself.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn twenty_rules_over_long_keys_stay_within_memory_bounds() {
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
    let service = TestService::start().await;
    let drop = |number| json!({"type": "drop_percent", "percent": 10 + number, "runs": 30, "scope": "cell"});
    let mut body = super::monitor(1, &(0..20).map(drop).collect());
    body["scan"]["sweep"] = json!({"airline_codes": lists, "exclude_airline_codes": lists[..30]});
    let id = service.create_monitor(&body).await;
    let mut before = None;
    for round in 1..=3 {
        let slot = service.next_slot(&id).await;
        service.tick(slot).await;
        end_all(&service, CELLS, 1.0).await;
        // The process keeps freed memory, so the baseline comes from the first run.
        let (before, begin) = (
            *before.get_or_insert_with(|| memory_kb("VmRSS")),
            Instant::now(),
        );
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        assert_eq!(evaluate_runs(&service, slot + MOMENT).await, 1);
        let (kilobytes, took) = (memory_kb("VmHWM").saturating_sub(before), begin.elapsed());
        let bytes = service
            .count("select max(octet_length(states))::bigint from rule_states")
            .await;
        println!(
            "{CELLS} cells, 20 rules, run {round}: {kilobytes} KB, {took:.1?}; states of a rule: {bytes} bytes"
        );
        assert!(kilobytes < MOST_KB, "run {round} took {kilobytes} KB");
        assert_eq!(service.slots(&id).await[0]["reason"], Value::Null);
    }
}

/// Ends the scan's searches, each with a price.
async fn end_all(service: &TestService, searches: u64, factor: f64) {
    let ended = "update scan_items set state = 'done', search_status = 'ok', results = 1, calls = 1, observed_at = now(),
                        best_price = (100 + position % 100) * $1, currency = 'USD'
                 where state <> 'done'";
    let ended = execute!(service.pool(), ended, factor);
    assert_eq!(ended, searches);
    let ended = "update scans set status = 'completed', ok = total, finished_at = now() where finished_at is null";
    execute!(service.pool(), ended);
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_rules_evaluate_ten_thousand_cells() {
    let service = TestService::start().await;
    let rules: Vec<Value> = (0..4)
        .flat_map(|number| {
            let scope = if number % 2 == 0 { "cell" } else { "scan" };
            [
                json!({"type": "price_below", "amount": 150 + number, "scope": scope}),
                json!({"type": "drop_percent", "percent": 10 + number, "runs": 30, "scope": scope}),
            ]
        })
        .collect();
    let airports: Vec<_> = (0..100).map(airport_code).collect();
    let mut body = super::monitor(100, &json!(rules));
    body["scan"]["sweep"]["to_airport"] = json!(airports);
    body["scan"]["request"]
        .as_object_mut()
        .unwrap()
        .remove("to_airport");
    let id = service.create_monitor(&body).await;
    for (number, factor) in [1.0, 0.5].into_iter().enumerate() {
        let slot = service.next_slot(&id).await;
        service.tick(slot).await;
        end_all(&service, 10_000, factor).await;
        let begin = Instant::now();
        assert_eq!(evaluate_runs(&service, slot + MOMENT).await, 1);
        let took = begin.elapsed();
        let judged = service.slots(&id).await[0]["judged"].clone();
        let bytes = service
            .count("select sum(octet_length(states))::bigint from rule_states")
            .await;
        println!(
            "run {}: 10,000 cells, 8 rules: {took:.2?}, {judged}, states {bytes} bytes",
            number + 1
        );
        assert_eq!(judged["alerts"], 1_000, "the limit of stored alerts");
        assert!(judged["fired"].as_u64().unwrap() > 10_000, "{judged}");
    }
    assert_eq!(service.count("select count(*) from alerts").await, 2_000);
}
