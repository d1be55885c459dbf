//! What a strategy has searched, and what it declares about the rest.

use farescan_contract::scans::{FindProgress, WatchProgress};

use crate::numbers::{count, counted};

/// What a question for the cheapest says, and how it came to it.
pub fn found(find: &FindProgress) -> String {
    format!(
        "{} {} searched, {} reused, {} not searched, in {}",
        find.risk_in_words(),
        count(find.searched),
        count(find.reused),
        count(find.unsearched),
        counted(find.decisions, "decision"),
    )
}

/// What a run of a watch says, and how it came to it.
pub fn watched(watch: &WatchProgress) -> String {
    format!(
        "{} {} searched, {} reused, {} not searched in this run, in {}",
        watch.risk_in_words(),
        count(watch.searched),
        count(watch.reused),
        count(watch.unsearched),
        counted(watch.decisions, "decision"),
    )
}
