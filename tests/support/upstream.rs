//! The scripted server, which stands for the marketplace or a webhook receiver: it replies on
//! loopback as a test scripts it, and records every call in a ledger.
//!
//! It writes HTTP/1.1 by hand, so that it can also misbehave: break off, stall, drip, send garbage.
//! Without a rule it sends a small valid answer for each endpoint. The last rule that matches a
//! call decides.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use farescan::contract::Endpoint;
use farescan::upstream::UpstreamConfig;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::reply::{ConnectionEnd, Gate, Reply};
use crate::support::WAIT_LIMIT;

/// One received call.
#[derive(Debug, Clone)]
pub struct Call {
    /// The endpoint of the native path; `None` for any other path.
    pub endpoint: Option<Endpoint>,
    pub path: String,
    /// In the order received, names in lower case.
    pub headers: Vec<(String, String)>,
    /// `Value::Null` when it was not JSON.
    pub body: Value,
    /// The body byte for byte.
    pub raw: Vec<u8>,
    /// When its last byte was read.
    pub at: Instant,
    /// The value of the key header.
    pub key: String,
    /// The reply was written, or the connection was closed.
    pub ended: bool,
}

impl Call {
    /// A header's text; empty when absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .iter()
            .find(|(held, _)| held == name)
            .map_or("", |(_, value)| value)
    }
}

type ReplyRule = Box<dyn FnMut(&Call) -> Option<Reply> + Send>;

#[derive(Default)]
struct Script {
    rules: Vec<ReplyRule>,
    calls: Vec<Call>,
}

/// A server at one address, for flights and hotels. Dropping it closes its connections.
pub struct ScriptedServer {
    url: String,
    script: Arc<Mutex<Script>>,
    changed: watch::Sender<()>,
    server: JoinHandle<()>,
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl ScriptedServer {
    pub async fn start() -> Self {
        Self::start_at("127.0.0.1:0").await
    }

    /// At another address of this machine.
    pub async fn start_at(address: &str) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let script = Arc::new(Mutex::new(Script::default()));
        let changed = watch::Sender::new(());
        let server = tokio::spawn(serve(listener, Arc::clone(&script), changed.clone()));
        Self {
            url,
            script,
            changed,
            server,
        }
    }

    /// `http://127.0.0.1:port`, for both engines.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Client settings that lead to this server.
    pub fn config(&self) -> UpstreamConfig {
        let url: reqwest::Url = self.url().parse().unwrap();
        UpstreamConfig::at(url.clone(), url)
    }

    /// Scripts the replies to calls of `endpoint` from now on.
    pub fn on(&self, endpoint: Endpoint) -> RuleBuilder<'_> {
        RuleBuilder {
            upstream: self,
            matches: Box::new(move |call| call.endpoint == Some(endpoint)),
        }
    }

    /// Scripts the replies to all calls from now on.
    pub fn on_any(&self) -> RuleBuilder<'_> {
        RuleBuilder {
            upstream: self,
            matches: Box::new(|_| true),
        }
    }

    /// Sends this reply to all calls from now on.
    pub fn reply(&self, reply: Reply) {
        self.on_any().reply(reply);
    }

    /// Sends these replies to all calls from now on, one after the other, then repeats the last.
    pub fn replies(&self, replies: impl IntoIterator<Item = Reply>) {
        self.on_any().replies(replies);
    }

    /// Sends the reply that the closure makes of a call to all calls from now on.
    pub fn answer(&self, answer: impl FnMut(&Call) -> Reply + Send + 'static) {
        self.on_any().answer(answer);
    }

    /// Answers every call from now on with one fare at this price.
    pub fn answer_fares(&self, price: u64) {
        self.answer(move |call| Reply::json(json!([fare(price, &call.body)])));
    }

    /// The same for every call, once the gate is open.
    pub fn answer_fares_after_gate(&self) -> Gate {
        let gate = Gate::closed();
        self.reply(Reply::json(json!([fare(120, &json!({}))])).gated_by(&gate));
        gate
    }

    /// The ledger: every call so far, in the order they came.
    pub fn calls(&self) -> Vec<Call> {
        lock(&self.script).calls.clone()
    }

    /// How many calls came.
    pub fn count(&self) -> usize {
        lock(&self.script).calls.len()
    }

    /// How many calls wait for their answer.
    pub fn in_flight(&self) -> usize {
        lock(&self.script)
            .calls
            .iter()
            .filter(|call| !call.ended)
            .count()
    }

    /// Waits until the ledger meets a condition.
    pub async fn wait_for(&self, what: &str, condition: impl Fn(&[Call]) -> bool) {
        let mut changes = self.changed.subscribe();
        let met = async {
            while !condition(&self.calls()) {
                changes.changed().await.unwrap();
            }
        };
        let waited = tokio::time::timeout(WAIT_LIMIT, met).await;
        assert!(
            waited.is_ok(),
            "timed out waiting until {what}; the ledger: {:#?}",
            self.calls()
        );
    }

    /// Waits until at least `count` calls are in flight at once.
    pub async fn wait_for_in_flight(&self, count: usize) {
        let in_flight = |calls: &[Call]| calls.iter().filter(|call| !call.ended).count() >= count;
        self.wait_for(&format!("{count} calls are in flight"), in_flight)
            .await;
    }
}

