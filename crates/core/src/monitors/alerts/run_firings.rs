//! What all rules of a monitor make of a run: their new states and what fired. Pure.

use std::collections::HashMap;

use super::alert_builder::{Firing, StrongestFirings};
use super::rules::{self, RuleSubject, rule_scope};
use super::run_snapshot::{RunSnapshot, ScopeView, has_searches};
use super::state::ScopeStates;
use crate::contract::SearchStatus;
use crate::contract::monitors::{Rule, RuleScope};
use crate::contract::scans::{Parity, ParityVerdict};
use crate::ids::ItemId;
use crate::monitors::confirm::MAX_OF_RULE;
use crate::monitors::store::FirstPrice;
use crate::scans::cells::CellItem;

/// The key of the state of the whole scan. No cell has it.
pub(super) const WHOLE_SCAN: &str = "";

/// The firings of a run.
#[derive(Debug, Default)]
pub(super) struct RunFirings {
    pub(super) fired: StrongestFirings,
    /// How often the prices or markets of a cell were not comparable for a rule.
    pub(super) not_comparable: usize,
    /// The number of firings of rules with `confirm` on prices that no second search has found. They
    /// have not fired, and the states are those before the run.
    pub(super) unconfirmed: usize,
    /// The strongest of these of each rule whose prices may be searched once more: after a second
    /// search, of the whole scan alone, the next price.
    pub(super) to_confirm: Vec<Firing>,
    /// Rules with `confirm` fire only on prices that a second search has found. These had one, as
    /// they were found first. `None`: these rules wait for nothing, in a backtest.
    searched_again: Option<HashMap<ItemId, FirstPrice>>,
}

impl RunFirings {
    /// Firings in which rules with `confirm` fire only on prices that a second search has found;
    /// `searched` had one.
    pub(super) fn confirming(searched: impl IntoIterator<Item = FirstPrice>) -> Self {
        let searched = searched.into_iter().map(|found| (found.item, found));
        Self {
            searched_again: Some(searched.collect()),
            ..Self::default()
        }
    }

    /// Applies the rule at `index` and returns its new states. One rule at a time, so
    /// that only its states are in memory: those of twenty rules with 10,000 cells take hundreds of
    /// megabytes.
    ///
    /// Without a run no known cell got an answer: the slot started no scan, or the previous run
    /// hangs. Then only `stale` rules change.
    pub(super) fn apply_rule(
        &mut self,
        index: usize,
        rule: &Rule,
        before: ScopeStates,
        run: Option<&RunSnapshot>,
    ) -> ScopeStates {
        let subject = rules::of(rule).subject();
        if run.is_none() && subject != RuleSubject::Answers {
            return before;
        }
        let mut application = RuleApplication {
            index,
            rule,
            run,
            before,
            after: ScopeStates::new(),
            unconfirmed: 0,
            to_confirm: StrongestFirings::at_most(MAX_OF_RULE),
            firings: self,
        };
        match (run, subject, rule_scope(rule)) {
            (None, _, scope) => application.without_run(scope),
            (Some(run), RuleSubject::Markets { baseline }, _) => application.markets(run, baseline),
            (Some(run), _, RuleScope::Scan) => application.scan(run),
            (Some(run), _, RuleScope::Cell) => application.cells(run),
        }
        let RuleApplication {
            after,
            unconfirmed,
            to_confirm,
            ..
        } = application;
        self.unconfirmed += unconfirmed;
        self.to_confirm.extend(to_confirm.in_order());
        after
    }
}

/// A rule that is applied to the scopes of a run. It drops states of scopes that this run lacks: a
/// cell that left the scan does not return to an old state.
struct RuleApplication<'a> {
    index: usize,
    rule: &'a Rule,
    run: Option<&'a RunSnapshot>,
    before: ScopeStates,
    after: ScopeStates,
    unconfirmed: usize,
    to_confirm: StrongestFirings,
    firings: &'a mut RunFirings,
}

