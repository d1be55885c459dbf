//! Which searches answer a question for the fewest requests: pure.
//!
//! Each candidate has a *bound*, the lowest price that it may plausibly have. [`BoundSearch`]
//! searches in the order of the bounds. It keeps nothing between its decisions: the same candidates
//! give the same decision, so that a decision can be made again after a crash, and a study
//! ([`play()`]) makes the same ones as the service.
//!
//! Here: the decisions. In `search`: order and end. In `bounds`: the bound of a candidate, and
//! whether stored prices say anything. In `misses`: how often a setting has missed the cheapest, and
//! which one a question gets. In `replay`: counting that. In `watch`: what is particular to a run of
//! a watch. Not here: searching (`queue`), storing a decision (`scans`), and the strategies that
//! exist only for comparison (`benches/study`).

mod bounds;
mod candidate;
mod misses;
mod play;
mod replay;
mod search;
#[cfg(test)]
mod tests;
mod watch;

pub use candidate::{Candidate, StoredPrice, best_found, unsearched};
pub use misses::{Known, MissCount, Misses, Setting, SettingChoice};
pub use play::{Played, play};
pub use replay::{Replayed, replay};
pub use search::{BoundSearch, Ends, SearchDecision, SearchPlanner, Wanted};
pub use watch::trusted;