/// Builds a rule for replies.
pub struct RuleBuilder<'a> {
    upstream: &'a ScriptedServer,
    matches: Box<dyn Fn(&Call) -> bool + Send>,
}

impl RuleBuilder<'_> {
    /// Adds a condition on the call.
    #[must_use]
    pub fn when(self, also: impl Fn(&Call) -> bool + Send + 'static) -> Self {
        Self {
            upstream: self.upstream,
            matches: Box::new(move |call| (self.matches)(call) && also(call)),
        }
    }

    /// Always sends this reply.
    pub fn reply(self, reply: Reply) {
        self.answer(move |_| reply.clone());
    }

    /// Sends these replies one after the other, then repeats the last.
    pub fn replies(self, replies: impl IntoIterator<Item = Reply>) {
        let mut replies: Vec<_> = replies.into_iter().collect();
        self.answer(move |_| {
            if replies.len() > 1 {
                replies.remove(0)
            } else {
                replies[0].clone()
            }
        });
    }

    /// Sends the reply that the closure makes of the call.
    pub fn answer(self, mut answer: impl FnMut(&Call) -> Reply + Send + 'static) {
        let matches = self.matches;
        lock(&self.upstream.script)
            .rules
            .push(Box::new(move |call| matches(call).then(|| answer(call))));
    }
}

fn lock(script: &Mutex<Script>) -> MutexGuard<'_, Script> {
    script.lock().unwrap()
}

async fn serve(listener: TcpListener, script: Arc<Mutex<Script>>, changed: watch::Sender<()>) {
    // Aborted with this task, so a dropped server leaves no connection behind.
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve_connection(
            stream,
            Arc::clone(&script),
            changed.clone(),
        ));
    }
}

async fn serve_connection(
    mut stream: TcpStream,
    script: Arc<Mutex<Script>>,
    changed: watch::Sender<()>,
) {
    while let Some(call) = read_call(&mut stream).await {
        let (number, reply) = {
            let mut script = lock(&script);
            let reply = script
                .rules
                .iter_mut()
                .rev()
                .find_map(|rule| rule(&call))
                .unwrap_or_else(|| default_reply(&call));
            script.calls.push(call);
            (script.calls.len() - 1, reply)
        };
        changed.send_replace(());
        let end = reply.write(&mut stream).await;
        lock(&script).calls[number].ended = true;
        changed.send_replace(());
        if !matches!(end, Ok(ConnectionEnd::KeepAlive)) {
            return;
        }
    }
}

/// Reads one request with a `content-length`; `None` when the client has disconnected.
async fn read_call(stream: &mut TcpStream) -> Option<Call> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.lines();
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let headers: Vec<_> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let mut call = Call {
        endpoint: endpoint(&path),
        path,
        headers,
        body: Value::Null,
        raw: Vec::new(),
        at: Instant::now(),
        key: String::new(),
        ended: false,
    };
    call.key = call.header("x-marketplace-key").to_owned();
    let mut body = vec![0; call.header("content-length").parse().unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    call.body = serde_json::from_slice(&body).unwrap_or_default();
    call.raw = body;
    call.at = Instant::now();
    Some(call)
}

