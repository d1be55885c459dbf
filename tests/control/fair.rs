//! A scan of five items behind one of ten thousand, of another caller and of the same one, by the
//! ledger.

use serde_json::{Value, json};

use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;
use crate::support::{TestService, airport_code, departing_from, fares};

/// 10,000 searches: a hundred dates to a hundred airports.
fn ten_thousand() -> Value {
    let mut body = fares(100);
    body["request"]
        .as_object_mut()
        .unwrap()
        .remove("to_airport");
    body["sweep"]["to_airport"] = (0..100).map(airport_code).collect();
    body
}

/// `FARESCAN_SOAK=1`: four.
fn permits() -> u16 {
    if crate::faults::is_soak() { 4 } else { 1 }
}

/// Every second call is the small scan's, but each permit may have a call of the large one before the submit is
/// seen, and one that overtakes.
fn assert_takes_turns(positions: &[usize]) {
    println!("calls after the submit: {positions:?}");
    let last = 2 * positions.len() + 2 * usize::from(permits());
    assert!(
        positions.iter().all(|position| *position <= last),
        "{positions:?}"
    );
}

/// The positions of the small scan's calls after its submit, while a worker processes the large
/// one. With one permit calls are in the order of claims; with more, the order of concurrent calls
/// is random.
async fn call_positions_of_the_small_scan(key: &str) -> Vec<usize> {
    let service = TestService::start().await;
    let worker = service.start_worker(permits());
    service.accept_key().await;
    let gate = Gate::closed();
    let (mut count, held) = (0, gate.clone());
    service.upstream.answer(move |call| {
        count += 1;
        let reply = Reply::json(json!([fare(9, &call.body)]));
        if count > 8 {
            reply.gated_by(&held)
        } else {
            reply
        }
    });
    let big = service.submit(&ten_thousand()).await;
    // One call for the acceptance, eight completed, the next ones are blocked: all permits are
    // taken.
    service
        .upstream
        .wait_for("all permits are taken", |calls| {
            calls.len() == 9 + usize::from(permits())
        })
        .await;
    let small = service
        .submit_as(key, &departing_from("ZZV", fares(5)))
        .await;
    let before = service.upstream.count();
    gate.open();
    let all_five = |calls: &[crate::support::upstream::Call]| {
        calls
            .iter()
            .filter(|call| call.body["from_airport"] == "ZZV")
            .count()
            == 5
    };
    service
        .upstream
        .wait_for("the five items were searched", all_five)
        .await;
    let calls = service.upstream.calls();
    // Beside the worker a cancel of ten thousand items waits for its locks, on a busy machine too long.
    worker.stop().await;
    service.command(&big, "cancel", &json!({})).await;
    println!("{}", service.check_ledger().await);
    assert_eq!(
        calls
            .iter()
            .filter(|call| call.body["from_airport"] == "ZZV")
            .count(),
        5,
        "{small}"
    );
    calls[before..]
        .iter()
        .enumerate()
        .filter(|(_, call)| call.body["from_airport"] == "ZZV")
        .map(|(index, _)| index + 1)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_scan_passes_a_large_one_of_another_caller() {
    assert_takes_turns(&call_positions_of_the_small_scan("the-key-of-another-caller").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_scan_passes_a_large_one_of_the_same_caller() {
    assert_takes_turns(&call_positions_of_the_small_scan(crate::support::app::KEY).await);
}
