//! Progress by events of the service, and a service that goes away.

use super::Client;
use super::relay::Relay;
use super::terminal::Terminal;
use crate::operation::process::run;
use crate::support::reply::Gate;
use crate::worker::fixture::RunningWorker;

const SCAN: [&str; 7] = [
    "scan",
    "oneway",
    "TLV",
    "LHR",
    "2030-02-01..2030-02-08",
    "--yes",
    "--detach",
];

/// A scan with two searches in flight, behind a relay.
struct WatchedScan {
    client: Client,
    relay: Relay,
    gate: Gate,
    worker: RunningWorker,
}

impl WatchedScan {
    async fn start() -> Self {
        let client = Client::start().await;
        let gate = client.upstream.answer_fares_after_gate();
        let worker = client.start_worker(2);
        client.out(&SCAN);
        let relay = Relay::to(client.url()).await;
        Self {
            client,
            relay,
            gate,
            worker,
        }
    }

    /// A terminal that shows its progress.
    async fn watch(&self) -> Terminal {
        let mut command = self.client.command(&["watch", "@last"]);
        let terminal = Terminal::start(command.env("FARESCAN_URL", self.relay.url()), 80, 40);
        terminal.expect("2 in flight").await;
        terminal
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_resumes_after_the_service_was_away() {
    let watched = WatchedScan::start().await;
    let WatchedScan {
        client,
        relay,
        gate,
        ..
    } = &watched;
    let mut terminal = watched.watch().await;
    crate::support::wait_until("it has asked for events", async || {
        relay.count("/events http") == 1
    })
    .await;
    relay.go_away().await;
    terminal.expect("the service does not answer").await;
    relay.come_back().await;
    gate.open();
    assert_eq!(terminal.end().await, Some(0), "{}", terminal.shown());
    terminal.expect("is completed: 8 ok").await;
    assert_eq!(client.calls(), 8, "nothing was searched twice");
    watched.worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_scan_is_not_polled() {
    let watched = WatchedScan::start().await;
    let WatchedScan { relay, gate, .. } = &watched;
    let mut terminal = watched.watch().await;
    // A poll every 200 ms would read it ten times.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let reads = relay.count("?wait=0 http");
    assert!((1..=5).contains(&reads), "{reads} reads");
    gate.open();
    assert_eq!(terminal.end().await, Some(0), "{}", terminal.shown());
    watched.worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_goes_away_says_what_may_have_happened() {
    let client = Client::start().await;
    let gate = client.upstream.answer_fares_after_gate();
    let relay = Relay::to(client.url()).await;
    let mut command = client.command(&["search", "oneway", "TLV", "LHR", "2030-02-01"]);
    command.env("FARESCAN_URL", relay.url());
    let searching = tokio::task::spawn_blocking(move || run(&mut command));
    client.upstream.wait_for_in_flight(1).await;
    relay.go_away().await;
    let ended = searching.await.unwrap();
    gate.open();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    for words in ["does not answer", "may have been billed", "farescan quota"] {
        assert!(ended.err.contains(words), "{words}: {ended:?}");
    }
    assert_eq!(client.calls(), 1, "a search is not repeated by itself");
}
