//! What a search and an item of a scan cost the program, in instructions. valgrind counts them: they vary far less than
//! seconds, by some 5 % where nothing else runs. On a loaded machine fewer items share a transaction, and an item costs
//! up to a quarter more, so this test runs alone (.config/nextest.toml). The count is that of the development build,
//! which every run of the tests has. What Postgres and the kernel do is not counted.
//!
//! If this test fails, find out what made the work dearer (`callgrind_annotate --inclusive=yes` on the files that it
//! names shows where the instructions go), or write the new count below, with its reason in the commit.

use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::faults::process::FarescanProcess;
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::worker::fixture::{WorkerFixture, fares};

/// Instructions of one synchronous search: ten fares, 5 kB.
const SEARCH: u64 = 4_000_000;
/// Instructions of one item of a scan, from its claim to its stored answer: ten fares, 5 kB. 1.0 million of
/// them play the scan again, to count what a question would have missed (scans.md, rule 84).
const ITEM: u64 = 5_200_000;
/// What a run does more than the one that it is compared with.
const MORE: u64 = 100;

#[tokio::test(flavor = "multi_thread")]
async fn a_search_and_an_item_cost_what_they_did() {
    // They end together: what a service does every second is then the same in all three.
    let end = Barrier::new(3);
    let (base, searches, items) = tokio::join!(
        instructions("base", 10, 10, &end),
        instructions("searches", 10 + MORE, 10, &end),
        instructions("items", 10, 10 + MORE, &end)
    );
    let search = searches.saturating_sub(base) / MORE;
    let item = items.saturating_sub(base) / MORE;
    println!("a search: {search} instructions; an item: {item}");
    for (what, seen, recorded) in [("a search", search, SEARCH), ("an item", item, ITEM)] {
        assert!(
            seen <= recorded + recorded / 5,
            "{what} costs {seen} instructions, a fifth more than the {recorded} that are recorded"
        );
        assert!(
            seen >= recorded / 2,
            "{what} costs {seen} instructions, half of the {recorded} that are recorded: record them"
        );
    }
}

/// The instructions of a service that does this much, from its start to its end.
async fn instructions(name: &str, searches: u64, items: u64, end: &Barrier) -> u64 {
    let fixture = WorkerFixture::new().await;
    fixture.upstream.answer(|call| {
        let fares: Vec<_> = (150..160).map(|price| fare(price, &call.body)).collect();
        Reply::json(Value::Array(fares))
    });
    // It stays after the test.
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("callgrind.out.{name}"));
    println!("{}", file.display());
    let service = FarescanProcess::start_counted(&fixture, &file);
    let search = json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2027-01-14", "limit": 50});
    for _ in 0..searches {
        let response = service.post("/v1/flights/oneway", &search).await;
        assert_eq!(response.status, 200, "{response:?}");
    }
    let scan = service
        .post("/v1/scans", &fares(i64::try_from(items).unwrap()))
        .await;
    assert_eq!(scan.status, 202, "{scan:?}");
    fixture
        .wait_until_ended(scan.body["id"].as_str().unwrap().parse().unwrap())
        .await;
    assert_eq!(fixture.upstream.count() as u64, searches + items);
    end.wait().await;
    service.signal(Signal::INT);
    assert!(service.wait_for_exit().await.success());
    let counts = std::fs::read_to_string(file).unwrap();
    let total = counts
        .lines()
        .find_map(|line| line.strip_prefix("summary: "));
    total.unwrap().trim().parse().unwrap()
}
