//! `GET /v1/scans/{id}/events`: changes of a scan as server-sent events (scans.md, rules 63 to 65).
//!
//! Here: from a client's last event id to its response body. Not here: the events and their source
//! (`scans::watch`), their format (`contract::scans`).

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::openapi::WatchErrors;
use farescan_core::app::api_request::LongPollRequest;
use farescan_core::app::error::ApiResult;
use farescan_core::contract::scans::{EventId, EventsQuery};
use farescan_core::contract::{FieldValue as _, ValidationError, ValidationErrors};
use farescan_core::ids::ScanId;
use farescan_core::scans::watch::Follower;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Asks proxies such as nginx not to buffer events.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// A comment, which clients ignore.
const COMMENT: Bytes = Bytes::from_static(b":\n\n");
/// How long a client may read nothing before it is disconnected; it can resume with its last id.
const STALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Follow a scan
///
/// Server-sent events: `scan` (data: the scan) and `item` (data: a changed item, without its
/// answer). Each shows the state when it is sent; an item that changed twice in between is sent
/// once. Without a last id the stream begins with the current scan; with one it continues after
/// that event, 0 being before the first. Events are stored until 24 hours after the scan's end: a
/// later client gets `reset` and the current scan. The last event of an ended scan is `scan`; then
/// the stream ends, and a client that resumes with that id gets 204. A comment is sent every 15
/// seconds without an event.
#[utoipa::path(
    get, path = "/v1/scans/{id}/events", operation_id = "watch_scan", tag = "Scans",
    params(
        ("id" = ScanId, Path, description = "The scan"),
        ("Last-Event-ID" = Option<u64>, Header, description = "Continue after this event; clients set it when they reconnect"),
        EventsQuery
    ),
    responses(
        (status = 200, description = "The stream of events", content_type = "text/event-stream", body = String),
        (status = 204, description = "The scan has ended, and the last id is that of its last event"),
        WatchErrors
    )
)]
pub(super) async fn events(
    LongPollRequest(request): LongPollRequest,
    headers: HeaderMap,
) -> ApiResult {
    request.context()?;
    let query = EventsQuery::from_query(request.pairs.iter())?;
    let after = last_event_id(&headers)?.or(query.last_event_id);
    let (tenant, id) = request.owned().await?;
    let watch = &request.app.custody()?.watch;
    Ok(match watch.follow(tenant, id, after).await? {
        Some(follower) => event_stream(follower, watch.keep_alive_interval()),
        None => StatusCode::NO_CONTENT.into_response(),
    })
}

/// The header of a reconnecting client. It is newer than the URL, which stays the same.
fn last_event_id(headers: &HeaderMap) -> Result<Option<EventId>, ValidationErrors> {
    let Some(value) = headers.get(LAST_EVENT_ID).filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let id = value.to_str().ok().and_then(EventId::parse);
    let held = || Value::from(String::from_utf8_lossy(value.as_bytes()));
    id.map(Some)
        .ok_or_else(|| ValidationError::new("Last-Event-ID", &held(), EventId::expected()).into())
}

fn event_stream(follower: Follower, comments: Duration) -> Response {
    let (out, mut receiver) = mpsc::channel(1);
    tokio::spawn(send_events(follower, comments, out));
    let body = stream::poll_fn(move |context| {
        receiver
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

/// Sends events until they end or the client disconnects. It runs in a task of its own: hyper does
/// not poll the body of a client that reads nothing, so that client would hold its watch forever.
async fn send_events(mut follower: Follower, comments: Duration, out: mpsc::Sender<Bytes>) {
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
        if !matches!(timeout(STALL_TIMEOUT, out.send(text)).await, Ok(Ok(()))) {
            return;
        }
    }
}
