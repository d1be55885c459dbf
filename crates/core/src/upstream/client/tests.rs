//! The client against a scripted HTTP server on loopback: requests, retries and failures.

use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::contract::Request;
use crate::search::{Finding, Incomplete};

/// What the server does with a request.
#[derive(Clone)]
enum Reaction {
    Answer(u16, &'static str, Vec<u8>),
    Say(&'static [u8]),
    Hang,
    Reset,
    /// Sends half of the announced body, then stalls or closes.
    Half {
        hang: bool,
    },
}

fn ok(body: &str) -> Reaction {
    Reaction::Answer(200, "", body.into())
}

fn status(status: u16) -> Reaction {
    Reaction::Answer(status, "", b"{}".to_vec())
}

/// A server with one reaction per request that records the requests.
struct ScriptedServer {
    client: Client,
    received: Arc<Mutex<Vec<String>>>,
}

impl ScriptedServer {
    async fn start(reactions: Vec<Reaction>, budget: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url: reqwest::Url = format!("http://{}", listener.local_addr().unwrap())
            .parse()
            .unwrap();
        let received = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&received);
        tokio::spawn(async move {
            for act in reactions {
                let (mut stream, _) = listener.accept().await.unwrap();
                let request = read_request(&mut stream).await;
                log.lock().unwrap().push(request);
                tokio::spawn(react(stream, act));
            }
        });
        let mut config = UpstreamConfig::at(url.clone(), url);
        config.search_timeout_seconds = budget;
        Self {
            client: Client::new(&config).unwrap(),
            received,
        }
    }

    async fn search(&self) -> Outcome {
        self.client
            .search(&search(), &key(), "request-1", || async { true })
            .await
    }

    fn received(&self) -> Vec<String> {
        self.received.lock().unwrap().clone()
    }
}

/// Reads a whole request as text.
async fn read_request(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n") {
        text.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(text).unwrap();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .unwrap()
        .parse()
        .unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    head + std::str::from_utf8(&body).unwrap()
}

async fn react(mut stream: TcpStream, act: Reaction) {
    match act {
        Reaction::Answer(status, headers, body) => {
            let head = format!(
                "HTTP/1.1 {status} S\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n",
                body.len()
            );
            // The client may close the connection early.
            let _ = stream.write_all(&[head.as_bytes(), &body].concat()).await;
        }
        Reaction::Say(bytes) => stream.write_all(bytes).await.unwrap(),
        Reaction::Hang => drop(stream.read_u8().await),
        Reaction::Reset => stream.set_zero_linger().unwrap(),
        Reaction::Half { hang } => {
            stream
                .write_all(b"HTTP/1.1 200 S\r\ncontent-length: 4\r\n\r\n[{")
                .await
                .unwrap();
            if hang {
                drop(stream.read_u8().await);
            }
        }
    }
}

fn search() -> Search {
    let body = json!({"from_airport": "tlv", "to_airport": "LHR", "departure_date": "2027-01-14", "limit": 2});
    Search::for_caller(
        Request::check(Endpoint::FlightsOneway, body.as_object().unwrap())
            .unwrap()
            .request,
    )
}

fn key() -> CallerKey {
    CallerKey::new("canary-key")
}

const LONG: Duration = Duration::from_secs(60);

async fn outcome(reactions: Vec<Reaction>) -> (Outcome, usize) {
    let server = ScriptedServer::start(reactions, LONG).await;
    let outcome = server.search().await;
    (outcome, server.received().len())
}

fn incomplete(outcome: &Outcome) -> &Incomplete {
    match &outcome.finding {
        Finding::Incomplete(incomplete) => incomplete,
        other => panic!("not incomplete: {other:?}"),
    }
}

#[tokio::test]
async fn only_our_headers_go_upstream() {
    let server = ScriptedServer::start(vec![ok("[{}]")], LONG).await;
    let outcome = server.search().await;
    assert!(
        matches!(&outcome.finding, Finding::Answer(answer) if answer.results == 1),
        "{outcome:?}"
    );
    let received = server.received().remove(0);
    let (head, body) = received.split_once("\r\n\r\n").unwrap();
    assert_eq!(
        body,
        r#"{"from_airport":"TLV","to_airport":"LHR","departure_date":"2027-01-14","limit":2}"#
    );
    let mut lines: Vec<_> = head
        .lines()
        .filter(|line| !line.starts_with("host: "))
        .collect();
    lines[1..].sort_unstable();
    let length = format!("content-length: {}", body.len());
    let expected = [
        "POST /api/google_flights/oneway/v1 HTTP/1.1",
        "accept-encoding: zstd,gzip",
        "accept: application/json",
        &length,
        "content-type: application/json",
        concat!("user-agent: farescan/", env!("CARGO_PKG_VERSION")),
        "x-marketplace-host: 127.0.0.1",
        "x-marketplace-key: canary-key",
        "x-request-id: request-1",
    ];
    let mut expected = expected.to_vec();
    expected[1..].sort_unstable();
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn a_server_error_is_retried_once() {
    for code in [500, 502, 503, 504] {
        let (outcome, calls) = outcome(vec![status(code), ok("[]")]).await;
        assert!(
            matches!(outcome.finding, Finding::Answer(_)),
            "{code}: {outcome:?}"
        );
        assert_eq!(
            (outcome.billed_requests, calls, outcome.http_status),
            (2, 2, Some(200))
        );
        assert!(
            outcome.latency >= Duration::from_millis(100),
            "{:?}",
            outcome.latency
        );
    }
    let (twice, calls) = outcome(vec![status(502), status(503), ok("[]")]).await;
    assert_eq!(
        (
            incomplete(&twice),
            twice.billed_requests,
            calls,
            twice.http_status
        ),
        (&Incomplete::Status(503), 2, 2, Some(503))
    );
}

#[tokio::test]
async fn only_server_errors_are_retried() {
    let answer = br#"{"error": {"type": "search_incomplete", "reason": "blocked_page"}}"#;
    let reactions = [
        Reaction::Answer(503, "", answer.to_vec()),
        status(429),
        status(404),
        status(400),
        Reaction::Reset,
        Reaction::Half { hang: false },
        ok("no"),
    ];
    for act in reactions {
        let (outcome, calls) = outcome(vec![act, ok("[]")]).await;
        assert_eq!((outcome.billed_requests, calls), (1, 1), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_retry_needs_permission() {
    let server = ScriptedServer::start(vec![status(500), ok("[]")], LONG).await;
    let outcome = server
        .client
        .search(&search(), &key(), "r", || async { false })
        .await;
    assert_eq!(
        (
            incomplete(&outcome),
            outcome.billed_requests,
            server.received().len()
        ),
        (&Incomplete::Status(500), 1, 1)
    );
}

#[tokio::test]
async fn no_retry_without_time_left() {
    // Shorter than the shortest pause.
    assert_is_not_retried(Duration::from_millis(99), || std::future::ready(true)).await;
    // The permission never comes.
    assert_is_not_retried(Duration::from_millis(900), std::future::pending).await;
}

/// A server error is not retried within this budget. On a loaded machine the budget may end before the
/// server answers: then the search is repeated, with a new server.
async fn assert_is_not_retried<F>(budget: Duration, before_retry: impl Fn() -> F)
where
    F: Future<Output = bool>,
{
    for _ in 0..200 {
        let server = ScriptedServer::start(vec![status(500), ok("[]")], budget).await;
        let outcome = server
            .client
            .search(&search(), &key(), "r", &before_retry)
            .await;
        assert_eq!(outcome.billed_requests, 1);
        if incomplete(&outcome) != &Incomplete::Timeout {
            assert_eq!(incomplete(&outcome), &Incomplete::Status(500));
            return;
        }
    }
    panic!("no answer within {budget:?}, 200 times");
}

#[tokio::test]
async fn the_time_budget_ends_the_wait() {
    for act in [Reaction::Hang, Reaction::Half { hang: true }] {
        let server = ScriptedServer::start(vec![act], Duration::from_millis(300)).await;
        let outcome = server.search().await;
        assert_eq!(
            (incomplete(&outcome), outcome.billed_requests),
            (&Incomplete::Timeout, 1)
        );
        assert!(
            outcome.latency >= Duration::from_millis(300)
                && outcome.latency < Duration::from_secs(10),
            "{:?}",
            outcome.latency
        );
    }
}

#[tokio::test]
async fn broken_connections_are_billed_failed_connects_are_not() {
    for act in [
        Reaction::Reset,
        Reaction::Half { hang: false },
        Reaction::Say(b"\x16\x03 this is no HTTP\r\n\r\n"),
    ] {
        let (outcome, _) = outcome(vec![act]).await;
        assert_eq!(
            (incomplete(&outcome), outcome.billed_requests),
            (&Incomplete::Connection, 1)
        );
    }
    let address = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let nobody: reqwest::Url = format!("http://{address}").parse().unwrap();
    let client = Client::new(&UpstreamConfig::at(nobody.clone(), nobody)).unwrap();
    let outcome = client
        .search(&search(), &key(), "r", || async { true })
        .await;
    assert_eq!(
        (
            incomplete(&outcome),
            outcome.billed_requests,
            outcome.http_status
        ),
        (&Incomplete::Connection, 0, None)
    );
}

#[tokio::test]
async fn no_redirect_is_followed() {
    let (outcome, calls) = outcome(vec![
        Reaction::Answer(307, "location: /elsewhere\r\n", Vec::new()),
        ok("[]"),
    ])
    .await;
    assert_eq!((incomplete(&outcome), calls), (&Incomplete::Status(307), 1));
}

/// JSON of this length in bytes.
fn json_of(bytes: usize) -> Vec<u8> {
    let frame = "[{\"a\":\"\"}]".len();
    format!("[{{\"a\":\"{}\"}}]", "x".repeat(bytes - frame)).into_bytes()
}

#[tokio::test]
async fn a_body_is_bounded_after_decompression() {
    assert_eq!(MAX_BODY, 8_388_608, "8 MiB");
    let (largest, _) = outcome(vec![Reaction::Answer(200, "", json_of(MAX_BODY))]).await;
    assert!(
        matches!(largest.finding, Finding::Answer(_)),
        "8 MiB may come"
    );
    let bomb = zstd::encode_all(json_of(MAX_BODY + 1).as_slice(), 1).unwrap();
    assert!(bomb.len() < MAX_BODY / 100);
    let reactions = [
        Reaction::Answer(200, "", json_of(MAX_BODY + 1)),
        Reaction::Answer(200, "content-encoding: zstd\r\n", bomb),
        Reaction::Answer(
            200,
            "content-encoding: gzip\r\n",
            b"this is no gzip".to_vec(),
        ),
    ];
    for act in reactions {
        let (outcome, _) = outcome(vec![act]).await;
        assert_eq!(
            (incomplete(&outcome), outcome.http_status),
            (&Incomplete::Unreadable, Some(200))
        );
    }
}

#[tokio::test]
async fn the_last_responses_headers_are_returned() {
    let headers = "x-ratelimit-requests-remaining: 7\r\nx-search-status: ok\r\nset-cookie: a=b\r\n";
    let (outcome, _) = outcome(vec![
        Reaction::Answer(500, "x-search-status: degraded\r\n", Vec::new()),
        Reaction::Answer(200, headers, b"[]".to_vec()),
    ])
    .await;
    assert_eq!(
        outcome.search_headers,
        [("x-search-status".to_owned(), "ok".to_owned())]
    );
    assert_eq!(
        outcome.plan_headers,
        [("x-plan-requests-remaining".to_owned(), "7".to_owned())]
    );
    assert_eq!(outcome.plan.remaining, Some(7));
}

#[tokio::test]
async fn an_echoed_key_is_in_no_message() {
    let body = br#"{"message": "key canary-key is bad"}"#;
    for (code, api) in [
        (401, Endpoint::FlightsOneway),
        (403, Endpoint::FlightsOneway),
        (400, Endpoint::FlightsOneway),
        (404, Endpoint::HotelsResolve),
    ] {
        let server =
            ScriptedServer::start(vec![Reaction::Answer(code, "", body.to_vec())], LONG).await;
        let request = if api == Endpoint::FlightsOneway {
            search()
        } else {
            hotel()
        };
        let outcome = server
            .client
            .search(&request, &key(), "r", || async { true })
            .await;
        let shown = format!("{outcome:?}");
        assert!(
            shown.contains("key [key] is bad") && !shown.contains("canary"),
            "{shown}"
        );
    }
}

fn hotel() -> Search {
    let body = json!({"hotel_name": "H"});
    Search::for_caller(
        Request::check(Endpoint::HotelsResolve, body.as_object().unwrap())
            .unwrap()
            .request,
    )
}

#[tokio::test]
async fn a_probe_sends_an_empty_body_to_the_cheapest_path() {
    for (api, path) in [
        (Api::Flights, "POST /api/google_flights/oneway/v1 "),
        (Api::Hotels, "POST /resolve "),
    ] {
        let headers = "x-plan-requests-limit: 10\r\n";
        let server = ScriptedServer::start(
            vec![status(502), Reaction::Answer(422, headers, b"{}".to_vec())],
            LONG,
        )
        .await;
        let probe = server.client.probe(api, &key(), "r").await;
        assert_eq!(
            probe.verdict,
            Ok(crate::contract::verify::VerifyReason::Subscribed)
        );
        assert_eq!((probe.billed_requests, probe.plan.limit), (2, Some(10)));
        assert_eq!(
            probe.plan_headers,
            [("x-plan-requests-limit".to_owned(), "10".to_owned())]
        );
        assert!(probe.latency >= Duration::from_millis(100));
        let received = server.received().pop().unwrap();
        assert!(
            received.starts_with(path) && received.ends_with("\r\n\r\n{}"),
            "{received}"
        );
    }
}

#[tokio::test]
async fn a_key_that_no_header_can_hold_is_not_sent() {
    let server = ScriptedServer::start(vec![status(401)], LONG).await;
    let outcome = server
        .client
        .search(
            &search(),
            &CallerKey::new("two\nlines"),
            "bad\nid",
            || async { true },
        )
        .await;
    assert!(matches!(outcome.finding, Finding::KeyRejected { .. }));
    let received = server.received().remove(0);
    assert!(
        !received.contains("x-marketplace-key") && !received.contains("x-request-id"),
        "{received}"
    );
}
