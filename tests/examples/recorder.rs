//! Sends requests, and compares or records their answers.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use farescan::config::{WebhookConfig, WorkerConfig};
use farescan::upstream::{Client, UpstreamConfig};
use farescan::webhooks::Guard;
use farescan::worker::WorkerDeps;
use jiff::civil::Date;
use serde_json::{Map, Value, json};

use crate::support::TestService;
use crate::support::app::{HttpResponse, TestApp, TestAppBuilder, ring};
use crate::support::sandbox::start_sandbox;
use crate::worker::fixture::{LEASE_SECONDS, RunningWorker};

/// The caller of all examples; the sandbox answers a 13th for it only the second time.
pub const CALLER: &str = farescan::sandbox::DEMO_KEY;
/// The first date that the request examples name.
const FIRST_DATE: Date = jiff::civil::date(2027, 1, 10);
const FILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/crates/api/src/openapi/examples.json"
);
/// Lines of a status, operations or `*`, and the reason.
const UNPROVOKED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/examples/unprovoked.txt");

/// A request of an operation.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    pub path: Vec<(&'static str, String)>,
    pub query: Vec<(String, String)>,
    pub headers: Vec<(&'static str, String)>,
    pub body: Option<String>,
    /// Another key than [`CALLER`]; empty: none.
    pub key: Option<&'static str>,
}

impl Ask {
    pub fn body(body: &Value) -> Self {
        Self {
            body: Some(body.to_string()),
            ..Self::default()
        }
    }

    pub fn query(query: &[(&str, &str)]) -> Self {
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self {
            query: query.iter().map(pair).collect(),
            ..Self::default()
        }
    }

    #[must_use]
    pub fn at(mut self, name: &'static str, id: &str) -> Self {
        self.path.push((name, id.to_owned()));
        self
    }

    #[must_use]
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    #[must_use]
    pub fn key(self, key: &'static str) -> Self {
        Self {
            key: Some(key),
            ..self
        }
    }
}

pub struct Recorder {
    pub service: TestService,
    sandbox: UpstreamConfig,
    worker: Option<RunningWorker>,
    pub description: Value,
    operations: BTreeMap<String, (String, String)>,
    is_recording: bool,
    recorded: Map<String, Value>,
    /// The request examples of this run, when it is recorded.
    sent: HashMap<String, Ask>,
    validators: HashMap<String, jsonschema::Validator>,
    seen: BTreeSet<(String, String)>,
    wrong: Vec<String>,
}

/// The date later by whole weeks, so that the first date of the examples is at least three weeks
/// ahead: scans refuse dates that have passed.
pub fn shifted(date: Date) -> Date {
    let today = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC);
    let earliest = today.date() + jiff::Span::new().days(21);
    let late = (earliest - FIRST_DATE).get_days().max(0);
    date + jiff::Span::new().days((late + 6) / 7 * 7)
}

/// The text with each date in it shifted.
fn with_shifted_dates(text: &str) -> String {
    let mut out = text.to_owned();
    for at in 0..text.len().saturating_sub(9) {
        if let Some(Ok(date)) = text.get(at..at + 10).map(str::parse::<Date>)
            && text.as_bytes()[at + 4] == b'-'
        {
            out.replace_range(at..at + 10, &shifted(date).to_string());
        }
    }
    out
}

