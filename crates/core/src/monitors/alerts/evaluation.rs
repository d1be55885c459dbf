//! Evaluates all rules of a monitor for a run: their new states and what fired. Pure.

use std::collections::HashMap;

use super::alert_builder::{Firing, StrongestFirings};
use super::apply_rule::apply_rule;
use super::rule_traits::{RuleSubject, RuleTraits};
use super::run_snapshot::{RunSnapshot, ScopeView, has_searches};
use super::state::{ScopeState, ScopeStates, state_key};
use crate::contract::SearchStatus;
use crate::contract::monitors::{Rule, RuleScope};
use crate::contract::scans::{Parity, ParityVerdict};
use crate::ids::ItemId;
use crate::monitors::confirm::MAX_OF_RULE;
use crate::monitors::store::FirstPrice;
use crate::scans::cells::CellItem;

/// The key of the state of the whole scan. No cell has it.
pub(super) const WHOLE_SCAN: &str = "";

/// The result of a run.
#[derive(Debug, Default)]
pub(super) struct Evaluation {
    pub(super) fired: StrongestFirings,
    /// The number of rule evaluations, by cell, whose prices or markets were not comparable.
    pub(super) not_comparable: usize,
    /// The number of firings of rules with `confirm` on prices that no second search has found. They
    /// have not fired, and the states are those before the run.
    pub(super) unconfirmed: usize,
    /// The strongest of these of each rule whose prices may be searched once more: after a second
    /// search, of the whole scan alone, the next price.
    pub(super) to_confirm: Vec<Firing>,
    confirm: ConfirmMode,
}

/// What rules with `confirm` wait for.
#[derive(Debug, Default)]
enum ConfirmMode {
    /// Nothing: in a backtest.
    #[default]
    Ignored,
    /// A second search of the prices on which they fire; these had one, as they were found first.
    Demanded(HashMap<ItemId, FirstPrice>),
}

impl Evaluation {
    /// An evaluation in which rules with `confirm` fire only on prices that a second search has
    /// found; `searched` had one.
    pub(super) fn confirming(searched: impl IntoIterator<Item = FirstPrice>) -> Self {
        let searched = searched.into_iter().map(|found| (found.item, found));
        Self {
            confirm: ConfirmMode::Demanded(searched.collect()),
            ..Self::default()
        }
    }

    /// Evaluates the rule at `index` and returns its new states. One rule at a time, so
    /// that only its states are in memory: those of twenty rules with 10,000 cells take hundreds of
    /// megabytes.
    ///
    /// Without a run no known cell got an answer: the slot started no scan, or the previous run
    /// hangs. Then only `stale` rules change.
    pub(super) fn evaluate_rule(
        &mut self,
        index: usize,
        rule: &Rule,
        before: ScopeStates,
        run: Option<&RunSnapshot>,
    ) -> ScopeStates {
        let mut evaluation = RuleEvaluation {
            index,
            rule,
            before,
            after: ScopeStates::new(),
            unconfirmed: 0,
            to_confirm: StrongestFirings::at_most(MAX_OF_RULE),
            evaluation: self,
        };
        match (run, RuleTraits::of(rule).subject, rule_scope(rule)) {
            (None, RuleSubject::Prices | RuleSubject::Markets | RuleSubject::Plan, _) => {
                return evaluation.before;
            }
            (None, RuleSubject::Answers, scope) => evaluation.unanswered(scope),
            (Some(run), RuleSubject::Markets, _) => evaluation.markets(run),
            (Some(run), RuleSubject::Plan, _)
            | (Some(run), RuleSubject::Prices | RuleSubject::Answers, RuleScope::Scan) => {
                evaluation.scan(run);
            }
            (Some(run), RuleSubject::Prices | RuleSubject::Answers, RuleScope::Cell) => {
                evaluation.cells(run);
            }
        }
        let RuleEvaluation {
            after,
            unconfirmed,
            to_confirm,
            ..
        } = evaluation;
        self.unconfirmed += unconfirmed;
        self.to_confirm.extend(to_confirm.in_order());
        after
    }
}

