//! What a planner sees and what it says.

use jiff::SignedDuration;
use jiff::civil::Date;
use rust_decimal::Decimal;

/// The candidates of one question.
#[derive(Debug, Clone, Copy)]
pub struct SearchView<'a> {
    /// In the order of the sweep: a candidate's index is its position.
    pub candidates: &'a [Candidate],
}

/// One combination of the swept fields, with what is known of its price.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its first date: departure or check-in.
    pub date: Date,
    /// The latest answer from before this question.
    pub stored: Option<StoredPrice>,
    /// The time since a search of before this question that did not complete, if that is newer than
    /// the answer. Only a watch goes by it.
    pub tried: Option<SignedDuration>,
    /// The answer of this question's own search, if it was searched: `Some(None)` is an answer
    /// without an offer. Prices of all candidates are in one currency.
    pub searched: Option<Option<Decimal>>,
    /// It was searched for this question, and the search did not complete or its price cannot be
    /// compared. What it costs stays unknown, and it is not searched again. Never with `searched`.
    pub unanswered: bool,
    /// The price of `searched` is implausible (history.md, rule 43): it is no best price.
    pub implausible: bool,
    /// How many decisions had been made when its answer became known.
    pub turn: usize,
    /// Stands for the values of all swept fields but the dates, and for nothing else: neighbours in
    /// date say something about each other.
    pub line: usize,
}

/// An answer that was already there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredPrice {
    /// `None`: it had no offer.
    pub price: Option<Decimal>,
    /// The time since it was searched.
    pub age: SignedDuration,
}

/// A planner's decision.
#[derive(Debug, Clone, PartialEq)]
pub enum PlannerDecision {
    /// Search these positions, in this order. None of them was searched for this question.
    Search(Vec<usize>),
    /// Nothing more needs to be searched.
    Stop(BestCandidate),
}

/// The answer to a question for the cheapest candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BestCandidate {
    /// Its position; `None`: no candidate is known to have an offer.
    pub position: Option<usize>,
    /// How often such an answer is wrong, from 0 to 1; `None`: nobody knows.
    pub risk: Option<f64>,
}

impl Candidate {
    /// A candidate of which nothing is known.
    pub fn unknown(date: Date) -> Self {
        Self {
            date,
            stored: None,
            tried: None,
            searched: None,
            unanswered: false,
            implausible: false,
            turn: 0,
            line: 0,
        }
    }

    /// Whether it was not searched for this question.
    pub fn is_unsearched(&self) -> bool {
        self.searched.is_none() && !self.unanswered
    }

    /// The time since it was last searched before this question, whatever that came to.
    pub(super) fn tried_before(&self) -> Option<SignedDuration> {
        let answered = self.stored.map(|stored| stored.age);
        match (answered, self.tried) {
            (Some(answered), Some(tried)) => Some(answered.min(tried)),
            (one, other) => one.or(other),
        }
    }

    /// The searched price, if it is plausible.
    pub fn found_price(&self) -> Option<Decimal> {
        self.searched.flatten().filter(|_| !self.implausible)
    }

    /// Whether it was searched and has an answer that counts.
    pub(super) fn is_answered(&self) -> bool {
        self.searched.is_some() && !self.implausible
    }

    /// The searched price if it is plausible, else the stored one of what was not searched.
    pub(super) fn known_plausible(&self) -> Option<Decimal> {
        match self.searched {
            Some(_) => self.found_price(),
            None => self.stored.and_then(|stored| stored.price),
        }
    }
}

impl SearchView<'_> {
    /// The positions that were not searched for this question.
    pub fn unsearched(&self) -> impl Iterator<Item = usize> {
        (0..self.candidates.len()).filter(|position| self.candidates[*position].is_unsearched())
    }

    /// The lowest plausible price that was searched for this question, with its position; of equal
    /// ones the one that was known first.
    pub fn best_found(&self) -> Option<(usize, Decimal)> {
        let found = |(at, candidate): (usize, &Candidate)| {
            Some((candidate.found_price()?, candidate.turn, at))
        };
        let all = self.candidates.iter().enumerate();
        all.filter_map(found)
            .min()
            .map(|(price, _, at)| (at, price))
    }
}