impl Recorder {
    pub async fn start() -> Self {
        let sandbox = start_sandbox(Some(shifted(jiff::civil::date(2026, 11, 22)))).await;
        let upstream = sandbox.clone();
        let builder = TestApp::builder()
            .config(move |config| *config = upstream)
            .state(|app| {
                app.with_webhook_guard(Guard::new(&WebhookConfig::default()).with_mail(true))
            });
        let service = TestService::start_with(builder).await;
        let description = service.get("/openapi.json").await;
        let mut operations = BTreeMap::new();
        for (path, item) in description["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                let id = operation["operationId"].as_str().unwrap().to_owned();
                operations.insert(id, (method.to_uppercase(), path.clone()));
            }
        }
        Self {
            service,
            sandbox,
            worker: None,
            description,
            operations,
            is_recording: std::env::var_os("FARESCAN_RECORD").is_some(),
            recorded: Map::new(),
            sent: HashMap::new(),
            validators: HashMap::new(),
            seen: BTreeSet::new(),
            wrong: Vec::new(),
        }
    }

    pub fn start_worker(&mut self) {
        self.worker = Some(RunningWorker::start(WorkerDeps {
            pool: self.service.pool().clone(),
            ring: std::sync::Arc::new(ring()),
            upstream: Client::new(&self.sandbox).unwrap(),
            config: WorkerConfig {
                worker_concurrency: 4,
                lease_seconds: LEASE_SECONDS,
                ..WorkerConfig::default()
            },
        }));
    }

    /// Another service on the same sandbox.
    pub async fn other_service(&self, builder: TestAppBuilder, seconds: u64) -> TestApp {
        let mut upstream = self.sandbox.clone();
        upstream.search_timeout_seconds = std::time::Duration::from_secs(seconds);
        builder
            .config(move |config| *config = upstream)
            .start()
            .await
    }

    /// Every operation and its declared statuses.
    pub fn declared(&self) -> Vec<(String, Vec<String>)> {
        let statuses = |id: &String| {
            let responses = self.operation(id)["responses"].as_object().unwrap();
            (id.clone(), responses.keys().cloned().collect())
        };
        self.operations.keys().map(statuses).collect()
    }

    pub fn method(&self, operation: &str) -> &str {
        &self.operations[operation].0
    }

    pub fn path(&self, operation: &str) -> &str {
        &self.operations[operation].1
    }

    pub fn operation(&self, id: &str) -> &Value {
        let (method, path) = self
            .operations
            .get(id)
            .unwrap_or_else(|| panic!("no operation {id}"));
        &self.description["paths"][path][method.to_lowercase()]
    }

    /// The request example of the description, with the ids of `ask`.
    pub fn example_of(&self, operation: &str, ask: Ask) -> Ask {
        if self.is_recording {
            let sent = self.sent.get(operation).cloned().unwrap_or_default();
            return Ask {
                query: sent.query,
                body: sent.body,
                ..ask
            };
        }
        let it = self.operation(operation);
        let parameters = it["parameters"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().map_or(value.to_string(), str::to_owned);
        let query = parameters
            .iter()
            .filter(|it| it["in"] == "query" && !it["example"].is_null())
            .map(|it| (text(&it["name"]), with_shifted_dates(&text(&it["example"]))));
        let body = &it["requestBody"]["content"]["application/json"]["example"];
        Ask {
            query: query.collect(),
            body: (!body.is_null()).then(|| with_shifted_dates(&body.to_string())),
            ..ask
        }
    }

    /// Sends the request example of an operation. `ask` has the ids of its path, and is the example
    /// when examples are recorded.
    pub async fn success(&mut self, operation: &str, status: u16, ask: Ask) -> Value {
        let ask = if self.is_recording {
            self.record_request(operation, &ask);
            ask
        } else {
            self.example_of(operation, ask)
        };
        let answer = self.send(None, operation, &ask).await;
        self.check(operation, status, &answer)
    }

    /// Sends a request that is no example; its answer is.
    pub async fn answer(&mut self, operation: &str, status: u16, ask: Ask) -> Value {
        self.answer_of(None, operation, status, ask).await
    }

    /// Sends a request that other examples need; its answer is no example.
    pub async fn prepare(&self, operation: &str, ask: Ask) -> Value {
        self.send(None, operation, &ask).await.json()
    }

    pub async fn answer_of(
        &mut self,
        app: Option<&TestApp>,
        operation: &str,
        status: u16,
        ask: Ask,
    ) -> Value {
        let answer = self.send(app, operation, &ask).await;
        self.check(operation, status, &answer)
    }

    pub async fn send(&self, app: Option<&TestApp>, operation: &str, ask: &Ask) -> HttpResponse {
        let (method, path) = &self.operations[operation];
        let path = ask.path.iter().fold(path.clone(), |path, (name, id)| {
            path.replace(&format!("{{{name}}}"), id)
        });
        let app = app.unwrap_or(&self.service.app);
        let query: String = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(&ask.query)
            .finish();
        let path = if query.is_empty() {
            path
        } else {
            format!("{path}?{query}")
        };
        let mut request = app.request(method, &path);
        let key = ask.key.unwrap_or(CALLER);
        if !key.is_empty() {
            request = request.header("x-api-key", key);
        }
        for (name, value) in &ask.headers {
            request = request.header(*name, value);
        }
        if let Some(body) = &ask.body {
            request = request
                .header("content-type", "application/json")
                .body(body.clone());
        }
        app.send(request).await
    }

    /// Compares an answer with its example and its schema, or records it.
    pub fn check(&mut self, operation: &str, status: u16, answer: &HttpResponse) -> Value {
        let name = format!("{operation} {status}");
        if answer.status != status {
            if is_unprovoked(operation, &status.to_string()) {
                return Value::Null;
            }
            let text: String = answer.text().chars().take(400).collect();
            self.wrong
                .push(format!("{name}: answered {}: {text}", answer.status));
            return Value::Null;
        }
        self.seen.insert((operation.to_owned(), status.to_string()));
        let declared = self.operation(operation)["responses"][status.to_string()].clone();
        let Some(content) = declared["content"].as_object() else {
            if !answer.bytes.is_empty() {
                self.wrong.push(format!("{name}: it has a body"));
            }
            return Value::Null;
        };
        let media = answer.header("content-type").split(';').next().unwrap();
        let Some(declared) = content.get(media) else {
            self.wrong.push(format!("{name}: {media} is not declared"));
            return Value::Null;
        };
        let body = match media {
            "application/json" => answer.json(),
            _ => Value::String(answer.text()),
        };
        if media == "application/json" {
            self.validate(&name, &declared["schema"].clone(), &body);
        }
        let declared = declared["example"].clone();
        if operation == "get_description" {
            // Its example would be the description itself.
        } else if self.is_recording {
            self.recorded_operation(operation)["responses"][status.to_string()] = shortened(&body);
        } else if declared.is_null() {
            self.wrong.push(format!("{name}: it has no example"));
        } else {
            let mut found = Vec::new();
            compare(&declared, &body, "", &mut found);
            if declared["error"]["type"] != body["error"]["type"] {
                found.push(format!("an error of type {}", body["error"]["type"]));
            }
            for difference in found {
                self.wrong.push(format!("{name}: {difference}"));
            }
        }
        body
    }

    fn validate(&mut self, name: &str, schema: &Value, body: &Value) {
        let components = &self.description["components"];
        let validator = self
            .validators
            .entry(schema.to_string())
            .or_insert_with(|| {
                let mut whole = schema.clone();
                whole["components"] = json!({"schemas": components["schemas"]});
                jsonschema::draft202012::new(&whole).unwrap()
            });
        for error in validator.iter_errors(body).take(3) {
            self.wrong
                .push(format!("{name}: {error} at {}", error.instance_path()));
        }
    }

    fn recorded_operation(&mut self, operation: &str) -> &mut Value {
        self.recorded
            .entry(operation)
            .or_insert_with(|| json!({"parameters": {}, "body": null, "responses": {}}))
    }

    fn record_request(&mut self, operation: &str, ask: &Ask) {
        let pairs = ask
            .path
            .iter()
            .map(|(name, id)| ((*name).to_owned(), id.clone()));
        let parameters: Map<String, Value> = pairs
            .chain(ask.query.iter().cloned())
            .map(|(name, value)| (name, Value::String(value)))
            .collect();
        let body = ask
            .body
            .as_deref()
            .map(|body| serde_json::from_str(body).unwrap());
        self.sent.insert(operation.to_owned(), ask.clone());
        let recorded = self.recorded_operation(operation);
        recorded["parameters"] = parameters.into();
        recorded["body"] = body.unwrap_or_default();
    }

    /// Fails on each difference, and on each declared status that was not answered and is not
    /// listed as unprovoked.
    pub fn finish(mut self) {
        for (operation, statuses) in self.declared() {
            for status in statuses {
                let is_seen = self.seen.contains(&(operation.clone(), status.clone()));
                let is_listed = is_unprovoked(&operation, &status);
                if is_seen == is_listed {
                    let what = if is_seen {
                        "is answered, and listed as unprovoked"
                    } else {
                        "was not answered"
                    };
                    self.wrong.push(format!("{operation} {status} {what}"));
                }
            }
        }
        if self.is_recording {
            let text = serde_json::to_string_pretty(&self.recorded).unwrap();
            std::fs::write(FILE, text + "\n").unwrap();
        }
        assert!(self.wrong.is_empty(), "{}", self.wrong.join("\n"));
    }
}

