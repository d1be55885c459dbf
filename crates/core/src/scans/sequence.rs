//! The sequence numbers of items within their lane.

use crate::contract::scans::Priority;

/// The sequence numbers of items: the first one and the distance between two.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sequence {
    pub(super) start: i64,
    pub(super) stride: i64,
}

impl Sequence {
    pub(super) fn new(start: i64, priority: Priority) -> Self {
        Self {
            start,
            stride: stride(priority),
        }
    }
}

/// The distance between the sequence numbers of a scan's items: a scheduled scan gets one item
/// searched for nine of an interactive scan.
pub(super) const fn stride(priority: Priority) -> i64 {
    match priority {
        Priority::Interactive => 1,
        Priority::Scheduled => 9,
    }
}
