//! What a strategy has searched, and what it declares about the rest.

use farescan_contract::scans::{FindProgress, PriceLimit, StrategyProgress, WatchProgress};

use crate::numbers::{count, counted};

/// What a strategy looks for, what it says, and how it came to it.
pub fn sentence(progress: &StrategyProgress) -> String {
    let goal = |below: Option<&PriceLimit>| match below {
        Some(below) => format!("one below {}", below.get()),
        None => "the cheapest".to_owned(),
    };
    match progress {
        StrategyProgress::Find(find) => {
            format!("Finds {}. {}.", goal(find.below.as_ref()), found(find))
        }
        StrategyProgress::Watch(watch) => {
            let goal = goal(watch.below.as_ref());
            format!("Watches for {goal}. {}.", watched(watch))
        }
    }
}

/// What a question for the cheapest says, and how it came to it.
fn found(find: &FindProgress) -> String {
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
