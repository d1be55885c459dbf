//! What a planner sees.

use jiff::SignedDuration;
use jiff::civil::Date;
use rust_decimal::Decimal;

const DAY_SECONDS: f64 = 86_400.0;
/// The age that a date counts as that was never seen, for the patience.
const NEVER_SEEN: SignedDuration = SignedDuration::from_hours(24 * 7);

/// One combination of the swept fields, with what is known of its price. The candidates of a question
/// are in the order of the sweep: the index of one is its position.
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
    /// It was searched for this question without an answer that counts: the search did not complete,
    /// or its price cannot be compared or is implausible (history.md, rule 43). What it costs stays
    /// unknown, and it is not searched again. Never with `searched`.
    pub unanswered: bool,
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

impl Candidate {
    /// A candidate of which nothing is known.
    pub fn unknown(date: Date) -> Self {
        Self {
            date,
            stored: None,
            tried: None,
            searched: None,
            unanswered: false,
            turn: 0,
            line: 0,
        }
    }

    /// Whether it was not searched for this question.
    pub fn is_unsearched(&self) -> bool {
        self.searched.is_none() && !self.unanswered
    }

    /// Whether its newest answer has no offer.
    pub(crate) fn is_without_offer(&self) -> bool {
        let is_answered = self.searched.is_some() || self.stored.is_some();
        is_answered && self.known_price().is_none()
    }

    /// The time since it was last searched before this question, whatever that came to.
    pub(crate) fn tried_before(&self) -> Option<SignedDuration> {
        let answered = self.stored.map(|stored| stored.age);
        answered.into_iter().chain(self.tried).min()
    }

    /// The price that it was found at, else the stored one.
    pub(crate) fn known_price(&self) -> Option<Decimal> {
        self.searched
            .unwrap_or_else(|| self.stored.and_then(|stored| stored.price))
    }
}

/// The positions that were not searched for this question.
pub fn unsearched(candidates: &[Candidate]) -> impl Iterator<Item = usize> {
    (0..candidates.len()).filter(|position| candidates[*position].is_unsearched())
}

/// The lowest price that was searched for this question, with its position; of equal ones the one
/// that was known first.
pub fn best_found(candidates: &[Candidate]) -> Option<(usize, Decimal)> {
    let found = |(at, candidate): (usize, &Candidate)| {
        Some((candidate.searched.flatten()?, candidate.turn, at))
    };
    let best = candidates.iter().enumerate().filter_map(found).min();
    best.map(|(price, _, at)| (at, price))
}

pub(crate) fn days(age: SignedDuration) -> f64 {
    age.as_secs_f64().max(0.0) / DAY_SECONDS
}

/// The median age of what is stored, in days. A date that was never seen counts as one seen long ago.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "days of an age that is not negative"
)]
pub(crate) fn age_in_days(candidates: &[Candidate]) -> usize {
    let age = |candidate: &Candidate| candidate.stored.map_or(NEVER_SEEN, |stored| stored.age);
    let mut ages: Vec<_> = candidates.iter().map(age).collect();
    ages.sort_unstable();
    ages.get(ages.len() / 2)
        .map_or(0, |age| days(*age).round() as usize)
}
