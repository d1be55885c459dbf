//! Scans that find the cheapest, and watches: what they search, what they say, and the ledger beside
//! it (scans.md, rules 80 to 88, and 91 to 98).

mod answers;
mod below;
mod control;
mod counts;
mod refused;
mod replay;
mod watch;

use serde_json::{Value, json};

use crate::support::reply::Reply;
use crate::support::service::{TestService, assert_counts_add_up, fares, fares_with};
use crate::support::upstream::fare;

/// A fare scan over the first dates of 2030 that finds the cheapest.
fn finding(dates: usize) -> Value {
    fares_with(dates, &json!({"strategy": {"find": "cheapest"}}))
}

/// The index of a date from the first of 2030.
fn day_of(call: &Value) -> usize {
    let date: jiff::civil::Date = call["departure_date"].as_str().unwrap().parse().unwrap();
    usize::try_from((date - jiff::civil::date(2030, 1, 1)).get_days()).unwrap()
}

/// The marketplace sells each date at its price from now on; `None`: it sells none.
fn sell(service: &TestService, prices: Vec<Option<u32>>) {
    service.upstream.answer(move |call| {
        Reply::json(match prices[day_of(&call.body)] {
            Some(price) => json!([fare(u64::from(price), &call.body)]),
            None => json!([]),
        })
    });
}

/// A ladder of fares, the cheapest dates in the middle.
fn ladder(dates: usize) -> Vec<Option<u32>> {
    let fare = |date: usize| {
        let step = date.abs_diff(dates / 2) / 3;
        [60, 73, 90, 109, 133, 163].get(step).copied()
    };
    (0..dates)
        .map(|date| Some(fare(date).unwrap_or(200)))
        .collect()
}

/// A service whose caller has searched all dates at these prices so many days ago.
async fn with_calendar(prices: &[Option<u32>], days: i32) -> TestService {
    let service = TestService::start().await;
    let worker = service.start_worker(8);
    sell(&service, prices.to_vec());
    let first = service.submit(&fares(prices.len())).await;
    service.wait_until_ended(&first).await;
    worker.stop().await;
    if days > 0 {
        make_older(service.pool(), days).await;
    }
    service
}

/// All stored prices are now so many days old.
async fn make_older(pool: &sqlx::PgPool, days: i32) {
    let back = "update latest_prices set sampled_at = now() - make_interval(days => $1),
                                         observed_at = case when price is not null then now() - make_interval(days => $1) end";
    execute!(pool, back, days);
}

/// All that was seen is so many days older, in the history too.
async fn history_passes(pool: &sqlx::PgPool, days: i32) {
    make_older(pool, days).await;
    for back in [
        "update observations set observed_at = observed_at - make_interval(days => $1)",
        "update series set unpacked_since = unpacked_since - make_interval(days => $1)",
    ] {
        execute!(pool, back, days);
    }
}

/// Runs a scan to its last decision; checks that the marketplace got what the scan says it spent,
/// and that asked = billed + avoided + unsearched.
async fn run(service: &TestService, body: &Value) -> Value {
    let before = service.upstream.count();
    let worker = service.start_worker(8);
    let id = service.submit(body).await;
    let scan = wait_until_decided(service, &id).await;
    worker.stop().await;
    assert_eq!(
        json!(service.upstream.count() - before),
        scan["requests"]["spent"]
    );
    check_sum(service, &scan).await;
    service.check_ledger().await;
    scan
}

async fn wait_until_decided(service: &TestService, id: &str) -> Value {
    service
        .wait_for_scan(id, "the scan has ended and its strategy too", |scan| {
            scan["finished_at"].is_string() && scan["strategy"]["ended_by"].is_string()
        })
        .await
}

async fn check_sum(service: &TestService, scan: &Value) {
    assert_counts_add_up(scan);
    let items = service.items(scan["id"].as_str().unwrap()).await;
    let count = |value: &Value| usize::try_from(value.as_u64().unwrap()).unwrap();
    let strategy = &scan["strategy"];
    let parts = ["searched", "reused", "unsearched"].map(|name| count(&strategy[name]));
    assert_eq!(parts.iter().sum::<usize>(), items.len(), "{scan:#}");
    let attempted = items.iter().filter(|item| item["attempts"] != 0).count();
    let reused = items
        .iter()
        .filter(|item| item.get("reused_from").is_some());
    let skipped = items.iter().filter(|item| item["state"] == "skipped");
    assert_eq!(
        [attempted, reused.count(), skipped.count()],
        parts,
        "{scan:#}"
    );
    assert_eq!(
        scan["requests"]["avoided"]["not_needed"],
        strategy["unsearched"]
    );
}

/// Checks fields of a value.
fn assert_shows(value: &Value, fields: &Value) {
    for (name, expected) in fields.as_object().unwrap() {
        assert_eq!(&value[name], expected, "{name} of {value:#}");
    }
}

/// What a question declares where another date may cost less.
fn risk(scan: &Value) -> f64 {
    scan["strategy"]["risk_of_cheaper"].as_f64().unwrap()
}

/// The positions that a decision searches.
fn searches(decision: &Value) -> Vec<usize> {
    serde_json::from_value(decision["searches"].clone()).unwrap()
}

async fn decisions(service: &TestService, scan: &Value) -> Vec<Value> {
    let id = scan["id"].as_str().unwrap();
    service.page(&format!("/v1/scans/{id}/decisions")).await
}

/// One field of each decision.
fn column(decisions: &[Value], field: &str) -> Vec<Value> {
    decisions
        .iter()
        .map(|decision| decision[field].clone())
        .collect()
}
