//! The events of a scan: the service says that something changed, so that nobody has to ask.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::{FutureExt as _, Stream, StreamExt as _, TryStreamExt as _, stream};
use sse_stream::{Sse, SseStream};
use tokio::time::{Instant, timeout};

use super::ApiClient;
use farescan_contract::ids::ScanId;

/// The longest time between two reads of a scan while events are quiet: its remaining time changes.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// The shortest time between two reads: several events are one change.
const SHORTEST_WAIT: Duration = Duration::from_millis(200);
/// How long to poll before the stream is opened again.
const REOPEN_AFTER: Duration = Duration::from_secs(5);
/// The most bytes from one event to the next: a line or an event without an end must not fill the
/// memory.
const MAX_EVENT_BYTES: usize = 1 << 20;

type Events = Pin<Box<dyn Stream<Item = Result<Sse, sse_stream::Error>> + Send>>;

/// Waits for changes of a scan: for events, and while there is no stream for the next poll. After a
/// break the stream continues with the last event's id.
pub struct ScanChanges<'a> {
    client: &'a ApiClient,
    id: ScanId,
    events: Option<Events>,
    /// Id of the last event.
    last: Option<String>,
    /// When the stream may be opened.
    open_at: Instant,
}

impl<'a> ScanChanges<'a> {
    pub fn new(client: &'a ApiClient, id: ScanId) -> Self {
        Self {
            client,
            id,
            events: None,
            last: None,
            open_at: Instant::now(),
        }
    }

    /// Returns when the scan should be read again; without a stream after `poll_interval`.
    pub async fn next(&mut self, poll_interval: Duration) {
        if self.events.is_none() && Instant::now() >= self.open_at {
            self.open().await;
        }
        let Some(events) = &mut self.events else {
            tokio::time::sleep(poll_interval).await;
            return;
        };
        tokio::time::sleep(SHORTEST_WAIT).await;
        let mut next = match timeout(LONGEST_WAIT, events.next()).await {
            Ok(next) => Some(next),
            Err(_) => return,
        };
        // All that has arrived is one change.
        while let Some(event) = next {
            match event {
                Some(Ok(event)) => self.last = event.id.or(self.last.take()),
                Some(Err(_)) | None => {
                    self.disconnect();
                    return;
                }
            }
            next = events.next().now_or_never();
        }
    }

    /// Ends the stream; the scan is polled until it is opened again.
    pub fn disconnect(&mut self) {
        self.events = None;
        self.open_at = Instant::now() + REOPEN_AFTER;
    }

    async fn open(&mut self) {
        let path = format!("/v1/scans/{}/events", self.id);
        let last = self.last.as_deref().map(|id| ("last-event-id", id));
        let Ok(response) = self.client.download_with(&path, last).await else {
            // What is wrong, the read of the scan will say.
            self.disconnect();
            return;
        };
        let chunks = stream::try_unfold(response, async |mut response| {
            let chunk = response.chunk().await?;
            Ok::<_, reqwest::Error>(chunk.map(|chunk| (chunk, response)))
        });
        self.events = Some(bounded_events(chunks.map_err(io::Error::other)));
    }
}

/// The events in these bytes. Ends with an error at an event of more than [`MAX_EVENT_BYTES`].
fn bounded_events(chunks: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> Events {
    let arrived = Arc::new(AtomicUsize::new(0));
    let since_event = Arc::clone(&arrived);
    let chunks = chunks.and_then(move |chunk| {
        let before = arrived.fetch_add(chunk.len(), Ordering::Relaxed);
        let is_bounded = before + chunk.len() <= MAX_EVENT_BYTES;
        let too_large = || io::Error::other("an event is too large");
        std::future::ready(is_bounded.then_some(chunk).ok_or_else(too_large))
    });
    let events = SseStream::from_bytes_stream(Box::pin(chunks));
    Box::pin(events.inspect(move |_| since_event.store(0, Ordering::Relaxed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many events there are before an error, and how many chunks were read.
    async fn read(chunk: &'static str, chunks: usize) -> (usize, usize) {
        let read = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&read);
        let chunks = stream::iter(0..chunks).map(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(Bytes::from_static(chunk.as_bytes()))
        });
        let events = bounded_events(chunks).take_while(|event| std::future::ready(event.is_ok()));
        let events = events.count().await;
        (events, read.load(Ordering::Relaxed))
    }

    #[tokio::test]
    async fn an_event_without_an_end_is_not_read_on() {
        let line: &'static str = Box::leak("a".repeat(1 << 16).into_boxed_str());
        assert_eq!(read(line, 1_000).await, (0, 17), "a line");
        let lines: &'static str = Box::leak(format!("data: {line}\n").into_boxed_str());
        assert_eq!(read(lines, 1_000).await, (0, 16), "lines of one event");
        let event: &'static str = Box::leak(format!("{lines}\n").into_boxed_str());
        assert_eq!(read(event, 1_000).await, (1_000, 1_000), "many events");
    }
}
