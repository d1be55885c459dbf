//! Every request: every route × every carrier × both versions of HTTP, wrong methods, unknown paths, bodies of every bad kind.

use std::time::Duration;

use futures::StreamExt as _;
use serde_json::{Value, json};

use super::service::Service;
use crate::gateway::endpoints;

/// What was asked, and all that was answered.
#[derive(Default)]
pub struct Rounds {
    pub requests: usize,
    pub answers: Vec<u8>,
}

/// How many requests are under way at the same time.
const AT_ONCE: usize = 24;

/// How a key rides: a header with its prefix, or a field of the query.
#[derive(Clone, Copy)]
enum Carrier {
    Header(&'static str, &'static str),
    Query(&'static str),
}

/// The eight carriers (gateway.md, rule 11), with each scheme; and spellings that must not carry anything past the door either.
const CARRIERS: [Carrier; 16] = [
    Carrier::Header("x-api-key", ""),
    Carrier::Header("x-marketplace-key", ""),
    Carrier::Header("x-marketplace-token", ""),
    Carrier::Header("authorization", "Bearer "),
    Carrier::Header("authorization", "ApiKey "),
    Carrier::Header("authorization", "Token "),
    Carrier::Query("api_key"),
    Carrier::Query("apikey"),
    Carrier::Query("marketplace_key"),
    Carrier::Query("key"),
    Carrier::Query("API_KEY"),
    Carrier::Query("api%5Fkey"),
    Carrier::Header("authorization", "Basic "),
    Carrier::Header("authorization", ""),
    Carrier::Header("x-api-key", "two words "),
    Carrier::Header("x-marketplace-key", "Bearer "),
];

fn client() -> reqwest::Client {
    let client = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none());
    client.timeout(Duration::from_secs(30)).build().unwrap()
}

fn request(
    client: &reqwest::Client,
    service: &Service,
    (method, path): (&str, &str),
    carrier: Carrier,
    key: &str,
) -> reqwest::RequestBuilder {
    let url = format!("{}{path}", service.url);
    let method = method.parse().unwrap();
    match carrier {
        Carrier::Header(name, prefix) => client
            .request(method, url)
            .header(name, format!("{prefix}{key}")),
        Carrier::Query(name) => {
            let sign = if path.contains('?') { '&' } else { '?' };
            let key: String = form_urlencoded::byte_serialize(key.as_bytes()).collect();
            client.request(method, format!("{url}{sign}{name}={key}&x=y"))
        }
    }
}

impl Rounds {
    /// Sends many, a few at a time, and keeps their answers.
    async fn send_all(&mut self, requests: Vec<reqwest::RequestBuilder>) {
        self.requests += requests.len();
        let answers = futures::stream::iter(requests)
            .map(send)
            .buffered(AT_ONCE)
            .collect::<Vec<_>>()
            .await;
        for (whole, _) in answers.into_iter().flatten() {
            self.answers.extend(whole);
        }
    }

    /// A request with its key in a header, answered in JSON.
    pub async fn json(
        &mut self,
        service: &Service,
        method: &str,
        path: &str,
        key: &str,
        body: Option<&Value>,
    ) -> Value {
        let client = client();
        let mut request = request(&client, service, (method, path), CARRIERS[0], key);
        if let Some(body) = body {
            request = request.json(body);
        }
        self.requests += 1;
        let (whole, body) = send(request)
            .await
            .unwrap_or_else(|| panic!("{method} {path}: no answer"));
        self.answers.extend(whole);
        serde_json::from_slice(&body).unwrap_or_default()
    }

    /// Asks until it is so.
    pub async fn until(
        &mut self,
        service: &Service,
        path: &str,
        key: &str,
        what: &str,
        so: impl Fn(&Value) -> bool,
    ) {
        for _ in 0..600 {
            if so(&self.json(service, "GET", path, key, None).await) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!(
            "{what}: waited in vain: {}",
            self.json(service, "GET", path, key, None).await
        );
    }

    /// An answer that repeats a key which stood where no key belongs.
    pub async fn plant(&mut self, service: &Service, key: &str) {
        let body =
            json!({"from_airport": key, "to_airport": "LHR", "departure_date": "2030-01-01"});
        self.json(service, "POST", "/v1/flights/oneway", key, Some(&body))
            .await;
    }
}

/// An answer whole, and its body; of a stream that does not end, what comes first.
async fn send(request: reqwest::RequestBuilder) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut answer = request.send().await.ok()?;
    let head = format!("{} {:?}\n", answer.status(), answer.headers());
    let is_stream = answer
        .headers()
        .get("content-type")
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    let mut body = Vec::new();
    let patience = Duration::from_millis(if is_stream { 200 } else { 30_000 });
    while let Ok(Ok(Some(chunk))) = tokio::time::timeout(patience, answer.chunk()).await {
        body.extend(&chunk);
    }
    Some(([head.as_bytes(), &body, b"\n"].concat(), body))
}

/// Every route of the description with these ids in its path.
async fn routes(service: &Service, [scan, item]: &[String; 2]) -> Vec<(String, String)> {
    let client = client();
    let described = client
        .get(format!("{}/openapi.json", service.url))
        .send()
        .await
        .unwrap()
        .bytes()
        .await
        .unwrap();
    let described: Value = serde_json::from_slice(&described).unwrap();
    let mut routes = Vec::new();
    for (path, methods) in described["paths"].as_object().unwrap() {
        let id = if path.starts_with("/v1/items") {
            item
        } else {
            scan
        };
        let filled: Vec<_> = path
            .split('/')
            .map(|part| if part.starts_with('{') { id } else { part })
            .collect();
        routes.extend(
            methods
                .as_object()
                .unwrap()
                .keys()
                .map(|method| (method.to_uppercase(), filled.join("/"))),
        );
    }
    assert!(routes.len() >= 25, "{routes:?}");
    routes
}

