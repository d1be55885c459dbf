//! Two services and two workers on one database, each a process of its own.

use std::collections::BTreeSet;
use std::time::Duration;

use reqwest::Client;
use serde_json::{Value, json};

use crate::faults::ledger::LedgerCheck;
use crate::faults::process::{FarescanProcess, post};
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::support::{array, text};
use crate::worker::fixture::{KEY, WorkerFixture, fares};

/// A scan of this many dates to one airport.
fn order(dates: i64, to: &str) -> Value {
    let mut order = fares(dates);
    order["request"]["to_airport"] = to.into();
    order
}

fn client() -> Client {
    Client::builder().no_proxy().build().unwrap()
}

async fn get(url: &str, path: &str) -> Value {
    let answer = client()
        .get(format!("{url}{path}"))
        .header("x-api-key", KEY)
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 200, "{path}");
    answer.json().await.unwrap()
}

/// The ids of the items in a scan's events, until the scan has ended.
async fn watch(url: String, scan: String) -> BTreeSet<String> {
    let answer = client()
        .get(format!("{url}/v1/scans/{scan}/events"))
        .header("x-api-key", KEY)
        .header("last-event-id", "0")
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 200);
    let (mut answer, mut text, mut items) = (answer, String::new(), BTreeSet::new());
    while let Some(chunk) = answer.chunk().await.unwrap() {
        text.push_str(std::str::from_utf8(&chunk).unwrap());
        while let Some((event, rest)) = text
            .split_once("\n\n")
            .map(|(event, rest)| (event.to_owned(), rest.to_owned()))
        {
            text = rest;
            let line = |name: &str| {
                event
                    .lines()
                    .find_map(|line| line.strip_prefix(name))
                    .map(str::trim)
                    .map(str::to_owned)
            };
            let Some(data) =
                line("data:").and_then(|data| serde_json::from_str::<Value>(&data).ok())
            else {
                continue;
            };
            match line("event:").as_deref() {
                Some("item") if data["state"] == "done" => {
                    _ = items.insert(data["id"].as_str().unwrap().to_owned());
                }
                Some("scan") if !data["finished_at"].is_null() => return items,
                _ => {}
            }
        }
    }
    panic!("the events of {scan} end before it does");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_services_and_two_workers_share_one_database() {
    let fixture = WorkerFixture::new().await;
    fixture.upstream.answer(|call| {
        Reply::json(json!([fare(120, &call.body)])).delay(Duration::from_millis(20))
    });
    let services = [
        FarescanProcess::start_gateway(&fixture),
        FarescanProcess::start_gateway(&fixture),
    ];
    let urls = [services[0].url().await, services[1].url().await];
    let workers = [
        FarescanProcess::start_worker(&fixture, 4, &[]),
        FarescanProcess::start_worker(&fixture, 4, &[]),
    ];
    for worker in &workers {
        worker.wait_for_log("listening").await;
    }

    // Gets the key accepted: before that a caller has one scan at a time.
    let first = fixture.submit(1, &json!({})).await;
    fixture.wait_until_ended(first).await;

    // Submitted at one service and watched at the other.
    let (scans_each, dates) = (3, 20);
    let mut watched = Vec::new();
    for (number, to) in ["LHR", "CDG", "JFK", "FCO", "AMS", "BER"]
        .into_iter()
        .enumerate()
    {
        let once = format!("order-{number}");
        let (here, there) = (&urls[number % 2], &urls[(number + 1) % 2]);
        let answer = post(
            here,
            "/v1/scans",
            &order(dates, to),
            &[("idempotency-key", once.as_str())],
        )
        .await
        .unwrap();
        assert_eq!(answer.status, 202, "{}", answer.body);
        let scan = text(&answer.body["id"]);
        // The same idempotency key at the other service is the same scan.
        let again = post(
            there,
            "/v1/scans",
            &order(dates, to),
            &[("idempotency-key", once.as_str())],
        )
        .await
        .unwrap();
        assert_eq!(
            (again.status, again.body["id"].as_str()),
            (202, Some(scan.as_str()))
        );
        watched.push((
            scan.clone(),
            there.clone(),
            tokio::spawn(watch(there.clone(), scan)),
        ));
    }
    for (scan, there, events) in watched {
        let items = tokio::time::timeout(crate::support::WAIT_LIMIT, events)
            .await
            .expect("the scan ends")
            .unwrap();
        let list = get(&there, &format!("/v1/scans/{scan}/items?limit=500")).await;
        let all: BTreeSet<_> = array(&list["data"])
            .iter()
            .map(|item| text(&item["id"]))
            .collect();
        assert_eq!(all.len(), usize::try_from(dates).unwrap());
        assert_eq!(items, all, "the other process reports each item");
    }

    // Both workers made calls, and no call was made twice.
    let calls = 1 + 2 * scans_each * dates;
    let ledger = LedgerCheck::run(&fixture).await.without_losses();
    assert_eq!(fixture.upstream.count(), usize::try_from(calls).unwrap());
    let by_worker: Vec<(i64, i64)> = rows!(
        fixture.pool(),
        "select worker_id, count(*) from attempts group by 1 order by 1"
    );
    assert_eq!(by_worker.len(), 2, "{by_worker:?}");
    println!("{ledger}; by worker: {by_worker:?}");
    // Both services answer the same.
    for path in [
        "/v1/usage?group=scan",
        "/v1/history/flights?from_airport=TLV&to_airport=LHR",
        "/v1/scans",
    ] {
        assert_eq!(
            get(&urls[0], path).await,
            get(&urls[1], path).await,
            "{path}"
        );
    }
}
