//! One client's stream of events.

use bytes::Bytes;
use tokio::time::{Instant, sleep, timeout_at};

use super::cursor::{StreamCursor, StreamStep};
use super::event_batch::EventBatch;
use super::readers::Subscription;

/// A client that follows a scan. It owns no events: it takes them from the shared feed, or from the
/// database once the feed has evicted them. Dropping it ends its subscription.
#[derive(Debug)]
pub struct Follower {
    subscription: Subscription,
    cursor: StreamCursor,
    /// Since when the scan is paused, for clients whose stream ends some time after that.
    paused_since: Option<Instant>,
}

impl Follower {
    pub(super) fn new(subscription: Subscription, cursor: StreamCursor) -> Self {
        Self {
            subscription,
            cursor,
            paused_since: None,
        }
    }

    /// The next events, as text; `None`: the stream ends because the scan has ended or was deleted,
    /// or the process shuts down. Cancel safe.
    pub async fn next(&mut self) -> Option<Bytes> {
        loop {
            let step = self.cursor.step(&self.subscription.feed());
            match step {
                StreamStep::Send(text) => return Some(text),
                StreamStep::End => return None,
                StreamStep::Wait => self.changed().await?,
                StreamStep::Read(position) => {
                    let stop = self.subscription.stop();
                    match stop.run_until_cancelled(self.read(position)).await? {
                        CatchUp::Read(text) => return Some(text),
                        CatchUp::Retry => {}
                        CatchUp::Gone => return None,
                    }
                }
            }
        }
    }

    /// Returns when the feed may have new events; `None`: the stream ends.
    async fn changed(&mut self) -> Option<()> {
        let Some(limit) = self.subscription.max_paused_stream() else {
            return self.subscription.changed().await;
        };
        if !self.subscription.feed().is_paused() {
            self.paused_since = None;
            return self.subscription.changed().await;
        }
        let since = *self.paused_since.get_or_insert_with(Instant::now);
        timeout_at(since + limit, self.subscription.changed())
            .await
            .ok()?
    }

    /// Reads the events that this client missed.
    async fn read(&mut self, position: u64) -> CatchUp {
        match self.subscription.read_changes(Some(position)).await {
            Ok(None) => CatchUp::Gone,
            Ok(Some(changes)) if position < changes.retained_after => {
                self.cursor = StreamCursor::after_reset(position);
                CatchUp::Retry
            }
            Ok(Some(changes)) => {
                let scan = changes.is_complete().then_some(&changes.scan);
                let text = self.cursor.advance(&EventBatch::new(
                    position,
                    changes.up_to,
                    &changes.items,
                    scan,
                ));
                if scan.is_some_and(|scan| scan.finished_at.is_some()) {
                    self.cursor.end();
                }
                CatchUp::Read(text)
            }
            Err(error) => {
                tracing::debug!(%error, "failed to read a client's events; retrying");
                sleep(self.subscription.min_read_interval()).await;
                CatchUp::Retry
            }
        }
    }
}

/// The result of a read for one client.
enum CatchUp {
    Read(Bytes),
    /// Call [`StreamCursor::step`] again.
    Retry,
    /// The scan was deleted.
    Gone,
}
