//! Evaluates the rules of one slot, once, in one transaction, under its monitor's lock.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use sqlx::PgConnection;

use super::alert_builder::{self, Firing, RunInfo};
use super::evaluation::Evaluation;
use super::held;
use super::past;
use super::rule_key::{self, RuleKey};
use super::rule_traits::{RuleSubject, RuleTraits};
use super::run_snapshot::RunSnapshot;
use super::state::ScopeStates;
use super::store::{self, EvaluationRecord};
use crate::account::usage::plan_forecast;
use crate::contract::monitors::{Alert, MonitorAlerts, Rule};
use crate::db;
use crate::ids::{MonitorId, TenantId};
use crate::monitors::confirm::{self, Begun, KeyAccess, MAX_ROUNDS};
use crate::monitors::store::{FirstPrice, StoredConfirmation, UnevaluatedSlot};
use crate::scans::cells;
use crate::webhooks::MonitorLock;

/// The default time limit for the rules of a run. The transaction waits for them, and the database
/// ends a transaction that is idle for 30 seconds. Without the limit, such a slot would be retried
/// for ever and block the slots after it.
pub const MAX_EVALUATION_TIME: Duration = Duration::from_secs(20);

/// Evaluates a slot whose monitor is locked. One commit writes the rules' states, the alerts, one
/// delivery (unless they are held) and the slot's record; or it searches prices once more
/// (monitors.md, rule 86). `false`: the scan runs again because of a retry; nothing was written.
///
/// Only failures of the database are retried. Any other failure (unreadable rules or states, a run
/// over the time limit, a bug) is recorded as the slot's reason: endless retries would block the
/// slots after it.
pub(in crate::monitors) async fn evaluate_slot(
    lock: &mut MonitorLock<'_>,
    slot: &UnevaluatedSlot,
    access: KeyAccess<'_>,
    confirmation: Option<StoredConfirmation>,
    max_time: Duration,
    now: Timestamp,
) -> sqlx::Result<bool> {
    let monitor = match store::monitor_rules(lock.conn(), slot.tenant, slot.monitor).await {
        Ok(monitor) => monitor,
        Err(error @ (sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_))) => {
            tracing::error!(monitor = %slot.monitor, %error, "decoding alert rules failed");
            let unread =
                EvaluationRecord::failure("the stored rules are unreadable; update `alerts`");
            return store::record_evaluation(lock.conn(), slot, &unread, now)
                .await
                .map(|()| true);
        }
        Err(error) => return Err(error),
    };
    let rules = rule_key::distinct_rules(monitor.rules);
    if rules.is_empty() {
        return store::record_evaluation(lock.conn(), slot, &EvaluationRecord::default(), now)
            .await
            .map(|()| true);
    }
    let run = match slot.scan {
        // The previous run is slow but gets answers: its own evaluation decides.
        None if slot.overlap && store::is_answered_since_slot_before(lock.conn(), slot).await? => {
            return store::record_evaluation(lock.conn(), slot, &EvaluationRecord::default(), now)
                .await
                .map(|()| true);
        }
        None => None,
        Some(scan) => match cells::load_ended(lock.conn(), slot.tenant, scan).await? {
            None => return Ok(false),
            Some(cells) => Some((scan, RunSnapshot::new(cells))),
        },
    };
    let began = Instant::now();
    let until = began + max_time;
    let run = match run {
        None => None,
        Some((scan, mut run)) => {
            // The rules that ask nothing keep half of the time.
            let until = began + max_time / 4;
            past::mark_implausible(lock.conn(), slot, scan, &rules, &mut run, until).await?;
            let until = began + max_time / 2;
            past::look_up(lock.conn(), slot, scan, &rules, &mut run, until).await?;
            let is_about_plan = |rule: &Rule| RuleTraits::of(rule).subject == RuleSubject::Plan;
            if rules.iter().any(|(_, rule)| is_about_plan(rule)) {
                let api = run.cells.endpoint.api();
                run.plan = plan_forecast(lock.conn(), slot.tenant, api, now).await?;
            }
            Some(run)
        }
    };
    let stored = store::load_states(lock.conn(), slot.tenant, slot.monitor).await?;
    // As precise as the column, because cursors contain it.
    let fired_at = db::truncate_to_micros(now);
    let run_info = RunInfo {
        monitor: slot.monitor,
        name: monitor.name,
        slot: slot.slot,
        kind: slot.kind,
        scan: slot.scan,
        fired_at,
    };
    // Thousands of cells for each of twenty rules would block an async thread.
    let rounds = confirmation.as_ref().map_or(0, |done| done.rounds);
    let searched_again = confirmation.as_ref();
    let searched_again = searched_again.map_or_else(Vec::new, |done| done.prices.clone());
    let evaluated = tokio::task::spawn_blocking(move || {
        let evaluation = Evaluation::confirming(searched_again);
        EvaluatedRun::evaluate(&run_info, &rules, stored, run.as_ref(), until, evaluation)
    })
    .await;
    let mut evaluated = match evaluated
        .map_err(|panic| panic.to_string())
        .and_then(|evaluated| evaluated.map_err(|error| error.to_string()))
    {
        Ok(evaluated) => evaluated,
        Err(error) => {
            tracing::error!(monitor = %slot.monitor, error, "evaluating alert rules failed");
            let broken = EvaluationRecord::failure("an internal error; see the service's log");
            return store::record_evaluation(lock.conn(), slot, &broken, now)
                .await
                .map(|()| true);
        }
    };
    if rounds < MAX_ROUNDS && !evaluated.to_confirm.is_empty() {
        let found = std::mem::take(&mut evaluated.to_confirm);
        match confirm::begin(lock, access, slot, found, confirmation, now).await? {
            Begun::Waits => return Ok(true),
            Begun::NotEnded => return Ok(false),
            Begun::Refused(reason) => evaluated.record.add_failure(reason),
        }
    }
    store::save_states(lock.conn(), slot.tenant, slot.monitor, &evaluated.states).await?;
    if let Some(event) = &evaluated.event {
        let dispatch = held::dispatch(lock, event, now).await?;
        store::insert_alerts(lock.conn(), slot.tenant, &evaluated.alerts, dispatch).await?;
    }
    store::record_evaluation(lock.conn(), slot, &evaluated.record, now).await?;
    Ok(true)
}

