//! `GET /v1/scans/{id}/events`: what becomes of a scan, as server-sent events (jobs-api, "Scans").
//!
//! Here: from a client's place in the events to its response body. Not here: the events and where they come from (`scans::watch`), their
//! form (`contract::scans`).

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::AppState;
use super::auth::Waiting;
use super::docs::WatchErrors;
use super::error::ApiError;
use super::extract::Pairs;
use super::scans::{desk, no_such_scan, scan_id, tenant};
use crate::contract::scans::{EventId, EventsQuery};
use crate::contract::{Fault, Faults, FieldValue as _};
use crate::ids::ScanId;
use crate::scans::watch::Follower;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Proxies that know it pass events on as they come.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// A line that clients skip.
const COMMENT: Bytes = Bytes::from_static(b":\n\n");
/// How long a client may take nothing before it is let go: it comes back with its last id.
const STALLED: Duration = Duration::from_secs(60);

/// Follow a scan
///
/// Server-sent events: `scan` (data: the scan) and `item` (data: an item that changed, without its answer). Each says what is true when it
/// is sent; an item that changed twice in between is sent once. Without a last id the stream begins with the scan as it is; with one it
/// goes on after that event, 0 being before the first. Events are kept for 24 hours after the scan's end: a client that comes later gets
/// `reset` and the scan as it is. The last event of a scan that has ended is `scan`; then the stream ends, and who comes back with that id
/// gets 204. Every 15 seconds of silence are filled with a comment.
#[utoipa::path(
    get, path = "/v1/scans/{id}/events", operation_id = "watch_scan", tag = "Scans",
    params(
        ("id" = ScanId, Path, description = "The scan"),
        ("Last-Event-ID" = Option<u64>, Header, description = "Go on after this event; clients send it by themselves when they come back"),
        EventsQuery
    ),
    responses(
        (status = 200, description = "The events, as they come", content_type = "text/event-stream", body = String),
        (status = 204, description = "The scan has ended, and the last id is that of its last event"),
        WatchErrors
    )
)]
pub(super) async fn events(
    State(app): State<AppState>,
    Waiting(caller): Waiting,
    Path(id): Path<String>,
    headers: HeaderMap,
    pairs: Pairs,
) -> Result<Response, ApiError> {
    let desk = desk(&app, &caller)?;
    let query = EventsQuery::from_query(pairs.iter())?;
    let after = last_event_id(&headers)?.or(query.last_event_id);
    let id = scan_id(&id)?;
    let tenant = tenant(desk).await?.ok_or_else(no_such_scan)?;
    let watch = &app.custody()?.watch;
    Ok(match watch.follow(tenant, id, after).await? {
        Some(follower) => streamed(follower, watch.comments()),
        None => StatusCode::NO_CONTENT.into_response(),
    })
}

/// The header of a client that comes back. It knows more than the URL, which is the same each time.
fn last_event_id(headers: &HeaderMap) -> Result<Option<EventId>, Faults> {
    let Some(value) = headers.get(LAST_EVENT_ID).filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let id = value.to_str().ok().and_then(EventId::parse);
    let held = || Value::from(String::from_utf8_lossy(value.as_bytes()));
    id.map(Some)
        .ok_or_else(|| Fault::new("Last-Event-ID", &held(), EventId::allowed()).into())
}

fn streamed(follower: Follower, comments: Duration) -> Response {
    let (out, mut taken) = mpsc::channel(1);
    tokio::spawn(pass_on(follower, comments, out));
    let body = stream::poll_fn(move |context| {
        taken
            .poll_recv(context)
            .map(|text: Option<Bytes>| text.map(Ok::<_, Infallible>))
    });
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-store"),
        (BUFFERING, "no"),
    ];
    (headers, Body::from_stream(body)).into_response()
}

/// Passes events on until they end or the client is gone. In a task of its own, because a response that nobody takes is not asked for
/// more: a client that stands still would keep its place for ever.
async fn pass_on(mut follower: Follower, comments: Duration, out: mpsc::Sender<Bytes>) {
    loop {
        let next = tokio::select! {
            next = timeout(comments, follower.next()) => next,
            () = out.closed() => return,
        };
        let text = match next {
            Ok(Some(text)) => text,
            Ok(None) => return,
            Err(_) => COMMENT,
        };
        if !matches!(timeout(STALLED, out.send(text)).await, Ok(Ok(()))) {
            return;
        }
    }
}