/// A body that a route takes.
fn body(method: &str, path: &str) -> Option<Value> {
    if matches!(method, "GET" | "DELETE") {
        return None;
    }
    let search = endpoints::bodies()
        .into_iter()
        .find(|(endpoint, ..)| path == format!("/v1/{endpoint}"));
    Some(match path {
        _ if search.is_some() => search.unwrap().2,
        "/v1/scans" | "/v1/scans/preview" => json!({
            "endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR"},
            "sweep": {"departure_date": ["2030-01-01"]}
        }),
        "/v1/monitors" | "/v1/monitors/preview" | "/v1/monitors/backtest" => {
            crate::monitors::monitor()
        }
        _ if path.ends_with("/retry") => json!({"search_status": ["degraded"]}),
        _ if path.contains("/rotate-key") => json!({"new_key": "of-no-use-0123456789"}),
        _ => json!({}),
    })
}

/// Bodies that no route takes.
fn bad_bodies() -> Vec<Vec<u8>> {
    let deep = format!("{}1{}", "{\"a\":".repeat(100), "}".repeat(100));
    vec![
        b"{".to_vec(),
        b"[]".to_vec(),
        b"\"".to_vec(),
        vec![0xff, 0xfe, 0],
        deep.into_bytes(),
        vec![b' '; 2 << 20],
        b"{\"unknown\": 1}".to_vec(),
    ]
}

/// Methods and paths that are not served.
const UNSERVED: [(&str, &str); 9] = [
    ("GET", "/v1/nothing"),
    ("POST", "/"),
    ("PATCH", "/v1/scans"),
    ("TRACE", "/v1/verify"),
    ("GET", "/docs/"),
    ("PUT", "/v1/flights/oneway"),
    ("GET", "/v1/scans/nonsense"),
    ("OPTIONS", "/v1/scans"),
    ("HEAD", "/v1/verify"),
];

/// What would end or take away what the others ask for.
fn ends(method: &str, path: &str) -> bool {
    method == "DELETE" || path.ends_with("/cancel") || path.contains("/rotate-key")
}

fn with_body(
    request: reqwest::RequestBuilder,
    method: &str,
    path: &str,
) -> reqwest::RequestBuilder {
    match body(method, path) {
        Some(body) => request.json(&body),
        None => request,
    }
}

/// Every route, served or not, with a key in every carrier, what is last ends the scan that was asked for.
pub async fn every_carrier(service: &Service, named: &[String; 2], key: &str, rounds: &mut Rounds) {
    let (routes, client) = (routes(service, named).await, client());
    for last in [false, true] {
        let served = routes
            .iter()
            .map(|(method, path)| (method.as_str(), path.as_str()));
        let asked: Vec<_> = served
            .chain(UNSERVED)
            .filter(|(method, path)| ends(method, path) == last)
            .collect();
        let mut requests = Vec::new();
        for (method, path) in &asked {
            let of = |carrier: Carrier| {
                with_body(
                    request(&client, service, (method, path), carrier, key),
                    method,
                    path,
                )
            };
            requests.extend(CARRIERS.map(of));
        }
        rounds.send_all(requests).await;
    }
}

/// Every bad body to every route that takes one.
pub async fn every_bad_body(
    service: &Service,
    named: &[String; 2],
    key: &str,
    rounds: &mut Rounds,
) {
    let routes = routes(service, named).await;
    let mut requests = Vec::new();
    let client = client();
    for carrier in [CARRIERS[0], CARRIERS[6]] {
        for (method, path) in routes
            .iter()
            .filter(|(method, _)| matches!(method.as_str(), "POST" | "PUT" | "PATCH"))
        {
            for bad in bad_bodies() {
                requests.push(request(&client, service, (method, path), carrier, key).body(bad));
            }
        }
    }
    rounds.send_all(requests).await;
}

/// Every route that asks the marketplace, in each of its manners.
pub async fn every_manner(
    service: &Service,
    named: &[String; 2],
    keys: &[String],
    rounds: &mut Rounds,
) {
    let routes = routes(service, named).await;
    let client = client();
    let mut requests = Vec::new();
    let asks = |path: &str| {
        path == "/v1/verify"
            || endpoints::bodies()
                .iter()
                .any(|(endpoint, ..)| path == format!("/v1/{endpoint}"))
    };
    for key in keys {
        for (method, path) in routes.iter().filter(|(_, path)| asks(path)) {
            for strict in [false, true] {
                let sent = request(
                    &client,
                    service,
                    (method, path),
                    if strict { CARRIERS[3] } else { CARRIERS[9] },
                    key,
                );
                let body = body(method, path).map(|mut body| {
                    if path.starts_with("/v1/flights") {
                        body["strict"] = json!(strict);
                    }
                    body
                });
                requests.push(match body {
                    Some(body) => sent.json(&body),
                    None => sent,
                });
            }
        }
    }
    rounds.send_all(requests).await;
}

/// A request of each kind to every route.
pub async fn every_route(service: &Service, named: &[String; 2], key: &str, rounds: &mut Rounds) {
    let routes = routes(service, named).await;
    let mut requests = Vec::new();
    let client = client();
    for carrier in [CARRIERS[1], CARRIERS[8]] {
        for (method, path) in routes.iter().filter(|(method, path)| !ends(method, path)) {
            requests.push(with_body(
                request(&client, service, (method, path), carrier, key),
                method,
                path,
            ));
        }
    }
    rounds.send_all(requests).await;
}