/// Adapts the states after an update of the monitor, under its lock. Removed rules lose their
/// states. If the search has changed, all rules do, and unfinished runs of the old search are not
/// evaluated.
pub(in crate::monitors) async fn rules_changed(
    conn: &mut PgConnection,
    tenant: TenantId,
    monitor: MonitorId,
    rules: &[Rule],
    changes_search: bool,
    now: Timestamp,
) -> sqlx::Result<()> {
    if changes_search {
        store::delete_states_except(conn, tenant, monitor, &[]).await?;
        return store::skip_evaluation(conn, tenant, monitor, now).await;
    }
    let keys: Vec<_> = rules.iter().map(rule_key::rule_key).collect();
    store::delete_states_except(conn, tenant, monitor, &keys).await
}

/// The result of an evaluation, ready to be written.
pub(super) struct EvaluatedRun {
    /// Compressed.
    pub(super) states: Vec<(RuleKey, Vec<u8>)>,
    pub(super) alerts: Vec<Alert>,
    event: Option<MonitorAlerts>,
    pub(super) record: EvaluationRecord,
    /// The prices on which rules with `confirm` would fire, the strongest first.
    to_confirm: Vec<FirstPrice>,
}

impl EvaluatedRun {
    /// Evaluates rule by rule until the time limit; the remaining rules keep their states.
    pub(super) fn evaluate(
        run_info: &RunInfo,
        rules: &[(RuleKey, Rule)],
        stored: Vec<(RuleKey, Vec<u8>)>,
        run: Option<&RunSnapshot>,
        until: Instant,
        mut evaluation: Evaluation,
    ) -> std::io::Result<Self> {
        let mut stored: HashMap<_, _> = stored.into_iter().collect();
        let (mut states, mut failures) = (Vec::new(), Vec::new());
        if run.is_some_and(RunSnapshot::is_plausibility_unread) {
            failures.push(
                "implausible prices were not left out: the price history was not read, or not in time"
                    .to_owned(),
            );
        }
        for (index, (key, rule)) in rules.iter().enumerate() {
            let state = stored.remove(key);
            if Instant::now() >= until {
                failures.push(format!(
                    "`alerts[{index}]` and the rules after it were not evaluated: the run exceeded the time limit"
                ));
                let left = rules[index..]
                    .iter()
                    .filter_map(|(key, _)| Some((*key, stored.remove(key)?)));
                states.extend(state.map(|state| (*key, state)).into_iter().chain(left));
                break;
            }
            if run.is_some_and(|run| run.lacks_past_of(rule)) {
                failures.push(format!(
                    "`alerts[{index}]` was not evaluated: the price history was not read, or not in time"
                ));
                states.extend(state.map(|state| (*key, state)));
                continue;
            }
            let before = state.map_or_else(
                || Ok(ScopeStates::new()),
                |packed| store::decode_states(rule, &packed),
            );
            let before = before.unwrap_or_else(|error| {
                tracing::error!(monitor = %run_info.monitor, %error, "decoding a rule's state failed; state reset");
                failures.push(format!("the state of `alerts[{index}]` was unreadable and has been reset"));
                ScopeStates::new()
            });
            let after = evaluation.evaluate_rule(index, rule, before, run);
            states.push((*key, store::encode_states(&after)?));
        }
        let Evaluation {
            fired,
            not_comparable,
            unconfirmed,
            to_confirm,
            ..
        } = evaluation;
        let to_confirm = run.map_or_else(Vec::new, |run| prices_to_confirm(run, to_confirm));
        let all = fired.count;
        let alerts = alert_builder::build_alerts(run_info, rules, run, &fired.in_order());
        let event = (all > 0).then(|| alert_builder::webhook_event(run_info, all, &alerts));
        let failure = (!failures.is_empty()).then(|| failures.join("; "));
        let record = EvaluationRecord {
            fired: all,
            stored: alerts.len(),
            not_comparable,
            implausible: run.map_or(0, RunSnapshot::count_implausible),
            unconfirmed,
            failure,
        };
        Ok(Self {
            states,
            alerts,
            event,
            record,
            to_confirm,
        })
    }
}

/// The prices of firings that wait for a second search, the strongest first, each item once.
fn prices_to_confirm(run: &RunSnapshot, mut firings: Vec<Firing>) -> Vec<FirstPrice> {
    firings.sort_by(|one, other| one.rank().cmp(&other.rank()));
    let mut found = Vec::<FirstPrice>::new();
    for price in firings.into_iter().filter_map(|firing| firing.price) {
        let item = run.item_of(&price);
        if found.iter().all(|other| other.item != item) {
            found.push(FirstPrice {
                item,
                price: price.amount,
                at: price.at,
            });
        }
    }
    found
}
