//! Replays rules on the prices of past days (monitors.md, rules 80 to 83). Pure: the same code
//! evaluates a run of a backtest and one that was searched.

use std::collections::{HashMap, HashSet};

use jiff::{SignedDuration, Timestamp};

use super::alert_builder::{Firing, price_mark};
use super::rule_key::rule_key;
use super::rules;
use super::run_firings::RunFirings;
use super::run_snapshot::RunSnapshot;
use super::state::ScopeStates;
use super::store::{decode_states, encode_states};
use crate::contract::SearchStatus;
use crate::contract::monitors::{BacktestAlert, NotReplayed, Rule};
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
            match rules::of(&rule).not_replayed() {
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
            if let Some(need) = rules::of(rule).past() {
                need.add_to(&mut question);
            }
        }
        question
    }

    /// Applies the rules to the run of a slot; `prices` are those of its searches.
    pub(in crate::monitors) fn replay_run(
        &mut self,
        slot: Timestamp,
        planned: &PlannedCells,
        prices: Vec<ReplayedPrice>,
    ) -> std::io::Result<()> {
        let (run, searches) = snapshot(slot, planned, prices);
        for (rule, states) in &mut self.rules {
            let mut firings = RunFirings::default();
            let before = match states.take() {
                Some(packed) => decode_states(rule, &packed)?,
                None => ScopeStates::new(),
            };
            let after = firings.apply_rule(0, rule, before, Some(&run));
            *states = Some(encode_states(&after)?);
            self.fired += firings.fired.count;
            for firing in firings.fired.in_order() {
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
    let scope = firing.scope();
    let price = firing.price?;
    let search = search(run.item_of(&price))?;
    let mut verdict = firing.fired.verdict;
    if let Some(verdict) = &mut verdict {
        add_sentence(verdict, run.cells.endpoint.api());
    }
    Some(BacktestAlert {
        slot,
        rule_type: rule.rule_type(),
        rule: rule.clone(),
        scope,
        cell: run.cells.all[search.cell].values.clone(),
        first_date: search.first_date,
        last_date: search.last_date,
        price: price.amount,
        currency: price.currency,
        threshold: firing.fired.threshold.map(|value| value.normalize()),
        reference: price_mark(firing.fired.reference.as_ref()),
        was_empty_at: firing.fired.last_answer.map(begin_of),
        history_verdict: verdict,
    })
}
