//! Without `Cache-Control` and `Prefer` the gateway answers byte for byte as before these came in:
//! `recorded.json` holds the answers to this corpus of a build of 23 November 2026, before stored
//! answers, and the requests that it sent to the marketplace.
//!
//! `FARESCAN_RECORD=1` records them anew; only a change that is meant to be seen by every caller
//! allows that.

use std::collections::BTreeMap;
use std::path::PathBuf;

use farescan::contract::Endpoint;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::TestService;
use crate::support::app::{HttpResponse, KEY, TestApp};
use crate::support::reply::Reply;

/// Headers with another value in each response.
const VOLATILE: [&str; 2] = ["date", "x-request-id"];
const MASKED: &str = "masked";

/// A response and the requests behind it.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Recorded {
    status: u16,
    headers: BTreeMap<String, String>,
    body: String,
    /// Path and body of each request to the marketplace.
    sent: Vec<String>,
}

/// A request, and the marketplace's reply to it; `None`: its usual one.
struct Case {
    name: String,
    path: String,
    method: &'static str,
    headers: Vec<(&'static str, &'static str)>,
    body: Vec<u8>,
    reply: Option<Reply>,
}

impl Case {
    fn post(name: String, endpoint: Endpoint, body: impl Into<Vec<u8>>) -> Self {
        Self {
            name: format!("{endpoint}: {name}"),
            path: format!("/v1/{endpoint}"),
            method: "POST",
            headers: vec![("x-api-key", KEY), ("content-type", "application/json")],
            body: body.into(),
            reply: None,
        }
    }

    fn get(name: &str, path: &str) -> Self {
        Self {
            name: name.to_owned(),
            path: path.to_owned(),
            method: "GET",
            headers: vec![("x-api-key", KEY)],
            body: Vec::new(),
            reply: None,
        }
    }

    fn with_reply(self, reply: Reply) -> Self {
        Self {
            reply: Some(reply),
            ..self
        }
    }

    fn with_headers(self, headers: &[(&'static str, &'static str)]) -> Self {
        Self {
            headers: headers.to_vec(),
            ..self
        }
    }

    async fn response(&self, app: &TestApp) -> Recorded {
        let reply = self.reply.clone();
        app.upstream.answer(move |call| {
            reply
                .clone()
                .unwrap_or_else(|| crate::support::upstream::default_reply(call))
        });
        let before = app.upstream.count();
        let mut request = app.request(self.method, &self.path).body(self.body.clone());
        for (name, value) in &self.headers {
            request = request.header(*name, *value);
        }
        let response = app.send(request).await;
        let calls = app.upstream.calls().split_off(before);
        let sent = calls
            .iter()
            .map(|call| format!("{} {}", call.path, String::from_utf8_lossy(&call.raw)));
        Recorded {
            status: response.status,
            headers: headers(&response),
            body: masked_body(&response),
            sent: sent.collect(),
        }
    }
}

/// All headers; repeated ones are joined.
fn headers(response: &HttpResponse) -> BTreeMap<String, String> {
    let mut headers = BTreeMap::<String, String>::new();
    for (name, value) in &response.headers {
        let value = if VOLATILE.contains(&name.as_str()) {
            MASKED
        } else {
            value.to_str().unwrap()
        };
        let known = headers.entry(name.to_string()).or_default();
        if !known.is_empty() {
            known.push_str("; ");
        }
        known.push_str(value);
    }
    headers
}

/// The body, without the request id of an error.
fn masked_body(response: &HttpResponse) -> String {
    let id = response.header("x-request-id");
    if id.is_empty() {
        return response.text();
    }
    response.text().replace(id, MASKED)
}

fn valid(endpoint: Endpoint) -> Value {
    let mut body = super::endpoints::body(endpoint);
    for (name, date) in [
        ("departure_date", "2030-01-14"),
        ("return_date", "2030-01-21"),
        ("checkin_date", "2030-03-01"),
        ("checkout_date", "2030-03-03"),
    ] {
        if body.get(name).is_some() {
            body[name] = json!(date);
        }
    }
    body
}

/// What the marketplace may reply.
fn replies() -> Vec<(&'static str, Reply)> {
    let message = |status| Reply::status(status).with_json(json!({"message": "no"}));
    vec![
        (
            "nothing",
            Reply::json(json!([])).header("x-search-status", "empty"),
        ),
        ("an object", Reply::json(json!({}))),
        ("incomplete", Reply::search_incomplete("upstream_timeout")),
        (
            "partial",
            Reply::json(json!([])).header("x-search-status", "partial"),
        ),
        (
            "plan headers",
            Reply::json(json!([]))
                .header("x-ratelimit-requests-limit", "1000")
                .header("x-ratelimit-requests-remaining", "17")
                .header("x-ratelimit-requests-reset", "3600"),
        ),
        ("400", message(400)),
        ("401", message(401)),
        ("403", message(403)),
        ("404", message(404)),
        ("422", message(422)),
        ("429", message(429).header("retry-after", "40")),
        ("500", message(500)),
        ("503", message(503)),
        ("no JSON", Reply::text("<html>")),
        (
            "a redirect",
            Reply::status(302).header("location", "https://elsewhere.example/"),
        ),
    ]
}