/// Whether the list says that this test does not provoke a status.
fn is_unprovoked(operation: &str, status: &str) -> bool {
    let list = std::fs::read_to_string(UNPROVOKED).unwrap();
    list.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(": "))
        .any(|(named, _reason)| {
            let mut words = named.split(' ');
            words.next() == Some(status) && words.any(|it| it == "*" || it == operation)
        })
}

/// Lists of two elements at most, and no secret.
fn shortened(value: &Value) -> Value {
    match value {
        Value::Array(list) => list.iter().take(2).map(shortened).collect(),
        Value::Object(object) => object
            .iter()
            .map(|(name, value)| (name.clone(), shortened(value)))
            .collect::<Map<_, _>>()
            .into(),
        Value::String(text) if text.starts_with("whsec_") => {
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into()
        }
        Value::String(text) if text.starts_with("id:") => {
            let events: Vec<_> = text.split_inclusive("\n\n").take(3).collect();
            events.concat().into()
        }
        other => other.clone(),
    }
}

/// Names each difference of shape: types, and the fields of objects. Null is any type; lists are
/// compared by their first elements.
fn compare(example: &Value, found: &Value, at: &str, differences: &mut Vec<String>) {
    match (example, found) {
        (Value::Null, _) | (_, Value::Null) => {}
        (Value::Object(example), Value::Object(found)) => {
            let names =
                |object: &Map<String, Value>| object.keys().cloned().collect::<BTreeSet<_>>();
            for name in names(example).symmetric_difference(&names(found)) {
                let place = if found.contains_key(name) {
                    "the answer"
                } else {
                    "the example"
                };
                differences.push(format!("{at}/{name} is only in {place}"));
            }
            for (name, example) in example {
                if let Some(found) = found.get(name) {
                    compare(example, found, &format!("{at}/{name}"), differences);
                }
            }
        }
        (Value::Array(example), Value::Array(found)) => {
            if let (Some(example), Some(found)) = (example.first(), found.first()) {
                compare(example, found, &format!("{at}/0"), differences);
            }
            if example.is_empty() != found.is_empty() {
                differences.push(format!("{at} is a list of {}", found.len()));
            }
        }
        _ if std::mem::discriminant(example) == std::mem::discriminant(found) => {}
        _ => differences.push(format!("{at} is {found}; the example has {example}")),
    }
}
