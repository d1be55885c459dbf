//! What one look at a scan brought, as text for all its clients. Pure.

use bytes::Bytes;

use crate::contract::scans::{EventKind, Item, Scan};

/// Events after one place up to another, in the form of `text/event-stream`.
#[derive(Debug, Clone)]
pub(super) struct Look {
    /// It tells everything after this place,
    pub(super) after: u64,
    /// up to this one.
    pub(super) upto: u64,
    text: Bytes,
    /// The id of each event and where its text begins; ids grow.
    starts: Vec<(u64, usize)>,
    /// The text of its last event, if that is the scan.
    pub(super) scan: Option<Bytes>,
}

impl Look {
    /// Items by event, and at the end the scan, where this look reaches the last number that was given.
    pub(super) fn new(after: u64, upto: u64, items: &[(u64, Item)], scan: Option<&Scan>) -> Self {
        let (mut text, mut starts) = (String::new(), Vec::with_capacity(items.len() + 1));
        for (id, item) in items {
            starts.push((*id, text.len()));
            text.push_str(&EventKind::Item.text(Some(*id), item));
        }
        let scan_at = text.len();
        if let Some(scan) = scan {
            starts.push((upto, scan_at));
            text.push_str(&EventKind::Scan.text(Some(upto), scan));
        }
        let text = Bytes::from(text);
        let scan = scan.map(|_| text.slice(scan_at..));
        Self {
            after,
            upto,
            text,
            starts,
            scan,
        }
    }

    /// The events after a place: a slice, so that a thousand clients share one text.
    pub(super) fn text_after(&self, place: u64) -> Bytes {
        let seen = self.starts.partition_point(|(id, _)| *id <= place);
        let from = self.starts.get(seen).map_or(self.text.len(), |(_, at)| *at);
        self.text.slice(from..)
    }

    /// How many events it holds.
    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }
}
