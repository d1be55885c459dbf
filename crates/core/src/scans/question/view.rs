//! What a decision sees, and what is new since the decision before it: pure.
//!
//! The decisions of a scan hold all that each was made from: the first one the stored answers with
//! their times, each one the answers of the scan since the last. So a decision can be made again
//! from its row and those before it (scans.md, rule 82).

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use jiff::civil::Date;
use rust_decimal::Decimal;
use uuid::Uuid;

use crate::contract::SearchStatus;
use crate::planner::{BoundSearch, Candidate, Ends, SettingChoice, StoredPrice};
use crate::scans::item_state::StoredItemState;
use crate::scans::plan::{DateLines, QuestionEnd, QuestionPlan};

/// The decisions of a question are about so many at most. With 90 items two are searched at a time,
/// as in the studies of docs/laboratory.md.
const DECISIONS: usize = 45;

/// An answer from before the scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::scans) struct EarlierAnswer {
    pub(in crate::scans) position: usize,
    /// `None`: it had no offer.
    pub(in crate::scans) price: Option<Decimal>,
    pub(in crate::scans) observed_at: Timestamp,
}

/// What is known from before the scan.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::scans) struct Earlier {
    pub(in crate::scans) stored: Vec<EarlierAnswer>,
    /// Only of a watch: when a search did not complete, if that is newer than the answer.
    pub(in crate::scans) tried: Vec<(usize, Timestamp)>,
}

/// What became known between two decisions.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Learned {
    pub(super) earlier: Earlier,
    /// Prices of answers; `None`: no offer.
    pub(super) found: Vec<(usize, Option<Decimal>)>,
    /// Positions that were searched without an answer.
    pub(super) unanswered: Vec<usize>,
    /// All positions whose found prices are implausible.
    pub(super) implausible: BTreeSet<usize>,
}

/// All that is known of a scan's items.
#[derive(Debug, Default)]
pub(super) struct Knowledge {
    decisions: usize,
    earlier: BTreeMap<usize, EarlierAnswer>,
    tried: BTreeMap<usize, Timestamp>,
    /// With the number of decisions that had been made when it became known.
    found: BTreeMap<usize, (Option<Decimal>, usize)>,
    unanswered: BTreeSet<usize>,
    implausible: BTreeSet<usize>,
}

impl Knowledge {
    /// What the decisions so far were made from, in their order.
    pub(super) fn of(learned: &[Learned]) -> Self {
        let mut knowledge = Self::default();
        for learned in learned {
            knowledge.add(learned);
            knowledge.implausible.clone_from(&learned.implausible);
            knowledge.decisions += 1;
        }
        knowledge
    }

    fn add(&mut self, learned: &Learned) {
        for answer in &learned.earlier.stored {
            self.earlier.insert(answer.position, answer.clone());
        }
        self.tried.extend(learned.earlier.tried.iter().copied());
        for (position, price) in &learned.found {
            self.found.insert(*position, (*price, self.decisions));
            self.unanswered.remove(position);
            self.implausible.remove(position);
        }
        for position in &learned.unanswered {
            self.found.remove(position);
            self.unanswered.insert(*position);
        }
    }

    /// Adds what the items say now; returns what of it is new.
    pub(super) fn learn(
        &mut self,
        earlier: Earlier,
        items: &[DecidedItem],
        currency: &str,
    ) -> Learned {
        let mut learned = Learned {
            earlier,
            ..Learned::default()
        };
        for (position, item) in items.iter().enumerate() {
            let found = self.found.get(&position).map(|(price, _)| *price);
            match item.outcome(currency) {
                ItemOutcome::Open => {}
                ItemOutcome::Found(price) if found == Some(price) => {}
                ItemOutcome::Found(price) => learned.found.push((position, price)),
                ItemOutcome::Unanswered if self.unanswered.contains(&position) => {}
                ItemOutcome::Unanswered => learned.unanswered.push(position),
            }
        }
        self.add(&learned);
        learned
    }

    /// The lowest price that is not known to be implausible.
    pub(super) fn lowest(&self) -> Option<(usize, Decimal)> {
        let plausible = self.found.iter().filter_map(|(position, (price, _))| {
            Some(((*price)?, *position)).filter(|_| !self.implausible.contains(position))
        });
        plausible.min().map(|(price, position)| (position, price))
    }

