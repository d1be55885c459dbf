//! The position of one client in a scan's events. Pure.

use bytes::Bytes;

use super::event_batch::EventBatch;
use super::feed::{Feed, NextBatch};
use crate::contract::scans::{EventKind, EventsReset};

#[derive(Debug, Default)]
pub(super) struct StreamCursor {
    /// The id of the last event sent; `None`: the stream begins with the current scan.
    position: Option<u64>,
    /// The scan event that was sent last.
    last_scan: Bytes,
    /// The position that the client named, if no events can follow it: a reset event names it
    /// first.
    reset_from: Option<u64>,
    is_ended: bool,
}

/// The next action for a client.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StreamStep {
    Send(Bytes),
    /// Read the events after this position from the database.
    Read(u64),
    Wait,
    End,
}

impl StreamCursor {
    /// For a new client; `None`: the scan has ended and the client has all its events.
    pub(super) fn begin(feed: &Feed, after: Option<u64>) -> Option<Self> {
        match after {
            Some(position) if position == feed.last() && feed.is_finished() => None,
            Some(position) if !feed.can_follow(position) => Some(Self::after_reset(position)),
            position => Some(Self {
                position,
                ..Self::default()
            }),
        }
    }

    /// For a client whose position is invalid: a reset event, then the current scan.
    pub(super) fn after_reset(position: u64) -> Self {
        Self {
            reset_from: Some(position),
            ..Self::default()
        }
    }

    /// The next step; events of a `Send` count as sent.
    pub(super) fn step(&mut self, feed: &Feed) -> StreamStep {
        if self.is_ended || feed.is_gone() {
            return StreamStep::End;
        }
        let Some(position) = self.position else {
            return match feed.snapshot() {
                Some(snapshot) => {
                    self.position = Some(feed.up_to());
                    self.last_scan = snapshot.text.clone();
                    StreamStep::Send(with_reset(self.reset_from.take(), &snapshot.text))
                }
                None => StreamStep::Wait,
            };
        };
        match (feed.after(position), feed.snapshot()) {
            (NextBatch::Missing, _) => StreamStep::Read(position),
            (NextBatch::Batch(batch), _) => StreamStep::Send(self.advance(&batch)),
            // The client has read further than the feed.
            (NextBatch::Nothing, _) if position > feed.up_to() => StreamStep::Wait,
            (NextBatch::Nothing, Some(snapshot)) if snapshot.text != self.last_scan => {
                self.last_scan = snapshot.text.clone();
                StreamStep::Send(snapshot.text.clone())
            }
            (NextBatch::Nothing, _) if feed.is_finished() => StreamStep::End,
            (NextBatch::Nothing, _) => StreamStep::Wait,
        }
    }

    /// The unsent events of a batch; they count as sent.
    pub(super) fn advance(&mut self, batch: &EventBatch) -> Bytes {
        let text = batch.text_after(self.position.unwrap_or_default());
        self.position = Some(batch.up_to);
        if let Some(scan) = &batch.scan {
            self.last_scan = scan.clone();
        }
        text
    }

    /// No event follows the last batch.
    pub(super) fn end(&mut self) {
        self.is_ended = true;
    }
}

fn with_reset(reset_from: Option<u64>, scan: &Bytes) -> Bytes {
    match reset_from {
        None => scan.clone(),
        Some(last_event_id) => {
            let reset = EventKind::Reset.to_event_stream(None, &EventsReset { last_event_id });
            [reset.as_bytes(), scan].concat().into()
        }
    }
}
