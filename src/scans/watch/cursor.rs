//! Where one client is in a scan's events. Pure.

use bytes::Bytes;

use super::feed::{Feed, Next};
use super::look::Look;
use crate::contract::scans::{EventKind, EventsReset};

#[derive(Debug, Default)]
pub(super) struct Cursor {
    /// The id of the last event that was sent; `None`: the stream begins with the scan as it is.
    place: Option<u64>,
    /// The event of the scan that was sent last.
    shown: Bytes,
    /// The place that the client named and that nothing can be told after: it hears of that first.
    lost: Option<u64>,
    over: bool,
}

/// What is to be done for a client.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Send(Bytes),
    /// What comes after this place has to be read from the database.
    Read(u64),
    Wait,
    End,
}

impl Cursor {
    /// For a client that comes; `None`: it has seen everything of a scan that has ended.
    pub(super) fn begin(feed: &Feed, after: Option<u64>) -> Option<Self> {
        match after {
            Some(place) if place == feed.last() && feed.is_finished() => None,
            Some(place) if !feed.can_follow(place) => Some(Self::anew(place)),
            place => Some(Self {
                place,
                ..Self::default()
            }),
        }
    }

    /// For a client whose place is none: told so, it begins with the scan as it is.
    pub(super) fn anew(lost: u64) -> Self {
        Self {
            lost: Some(lost),
            ..Self::default()
        }
    }

    /// The next step; what it says to send counts as sent.
    pub(super) fn step(&mut self, feed: &Feed) -> Step {
        if self.over || feed.is_gone() {
            return Step::End;
        }
        let Some(place) = self.place else {
            return match feed.now() {
                Some(now) => {
                    self.place = Some(feed.upto());
                    self.shown = now.text.clone();
                    Step::Send(with_reset(self.lost.take(), &now.text))
                }
                None => Step::Wait,
            };
        };
        match (feed.after(place), feed.now()) {
            (Next::Missing, _) => Step::Read(place),
            (Next::Look(look), _) => Step::Send(self.take(&look)),
            // It has read more by itself than the feed has.
            (Next::Nothing, _) if place > feed.upto() => Step::Wait,
            (Next::Nothing, Some(now)) if now.text != self.shown => {
                self.shown = now.text.clone();
                Step::Send(now.text.clone())
            }
            (Next::Nothing, _) if feed.is_finished() => Step::End,
            (Next::Nothing, _) => Step::Wait,
        }
    }

    /// The events of a look that were not sent yet.
    pub(super) fn take(&mut self, look: &Look) -> Bytes {
        let text = look.text_after(self.place.unwrap_or_default());
        self.place = Some(look.upto);
        if let Some(scan) = &look.scan {
            self.shown = scan.clone();
        }
        text
    }

    /// What was taken was the last of it.
    pub(super) fn end(&mut self) {
        self.over = true;
    }
}

fn with_reset(lost: Option<u64>, scan: &Bytes) -> Bytes {
    match lost {
        None => scan.clone(),
        Some(last_event_id) => {
            let reset = EventKind::Reset.text(None, &EventsReset { last_event_id });
            [reset.as_bytes(), scan].concat().into()
        }
    }
}
