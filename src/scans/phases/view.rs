//! What a decision sees, and what is new since the decision before it: pure.
//!
//! The decisions of a scan hold all that each was made from: the first one the stored answers with
//! their times, each one the answers of the scan since the last. So a decision can be made again
//! from its row and those before it (scans.md, rule 82).

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use rust_decimal::Decimal;
use uuid::Uuid;

use crate::contract::SearchStatus;
use crate::planner::{
    Candidate, ChangeRates, ExplainedDecision, ExplainedPlanner, SearchView, StoredPrice, TwoPhase,
    VerifyWinners, Watch, WatchQuestion,
};
use crate::scans::item_state::StoredItemState;
use crate::scans::plan::{Asks, QuestionPlan, ScanPlan};

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
    pub(super) stored: Vec<EarlierAnswer>,
    /// Searches of before the scan that did not complete, if they are newer than the answer.
    pub(super) tried: Vec<(usize, Timestamp)>,
    /// Prices of answers; `None`: no offer.
    pub(super) found: Vec<(usize, Option<Decimal>)>,
    /// Positions that were searched without an answer.
    pub(super) unanswered: Vec<usize>,
}

/// All that is known of a scan's items.
#[derive(Debug, Default)]
pub(super) struct Knowledge {
    stored: BTreeMap<usize, (Option<Decimal>, Timestamp)>,
    tried: BTreeMap<usize, Timestamp>,
    found: BTreeMap<usize, Option<Decimal>>,
    unanswered: BTreeSet<usize>,
}

impl Knowledge {
    /// What the decisions so far were made from, in their order.
    pub(super) fn of(learned: &[Learned]) -> Self {
        let mut knowledge = Self::default();
        for learned in learned {
            knowledge.add(learned);
        }
        knowledge
    }

    fn add(&mut self, learned: &Learned) {
        for answer in &learned.stored {
            self.stored
                .insert(answer.position, (answer.price, answer.observed_at));
        }
        self.tried.extend(learned.tried.iter().copied());
        for (position, price) in &learned.found {
            self.found.insert(*position, *price);
            self.unanswered.remove(position);
        }
        for position in &learned.unanswered {
            self.found.remove(position);
            self.unanswered.insert(*position);
        }
    }

    /// Adds what the items say now; returns what of it is new.
    pub(super) fn learn(
        &mut self,
        Earlier { stored, tried }: Earlier,
        items: &[DecidedItem],
        currency: Option<&str>,
    ) -> Learned {
        let mut learned = Learned {
            stored,
            tried,
            ..Learned::default()
        };
        for (position, item) in items.iter().enumerate() {
            match item.outcome(currency) {
                ItemOutcome::Open => {}
                ItemOutcome::Found(price) if self.found.get(&position) == Some(&price) => {}
                ItemOutcome::Found(price) => learned.found.push((position, price)),
                ItemOutcome::Unanswered if self.unanswered.contains(&position) => {}
                ItemOutcome::Unanswered => learned.unanswered.push(position),
            }
        }
        self.add(&learned);
        learned
    }

