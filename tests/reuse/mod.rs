//! Answers that are reused and searches that are shared: the marketplace's ledger against what the
//! service says that it saved (scans.md, rules 74 to 79).

mod all_answers;
mod answers;
mod model;
mod refused;
mod shared;

use serde_json::{Value, json};

use crate::support::service::{TestService, assert_counts_add_up, fares_with};

/// A fare scan that may take answers of up to an hour.
fn reusing(dates: usize) -> Value {
    fares_with(dates, &json!({"max_age_seconds": 3600}))
}

/// Submits a scan, waits for its end, and checks that its searches add up: each item was searched,
/// reused or joined, and the marketplace got the requests that the scan says it spent.
async fn run(service: &TestService, body: &Value) -> Value {
    let before = service.upstream.count();
    let id = service.submit(body).await;
    let scan = service.wait_until_ended(&id).await;
    assert_eq!(
        json!(service.upstream.count() - before),
        scan["requests"]["spent"]
    );
    check_sum(service, &scan).await;
    scan
}

/// Checks that asked = billed + avoided, by the scan and by its items.
async fn check_sum(service: &TestService, scan: &Value) {
    assert_counts_add_up(scan);
    let items = service.items(scan["id"].as_str().unwrap()).await;
    // One that was searched in vain may have taken an answer since.
    let searched = items
        .iter()
        .filter(|item| item["attempts"] != 0 && item.get("reused_from").is_none())
        .count();
    let reused = items
        .iter()
        .filter(|item| item.get("reused_from").is_some())
        .count();
    let avoided = &scan["requests"]["avoided"];
    let count = |name: &str| usize::try_from(avoided[name].as_u64().unwrap()).unwrap();
    assert_eq!(reused, count("reused") + count("joined"), "{scan:#}");
    assert_eq!(
        searched + reused + count("not_needed"),
        items.len(),
        "{scan:#}"
    );
}

/// All that was answered is so much older.
async fn make_answers_older(pool: &sqlx::PgPool, seconds: u32) {
    for (table, column) in [
        ("observations", "observed_at"),
        ("latest_prices", "observed_at"),
        ("latest_prices", "sampled_at"),
        ("answers", "observed_at"),
        ("scan_items", "observed_at"),
        ("attempts", "ended_at"),
    ] {
        let sql =
            format!("update {table} set {column} = {column} - make_interval(secs => {seconds})");
        execute!(pool, sqlx::AssertSqlSafe(sql));
    }
}
