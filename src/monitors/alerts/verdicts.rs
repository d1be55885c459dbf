//! A run before all rules of its monitor: what each remembers now, and what fired. Pure.

use super::evidence::{Firing, Strongest};
use super::kind::{Kind, Subject};
use super::rules::step;
use super::sight::{Run, Sight, was_wanted};
use super::state::{State, States, kept_under};
use crate::contract::monitors::{Rule, RuleScope};
use crate::contract::scans::{Parity, ParityVerdict};

/// Under this key is what a rule remembers of the whole scan. No cell has it.
pub(super) const WHOLE_SCAN: &str = "";

/// What a run came to.
#[derive(Debug, Default)]
pub(super) struct Verdicts {
    pub(super) fired: Strongest,
    /// How many rules, cells counted apart, saw prices in a currency that does not compare, or markets that do not.
    pub(super) not_comparable: usize,
}

impl Verdicts {
    /// Shows a run to the rule at this place of its monitor; `before` is what it remembered, what comes back is what it remembers now. One
    /// by one, so that the states of one rule are in memory at a time: those of twenty, with 10,000 cells each, are hundreds of megabytes.
    ///
    /// Without a run there was no answer, of any cell that is known: the slot made no scan, or the run before it hangs. Nothing but `stale`
    /// moves then.
    pub(super) fn judge(
        &mut self,
        place: usize,
        rule: &Rule,
        before: States,
        run: Option<&Run>,
    ) -> States {
        let mut bench = Bench {
            place,
            rule,
            before,
            after: States::new(),
            verdicts: self,
        };
        match (run, Kind::of(rule).subject, scope(rule)) {
            (None, Subject::Prices | Subject::Markets, _) => return bench.before,
            (None, Subject::Answers, scope) => bench.unanswered(scope),
            (Some(run), Subject::Markets, _) => bench.markets(run),
            (Some(run), Subject::Prices | Subject::Answers, RuleScope::Scan) => bench.scan(run),
            (Some(run), Subject::Prices | Subject::Answers, RuleScope::Cell) => bench.cells(run),
        }
        bench.after
    }
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

/// What a rule looks at in one step: a cell, or under the empty key the whole scan.
#[derive(Default)]
struct Scope<'a> {
    key: &'a str,
    /// Its place in the run.
    cell: Option<usize>,
    /// With the place of the baseline's.
    parity: Option<(Parity, usize)>,
}

impl Bench<'_> {
    fn scan(&mut self, run: &Run) {
        let anchor = self
            .before
            .get(WHOLE_SCAN)
            .and_then(|state| state.anchor.as_ref())
            .map(|anchor| anchor.cell.clone());
        self.look(
            Scope {
                key: WHOLE_SCAN,
                ..Scope::default()
            },
            &run.asked(None),
            &run.of_scan(anchor.as_deref()),
        );
    }

    fn cells(&mut self, run: &Run) {
        for (place, cell) in run.cells.all.iter().enumerate() {
            // Left out of a scan in two phases: the cell is of the scan still.
            let sight = if was_wanted(cell) {
                run.of_cell(place)
            } else {
                Sight::default()
            };
            self.look(
                Scope {
                    key: &cell.key,
                    cell: Some(place),
                    parity: None,
                },
                &run.asked(Some(cell)),
                &sight,
            );
        }
    }

    fn markets(&mut self, run: &Run) {
        let Rule::ParityGapPercent(parity) = self.rule else {
            return;
        };
        for compared in run.of_markets(parity.baseline.as_str()) {
            let cell = &run.cells.all[compared.market];
            let says_nothing = !matches!(
                compared.parity.verdict,
                ParityVerdict::Gap | ParityVerdict::Noise
            );
            self.verdicts.not_comparable += usize::from(was_wanted(cell) && says_nothing);
            let parity = Some((compared.parity, compared.baseline));
            self.look(
                Scope {
                    key: &cell.key,
                    cell: Some(compared.market),
                    parity,
                },
                &run.asked(Some(cell)),
                &compared.sight,
            );
        }
    }

    fn unanswered(&mut self, scope: RuleScope) {
        if scope == RuleScope::Scan {
            self.before
                .entry(WHOLE_SCAN.to_owned())
                .or_insert_with(|| State::new(self.rule));
        }
        let keys: Vec<_> = self.before.keys().cloned().collect();
        for key in &keys {
            self.look(
                Scope {
                    key,
                    ..Scope::default()
                },
                "",
                &Sight {
                    answered: Some(false),
                    ..Sight::default()
                },
            );
        }
    }

    fn look(&mut self, Scope { key, cell, parity }: Scope<'_>, asked: &str, sight: &Sight) {
        let key = kept_under(self.rule, key).into_owned();
        let before = self
            .before
            .remove(&key)
            .unwrap_or_else(|| State::new(self.rule));
        let mut step = step(self.rule, asked, &before, sight);
        self.verdicts.not_comparable += usize::from(step.not_comparable);
        if let Some(fired) = step.fired {
            let price = fired.price.and_then(|at| sight.prices.get(at)).cloned();
            if let Some(price) = &price {
                step.after.told = Some(price.mark());
            }
            let after = step.after.clone();
            self.verdicts.fired.add(Firing {
                rule: self.place,
                key: key.clone(),
                cell,
                fired,
                price,
                parity,
                before,
                after,
            });
        }
        self.after.insert(key, step.after);
    }
}
