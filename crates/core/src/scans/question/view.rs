//! What a decision sees, and what is new since the decision before it: pure.
//!
//! The decisions of a scan hold all that each was made from: the first one the stored answers with
//! their times, each one the answers of the scan since the last. So a decision can be made again
//! from its row and those before it (scans.md, rule 82).

use jiff::Timestamp;
use jiff::civil::Date;
use jiff_sqlx::Timestamp as SqlTimestamp;
use rust_decimal::Decimal;
use uuid::Uuid;

use crate::contract::SearchStatus;
use crate::planner::{Candidate, StoredPrice};
use crate::scans::item_state::StoredItemState;
use crate::scans::plan::DateLines;

/// What became known between two decisions, as it is stored: positions with what is known of each.
#[derive(Debug, Default)]
pub(in crate::scans) struct Learned {
    /// Answers from before the scan; without a price: it had no offer.
    pub(super) stored_positions: Vec<i32>,
    pub(super) stored_prices: Vec<Option<Decimal>>,
    pub(super) stored_at: Vec<SqlTimestamp>,
    /// Only of a watch: when a search of before the scan did not complete, if that is newer.
    pub(super) tried_positions: Vec<i32>,
    pub(super) tried_at: Vec<SqlTimestamp>,
    /// Answers of the scan; without a price: it had no offer.
    pub(super) found_positions: Vec<i32>,
    pub(super) found_prices: Vec<Option<Decimal>>,
    /// Searched without an answer.
    pub(super) unanswered: Vec<i32>,
}

impl Learned {
    pub(super) fn add_stored(&mut self, position: i32, price: Option<Decimal>, at: SqlTimestamp) {
        self.stored_positions.push(position);
        self.stored_prices.push(price);
        self.stored_at.push(at);
    }
}

/// An item of a decision.
pub(super) struct DecidedItem {
    pub(super) item_id: Uuid,
    pub(super) state: StoredItemState,
    pub(super) search_status: Option<SearchStatus>,
    pub(super) best_price: Option<Decimal>,
    pub(super) currency: Option<String>,
    /// Its first date; every search has one.
    pub(super) first_date: Option<jiff_sqlx::Date>,
    /// It took an earlier answer.
    pub(super) is_reused: bool,
}

impl DecidedItem {
    /// Whether its answer is complete.
    pub(super) fn is_whole(&self) -> bool {
        let is_whole = matches!(
            self.search_status,
            Some(SearchStatus::Ok | SearchStatus::Empty)
        );
        self.state == StoredItemState::Done && is_whole
    }

    pub(super) fn date(&self) -> Date {
        self.first_date.map_or(Date::MAX, jiff_sqlx::Date::to_jiff)
    }
}

/// Adds what the items say now to the candidates, and what of it is new to the last of the decisions. A
/// partial answer with a price counts as that price: it is true, though a lower one may exist. A price
/// in another currency is no answer.
pub(super) fn learn(
    candidates: &mut [Candidate],
    items: &[DecidedItem],
    currency: &str,
    decisions: &mut [Learned],
) {
    let Some((learned, before)) = decisions.split_last_mut() else {
        return;
    };
    for ((item, candidate), position) in items.iter().zip(candidates).zip(0..) {
        let has_ended = matches!(item.state, StoredItemState::Done | StoredItemState::Failed);
        let is_answer = match item.best_price {
            Some(_) => item.currency.as_deref() == Some(currency),
            None => item.is_whole(),
        };
        let found = (is_answer && item.state == StoredItemState::Done).then_some(item.best_price);
        if !has_ended || candidate.searched == found && candidate.unanswered == found.is_none() {
            continue;
        }
        (candidate.searched, candidate.unanswered) = (found, found.is_none());
        match found {
            Some(price) => {
                candidate.turn = before.len();
                learned.found_positions.push(position);
                learned.found_prices.push(price);
            }
            None => learned.unanswered.push(position),
        }
    }
}

/// The candidates of a question at a time, by what its decisions have learned so far.
pub(in crate::scans) fn candidates(
    dates: impl Iterator<Item = Date>,
    lines: DateLines,
    decisions: &[Learned],
    now: Timestamp,
) -> Vec<Candidate> {
    // The clocks of two processes may disagree.
    let age = |at: SqlTimestamp| {
        now.duration_since(at.to_jiff())
            .max(jiff::SignedDuration::ZERO)
    };
    let candidate = |(position, date)| Candidate {
        line: lines.line(position),
        ..Candidate::unknown(date)
    };
    let mut candidates: Vec<_> = dates.enumerate().map(candidate).collect();
    for (turn, learned) in decisions.iter().enumerate() {
        let answers = learned.stored_prices.iter().zip(&learned.stored_at);
        for (at, (price, observed)) in learned.stored_positions.iter().zip(answers) {
            candidates[count(*at)].stored = Some(StoredPrice {
                price: *price,
                age: age(*observed),
            });
        }
        for (at, tried) in learned.tried_positions.iter().zip(&learned.tried_at) {
            candidates[count(*at)].tried = Some(age(*tried));
        }
        for (at, price) in learned.found_positions.iter().zip(&learned.found_prices) {
            let candidate = &mut candidates[count(*at)];
            (candidate.searched, candidate.unanswered) = (Some(*price), false);
            candidate.turn = turn;
        }
        for at in &learned.unanswered {
            let candidate = &mut candidates[count(*at)];
            (candidate.searched, candidate.unanswered) = (None, true);
        }
    }
    candidates
}

pub(super) fn count(number: i32) -> usize {
    usize::try_from(number).unwrap_or_default()
}
