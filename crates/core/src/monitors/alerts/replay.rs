//! Replays rules on the prices of past days (monitors.md, rules 80 to 83). Pure: the same code
//! evaluates a run of a backtest and one that was searched.

use std::collections::{HashMap, HashSet};

use jiff::{SignedDuration, Timestamp};

use super::alert_builder::{Firing, price_mark};
use super::evaluation::Evaluation;
use super::rule_key::rule_key;
use super::rule_traits::{PastNeed, RuleTraits};
use super::run_snapshot::RunSnapshot;
use super::state::ScopeStates;
use super::store::{decode_states, encode_states};
use crate::contract::SearchStatus;
use crate::contract::monitors::{BacktestAlert, NotReplayed, Rule, RuleScope};
use crate::contract::scans::ItemState;
use crate::history::past_prices::{LastAnswer, PastOfPrice, PastQuestion};
use crate::history::replay::{ReplayedPrice, add_sentence};
use crate::ids::ItemId;
use crate::scans::cells::{
    CellItem, ItemObservation, PlannedCells, PlannedSearch, ScanCell, ScanCells,
};

/// The most alerts of a backtest.
const MAX_ALERTS: usize = 1_000;

/// Rules that the stored prices can replay, and their states.
pub(in crate::monitors) struct RuleReplay {
    /// The states are packed, as between runs: those of twenty rules with 10,000 cells take hundreds
    /// of megabytes.
    rules: Vec<(Rule, Option<Vec<u8>>)>,
    pub(in crate::monitors) not_replayed: Vec<NotReplayed>,
    pub(in crate::monitors) fired: usize,
    /// Oldest first.
    pub(in crate::monitors) alerts: Vec<BacktestAlert>,
}

impl RuleReplay {
    pub(in crate::monitors) fn new(rules: Vec<Rule>) -> Self {
        let mut replay = Self {
            rules: Vec::new(),
            not_replayed: Vec::new(),
            fired: 0,
            alerts: Vec::new(),
        };
        let mut keys = HashSet::new();
        for (index, rule) in (0..).zip(rules) {
            // Equal rules would always fire together; a run evaluates one of them, too.
            if !keys.insert(rule_key(&rule)) {
                continue;
            }
            match missing(&rule) {
                Some(reason) => replay.not_replayed.push(NotReplayed {
                    index,
                    rule_type: rule.rule_type(),
                    reason: reason.to_owned(),
                }),
                None => replay.rules.push((rule, None)),
            }
        }
        replay
    }

    /// What the rules ask about past prices.
    pub(in crate::monitors) fn question(&self) -> PastQuestion {
        let mut question = PastQuestion::default();
        for (rule, _) in &self.rules {
            match RuleTraits::of(rule).past {
                Some(PastNeed::Verdict) => question.verdicts = true,
                Some(PastNeed::LowestOfDays(days)) => question.lowest_of_days.push(days),
                Some(PastNeed::LastAnswer) => question.last_answer = true,
                None => {}
            }
        }
        question
    }

    /// Evaluates the run of a slot; `prices` are those of its searches.
    pub(in crate::monitors) fn evaluate(
        &mut self,
        slot: Timestamp,
        planned: &PlannedCells,
        prices: Vec<ReplayedPrice>,
    ) -> std::io::Result<()> {
        let (run, searches) = snapshot(slot, planned, prices);
        for (rule, states) in &mut self.rules {
            let mut evaluation = Evaluation::default();
            let before = match states.take() {
                Some(packed) => decode_states(rule, &packed)?,
                None => ScopeStates::new(),
            };
            let after = evaluation.evaluate_rule(0, rule, before, Some(&run));
            *states = Some(encode_states(&after)?);
            self.fired += evaluation.fired.count;
            for firing in evaluation.fired.in_order() {
                if self.alerts.len() < MAX_ALERTS {
                    let search = |item| searches.get(&item).map(|index| &planned.searches[*index]);
                    let alert = alert(slot, rule, &run, firing, search);
                    self.alerts.extend(alert);
                }
            }
        }
        Ok(())
    }
}

