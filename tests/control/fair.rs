//! Five items behind ten thousand, of another caller and of the same one, by the marketplace's ledger.

use serde_json::{Value, json};

use super::house::{House, airport, fares, from};
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;

/// 10,000 searches: a hundred dates to a hundred places.
fn ten_thousand() -> Value {
    let mut order = fares(100);
    order["request"]
        .as_object_mut()
        .unwrap()
        .remove("to_airport");
    order["sweep"]["to_airport"] = (0..100).map(airport).collect();
    order
}

/// The numbers of the five's calls after their submit, while a worker is in the middle of the ten thousand. With one place calls come as
/// they were claimed; with more, the order of calls that begin together is chance. `FARESCAN_SOAK=1`: four places.
async fn places_of_the_five(key: &str) -> Vec<usize> {
    let house = House::open().await;
    let places = if std::env::var_os("FARESCAN_SOAK").is_some() {
        4
    } else {
        1
    };
    let worker = house.worker(places);
    house.warm().await;
    let gate = Gate::closed();
    let (mut count, held) = (0, gate.clone());
    house.app.upstream.on_any().answer(move |call| {
        count += 1;
        let reply = Reply::json(json!([fare(9, &call.body)]));
        if count > 8 {
            reply.held_by(&held)
        } else {
            reply
        }
    });
    let big = house.order(&ten_thousand()).await;
    // One call has warmed the key, eight went through, the next are held: all places are taken.
    house
        .app
        .upstream
        .wait_for("all places are taken", |calls| {
            calls.len() == 9 + usize::from(places)
        })
        .await;
    let small = house.order_as(key, &from("FIV", fares(5))).await;
    let before = house.app.upstream.count();
    gate.open();
    let all_five = |calls: &[crate::support::upstream::Call]| {
        calls
            .iter()
            .filter(|call| call.body["from_airport"] == "FIV")
            .count()
            == 5
    };
    house
        .app
        .upstream
        .wait_for("the five were asked", all_five)
        .await;
    let calls = house.app.upstream.calls();
    house.say(&big, "cancel", &json!({})).await;
    worker.stop().await;
    println!("{}", house.books().await);
    assert_eq!(
        calls
            .iter()
            .filter(|call| call.body["from_airport"] == "FIV")
            .count(),
        5,
        "{small}"
    );
    calls[before..]
        .iter()
        .enumerate()
        .filter(|(_, call)| call.body["from_airport"] == "FIV")
        .map(|(place, _)| place + 1)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn five_behind_ten_thousand_of_another_caller_are_among_the_next_twelve() {
    let places = places_of_the_five("the-key-of-another-caller").await;
    println!("calls after the submit: {places:?}");
    assert!(places.iter().all(|place| *place <= 12), "{places:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn five_behind_ten_thousand_of_the_same_caller_are_among_the_next_twelve() {
    let places = places_of_the_five(crate::support::app::KEY).await;
    println!("calls after the submit: {places:?}");
    assert!(places.iter().all(|place| *place <= 12), "{places:?}");
}
