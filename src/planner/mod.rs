//! Which searches answer a question for the fewest requests: pure.
//!
//! A [`SearchPlanner`] sees the candidates of a sweep with what is known of each, and says what to
//! search next, or which candidate is best. It keeps nothing between its decisions: the same view
//! gives the same decision, so that a decision can be repeated after a crash, and a study
//! ([`play()`]) makes the same ones as the service.
//!
//! Here: the decisions. Not here: searching (`queue`), storing a decision (`scans`), and the
//! strategies that exist only for comparison (`benches/study`).

mod bound;
mod calendar;
mod change_rates;
mod full;
mod play;
#[cfg(test)]
mod tests;
mod two_phase;
mod verify;
mod view;
mod watch;

pub use bound::{
    BoundDecision, BoundReason, BoundSearch, Ends, Known, MIN_QUESTIONS, MissCount, Misses,
    Replayed, Risk, SETTINGS, Setting, SettingChoice, Wanted, replay,
};
pub use calendar::StoredCalendar;
pub use change_rates::{ChangeRates, PriceChange};
pub use full::FullSearch;
pub use play::{Played, play};
pub use two_phase::TwoPhase;
pub use verify::VerifyWinners;
pub use view::{
    BestCandidate, Candidate, ExplainedDecision, PlannerDecision, SearchView, StoredPrice,
};
pub use watch::{Watch, WatchQuestion, explored, trusted};

/// A way to choose searches.
pub trait SearchPlanner {
    /// The next searches, or the end. A pure function of the view.
    fn decide(&self, view: &SearchView<'_>) -> PlannerDecision;
}

/// A planner that the service uses: it says why.
pub trait ExplainedPlanner: SearchPlanner {
    /// The decision of [`SearchPlanner::decide`], with its reason.
    fn explain(&self, view: &SearchView<'_>) -> ExplainedDecision;
}
