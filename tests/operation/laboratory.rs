//! The laboratory's claim: a scan through the whole service makes the requests of the direct play of
//! its planner, and finds the same. `farescan sandbox` plays the scenario, `farescan serve` scans.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use farescan::contract::scans::DecisionReason;
use farescan::planner::{
    BoundSearch, Candidate, Ends, Known, Misses, Played, SearchDecision, SearchPlanner, Wanted,
    best_found, play, unsearched,
};
use farescan::sandbox::scenarios::{FareRoute, PriceProcess, Scenario};
use jiff::civil::{Date, DateTime, date};
use reqwest::RequestBuilder;
use rust_decimal::Decimal;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::process::{ListeningProcess, farescan, program, run};
use crate::support::WAIT_LIMIT;
use crate::support::db::TestDb;
use crate::worker::fixture::ring_text;

const SEED: u64 = 11;
const DATES: usize = 31;
const FIRST: Date = date(2030, 1, 10);
/// What the sandbox's clock shows.
const NOW: DateTime = date(2029, 12, 1).at(12, 0, 0, 0);

/// A marketplace with the scenario of all effects, and a service that asks it.
struct Laboratory {
    client: reqwest::Client,
    sandbox: ListeningProcess,
    service: ListeningProcess,
    prices: PriceProcess,
    _db: TestDb,
    _spool: TempDir,
}

fn scenario() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/study/scenarios/everything.toml")
}

/// A key's searches are counted for it alone.
fn key(name: &str) -> String {
    format!("sandbox-unlimited.{name}")
}

impl Laboratory {
    async fn start() -> Self {
        let (db, spool) = (TestDb::new().await, TempDir::new().unwrap());
        let seed = SEED.to_string();
        let clock = format!("{NOW}Z,x0");
        let sandbox = ListeningProcess::start(
            farescan(
                &program(),
                &[
                    "sandbox",
                    "--listen",
                    "127.0.0.1:0",
                    "--latency",
                    "0",
                    "--seed",
                    &seed,
                    "--clock",
                    &clock,
                ],
            )
            .arg("--scenario")
            .arg(scenario()),
        );
        let url = format!("http://{}", sandbox.address.unwrap());
        let service = ListeningProcess::start(
            farescan(
                &program(),
                &[
                    "serve",
                    "--listen",
                    "127.0.0.1:0",
                    "--admin-listen",
                    "127.0.0.1:0",
                ],
            )
            .env("DATABASE_URL", db.url())
            .env("FARESCAN_MASTER_KEY", ring_text())
            .env("FARESCAN_FLIGHTS_URL", &url)
            .env("FARESCAN_HOTELS_URL", &url)
            .env("FARESCAN_FLIGHTS_PER_MINUTE", "60000")
            .env("FARESCAN_SPOOL_DIR", spool.path()),
        );
        Self {
            client: reqwest::Client::builder().no_proxy().build().unwrap(),
            sandbox,
            service,
            prices: PriceProcess::new(Arc::new(Scenario::read(&scenario()).unwrap()), SEED),
            _db: db,
            _spool: spool,
        }
    }

    /// The sandbox's answer to a search that it does not count: the limit is below what remains.
    async fn searches_counted(&self, key: &str) -> u64 {
        let url = format!(
            "http://{}/api/google_flights/oneway/v1",
            self.sandbox.address.unwrap()
        );
        let body =
            json!({"from_airport": "STN", "to_airport": "ZZQ", "departure_date": "2030-01-10"});
        let request = self.client.post(url).header("x-marketplace-key", key);
        let answer = request.json(&body).send().await.unwrap();
        assert_eq!(
            answer.headers()["x-sandbox-date"],
            "2029-12-01T12:00:00Z",
            "the clock stands still"
        );
        let header = |name: &str| {
            answer.headers()[name]
                .to_str()
                .unwrap()
                .parse::<u64>()
                .unwrap()
        };
        header("x-ratelimit-requests-limit") - header("x-ratelimit-requests-remaining")
    }

    async fn json(&self, request: RequestBuilder, key: &str) -> Value {
        let answer = request.header("x-api-key", key).send().await.unwrap();
        let status = answer.status();
        let body = answer.json().await.unwrap();
        assert!(status.is_success(), "{status}: {body:#}");
        body
    }

    /// Scans the dates as a caller and returns the ended scan.
    async fn scan(&self, key: &str, strategy: &Value) -> Value {
        let base = format!("http://{}/v1/scans", self.service.address.unwrap());
        let mut body = json!({
            "endpoint": "flights/oneway",
            "request": {"from_airport": "STN", "to_airport": "BGY", "currency": "EUR"},
            "sweep": {"departure_date": {"from": FIRST, "to": dates().last()}}
        });
        if !strategy.is_null() {
            body["strategy"] = strategy.clone();
        }
        let submitted = self.json(self.client.post(&base).json(&body), key).await;
        let url = format!("{base}/{}", submitted["id"].as_str().unwrap());
        let end = tokio::time::Instant::now() + WAIT_LIMIT;
        loop {
            let scan = self
                .json(self.client.get(format!("{url}?wait=5")), key)
                .await;
            if scan["finished_at"].is_string() {
                return scan;
            }
            assert!(tokio::time::Instant::now() < end, "{scan:#}");
        }
    }

