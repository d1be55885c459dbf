//! What the clients of one scan share: the scan as it was last seen, and its last events. Pure.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::look::Look;
use crate::contract::scans::{Scan, ScanStatus};
use crate::scans::read::{Changes, MOST_EVENTS};

/// The most events that are kept for clients that are slow, beside the last look.
const MOST_KEPT: usize = 2 * MOST_EVENTS;

#[derive(Debug, Default)]
pub(super) struct Feed {
    /// When the last look that came through began.
    looked_at: Option<Instant>,
    /// Why the last look did not come through.
    failure: Option<Arc<sqlx::Error>>,
    gone: bool,
    now: Option<Now>,
    /// The looks that brought something, one after the other without a gap.
    window: VecDeque<(Instant, Arc<Look>)>,
    /// The window, or what came before it, reaches up to here.
    upto: u64,
    /// The last number that was given, as far as it is known.
    last: u64,
    kept_after: u64,
}

/// The scan as it was last seen, and the text of that event.
#[derive(Debug)]
pub(super) struct Now {
    pub(super) scan: Scan,
    pub(super) text: Bytes,
}

/// What comes after a place.
#[derive(Debug)]
pub(super) enum Next {
    Look(Arc<Look>),
    /// There is something, and it is no longer here.
    Missing,
    Nothing,
}

impl Feed {
    /// Takes in what a look after the place `asked` brought; whether anything is new.
    pub(super) fn take(
        &mut self,
        changes: Changes,
        asked: Option<u64>,
        began: Instant,
        kept: Duration,
    ) -> bool {
        (self.looked_at, self.failure) = (Some(began), None);
        // The place that the first client named need not be one. Then the feed begins here.
        let asked = asked.filter(|place| (changes.kept_after..=changes.last).contains(place));
        let (after, upto, items) = match asked {
            Some(place) => (place, changes.upto, changes.items),
            None => (changes.last, changes.last, Vec::new()),
        };
        let is_whole = upto == changes.last;
        let is_same = self
            .now
            .as_ref()
            .is_some_and(|now| now.scan == changes.scan)
            && self.upto == upto;
        (self.last, self.kept_after) = (changes.last, changes.kept_after);
        if is_same && items.is_empty() {
            return false;
        }
        let look = Arc::new(Look::new(
            after,
            upto,
            &items,
            is_whole.then_some(&changes.scan),
        ));
        if let Some(text) = &look.scan {
            self.now = Some(Now {
                scan: changes.scan,
                text: text.clone(),
            });
        }
        if after != self.upto {
            self.window.clear();
        }
        self.upto = upto;
        self.window.push_back((began, look));
        self.forget(began, kept);
        true
    }

    /// Old looks go, and those that are too much; the last one stays.
    fn forget(&mut self, now: Instant, kept: Duration) {
        let mut events: usize = self.window.iter().map(|(_, look)| look.len()).sum();
        while let Some((at, look)) = self.window.front()
            && self.window.len() > 1
            && (now.duration_since(*at) > kept || events > MOST_KEPT)
        {
            events -= look.len();
            self.window.pop_front();
        }
    }

    /// The scan is gone.
    pub(super) fn end(&mut self) {
        (self.gone, self.failure) = (true, None);
    }

    pub(super) fn failed(&mut self, error: sqlx::Error) {
        self.failure = Some(Arc::new(error));
    }

    /// Why there is nothing newer.
    pub(super) fn failure(&self) -> Option<&Arc<sqlx::Error>> {
        self.failure.as_ref()
    }

    /// The scan does not exist, or not any more.
    pub(super) fn is_gone(&self) -> bool {
        self.gone
    }

    /// What it tells was so after `since`.
    pub(super) fn is_fresh(&self, since: Instant) -> bool {
        self.looked_at.is_some_and(|at| at >= since)
    }

    /// There is more to read at once.
    pub(super) fn is_behind(&self) -> bool {
        self.upto < self.last
    }

    /// The scan has ended, its last call is recorded, and all its events are here.
    pub(super) fn is_finished(&self) -> bool {
        !self.is_behind()
            && self
                .now
                .as_ref()
                .is_some_and(|now| now.scan.finished_at.is_some())
    }

    /// The scan is paused.
    pub(super) fn is_paused(&self) -> bool {
        self.now
            .as_ref()
            .is_some_and(|now| now.scan.status == ScanStatus::Paused)
    }

    /// The scan runs, and the place is none that this process has not seen yet.
    pub(super) fn runs_beyond(&self, place: Option<u64>) -> bool {
        self.now.is_some() && !self.is_finished() && place.is_none_or(|place| place <= self.last)
    }

    pub(super) fn now(&self) -> Option<&Now> {
        self.now.as_ref()
    }

    pub(super) fn upto(&self) -> u64 {
        self.upto
    }

    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Whether everything after this place can be told, from here or from the database.
    pub(super) fn can_follow(&self, place: u64) -> bool {
        (self.kept_after..=self.last).contains(&place)
    }

    pub(super) fn after(&self, place: u64) -> Next {
        let floor = self
            .window
            .front()
            .map_or(self.upto, |(_, look)| look.after);
        match self.window.iter().find(|(_, look)| look.upto > place) {
            _ if place < floor => Next::Missing,
            Some((_, look)) => Next::Look(Arc::clone(look)),
            None => Next::Nothing,
        }
    }
}
