//! How a scan's strategy maps to its positions, and which scans it cannot decide: pure.

use std::ops::RangeInclusive;

use serde_json::Value;

use super::axes::{Axes, Axis, SweepContext};
use rust_decimal::Decimal;

use crate::contract::scans::{
    FindGoal, FindStrategy, MaxRequests, PriceLimit, Strategy, WatchGoal, WatchStrategy,
};
use crate::contract::{FieldValue as _, Request, ValidationError, ValidationErrors};
use crate::history::Subject;
use crate::planner::{self, TwoPhase, WatchQuestion};

/// The most items of a question: so many are decided in 5 ms (docs/laboratory.md).
const MAX_QUESTION_ITEMS: usize = 1_000;
/// The decisions of a question with stored prices are about so many at most. With 90 items two are
/// searched at a time, as in the studies of docs/laboratory.md.
const DECISIONS: usize = 45;
/// What is done with few stored prices: the phases of the studies.
const COARSE_STEP: usize = 4;
const REFINE: usize = 4;

/// A strategy over the positions of a scan.
#[derive(Debug, Clone, PartialEq)]
pub enum PlannedStrategy {
    /// Every n-th date first.
    TwoPhase(TwoPhase),
    /// A question that decides many times.
    Question(QuestionPlan),
}

/// What a question asks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Asks {
    /// The cheapest of all, or one below a price, up to a risk.
    Find {
        /// The price; `None`: the cheapest.
        below: Option<Decimal>,
        /// The highest accepted risk.
        max_risk: f64,
    },
    /// What has changed since earlier runs, within the scan's `max_requests`.
    Watch(WatchQuestion),
}

/// What is fixed of a question.
#[derive(Debug, Clone, PartialEq)]
pub struct QuestionPlan {
    /// What it asks.
    pub asks: Asks,
    /// How many items a decision searches.
    pub batch: usize,
    /// The one currency of all items.
    pub currency: String,
    /// What is done with few stored prices: two phases, or without exactly one date range a search
    /// of all.
    pub otherwise: TwoPhase,
}

impl PlannedStrategy {
    /// The phases: those that were asked for, or those of a question with few stored prices.
    #[must_use]
    pub fn phases(&self) -> &TwoPhase {
        match self {
            Self::TwoPhase(phases) => phases,
            Self::Question(question) => &question.otherwise,
        }
    }

    /// Whether the item at a position waits for a decision when it is stored. Of a question all
    /// do; but the first items of a caller that is not accepted yet are searched one by one
    /// (docs/decisions/0029). It has no stored prices, so that its phases are known.
    #[must_use]
    pub fn is_deferred(&self, position: usize, accepted: bool) -> bool {
        match self {
            Self::Question(QuestionPlan {
                asks: Asks::Watch(_),
                ..
            }) => accepted || position > 0,
            Self::Question(_) if accepted => true,
            Self::Question(_) | Self::TwoPhase(_) => !self.phases().is_coarse(position),
        }
    }

    /// The fewest and the most of `items` that are searched.
    pub(super) fn searches(
        &self,
        items: usize,
        max_requests: Option<MaxRequests>,
    ) -> RangeInclusive<usize> {
        match self {
            Self::TwoPhase(phases) => phases.searches(items),
            Self::Question(question) => {
                let ceiling = max_requests.map_or(usize::MAX, |max| {
                    usize::try_from(max.get()).unwrap_or(usize::MAX)
                });
                let most = items.min(ceiling);
                let least = match question.asks {
                    Asks::Find { .. } => question.batch,
                    Asks::Watch(_) => planner::explored(ceiling),
                };
                least.min(most)..=most
            }
        }
    }
}

/// The strategy of a scan. Faults of its own fields are reported with the scan request.
pub(super) fn planned(
    context: &SweepContext<'_>,
    strategy: &Value,
    axes: &Axes,
    items: &[Request],
    faults: &mut ValidationErrors,
) -> Option<PlannedStrategy> {
    match Strategy::read(strategy) {
        Ok(Strategy::Find(find)) => {
            let max_risk = find.max_risk_or_default().get();
            if let Some(fault) = wrong_price(&find) {
                faults.push(fault);
                return None;
            }
            let below = find.below.as_ref().map(PriceLimit::get);
            let asked = ("strategy.find", Asks::Find { below, max_risk });
            question(context, asked, axes, items, faults).map(PlannedStrategy::Question)
        }
        Ok(Strategy::Watch(watch)) => {
            let asked = (
                "strategy.watch",
                Asks::Watch(watch_question(&watch, faults)?),
            );
            question(context, asked, axes, items, faults).map(PlannedStrategy::Question)
        }
        Ok(Strategy::TwoPhase(phases)) => {
            let step = usize::from(phases.coarse_step.get());
            let refine = usize::from(phases.refine.get());
            let over = |range| two_phase(step, refine, axes, range);
            match only_range(axes) {
                Some(range) => Some(PlannedStrategy::TwoPhase(over(range))),
                None => {
                    refuse_ranges(strategy, faults);
                    None
                }
            }
        }
        Err(_) => {
            let is_question = ["find", "max_risk", "watch", "below"]
                .iter()
                .any(|field| strategy.get(field).is_some());
            if !is_question && only_range(axes).is_none() {
                refuse_ranges(strategy, faults);
            }
            None
        }
    }
}