    /// The searched positions and the found prices.
    async fn items(&self, key: &str, scan: &Value) -> Vec<(usize, Option<Decimal>)> {
        let id = scan["id"].as_str().unwrap();
        let url = format!(
            "http://{}/v1/scans/{id}/items?limit=500&state=done",
            self.service.address.unwrap()
        );
        let page = self.json(self.client.get(url), key).await;
        let items = page["data"].as_array().unwrap();
        items
            .iter()
            .map(|item| {
                let position = item["position"].as_u64().unwrap();
                let price = serde_json::from_value(item["best_price"].clone()).unwrap();
                (usize::try_from(position).unwrap(), price)
            })
            .collect()
    }

    fn price(&self, position: usize) -> Option<Decimal> {
        let departure = dates().nth(position).unwrap();
        let fare = self
            .prices
            .oneway(&FareRoute::new("STN", "BGY"), departure, NOW)?;
        fare.found().map(Decimal::from)
    }

    fn play(&self, planner: &dyn SearchPlanner) -> Played {
        let mut candidates: Vec<_> = dates().map(Candidate::unknown).collect();
        play(planner, &mut candidates, |position| self.price(position))
    }
}

/// Searches everything, as a scan without a strategy.
struct FullSearch;

impl SearchPlanner for FullSearch {
    fn decide(&self, candidates: &[Candidate]) -> SearchDecision {
        SearchDecision {
            search: unsearched(candidates).collect(),
            reason: DecisionReason::NothingLeft,
            best: best_found(candidates),
            risk: Some(0.0),
        }
    }
}

fn dates() -> impl Iterator<Item = Date> {
    FIRST.series(jiff::Span::new().days(1)).take(DATES)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_makes_the_requests_of_the_direct_play_and_finds_the_same() {
    let laboratory = Laboratory::start().await;
    let misses = Misses {
        has_prior: true,
        ..Misses::default()
    };
    let question = BoundSearch {
        wanted: Wanted::Cheapest,
        ends: Ends::Answered(misses.choose(Known::Little, 0.05)),
        most: usize::MAX,
    };
    let cases: [(&str, Value, Box<dyn SearchPlanner>); 2] = [
        ("full", Value::Null, Box::new(FullSearch)),
        ("question", json!({"find": "cheapest"}), Box::new(question)),
    ];
    let mut requests = Vec::new();
    for (name, strategy, planner) in cases {
        let played = laboratory.play(planner.as_ref());
        let key = key(name);
        let scan = laboratory.scan(&key, &strategy).await;

        let items = laboratory.items(&key, &scan).await;
        let searched: BTreeSet<_> = items.iter().map(|(position, _)| *position).collect();
        assert_eq!(
            searched,
            played.searched.iter().copied().collect(),
            "{name}"
        );
        for (position, price) in items {
            assert_eq!(price, laboratory.price(position), "{name}, date {position}");
        }
        let best = played.end.best.map(|(_, price)| price);
        let found: Option<Decimal> = serde_json::from_value(scan["best"]["price"].clone()).unwrap();
        assert!(found.is_some(), "{scan:#}");
        assert_eq!(found, best, "{name}: {scan:#}");
        let count = u64::try_from(played.searched.len()).unwrap();
        assert_eq!(
            (
                scan["requests"]["spent"].as_u64(),
                laboratory.searches_counted(&key).await
            ),
            (Some(count), count),
            "{name}: {scan:#}"
        );
        requests.push(count);
    }
    assert_eq!(requests[0], 31);
    assert!(requests[1] < 25, "{requests:?}");
}

#[test]
fn a_sandbox_does_not_start_with_a_wrong_scenario_or_clock() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("wrong.toml");
    std::fs::write(&file, "[ladder]\n[sales]\nshare_of_dates = 2").unwrap();
    let file = file.to_str().unwrap();
    for (arguments, code, named) in [
        (
            ["--scenario", file],
            1,
            "wrong.toml: sales.share_of_dates: found 2, expected a number from 0 to 1",
        ),
        (
            ["--clock", "noon"],
            2,
            "the start: found `noon`, expected an instant with its offset",
        ),
        (
            ["--clock", "x2.5"],
            2,
            "the speed: found `x2.5`, expected x and a whole number",
        ),
    ] {
        let done =
            run(farescan(&program(), &["sandbox", "--listen", "127.0.0.1:0"]).args(arguments));
        assert_eq!(done.code, Some(code), "{done:?}");
        assert!(done.err.contains(named), "{done:?}");
    }
}
