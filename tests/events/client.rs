//! A client of server-sent events. It uses an independent parser, so that format errors show.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use farescan::scans::watch::WatchSettings;
use futures::{Stream, StreamExt as _, stream};
use serde_json::Value;
use sse_stream::{Sse, SseStream};

use crate::support::app::{KEY, TestApp, TestAppBuilder};
use crate::support::{WAIT_LIMIT, text};

/// A service with a short read interval, so that tests do not wait for it.
pub fn fast_polling_app() -> TestAppBuilder {
    TestApp::builder().watch(WatchSettings {
        min_read_interval: Duration::from_millis(20),
        ..WatchSettings::default()
    })
}

/// One received event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub id: Option<u64>,
    pub kind: String,
    pub data: Value,
}

impl Event {
    fn of(sse: Sse) -> Self {
        let data = sse.data.unwrap_or_default();
        Self {
            id: sse.id.map(|id| id.parse().unwrap()),
            kind: sse.event.unwrap_or_default(),
            data: serde_json::from_str(&data).unwrap_or_else(|error| panic!("{error}: {data}")),
        }
    }

    /// An item's id.
    pub fn item(&self) -> String {
        text(&self.data["id"])
    }
}

/// An open stream.
pub struct Events(Pin<Box<dyn Stream<Item = Event> + Send>>);

/// Requests the events of a scan, after one of them. A service that many others use closes idle
/// connections, on a busy machine also one whose request is late: then it is opened again.
pub async fn ask(app: &TestApp, key: &str, id: &str, after: Option<u64>) -> reqwest::Response {
    let mut tries = 0..3;
    loop {
        let mut request = app
            .request("GET", &format!("/v1/scans/{id}/events"))
            .header("x-api-key", key);
        if let Some(after) = after {
            request = request.header("last-event-id", after.to_string());
        }
        match request.send().await {
            Err(error) if error.is_request() && tries.next().is_some() => {}
            answer => return answer.unwrap(),
        }
    }
}

impl Events {
    /// The stream of a scan, after one of its events.
    pub async fn open(app: &TestApp, id: &str, after: Option<u64>) -> Self {
        Self::of(ask(app, KEY, id, after).await)
    }

    pub fn of(response: reqwest::Response) -> Self {
        assert_eq!(response.status(), 200);
        for (name, value) in [
            ("content-type", "text/event-stream"),
            ("cache-control", "no-store"),
            ("x-accel-buffering", "no"),
        ] {
            assert_eq!(response.headers()[name], value, "{name}");
        }
        let chunks = stream::try_unfold(response, async |mut response| {
            let chunk = response.chunk().await?;
            Ok::<_, reqwest::Error>(chunk.map(|chunk| (chunk, response)))
        });
        Self(Box::pin(
            SseStream::from_bytes_stream(Box::pin(chunks)).map(|sse| Event::of(sse.unwrap())),
        ))
    }

    /// The next event; `None`: the stream has ended.
    pub async fn next(&mut self) -> Option<Event> {
        tokio::time::timeout(WAIT_LIMIT, self.0.next())
            .await
            .expect("timed out waiting for an event")
    }

    /// The events up to the first that satisfies the condition.
    pub async fn until(&mut self, what: &str, condition: impl Fn(&Event) -> bool) -> Vec<Event> {
        let mut seen = Vec::new();
        while let Some(event) = self.next().await {
            seen.push(event);
            if seen.last().is_some_and(&condition) {
                return seen;
            }
        }
        panic!("the stream ended before {what}: {seen:#?}");
    }

    /// The events up to the scan in this status.
    pub async fn until_scan(&mut self, status: &str) -> Vec<Event> {
        self.until(status, |event| {
            event.kind == "scan" && event.data["status"] == status
        })
        .await
    }

    /// The events up to the end of the stream.
    pub async fn rest(mut self) -> Vec<Event> {
        let mut seen = Vec::new();
        while let Some(event) = self.next().await {
            seen.push(event);
        }
        seen
    }
}

/// The events of one part of a stream.
pub async fn parsed(text: Bytes) -> Vec<Event> {
    let piece = stream::iter([Ok::<_, std::io::Error>(text)]);
    SseStream::from_bytes_stream(piece)
        .map(|sse| Event::of(sse.unwrap()))
        .collect()
        .await
}

/// The last event of each item, by id.
pub fn item_states(events: &[Event]) -> BTreeMap<String, Value> {
    events
        .iter()
        .filter(|event| event.kind == "item")
        .map(|event| (event.item(), event.data.clone()))
        .collect()
}

/// Items by id.
pub fn by_id(items: &[Value]) -> BTreeMap<String, Value> {
    items
        .iter()
        .map(|item| (text(&item["id"]), item.clone()))
        .collect()
}
