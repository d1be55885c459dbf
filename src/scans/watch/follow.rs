//! One client's stream of events.

use bytes::Bytes;
use tokio::time::{Instant, sleep, timeout_at};

use super::cursor::{Cursor, Step};
use super::look::Look;
use super::readers::Seat;

/// A client that follows a scan. It holds no events of its own: what it has not taken yet waits where all clients' events are, and what is
/// no longer there is read from the database. Dropped, its place among the clients is free.
#[derive(Debug)]
pub struct Follower {
    seat: Seat,
    cursor: Cursor,
    /// Since when its scan is paused, where the stream must not outlast that for long.
    paused_since: Option<Instant>,
}

impl Follower {
    pub(super) fn new(seat: Seat, cursor: Cursor) -> Self {
        Self {
            seat,
            cursor,
            paused_since: None,
        }
    }

    /// The next events, as text; `None`: the stream ends, because the scan has ended or is deleted, or the process goes down. Dropped
    /// halfway, nothing is lost.
    pub async fn next(&mut self) -> Option<Bytes> {
        loop {
            let step = self.cursor.step(&self.seat.feed());
            match step {
                Step::Send(text) => return Some(text),
                Step::End => return None,
                Step::Wait => self.changed().await?,
                Step::Read(place) => {
                    let stop = self.seat.stop();
                    match stop.run_until_cancelled(self.read(place)).await? {
                        Missed::Read(text) => return Some(text),
                        Missed::Again => {}
                        Missed::Gone => return None,
                    }
                }
            }
        }
    }

    /// Returns when there may be something new; `None`: the stream ends.
    async fn changed(&mut self) -> Option<()> {
        let Some(lasts) = self.seat.paused_stream() else {
            return self.seat.changed().await;
        };
        if !self.seat.feed().is_paused() {
            self.paused_since = None;
            return self.seat.changed().await;
        }
        let since = *self.paused_since.get_or_insert_with(Instant::now);
        timeout_at(since + lasts, self.seat.changed()).await.ok()?
    }

    /// Reads what this client missed.
    async fn read(&mut self, place: u64) -> Missed {
        match self.seat.look(Some(place)).await {
            Ok(None) => Missed::Gone,
            Ok(Some(changes)) if place < changes.kept_after => {
                self.cursor = Cursor::anew(place);
                Missed::Again
            }
            Ok(Some(changes)) => {
                let scan = changes.is_whole().then_some(&changes.scan);
                let text = self
                    .cursor
                    .take(&Look::new(place, changes.upto, &changes.items, scan));
                if scan.is_some_and(|scan| scan.finished_at.is_some()) {
                    self.cursor.end();
                }
                Missed::Read(text)
            }
            Err(error) => {
                tracing::debug!(%error, "events could not be read for a client; it waits");
                sleep(self.seat.gap()).await;
                Missed::Again
            }
        }
    }
}

/// What reading for one client brought.
enum Missed {
    Read(Bytes),
    /// The cursor is to be asked again.
    Again,
    /// There is no such scan any more.
    Gone,
}
