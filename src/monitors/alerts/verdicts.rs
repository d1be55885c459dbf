//! A run before all rules of its monitor: what each remembers now, and what fired. Pure.

use std::collections::BTreeMap;

use super::evidence::{Firing, Strongest};
use super::identity::RuleKey;
use super::rules::step;
use super::sight::{Run, Sight, was_wanted};
use super::state::{State, States};
use crate::contract::monitors::{Rule, RuleScope};
use crate::contract::scans::{Parity, ParityVerdict};

/// Under this key is what a rule remembers of the whole scan. No cell has it.
pub(super) const WHOLE_SCAN: &str = "";

/// What a run came to.
#[derive(Debug, Default)]
pub(super) struct Verdicts {
    /// Of each rule, in their order.
    pub(super) states: Vec<States>,
    pub(super) fired: Strongest,
    /// How many rules, cells counted apart, saw prices in a currency that does not compare, or markets that do not.
    pub(super) not_comparable: usize,
}

/// Judges a run. `before` has the states of each rule, in their order.
pub(super) fn judged(rules: &[Rule], before: Vec<States>, run: &Run) -> Verdicts {
    let mut verdicts = Verdicts::default();
    for ((place, rule), before) in rules.iter().enumerate().zip(before) {
        let mut bench = Bench { place, rule, before, after: States::new(), verdicts: &mut verdicts };
        match scope(rule) {
            _ if matches!(rule, Rule::ParityGapPercent(_)) => bench.markets(run),
            RuleScope::Scan => bench.scan(run),
            RuleScope::Cell => bench.cells(run),
        }
        let after = bench.after;
        verdicts.states.push(after);
    }
    verdicts
}

/// A slot that made no scan, or whose predecessor still runs: there was no answer, of any cell that is known. Nothing but `stale` moves.
pub(super) fn unanswered(rules: &[Rule], before: Vec<States>) -> Verdicts {
    let mut verdicts = Verdicts::default();
    for ((place, rule), mut before) in rules.iter().enumerate().zip(before) {
        if !matches!(rule, Rule::Stale(_)) {
            verdicts.states.push(before);
            continue;
        }
        if scope(rule) == RuleScope::Scan {
            before.entry(WHOLE_SCAN.to_owned()).or_insert_with(|| State::new(rule));
        }
        let keys: Vec<_> = before.keys().cloned().collect();
        let mut bench = Bench { place, rule, before, after: States::new(), verdicts: &mut verdicts };
        for key in keys {
            bench.look(key, "", &Sight { answered: Some(false), ..Sight::default() }, None);
        }
        let after = bench.after;
        verdicts.states.push(after);
    }
    verdicts
}

/// What a rule looks at.
pub(in crate::monitors) fn scope(rule: &Rule) -> RuleScope {
    match rule {
        Rule::PriceBelow(rule) => rule.scope_or_default(),
        Rule::DropPercent(rule) => rule.scope_or_default(),
        Rule::Verdict(rule) => rule.scope_or_default(),
        Rule::NewLow(rule) => rule.scope_or_default(),
        Rule::Available(rule) => rule.scope_or_default(),
        Rule::SoldOut(rule) => rule.scope_or_default(),
        Rule::ParityGapPercent(_) => RuleScope::Cell,
        Rule::Stale(rule) => rule.scope_or_default(),
    }
}

/// One rule at work. What is not looked at in this run is forgotten: a cell that left the scan does not come back to an old state.
struct Bench<'a> {
    place: usize,
    rule: &'a Rule,
    before: States,
    after: States,
    verdicts: &'a mut Verdicts,
}

impl Bench<'_> {
    fn scan(&mut self, run: &Run) {
        let anchor = self.before.get(WHOLE_SCAN).and_then(|state| state.anchor.as_ref()).map(|anchor| anchor.cell.clone());
        self.look(WHOLE_SCAN.to_owned(), &run.asked(None), &run.of_scan(anchor.as_deref()), None);
    }

    fn cells(&mut self, run: &Run) {
        for (place, cell) in run.cells.all.iter().enumerate() {
            // Left out of a scan in two phases: the cell is of the scan still.
            let sight = if was_wanted(cell) { run.of_cell(place) } else { Sight::default() };
            self.look(cell.key.clone(), &run.asked(Some(cell)), &sight, None);
        }
    }

    fn markets(&mut self, run: &Run) {
        let Rule::ParityGapPercent(parity) = self.rule else { return };
        for compared in run.of_markets(parity.baseline.as_str()) {
            let cell = &run.cells.all[compared.market];
            let says_nothing = !matches!(compared.parity.verdict, ParityVerdict::Gap | ParityVerdict::Noise);
            self.verdicts.not_comparable += usize::from(was_wanted(cell) && says_nothing);
            self.look(cell.key.clone(), &run.asked(Some(cell)), &compared.sight, Some((compared.parity, compared.baseline)));
        }
    }

    fn look(&mut self, key: String, asked: &str, sight: &Sight, parity: Option<(Parity, usize)>) {
        let before = self.before.remove(&key).unwrap_or_else(|| State::new(self.rule));
        let step = step(self.rule, asked, &before, sight);
        self.verdicts.not_comparable += usize::from(step.not_comparable);
        if let Some(fired) = step.fired {
            let price = fired.price.and_then(|at| sight.prices.get(at)).cloned();
            let after = step.after.clone();
            self.verdicts.fired.add(Firing { rule: self.place, key: key.clone(), fired, price, parity, before, after });
        }
        self.after.insert(key, step.after);
    }
}

/// The states of each rule, in their order, out of those that are kept; what is left belongs to no rule any more.
pub(super) fn in_order(keys: &[RuleKey], mut kept: BTreeMap<RuleKey, States>) -> Vec<States> {
    keys.iter().map(|key| kept.remove(key).unwrap_or_default()).collect()
}
