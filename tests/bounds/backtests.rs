//! Backtests of strangers and large ones of a known caller, during heavy reads of another.

use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};

use super::{ApiClient, TimedResponse};
use crate::exports::memory::{memory_kb, reset_peak_memory};
use crate::exports::seed;
use crate::faults::process::FarescanProcess;
use crate::support::app::tenant;
use crate::support::db::require_key_acceptance;
use crate::worker::fixture::{KEY, WorkerFixture};

const STRANGERS: usize = 12;
/// The memory that backtests of unknown keys may add to the process.
const STRANGERS_KB: u64 = 20_000;
/// The memory that the largest backtest of a known caller may add.
const LARGEST_KB: u64 = 200_000;
/// Ten thousand searches in each run, as many as a scan may have; ten runs are the most.
const LARGEST_PATH: &str = "/v1/monitors/backtest?days=9";
/// For as many rules as there may be: each packs and unpacks its states on each day.
const SHORT_PATH: &str = "/v1/monitors/backtest?days=2";

fn largest(rules: &Value) -> Value {
    json!({
        "name": "large", "schedule": {"cron": "0 6 * * *", "timezone": "UTC"},
        "scan": {
            "endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR"},
            "sweep": {"departure_date": {"from": "+1d", "to": "+100d"}, "max_price": (100..200).collect::<Vec<_>>()}
        },
        "alerts": rules
    })
}

/// Anybody can invent keys, and an invented one has no stored prices to replay.
#[tokio::test(flavor = "multi_thread")]
async fn backtests_of_unknown_keys_take_nothing_from_others() {
    let fixture = WorkerFixture::new().await;
    let caller = tenant(fixture.pool(), &fixture.ring, KEY).await;
    let [before, after] = [
        seed::scan(fixture.pool(), caller, 100).await,
        seed::scan(fixture.pool(), caller, 100).await,
    ];
    require_key_acceptance(fixture.pool()).await;
    let service = FarescanProcess::start_gateway(&fixture);
    let url = service.url().await;
    let honest = ApiClient::new(&url, KEY);
    let reads = [
        format!("/v1/scans/{before}/compare/{after}"),
        "/v1/history/flights/series?from_airport=TLV&to_airport=LHR".to_owned(),
    ];
    let mut quiet = Duration::ZERO;
    for path in &reads {
        let answer = honest.get(path).await;
        assert_eq!(answer.status, 200);
        quiet = quiet.max(answer.took);
    }
    reset_peak_memory(service.pid());
    let memory = memory_kb(service.pid(), "VmRSS");
    let body = largest(&json!([{"type": "price_below", "amount": 100}]));
    let attack = join_all((0..STRANGERS).map(|number| {
        let stranger = ApiClient::new(&url, &format!("made-up-key-{number}"));
        let body = &body;
        async move {
            let mut answers = Vec::new();
            for _ in 0..3 {
                answers.push(stranger.post(LARGEST_PATH, body).await);
            }
            answers
        }
    }));
    let use_it = async {
        let mut answers = Vec::new();
        for _ in 0..5 {
            for path in &reads {
                answers.push(honest.get(path).await);
            }
        }
        answers
    };
    let (attacked, used) = futures::join!(attack, use_it);
    let grown = memory_kb(service.pid(), "VmHWM").saturating_sub(memory);
    let slowest = used.iter().map(|answer| answer.took).max().unwrap();
    let statuses = |answers: &[TimedResponse]| -> Vec<_> {
        answers.iter().map(|answer| answer.status).collect()
    };
    println!(
        "{STRANGERS} strangers: {grown} kB more, the slowest read took {slowest:.1?}, before them {quiet:.1?}"
    );
    assert_eq!(statuses(&used), [200; 10], "{slowest:?}");
    // Twelve plans at a time would add seconds to each read.
    assert!(
        slowest < Duration::from_secs(1) + 4 * quiet,
        "{slowest:?} instead of {quiet:?}"
    );
    for answer in attacked.iter().flatten() {
        assert_eq!(
            (answer.status, &answer.body["error"]["type"]),
            (409, &json!("key_not_accepted")),
            "{}",
            answer.body
        );
    }
    assert!(grown < STRANGERS_KB, "{grown} kB");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_backtest_needs_little_memory() {
    let fixture = WorkerFixture::new().await;
    tenant(fixture.pool(), &fixture.ring, KEY).await;
    let service = FarescanProcess::start_gateway(&fixture);
    let url = service.url().await;
    let caller = ApiClient::new(&url, KEY);
    let rules: Vec<_> = (0..20)
        .map(|number| json!({"type": "price_below", "amount": 100 + number, "scope": "cell"}))
        .collect();
    let (one, twenty) = (
        json!([{"type": "price_below", "amount": 100}]),
        json!(rules),
    );
    caller.get("/v1/monitors").await;
    reset_peak_memory(service.pid());
    let memory = memory_kb(service.pid(), "VmRSS");
    // The second adds to what the first left, if it left anything.
    for (path, rules, searches) in [(LARGEST_PATH, &one, 90_000), (SHORT_PATH, &twenty, 20_000)] {
        let answer = caller.post(path, &largest(rules)).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(answer.body["searches"], searches);
        let grown = memory_kb(service.pid(), "VmHWM").saturating_sub(memory);
        println!(
            "{} rules: {grown} kB more, {:.1?}",
            rules.as_array().unwrap().len(),
            answer.took
        );
        assert!(grown < LARGEST_KB, "{grown} kB");
    }
}
