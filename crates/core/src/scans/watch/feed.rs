//! The state that the clients of one scan share: the scan as last read, and its last events. Pure.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::event_batch::EventBatch;
use crate::contract::scans::{Scan, ScanStatus};
use crate::scans::read::{Changes, MAX_EVENTS};

/// The most events that are retained for slow clients, besides the last batch.
const MAX_RETAINED_EVENTS: usize = 2 * MAX_EVENTS;

#[derive(Debug, Default)]
pub(super) struct Feed {
    /// When the last successful read began.
    read_at: Option<Instant>,
    /// The error of the last read, if it failed.
    failure: Option<Arc<sqlx::Error>>,
    is_gone: bool,
    snapshot: Option<Snapshot>,
    /// Consecutive batches without a gap, each with the time of its read.
    window: VecDeque<(Instant, Arc<EventBatch>)>,
    /// The last event id that was read.
    up_to: u64,
    /// The last event id that exists, as of the last read.
    last: u64,
    retained_after: u64,
}

/// The scan as last read, and the text of its event.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) scan: Scan,
    pub(super) text: Bytes,
}

/// The batch after a position.
#[derive(Debug)]
pub(super) enum NextBatch {
    Batch(Arc<EventBatch>),
    /// Events exist, but the feed no longer holds them.
    Missing,
    Nothing,
}

impl Feed {
    /// Adds the result of a read after the position `requested_after`; whether anything is new.
    pub(super) fn apply(
        &mut self,
        changes: Changes,
        requested_after: Option<u64>,
        began: Instant,
        retention: Duration,
    ) -> bool {
        (self.read_at, self.failure) = (Some(began), None);
        // The first client may have named an invalid position. Then the feed begins at the last
        // event.
        let requested_after = requested_after
            .filter(|position| (changes.retained_after..=changes.last).contains(position));
        let (after, up_to, items) = match requested_after {
            Some(position) => (position, changes.up_to, changes.items),
            None => (changes.last, changes.last, Vec::new()),
        };
        let is_complete = up_to == changes.last;
        let is_same = self
            .snapshot
            .as_ref()
            .is_some_and(|snapshot| snapshot.scan == changes.scan)
            && self.up_to == up_to;
        (self.last, self.retained_after) = (changes.last, changes.retained_after);
        if is_same && items.is_empty() {
            return false;
        }
        let batch = Arc::new(EventBatch::new(
            after,
            up_to,
            &items,
            is_complete.then_some(&changes.scan),
        ));
        if let Some(text) = &batch.scan {
            self.snapshot = Some(Snapshot {
                scan: changes.scan,
                text: text.clone(),
            });
        }
        if after != self.up_to {
            self.window.clear();
        }
        self.up_to = up_to;
        self.window.push_back((began, batch));
        self.evict(began, retention);
        true
    }

    /// Removes batches that are too old or exceed the bound, never the last one.
    fn evict(&mut self, now: Instant, retention: Duration) {
        let mut events: usize = self.window.iter().map(|(_, batch)| batch.len()).sum();
        while let Some((at, batch)) = self.window.front()
            && self.window.len() > 1
            && (now.duration_since(*at) > retention || events > MAX_RETAINED_EVENTS)
        {
            events -= batch.len();
            self.window.pop_front();
        }
    }

    /// Marks the scan as deleted or missing.
    pub(super) fn set_gone(&mut self) {
        (self.is_gone, self.failure) = (true, None);
    }

    pub(super) fn failed(&mut self, error: sqlx::Error) {
        self.failure = Some(Arc::new(error));
    }

    /// The error of the last read.
    pub(super) fn failure(&self) -> Option<&Arc<sqlx::Error>> {
        self.failure.as_ref()
    }

    /// The scan does not exist or was deleted.
    pub(super) fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// The last read began at or after `since`.
    pub(super) fn is_fresh(&self, since: Instant) -> bool {
        self.read_at.is_some_and(|at| at >= since)
    }

    /// There are more events to read.
    pub(super) fn is_behind(&self) -> bool {
        self.up_to < self.last
    }

    /// The scan has ended, its last call is recorded, and all its events were read.
    pub(super) fn is_finished(&self) -> bool {
        !self.is_behind()
            && self
                .snapshot
                .as_ref()
                .is_some_and(|snapshot| snapshot.scan.finished_at.is_some())
    }

    pub(super) fn is_paused(&self) -> bool {
        self.snapshot
            .as_ref()
            .is_some_and(|snapshot| snapshot.scan.status == ScanStatus::Paused)
    }

    /// The scan runs, and this process knows the events up to the position.
    pub(super) fn runs_beyond(&self, position: Option<u64>) -> bool {
        self.snapshot.is_some()
            && !self.is_finished()
            && position.is_none_or(|position| position <= self.last)
    }

    pub(super) fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.as_ref()
    }

    pub(super) fn up_to(&self) -> u64 {
        self.up_to
    }

    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Whether all events after the position exist, in the feed or in the database.
    pub(super) fn can_follow(&self, position: u64) -> bool {
        (self.retained_after..=self.last).contains(&position)
    }

    pub(super) fn after(&self, position: u64) -> NextBatch {
        let floor = self
            .window
            .front()
            .map_or(self.up_to, |(_, batch)| batch.after);
        match self.window.iter().find(|(_, batch)| batch.up_to > position) {
            _ if position < floor => NextBatch::Missing,
            Some((_, batch)) => NextBatch::Batch(Arc::clone(batch)),
            None => NextBatch::Nothing,
        }
    }
}