/// The scope of a rule.
pub(in crate::monitors) fn rule_scope(rule: &Rule) -> RuleScope {
    match rule {
        Rule::PriceBelow(rule) => rule.scope_or_default(),
        Rule::DropPercent(rule) => rule.scope_or_default(),
        Rule::Verdict(rule) => rule.scope_or_default(),
        Rule::NewLow(rule) => rule.scope_or_default(),
        Rule::Available(rule) => rule.scope_or_default(),
        Rule::SoldOut(rule) => rule.scope_or_default(),
        Rule::PercentileAtMost(rule) => rule.scope_or_default(),
        Rule::BackInStock(rule) => rule.scope_or_default(),
        Rule::ParityGapPercent(_) => RuleScope::Cell,
        Rule::Stale(rule) => rule.scope_or_default(),
        Rule::PlanEndsBeforeReset(_) => RuleScope::Scan,
    }
}

/// The evaluation of one rule. It drops states of scopes that this run lacks: a cell that left the
/// scan does not return to an old state.
struct RuleEvaluation<'a> {
    index: usize,
    rule: &'a Rule,
    before: ScopeStates,
    after: ScopeStates,
    unconfirmed: usize,
    to_confirm: StrongestFirings,
    evaluation: &'a mut Evaluation,
}

/// A cell, or with the empty key the whole scan.
#[derive(Default)]
struct EvaluatedScope<'a> {
    key: &'a str,
    /// Its index in the run.
    cell: Option<usize>,
    /// With the index of the baseline's cell.
    parity: Option<(Parity, usize)>,
}

