//! The events of one read of a scan, as text shared by all its clients. Pure.

use bytes::Bytes;

use crate::contract::scans::{EventKind, Item, Scan};

/// Events after one position up to another, in the form of `text/event-stream`.
#[derive(Debug, Clone)]
pub(super) struct EventBatch {
    /// Exclusive.
    pub(super) after: u64,
    /// Inclusive.
    pub(super) up_to: u64,
    text: Bytes,
    /// The id of each event and the offset of its text; ids increase.
    starts: Vec<(u64, usize)>,
    /// The text of the scan event, which is the last one.
    pub(super) scan: Option<Bytes>,
}

impl EventBatch {
    /// `items` by event id; `scan` if the batch reaches the last event id.
    pub(super) fn new(after: u64, up_to: u64, items: &[(u64, Item)], scan: Option<&Scan>) -> Self {
        let (mut text, mut starts) = (String::new(), Vec::with_capacity(items.len() + 1));
        for (id, item) in items {
            starts.push((*id, text.len()));
            text.push_str(&EventKind::Item.to_event_stream(Some(*id), item));
        }
        let scan_at = text.len();
        if let Some(scan) = scan {
            starts.push((up_to, scan_at));
            text.push_str(&EventKind::Scan.to_event_stream(Some(up_to), scan));
        }
        let text = Bytes::from(text);
        let scan = scan.map(|_| text.slice(scan_at..));
        Self {
            after,
            up_to,
            text,
            starts,
            scan,
        }
    }

    /// The events after a position: a slice, so that all clients share one text.
    pub(super) fn text_after(&self, position: u64) -> Bytes {
        let seen = self.starts.partition_point(|(id, _)| *id <= position);
        let from = self.starts.get(seen).map_or(self.text.len(), |(_, at)| *at);
        self.text.slice(from..)
    }

    /// The number of events.
    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }
}