impl RuleApplication<'_> {
    fn scan(&mut self, run: &RunSnapshot) {
        let before = self.before.get(WHOLE_SCAN);
        let anchor = before.and_then(|state| state.anchor.as_ref());
        let view = run.scan_view(anchor.map(|anchor| anchor.cell.as_str()));
        self.scope(WHOLE_SCAN, None, None, &view);
    }

    fn cells(&mut self, run: &RunSnapshot) {
        for (index, cell) in run.cells.all.iter().enumerate() {
            self.scope(&cell.key, Some(index), None, &run.cell_view(index));
        }
    }

    fn markets(&mut self, run: &RunSnapshot, baseline: &str) {
        for comparison in run.market_comparisons(baseline) {
            let cell = &run.cells.all[comparison.market];
            let says_nothing = !matches!(
                comparison.parity.verdict,
                ParityVerdict::Gap | ParityVerdict::Noise
            );
            self.firings.not_comparable += usize::from(has_searches(cell) && says_nothing);
            let parity = Some((comparison.parity, comparison.baseline));
            self.scope(&cell.key, Some(comparison.market), parity, &comparison.view);
        }
    }

    fn without_run(&mut self, scope: RuleScope) {
        let mut keys: Vec<_> = self.before.keys().cloned().collect();
        if scope == RuleScope::Scan && !self.before.contains_key(WHOLE_SCAN) {
            keys.push(WHOLE_SCAN.to_owned());
        }
        let view = ScopeView {
            answered: Some(false),
            ..ScopeView::default()
        };
        for key in &keys {
            self.scope(key, None, None, &view);
        }
    }

    /// Applies the rule to a cell, or with the empty key to the whole scan. `cell` is its index in the
    /// run, and `parity` comes with the index of the baseline's cell.
    fn scope(
        &mut self,
        key: &str,
        cell: Option<usize>,
        parity: Option<(Parity, usize)>,
        view: &ScopeView,
    ) {
        let rule = rules::of(self.rule);
        let key = rule.state_key(key).into_owned();
        let before = self.before.remove(&key);
        let before = before.unwrap_or_else(|| rule.first_state());
        let step = rule.step(&before, view);
        self.firings.not_comparable += usize::from(step.not_comparable);
        let Some(fired) = step.fired else {
            self.after.insert(key, step.after);
            return;
        };
        let firing = Firing {
            rule: self.index,
            key: key.clone(),
            cell,
            fired,
            price: None,
            parity,
            found_first: None,
            before,
            after: step.after,
        };
        match self.confirmed(firing.with_price_of(view)) {
            Ok(firing) => {
                self.after.insert(key, firing.after.clone());
                self.firings.fired.add(firing);
            }
            Err(firing) => {
                self.after.insert(key, firing.before.clone());
                self.unconfirmed += 1;
                if let Some(next) = self.next_to_confirm(*firing) {
                    self.to_confirm.add(next);
                }
            }
        }
    }

    /// The firing whose price a second search may find, after those that were not found again: of the
    /// whole scan that on all other prices, as one date that errs in each run would hide them for good.
    fn next_to_confirm(&self, firing: Firing) -> Option<Firing> {
        let searched = self.firings.searched_again.as_ref()?;
        if searched.is_empty() {
            return Some(firing);
        }
        let run = self.run.filter(|_| firing.cell.is_none())?;
        self.firing_on(
            firing,
            &run.view_of(None, |found| {
                !searched.contains_key(&found.observation.item)
            }),
        )
    }

    /// The firing that the rule has on another view of its scope.
    fn firing_on(&self, firing: Firing, view: &ScopeView) -> Option<Firing> {
        let step = rules::of(self.rule).step(&firing.before, view);
        let other = Firing {
            fired: step.fired?,
            after: step.after,
            ..firing
        };
        Some(other.with_price_of(view))
    }

    /// The firing if no second search has to find its price, or one has; otherwise the one that the
    /// rule has on the prices that were found again: a lower one that was not hides none of them.
    /// `Err`: none.
    fn confirmed(&self, firing: Firing) -> Result<Firing, Box<Firing>> {
        let searched = match &self.firings.searched_again {
            Some(searched) if self.rule.confirms() => searched,
            _ => return Ok(firing),
        };
        let Some(run) = self.run.filter(|_| !searched.is_empty()) else {
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
            match self.firing_on((*firing).clone(), &view) {
                Some(confirmed) => with_first(confirmed).map_err(|_| firing),
                None => Err(firing),
            }
        })
    }
}
