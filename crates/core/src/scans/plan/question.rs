//! The question of a scan, over its positions, and which scans can ask none: pure.

use serde_json::Value;

use super::axes::{Axes, SweepContext};
use crate::contract::scans::{FindGoal, MaxRequests, PriceLimit, Strategy, WatchGoal};
use crate::contract::{FieldKind, FieldValue as _, Request, ValidationError, ValidationErrors};
use crate::history::Subject;
use crate::planner::Wanted;

/// The most items of a question: so many are decided in a few milliseconds (docs/laboratory.md).
const MAX_QUESTION_ITEMS: usize = 1_000;

/// A question, as it is stored before its first decision.
#[derive(Debug, Clone, PartialEq)]
pub struct QuestionPlan {
    /// What it asks.
    pub wanted: Wanted,
    /// Where it ends.
    pub ends: QuestionEnd,
    /// The one currency of all items.
    pub currency: String,
}

/// Where a question ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum QuestionEnd {
    /// When it is answered up to a risk.
    Answered {
        /// The highest accepted risk.
        max_risk: f64,
    },
    /// When a run of a watch has spent its requests.
    Spent {
        /// How many.
        budget: usize,
    },
}

/// The lines of a sweep: items that differ in the first date alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DateLines {
    /// The dates of a line; 1 if the first date is not swept.
    pub dates: usize,
    /// The positions from one date of a line to the next.
    pub step: usize,
}

impl DateLines {
    /// Each item is a line of its own.
    pub const ALONE: Self = Self { dates: 1, step: 1 };

    pub(super) fn of(axes: &Axes, context: &SweepContext<'_>) -> Self {
        let fields = context.endpoint.fields();
        let first_date = fields.iter().find(|field| field.kind == FieldKind::Date);
        let is_first = |field| first_date.is_some_and(|first| first.name == field);
        match axes.list.iter().position(|axis| is_first(axis.field)) {
            Some(index) => Self {
                dates: axes.list[index].values.len(),
                step: axes.list[index + 1..]
                    .iter()
                    .map(|axis| axis.values.len())
                    .fold(1, usize::saturating_mul),
            },
            None => Self::ALONE,
        }
    }

    /// The line of a position.
    pub fn line(self, position: usize) -> usize {
        let of_line = self.dates.saturating_mul(self.step).max(1);
        position / of_line * self.step + position % self.step.max(1)
    }
}

/// The question of a scan's strategy; the faults of its own fields are reported with the request.
pub(super) fn planned(
    context: &SweepContext<'_>,
    strategy: &Value,
    max_requests: Option<MaxRequests>,
    axes: &Axes,
    items: &[Request],
    faults: &mut ValidationErrors,
) -> Option<QuestionPlan> {
    let (field, goal, below, ends) = match Strategy::read(strategy).ok()? {
        Strategy::Find(find) => {
            let max_risk = find.max_risk_or_default().get();
            let ends = QuestionEnd::Answered { max_risk };
            ("find", find.find, find.below, ends)
        }
        Strategy::Watch(watch) => {
            let budget = max_requests.map_or(0, |max| usize::try_from(max.get()).unwrap_or(0));
            let goal = match watch.watch {
                WatchGoal::Cheapest => FindGoal::Cheapest,
                WatchGoal::Below => FindGoal::Below,
            };
            ("watch", goal, watch.below, QuestionEnd::Spent { budget })
        }
    };
    let wanted = match (goal, &below) {
        (FindGoal::Cheapest, None) => Wanted::Cheapest,
        (FindGoal::Below, Some(price)) => Wanted::Below(price.get()),
        (_, price) => {
            faults.push(price_fault(field, goal.as_str(), price.as_ref()));
            return None;
        }
    };
    let path = format!("strategy.{field}");
    Some(QuestionPlan {
        wanted,
        ends,
        currency: only_currency(context, &path, axes, items, faults)?,
    })
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

/// The currency of all items. Adds faults of a sweep that no question can be about.
fn only_currency(
    context: &SweepContext<'_>,
    path: &str,
    axes: &Axes,
    items: &[Request],
    faults: &mut ValidationErrors,
) -> Option<String> {
    let mut refuse = |found: String, expected: String| {
        faults.push(ValidationError::with_found(path, found, expected));
    };
    if context.samples() > 1 {
        let expected = "no `sweep.samples` above 1: equal searches are one candidate";
        refuse(
            format!("{} samples", context.samples()),
            expected.to_owned(),
        );
    }
    let combinations = axes.combinations();
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
    currencies.pop()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_dates_of_equal_values_of_all_other_fields() {
        // Two airports, three dates, two markets.
        let lines = DateLines { dates: 3, step: 2 };
        let all: Vec<_> = (0..12).map(|position| lines.line(position)).collect();
        assert_eq!(all, [0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3]);
        let alone = DateLines::ALONE;
        assert_eq!(
            (0..4).map(|at| alone.line(at)).collect::<Vec<_>>(),
            [0, 1, 2, 3]
        );
    }
}