    pub(super) fn implausible(&mut self) -> &mut BTreeSet<usize> {
        &mut self.implausible
    }

    /// The candidates of a planner at a time.
    pub(super) fn candidates(
        &self,
        items: &[DecidedItem],
        lines: DateLines,
        now: Timestamp,
    ) -> Vec<Candidate> {
        let mut candidates = candidates(items.iter().map(|item| item.date), lines);
        for answer in self.earlier.values() {
            set_stored(&mut candidates, answer, now);
        }
        for (position, candidate) in candidates.iter_mut().enumerate() {
            let found = self.found.get(&position);
            candidate.tried = self.tried.get(&position).map(|at| age(*at, now));
            candidate.searched = found.map(|(price, _)| *price);
            candidate.turn = found.map_or(0, |(_, turn)| *turn);
            candidate.unanswered = self.unanswered.contains(&position);
            candidate.implausible = self.implausible.contains(&position);
        }
        candidates
    }
}

/// An item of a decision.
pub(super) struct DecidedItem {
    pub(super) item_id: Uuid,
    pub(super) state: StoredItemState,
    pub(super) search_status: Option<SearchStatus>,
    pub(super) best_price: Option<Decimal>,
    pub(super) currency: Option<String>,
    /// Its first date.
    pub(super) date: Date,
}

/// What an item's search came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemOutcome {
    /// It has not ended.
    Open,
    /// Its best price; `None`: no offer.
    Found(Option<Decimal>),
    /// It did not complete, or its price is in another currency.
    Unanswered,
}

impl DecidedItem {
    /// A partial answer with a price counts as that price: it is true, though a lower one may
    /// exist.
    pub(super) fn outcome(&self, currency: &str) -> ItemOutcome {
        match (self.state, self.best_price) {
            (StoredItemState::Done, Some(price)) if self.currency.as_deref() == Some(currency) => {
                ItemOutcome::Found(Some(price))
            }
            (StoredItemState::Done, None)
                if matches!(
                    self.search_status,
                    Some(SearchStatus::Ok | SearchStatus::Empty)
                ) =>
            {
                ItemOutcome::Found(None)
            }
            (StoredItemState::Done | StoredItemState::Failed, _) => ItemOutcome::Unanswered,
            _ => ItemOutcome::Open,
        }
    }
}

/// The clocks of two processes may disagree.
fn age(at: Timestamp, now: Timestamp) -> jiff::SignedDuration {
    now.duration_since(at).max(jiff::SignedDuration::ZERO)
}

fn candidates(dates: impl Iterator<Item = Date>, lines: DateLines) -> Vec<Candidate> {
    let candidate = |(position, date)| Candidate {
        line: lines.line(position),
        ..Candidate::unknown(date)
    };
    dates.enumerate().map(candidate).collect()
}

fn set_stored(candidates: &mut [Candidate], answer: &EarlierAnswer, now: Timestamp) {
    if let Some(candidate) = candidates.get_mut(answer.position) {
        candidate.stored = Some(StoredPrice {
            price: answer.price,
            age: age(answer.observed_at, now),
        });
    }
}

/// The candidates of a question before its scan.
pub(in crate::scans) fn candidates_before(
    dates: impl Iterator<Item = Date>,
    lines: DateLines,
    earlier: &Earlier,
    now: Timestamp,
) -> Vec<Candidate> {
    let mut candidates = candidates(dates, lines);
    for (position, at) in &earlier.tried {
        if let Some(candidate) = candidates.get_mut(*position) {
            candidate.tried = Some(age(*at, now));
        }
    }
    for answer in &earlier.stored {
        set_stored(&mut candidates, answer, now);
    }
    candidates
}

/// How many items a decision of a question between so many searches.
pub(super) fn batch(items: usize) -> usize {
    (items / DECISIONS).max(2)
}

/// The search of a question between so many items, of which so many may be searched.
pub(in crate::scans) fn bound_search(
    question: &QuestionPlan,
    choice: SettingChoice,
    items: usize,
    may_search: Option<usize>,
) -> BoundSearch {
    let most = may_search.unwrap_or(usize::MAX);
    match question.ends {
        QuestionEnd::Spent { budget } => BoundSearch::of_watch(question.wanted, budget, most),
        QuestionEnd::Answered { .. } => BoundSearch {
            wanted: question.wanted,
            choice,
            most,
            batch: batch(items),
            ends: Ends::Answered,
        },
    }
}
