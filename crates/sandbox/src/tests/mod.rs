//! The sandbox over HTTP on the loopback interface.

mod keys;
mod magic_values;
mod paths;
mod scenarios;

use jiff::civil::{Date, date};
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{DayShift, SandboxOptions, serve_with_days};

const TODAY: Date = date(2026, 11, 20);
const ONEWAY: &str = "/api/google_flights/oneway/v1";
const ROUNDTRIP: &str = "/api/google_flights/roundtrip/v1";
const SEARCH: &str = "/search";
const BY_NAME: &str = "/hotel_by_name";
const ROOMS: &str = "/hotel";
const RESOLVE: &str = "/resolve";

/// A served sandbox with a client.
struct TestSandbox {
    base: String,
    client: reqwest::Client,
    days: DayShift,
    stop: CancellationToken,
    server: JoinHandle<std::io::Result<()>>,
}

/// A response with its text.
#[derive(Debug)]
struct SandboxResponse {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

impl TestSandbox {
    async fn open() -> Self {
        Self::with(SandboxOptions {
            seed: 1,
            latency_factor: 0.0,
            today: Some(TODAY),
            ..SandboxOptions::default()
        })
        .await
    }

    async fn with(options: SandboxOptions) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let base = format!("http://{}", listener.local_addr().expect("an address"));
        let stop = CancellationToken::new();
        let days = DayShift::default();
        let server = tokio::spawn(serve_with_days(
            listener,
            options,
            days.clone(),
            stop.clone().cancelled_owned(),
        ));
        let client = reqwest::Client::builder()
            .no_proxy()
            .build()
            .expect("a client");
        Self {
            base,
            client,
            days,
            stop,
            server,
        }
    }

    fn request(&self, path: &str, body: &Value) -> reqwest::RequestBuilder {
        self.client.post(format!("{}{path}", self.base)).json(body)
    }

    async fn call(&self, key: &str, path: &str, body: &Value) -> SandboxResponse {
        SandboxResponse::of(self.request(path, body).header("x-rapidapi-key", key)).await
    }

    /// Waits until this many flight searches of a key on plan Pro are counted.
    async fn until_counted(&self, key: &str, searches: u64) {
        // A call of the throttled word reports what is left, is not counted and has no delay.
        while self
            .call(key, ONEWAY, &oneway("ZZQ"))
            .await
            .number("x-ratelimit-requests-remaining")
            != Some(2_500 - searches)
        {
            tokio::task::yield_now().await;
        }
    }

    /// Stops the server and waits until it has ended every request.
    async fn close(self) {
        self.stop.cancel();
        self.server.await.expect("no panic").expect("no error");
    }
}

impl SandboxResponse {
    async fn of(request: reqwest::RequestBuilder) -> Self {
        let response = request.send().await.expect("an answer");
        let (status, headers) = (response.status(), response.headers().clone());
        Self {
            status,
            headers,
            text: response.text().await.expect("a body"),
        }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .get(name)
            .map(|value| value.to_str().expect("text"))
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.header(name)
            .map(|value| value.parse().expect("a number"))
    }

    fn rows(&self) -> usize {
        self.json().as_array().expect("an array").len()
    }
}

fn oneway(to: &str) -> Value {
    json!({"from_airport": "TLV", "to_airport": to, "departure_date": "2027-01-20"})
}

fn roundtrip(to: &str) -> Value {
    json!({"from_airport": "TLV", "to_airport": to, "departure_date": "2027-01-20", "return_date": "2027-01-27"})
}

/// A body for one of the hotel paths that names `place`.
fn hotel(path: &str, place: &str) -> Value {
    let mut body = json!({"checkin_date": "2027-03-02", "checkout_date": "2027-03-05"});
    match path {
        SEARCH => body["destination"] = json!(place),
        BY_NAME => body["hotel_name"] = json!(place),
        ROOMS => {
            body["hotel_booking_id"] =
                json!(format!("gb/{}", place.to_lowercase().replace(' ', "-")));
        }
        _ => body = json!({"hotel_name": place}),
    }
    body
}