/// Bodies that are refused, and some that are not.
fn bodies(endpoint: Endpoint) -> Vec<(&'static str, Vec<u8>)> {
    let with = |fields: Value| {
        let mut body = valid(endpoint);
        body.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        body.to_string().into_bytes()
    };
    let text = valid(endpoint).to_string();
    vec![
        ("valid", text.clone().into_bytes()),
        ("strict", with(json!({"strict": true}))),
        ("currency", with(json!({"currency": "eur"}))),
        ("limit", with(json!({"limit": 3}))),
        ("an empty object", b"{}".to_vec()),
        ("an array", b"[]".to_vec()),
        ("no JSON", b"{\"from_airport\": ".to_vec()),
        ("nothing", Vec::new()),
        ("an unknown field", with(json!({"from_airpot": "TLV"}))),
        ("an option of scans", with(json!({"max_age_seconds": 3600}))),
        (
            "wrong types",
            with(json!({"from_airport": 7, "destination": [], "hotel_name": {}, "adults": "two"})),
        ),
        (
            "a past date",
            with(json!({"departure_date": "2020-01-01", "checkin_date": "2020-01-01"})),
        ),
        (
            "a field twice",
            format!(
                "{{\"limit\": 3, {}",
                text.replacen('{', "\"limit\": 4, ", 1)
            )
            .into_bytes(),
        ),
    ]
}

fn corpus() -> Vec<Case> {
    let mut cases = Vec::new();
    for (endpoint, ..) in super::endpoints::bodies() {
        let text = valid(endpoint).to_string();
        for (name, body) in bodies(endpoint) {
            cases.push(Case::post(name.to_owned(), endpoint, body));
        }
        for (name, reply) in replies() {
            let case = Case::post(format!("reply: {name}"), endpoint, text.clone());
            cases.push(case.with_reply(reply));
        }
        let post = |name: &str| Case::post(name.to_owned(), endpoint, text.clone());
        let json = ("content-type", "application/json");
        cases.push(post("no key").with_headers(&[json]));
        cases.push(
            post("a bearer")
                .with_headers(&[json, ("authorization", "Bearer test-key-of-a-bearer")]),
        );
        cases.push(
            post("plain text").with_headers(&[("x-api-key", KEY), ("content-type", "text/plain")]),
        );
        cases.push(Case::get(
            &format!("{endpoint}: GET"),
            &format!("/v1/{endpoint}"),
        ));
    }
    cases.push(Case::get("verify", "/v1/verify"));
    cases.push(Case::get("verify: refused", "/v1/verify").with_reply(Reply::status(401)));
    cases.push(Case::get("verify without a key", "/v1/verify").with_headers(&[]));
    cases.push(Case::get("an unknown path", "/v1/flights/twoway"));
    cases
}

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/gateway/recorded.json")
}

async fn answers(app: &TestApp) -> BTreeMap<String, Recorded> {
    let mut answers = BTreeMap::new();
    for case in corpus() {
        let answer = case.response(app).await;
        let known = answers.insert(case.name, answer);
        assert!(known.is_none(), "a name for each case");
    }
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn without_new_headers_answers_are_those_of_before() {
    let app = TestApp::start().await;
    if std::env::var_os("FARESCAN_RECORD").is_some() {
        let lines = answers(&app).await.into_iter().map(|(name, answer)| {
            let (name, answer) = (json!(name), serde_json::to_string(&answer).unwrap());
            format!("{name}: {answer}")
        });
        let text = format!("{{\n{}\n}}\n", lines.collect::<Vec<_>>().join(",\n"));
        std::fs::write(file(), text).unwrap();
    }
    let recorded = std::fs::read_to_string(file()).unwrap();
    let recorded: BTreeMap<String, Recorded> = serde_json::from_str(&recorded).unwrap();
    let service = TestService::start().await;
    for app in [&app, &service.app] {
        let answers = answers(app).await;
        assert!(answers.keys().eq(recorded.keys()));
        for (name, answer) in answers {
            assert_eq!(answer, recorded[&name], "{name}");
        }
    }
    let stored = "select count(*) from scans";
    assert_eq!(service.count(stored).await, 0);
}