/// What the stored daily prices lack for a rule.
fn missing(rule: &Rule) -> Option<&'static str> {
    match rule {
        Rule::PriceBelow(_)
        | Rule::DropPercent(_)
        | Rule::NewLow(_)
        | Rule::PercentileAtMost(_)
        | Rule::BackInStock(_) => None,
        Rule::Verdict(_) => Some("stored days have prices, not the provider's verdicts"),
        Rule::Available(_) | Rule::SoldOut(_) => {
            Some("only days with a price are replayed, not those on which nothing was on offer")
        }
        Rule::ParityGapPercent(_) => Some("it needs several samples of each market in one run"),
        Rule::Stale(_) => Some("it is about searches, not about prices"),
        Rule::PlanEndsBeforeReset(_) => Some("it is about the plan, not about prices"),
    }
}

/// The run of a slot, and the search of each of its items. A search without a stored price counts
/// as one that did not complete: it says nothing, and arms no rule.
fn snapshot(
    slot: Timestamp,
    planned: &PlannedCells,
    prices: Vec<ReplayedPrice>,
) -> (RunSnapshot, HashMap<ItemId, usize>) {
    let cell = |(key, values): &(String, serde_json::Map<String, serde_json::Value>)| ScanCell {
        key: key.clone(),
        values: values.clone(),
        items: Vec::new(),
    };
    let mut all: Vec<_> = planned.cells.iter().map(cell).collect();
    let (mut past, mut searches) = (Vec::<(ItemId, PastOfPrice)>::new(), HashMap::new());
    for (index, (search, found)) in planned.searches.iter().zip(prices).enumerate() {
        let item = ItemId::new();
        searches.insert(item, index);
        let status = if found.price.is_some() {
            SearchStatus::Ok
        } else {
            SearchStatus::Degraded
        };
        let currency = || search.currency.clone();
        all[search.cell].items.push(CellItem {
            position: i32::try_from(index).unwrap_or(i32::MAX),
            observed_at: Some(slot),
            observation: ItemObservation {
                is_implausible: false,
                item,
                state: ItemState::Done,
                search_status: Some(status),
                reason: None,
                price: found.price.map(|price| (price, currency())),
                offer: None,
            },
            is_implausible: found.is_implausible,
        });
        past.push((item, found.past));
    }
    let mut run = RunSnapshot::new(ScanCells {
        searched_known_low: true,
        endpoint: planned.endpoint,
        request: planned.request.clone(),
        all,
        created_at: slot,
    });
    run.set_past(past);
    (run, searches)
}

/// The begin of the day of a replayed answer, whose time is the end of its day.
fn begin_of(answer: LastAnswer) -> Timestamp {
    let day = SignedDuration::from_hours(24);
    answer.at.checked_sub(day).unwrap_or(Timestamp::MIN)
}

fn alert<'a>(
    slot: Timestamp,
    rule: &Rule,
    run: &RunSnapshot,
    firing: Firing,
    search: impl Fn(ItemId) -> Option<&'a PlannedSearch>,
) -> Option<BacktestAlert> {
    let price = firing.price?;
    let search = search(run.item_of(&price))?;
    let past = firing.fired.past.as_deref();
    let of_need = |need| past.filter(|_| RuleTraits::of(rule).past == Some(need));
    let mut verdict = of_need(PastNeed::Verdict).and_then(|past| past.verdict.clone());
    if let Some(verdict) = &mut verdict {
        add_sentence(verdict, run.cells.endpoint.api());
    }
    let last_answer = of_need(PastNeed::LastAnswer).and_then(|past| past.last_answer);
    Some(BacktestAlert {
        slot,
        rule_type: rule.rule_type(),
        rule: rule.clone(),
        scope: if firing.key.is_empty() {
            RuleScope::Scan
        } else {
            RuleScope::Cell
        },
        cell: run.cells.all[search.cell].values.clone(),
        first_date: search.first_date,
        last_date: search.last_date,
        price: price.amount,
        currency: price.currency,
        threshold: firing.fired.threshold.map(|value| value.normalize()),
        reference: price_mark(firing.fired.reference.as_ref()),
        was_empty_at: last_answer.map(begin_of),
        history_verdict: verdict,
    })
}