impl RuleEvaluation<'_> {
    fn scan(&mut self, run: &RunSnapshot) {
        let anchor = self
            .before
            .get(WHOLE_SCAN)
            .and_then(|state| state.anchor.as_ref())
            .map(|anchor| anchor.cell.clone());
        self.evaluate_scope(
            EvaluatedScope {
                key: WHOLE_SCAN,
                ..EvaluatedScope::default()
            },
            &run.requested_currency(None),
            &run.scan_view(anchor.as_deref()),
            Some(run),
        );
    }

    fn cells(&mut self, run: &RunSnapshot) {
        for (index, cell) in run.cells.all.iter().enumerate() {
            // A cell that a two-phase scan skipped still belongs to the scan.
            let view = if has_searches(cell) {
                run.cell_view(index)
            } else {
                ScopeView::default()
            };
            self.evaluate_scope(
                EvaluatedScope {
                    key: &cell.key,
                    cell: Some(index),
                    parity: None,
                },
                &run.requested_currency(Some(cell)),
                &view,
                Some(run),
            );
        }
    }

    fn markets(&mut self, run: &RunSnapshot) {
        let Rule::ParityGapPercent(parity) = self.rule else {
            return;
        };
        for comparison in run.market_comparisons(parity.baseline.as_str()) {
            let cell = &run.cells.all[comparison.market];
            let says_nothing = !matches!(
                comparison.parity.verdict,
                ParityVerdict::Gap | ParityVerdict::Noise
            );
            self.evaluation.not_comparable += usize::from(has_searches(cell) && says_nothing);
            let parity = Some((comparison.parity, comparison.baseline));
            self.evaluate_scope(
                EvaluatedScope {
                    key: &cell.key,
                    cell: Some(comparison.market),
                    parity,
                },
                &run.requested_currency(Some(cell)),
                &comparison.view,
                Some(run),
            );
        }
    }

    fn unanswered(&mut self, scope: RuleScope) {
        if scope == RuleScope::Scan {
            self.before
                .entry(WHOLE_SCAN.to_owned())
                .or_insert_with(|| ScopeState::new(self.rule));
        }
        let keys: Vec<_> = self.before.keys().cloned().collect();
        for key in &keys {
            self.evaluate_scope(
                EvaluatedScope {
                    key,
                    ..EvaluatedScope::default()
                },
                "",
                &ScopeView {
                    answered: Some(false),
                    ..ScopeView::default()
                },
                None,
            );
        }
    }

    fn evaluate_scope(
        &mut self,
        scope: EvaluatedScope<'_>,
        requested_currency: &str,
        view: &ScopeView,
        run: Option<&RunSnapshot>,
    ) {
        let key = state_key(self.rule, scope.key).into_owned();
        let before = self
            .before
            .remove(&key)
            .unwrap_or_else(|| ScopeState::new(self.rule));
        let step = apply_rule(self.rule, requested_currency, &before, view);
        self.evaluation.not_comparable += usize::from(step.not_comparable);
        let Some(fired) = step.fired else {
            self.after.insert(key, step.after);
            return;
        };
        let firing = Firing {
            rule: self.index,
            key: key.clone(),
            cell: scope.cell,
            fired,
            price: None,
            parity: scope.parity,
            found_first: None,
            before,
            after: step.after,
        };
        match self.confirmed(firing.with_price_of(view), requested_currency, run) {
            Ok(firing) => {
                self.after.insert(key, firing.after.clone());
                self.evaluation.fired.add(firing);
            }
            Err(firing) => {
                self.after.insert(key, firing.before.clone());
                self.unconfirmed += 1;
                if let Some(next) = self.next_to_confirm(*firing, requested_currency, run) {
                    self.to_confirm.add(next);
                }
            }
        }
    }

    /// The firing whose price a second search may find, after those that were not found again: of the
    /// whole scan that on all other prices, as one date that errs in each run would hide them for good.
    fn next_to_confirm(
        &self,
        firing: Firing,
        requested_currency: &str,
        run: Option<&RunSnapshot>,
    ) -> Option<Firing> {
        let ConfirmMode::Demanded(searched) = &self.evaluation.confirm else {
            return None;
        };
        if searched.is_empty() {
            return Some(firing);
        }
        let run = run.filter(|_| firing.cell.is_none())?;
        let is_new = |found: &CellItem| !searched.contains_key(&found.observation.item);
        let view = run.view_of(None, is_new);
        let step = apply_rule(self.rule, requested_currency, &firing.before, &view);
        let next = Firing {
            fired: step.fired?,
            after: step.after,
            ..firing
        };
        Some(next.with_price_of(&view))
    }

    /// The firing if no second search has to find its price, or one has; otherwise the one that the
    /// rule has on the prices that were found again: a lower one that was not hides none of them.
    /// `Err`: none.
    fn confirmed(
        &self,
        firing: Firing,
        requested_currency: &str,
        run: Option<&RunSnapshot>,
    ) -> Result<Firing, Box<Firing>> {
        let ConfirmMode::Demanded(searched) = &self.evaluation.confirm else {
            return Ok(firing);
        };
        if !self.rule.confirms() {
            return Ok(firing);
        }
        let Some(run) = run.filter(|_| !searched.is_empty()) else {
            return Err(Box::new(firing));
        };
        let found_first = |found: &CellItem| {
            let seen = &found.observation;
            let first = searched.get(&seen.item)?;
            // The searches may have run on machines with different clocks.
            let was_found =
                found.observed_at != Some(first.at) && seen.search_status == Some(SearchStatus::Ok);
            was_found.then_some(first)
        };
        let with_first = |firing: Firing| {
            let first = firing.price.as_ref().map(|price| run.found(price));
            match first.and_then(&found_first) {
                Some(first) => Ok(Firing {
                    found_first: Some(first.clone()),
                    ..firing
                }),
                None => Err(Box::new(firing)),
            }
        };
        with_first(firing).or_else(|firing| {
            let view = run.view_of(firing.cell, |found| found_first(found).is_some());
            let step = apply_rule(self.rule, requested_currency, &firing.before, &view);
            let Some(fired) = step.fired else {
                return Err(firing);
            };
            let confirmed = Firing {
                fired,
                after: step.after,
                ..(*firing).clone()
            };
            with_first(confirmed.with_price_of(&view)).map_err(|_| firing)
        })
    }
}
