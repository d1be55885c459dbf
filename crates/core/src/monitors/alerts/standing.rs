//! The current standing of a monitor's rules, from their states.

use std::collections::HashMap;

use sqlx::PgConnection;

use super::alert_builder::price_mark;
use super::rules::rule_scope;
use super::run_firings::WHOLE_SCAN;
use super::state::{PricePoint, ScopeStates};
use super::{rule_key, store};
use crate::contract::monitors::{Rule, RuleScope, RuleStanding};
use crate::ids::{MonitorId, TenantId};

/// The standing of each of a monitor's rules, in order.
pub(in crate::monitors) async fn rule_standings(
    conn: &mut PgConnection,
    tenant: TenantId,
    monitor: MonitorId,
    rules: &[Rule],
) -> sqlx::Result<Vec<RuleStanding>> {
    if rules.is_empty() {
        return Ok(Vec::new());
    }
    let stored: HashMap<_, _> = store::load_states(conn, tenant, monitor)
        .await?
        .into_iter()
        .collect();
    let rules = rules.to_vec();
    // Up to 10,000 cells for each of twenty rules: one rule at a time, on a blocking thread.
    let read = move || {
        let states = |rule: &Rule| {
            stored
                .get(&rule_key::rule_key(rule))
                .and_then(|packed| store::decode_states(rule, packed).ok())
        };
        rules
            .iter()
            .map(|rule| rule_standing(rule, &states(rule).unwrap_or_default()))
            .collect()
    };
    match tokio::task::spawn_blocking(read).await {
        Ok(standing) => Ok(standing),
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

fn rule_standing(rule: &Rule, states: &ScopeStates) -> RuleStanding {
    let scope = rule_scope(rule);
    let count = |states: usize| u32::try_from(states).unwrap_or(u32::MAX);
    let armed = states.values().filter(|state| state.armed).count();
    let is_of_cells = scope == RuleScope::Cell && !states.contains_key(WHOLE_SCAN);
    // Prices in several currencies are not comparable.
    let mut currencies = states
        .values()
        .filter_map(|state| state.currency.as_deref());
    let currency = currencies
        .next()
        .filter(|first| currencies.all(|other| other == *first));
    let lowest = states
        .values()
        .filter_map(|state| state.memory.lowest())
        .min_by_key(|mark| mark.price);
    let last_fired = states
        .values()
        .filter_map(|state| state.last_fired.as_ref())
        .max_by_key(|mark| mark.at);
    let priced = |mark: Option<&PricePoint>| price_mark(mark.filter(|_| currency.is_some()));
    RuleStanding {
        rule_type: rule.rule_type(),
        scope,
        armed: (!states.is_empty()).then_some(armed > 0),
        cells: is_of_cells.then(|| count(states.len())),
        armed_cells: is_of_cells.then(|| count(armed)),
        currency: currency.map(str::to_owned),
        lowest: priced(lowest),
        last_fired: priced(last_fired),
    }
}