    /// The candidates of a planner at a time.
    pub(super) fn candidates(&self, items: &[DecidedItem], now: Timestamp) -> Vec<Candidate> {
        let candidate = |(position, item): (usize, &DecidedItem)| Candidate {
            stored: self
                .stored
                .get(&position)
                .map(|(price, at)| stored_price(*price, *at, now)),
            tried: self.tried.get(&position).map(|at| age(*at, now)),
            searched: self.found.get(&position).copied(),
            unanswered: self.unanswered.contains(&position),
            ..Candidate::unknown(item.date)
        };
        items.iter().enumerate().map(candidate).collect()
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
    pub(super) fn outcome(&self, currency: Option<&str>) -> ItemOutcome {
        match (self.state, self.best_price) {
            (StoredItemState::Done, Some(price)) if self.currency.as_deref() == currency => {
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

fn stored_price(price: Option<Decimal>, at: Timestamp, now: Timestamp) -> StoredPrice {
    StoredPrice {
        price,
        age: age(at, now),
    }
}

/// The clocks of two processes may disagree.
fn age(at: Timestamp, now: Timestamp) -> jiff::SignedDuration {
    now.duration_since(at).max(jiff::SignedDuration::ZERO)
}

/// The candidates of a question before its scan.
pub(in crate::scans) fn candidates(
    dates: impl Iterator<Item = Date>,
    earlier: &Earlier,
    now: Timestamp,
) -> Vec<Candidate> {
    let mut candidates: Vec<_> = dates.map(Candidate::unknown).collect();
    for (position, at) in &earlier.tried {
        if let Some(candidate) = candidates.get_mut(*position) {
            candidate.tried = Some(age(*at, now));
        }
    }
    for answer in &earlier.stored {
        if let Some(candidate) = candidates.get_mut(answer.position) {
            candidate.stored = Some(stored_price(answer.price, answer.observed_at, now));
        }
    }
    candidates
}

/// What a decision depends on beside its view.
#[derive(Debug, Clone, Copy)]
pub(in crate::scans) struct Asked {
    /// How many may be searched in all.
    pub(in crate::scans) may_search: Option<usize>,
    pub(in crate::scans) now: Timestamp,
}

/// What is fixed of a question.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::scans) struct Question {
    pub(in crate::scans) asks: AskedWithin,
    pub(in crate::scans) batch: usize,
    pub(in crate::scans) currency: String,
}

/// What a question asks, with its limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::scans) enum AskedWithin {
    Find {
        below: Option<Decimal>,
        max_risk: f64,
    },
    Watch {
        question: WatchQuestion,
        budget: usize,
    },
}

impl Question {
    /// The question of a plan; `None` if it asks none.
    pub(in crate::scans) fn of(plan: &ScanPlan) -> Option<Self> {
        let QuestionPlan {
            asks,
            batch,
            currency,
            ..
        } = plan.question()?;
        let max = plan.scan_request.max_requests;
        let asks = match *asks {
            Asks::Find { below, max_risk } => AskedWithin::Find { below, max_risk },
            Asks::Watch(question) => AskedWithin::Watch {
                question,
                budget: max.map_or(0, |max| usize::try_from(max.get()).unwrap_or(usize::MAX)),
            },
        };
        Some(Self {
            asks,
            batch: *batch,
            currency: currency.clone(),
        })
    }

    /// Whether it goes by what is known of earlier runs beside the latest answers.
    pub(in crate::scans) fn is_watch(&self) -> bool {
        matches!(self.asks, AskedWithin::Watch { .. })
    }

    /// The planner of the question.
    pub(in crate::scans) fn planner<'r>(
        &self,
        otherwise: TwoPhase,
        rates: &'r ChangeRates,
        asked: Asked,
    ) -> Box<dyn ExplainedPlanner + 'r> {
        let ceiling = asked.may_search.unwrap_or(usize::MAX);
        let today = TimeZone::UTC.to_datetime(asked.now).date();
        match self.asks {
            AskedWithin::Find { below, max_risk } => Box::new(VerifyWinners {
                below,
                max_risk,
                ceiling,
                batch: self.batch,
                today,
                rates,
                otherwise,
            }),
            AskedWithin::Watch { question, budget } => Box::new(Watch {
                question,
                budget,
                ceiling,
                today,
                rates,
            }),
        }
    }

    pub(super) fn explain(
        &self,
        otherwise: TwoPhase,
        rates: &ChangeRates,
        candidates: &[Candidate],
        asked: Asked,
    ) -> ExplainedDecision {
        explain(self.planner(otherwise, rates, asked).as_ref(), candidates)
    }
}

pub(super) fn explain(
    planner: &dyn ExplainedPlanner,
    candidates: &[Candidate],
) -> ExplainedDecision {
    planner.explain(&SearchView { candidates })
}
