//! How the rules of a monitor stand now, from what they remember.

use std::collections::HashMap;

use sqlx::PgConnection;

use super::evidence::shown;
use super::state::{Mark, States};
use super::verdicts::{WHOLE_SCAN, scope};
use super::{identity, store};
use crate::contract::monitors::{Rule, RuleScope, RuleStanding};
use crate::ids::{MonitorId, TenantId};

/// How each of a monitor's rules stands, in their order.
///
/// # Errors
/// When the database does not answer.
pub(in crate::monitors) async fn standing(
    conn: &mut PgConnection,
    tenant: TenantId,
    monitor: MonitorId,
    rules: &[Rule],
) -> sqlx::Result<Vec<RuleStanding>> {
    if rules.is_empty() {
        return Ok(Vec::new());
    }
    let kept: HashMap<_, _> = store::states(conn, tenant, monitor)
        .await?
        .into_iter()
        .collect();
    let rules = rules.to_vec();
    // Ten thousand cells of each of twenty rules: one rule at a time, and not on a thread that other requests wait for.
    let read = move || {
        let states = |rule: &Rule| {
            kept.get(&identity::key(rule))
                .and_then(|packed| store::unpacked(rule, packed).ok())
        };
        rules
            .iter()
            .map(|rule| of(rule, &states(rule).unwrap_or_default()))
            .collect()
    };
    match tokio::task::spawn_blocking(read).await {
        Ok(standing) => Ok(standing),
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

fn of(rule: &Rule, states: &States) -> RuleStanding {
    let scope = scope(rule);
    let count = |states: usize| u32::try_from(states).unwrap_or(u32::MAX);
    let armed = states.values().filter(|state| state.armed).count();
    let is_of_cells = scope == RuleScope::Cell && !states.contains_key(WHOLE_SCAN);
    // Prices of several currencies do not compare.
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
        .filter_map(|state| state.told.as_ref())
        .max_by_key(|mark| mark.at);
    let priced = |mark: Option<&Mark>| shown(mark.filter(|_| currency.is_some()));
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