/// The native paths, repeated here so that a mistake in the service's own table fails a test.
fn endpoint(path: &str) -> Option<Endpoint> {
    Some(match path {
        "/api/google_flights/oneway/v1" => Endpoint::FlightsOneway,
        "/api/google_flights/roundtrip/v1" => Endpoint::FlightsRoundtrip,
        "/search" => Endpoint::HotelsSearch,
        "/hotel_by_name" => Endpoint::HotelsByName,
        "/hotel" => Endpoint::HotelsRooms,
        "/resolve" => Endpoint::HotelsResolve,
        _ => return None,
    })
}

/// A small valid answer of each endpoint.
pub fn default_reply(call: &Call) -> Reply {
    let body = &call.body;
    match call.endpoint {
        Some(Endpoint::FlightsOneway) => {
            Reply::json(json!([fare(164, body)])).header("x-search-status", "ok")
        }
        Some(Endpoint::FlightsRoundtrip) => {
            Reply::json(json!([pair(310, body)])).header("x-search-status", "ok")
        }
        Some(Endpoint::HotelsSearch) => Reply::json(json!({
            "destination": body["destination"], "checkin_date": body["checkin_date"], "checkout_date": body["checkout_date"],
            "applied_filters": [], "budget_per_night": null, "properties": [{"name": "Hotel One", "price": 420, "price_string": "$420"}],
        })),
        Some(Endpoint::HotelsByName) => Reply::json(json!({
            "name": body["hotel_name"], "available": true, "price": 420, "price_string": "$420", "review_score": 8.4,
            "review_count": 120, "room_type": "Double", "image_url": null, "link": "https://hotels.example/one", "nights": 2,
            "adults": 2, "children": null,
        })),
        Some(Endpoint::HotelsRooms) => Reply::json(json!({
            "hotel_booking_id": body["hotel_booking_id"], "checkin_date": body["checkin_date"], "checkout_date": body["checkout_date"],
            "booking_url": "https://hotels.example/one",
            "rooms": [{"room_type": "Double", "room_economy": "Breakfast", "guests": 2, "price_as_number": 420, "price": "$420"}],
        })),
        Some(Endpoint::HotelsResolve) => Reply::json(json!({
            "hotel_name": body["hotel_name"], "hotel_booking_id": "il/one", "matched_name": "Hotel One",
        })),
        None => Reply::status(404)
            .header("x-rapidapi-proxy-response", "true")
            .with_json(json!({"message": "no such path"})),
    }
}

/// One itinerary of a one-way answer at this price.
pub fn fare(price: u64, request: &Value) -> Value {
    json!({
        "price_range_in_relation_to_other_periods": "low", "price_insights_low": 180, "price_insights_high": 320,
        "from_airport": format!("Origin ({})", request["from_airport"].as_str().unwrap_or_default()),
        "to_airport": format!("Destination ({})", request["to_airport"].as_str().unwrap_or_default()),
        "departure_date": request["departure_date"], "price": format!("${price}"), "price_as_number": price,
        "duration": "5 hr", "duration_seconds": 18_000, "buy_link": "https://flights.example/?tfs=x&curr=USD",
        "airline": "Example Air", "stops": 0, "stops_info": [], "departure_description": "7:15", "arrival_description": "10:40",
    })
}

/// One pair of a round-trip answer at this price.
pub fn pair(price: u64, request: &Value) -> Value {
    json!({
        "price_range_in_relation_to_other_periods": null, "price_insights_low": null, "price_insights_high": null,
        "from_airport": "Origin", "to_airport": "Destination", "departure_date": request["departure_date"],
        "return_date": request["return_date"], "total_price": format!("${price}"), "total_price_as_number": price,
        "total_duration_seconds": 36_000, "total_stops": 0, "buy_link": "https://flights.example/?tfs=y&curr=USD",
        "departure_flight_airline": "Example Air", "return_flight_airline": "Example Air",
    })
}