fn refuse_ranges(strategy: &Value, faults: &mut ValidationErrors) {
    faults.push(ValidationError::new(
        "strategy",
        strategy,
        "a sweep with exactly one date range {from, to}",
    ));
}

/// The index of the only date range.
fn only_range(axes: &Axes) -> Option<usize> {
    let ranges: Vec<_> = (0..axes.list.len())
        .filter(|index| axes.list[*index].is_range())
        .collect();
    match ranges[..] {
        [only] => Some(only),
        _ => None,
    }
}

fn lengths(axes: &[Axis]) -> usize {
    axes.iter()
        .map(|axis| axis.values.len())
        .fold(1, usize::saturating_mul)
}

/// Maps the date range at `range` to positions.
fn two_phase(coarse_step: usize, refine: usize, axes: &Axes, range: usize) -> TwoPhase {
    TwoPhase {
        coarse_step,
        refine,
        dates: axes.list[range].values.len(),
        inner_items: lengths(&axes.list[range + 1..]),
        combinations: lengths(&axes.list),
    }
}

/// The fault of a price that is missing, or that the goal does not ask for.
fn wrong_price(find: &FindStrategy) -> Option<ValidationError> {
    match (find.find, &find.below) {
        (FindGoal::Cheapest, None) | (FindGoal::Below, Some(_)) => None,
        (goal, price) => Some(price_fault("find", goal.as_str(), price.as_ref())),
    }
}

/// What a watch asks.
fn watch_question(watch: &WatchStrategy, faults: &mut ValidationErrors) -> Option<WatchQuestion> {
    match (watch.watch, &watch.below) {
        (WatchGoal::Cheapest, None) => Some(WatchQuestion::Cheapest),
        (WatchGoal::EveryDate, None) => Some(WatchQuestion::EveryDate),
        (WatchGoal::Below, Some(price)) => Some(WatchQuestion::Below(price.get())),
        (goal, price) => {
            faults.push(price_fault("watch", goal.as_str(), price.as_ref()));
            None
        }
    }
}

/// The price belongs to the goal `below`, and to nothing else.
fn price_fault(field: &str, goal: &str, price: Option<&PriceLimit>) -> ValidationError {
    let path = "strategy.below";
    match price {
        Some(price) => {
            let expected =
                format!("no price: `{field}` is `{goal}`, and only `below` asks for one");
            ValidationError::new(path, &price.to_value(), expected)
        }
        None => {
            let of = PriceLimit::expected();
            ValidationError::missing(
                path,
                format!("{of}, the price that `{field}` `below` asks for"),
            )
        }
    }
}

/// Plans a question; the path is that of its field.
fn question(
    context: &SweepContext<'_>,
    (path, asks): (&str, Asks),
    axes: &Axes,
    items: &[Request],
    faults: &mut ValidationErrors,
) -> Option<QuestionPlan> {
    let mut refuse = |found: String, expected: String| {
        faults.push(ValidationError::with_found(path, found, expected));
    };
    let samples = context.sweep.samples.map_or(1, |samples| samples.get());
    if samples > 1 {
        let expected = "no `sweep.samples` above 1: equal searches are one candidate";
        refuse(format!("{samples} samples"), expected.to_owned());
    }
    let combinations = lengths(&axes.list);
    if combinations > MAX_QUESTION_ITEMS {
        let expected = format!("at most {MAX_QUESTION_ITEMS} searches to decide between");
        refuse(format!("{combinations} searches"), expected);
    }
    // Without a valid search its own fault is reported.
    let mut currencies: Vec<_> = items
        .iter()
        .filter_map(|item| Some(Subject::of(item)?.series.currency))
        .collect();
    currencies.sort_unstable();
    currencies.dedup();
    if currencies.len() > 1 {
        let expected = "one currency: prices of several cannot be compared";
        refuse(currencies.join(", "), expected.to_owned());
    }
    let otherwise = match only_range(axes) {
        Some(range) => two_phase(COARSE_STEP, REFINE, axes, range),
        // One date, so that every item is in the first phase.
        None => TwoPhase {
            coarse_step: COARSE_STEP,
            refine: REFINE,
            dates: 1,
            inner_items: combinations,
            combinations,
        },
    };
    Some(QuestionPlan {
        asks,
        batch: (combinations / DECISIONS).max(2),
        currency: currencies.pop()?,
        otherwise,
    })
}
