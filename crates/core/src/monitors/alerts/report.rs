//! Reports an ended run: applies the monitor's rules to it, once, in one transaction, under the
//! monitor's lock.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use sqlx::PgConnection;

use super::alert_builder::{self, Firing, RunInfo};
use super::channels;
use super::held;
use super::past;
use super::rule_key::{self, RuleKey};
use super::rules::{self, RuleSubject};
use super::run_firings::RunFirings;
use super::run_snapshot::RunSnapshot;
use super::store::{self, EvaluationRecord, MonitorRules};
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

/// Why a slot has no report.
enum NoReport {
    /// Its scan has not ended, or runs again because of a retry. Nothing was written.
    NotEnded,
    /// Prices are searched once more (monitors.md, rule 86).
    Waits,
    /// Its rules keep their states, and it is not tried again: this is its record.
    Recorded(EvaluationRecord),
    Database(sqlx::Error),
}

impl NoReport {
    fn failure(why: &str) -> Self {
        Self::Recorded(EvaluationRecord::failure(why))
    }
}

impl From<sqlx::Error> for NoReport {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

/// Reports a slot whose monitor is locked. One commit writes the rules' states, the alerts, one
/// delivery (unless they are held) and the slot's record; or it searches prices once more.
/// `false`: the scan has not ended.
///
/// Only failures of the database are retried. Any other failure (unreadable rules or states, a run
/// over the time limit, a bug) is recorded as the slot's reason: endless retries would block the
/// slots after it.
pub(in crate::monitors) async fn report_slot(
    lock: &mut MonitorLock<'_>,
    slot: &UnevaluatedSlot,
    access: KeyAccess<'_>,
    confirmation: Option<StoredConfirmation>,
    max_time: Duration,
    now: Timestamp,
) -> sqlx::Result<bool> {
    let record = match report_run(lock, slot, access, confirmation, max_time, now).await {
        Ok(record) | Err(NoReport::Recorded(record)) => record,
        Err(NoReport::Waits) => return Ok(true),
        Err(NoReport::NotEnded) => return Ok(false),
        Err(NoReport::Database(error)) => return Err(error),
    };
    store::record_evaluation(lock.conn(), slot, &record, now).await?;
    Ok(true)
}

async fn report_run(
    lock: &mut MonitorLock<'_>,
    slot: &UnevaluatedSlot,
    access: KeyAccess<'_>,
    confirmation: Option<StoredConfirmation>,
    max_time: Duration,
    now: Timestamp,
) -> Result<EvaluationRecord, NoReport> {
    let MonitorRules { name, rules } = read_rules(lock.conn(), slot).await?;
    let rules = rule_key::distinct_rules(rules);
    let (run, until) = read_run(lock.conn(), slot, &rules, max_time, now).await?;
    let stored = store::load_states(lock.conn(), slot.tenant, slot.monitor).await?;
    let run_info = RunInfo {
        monitor: slot.monitor,
        name,
        slot: slot.slot,
        kind: slot.kind,
        scan: slot.scan,
        // As precise as the column, because cursors contain it.
        fired_at: db::truncate_to_micros(now),
    };
    let (rounds, searched_again) = match &confirmation {
        Some(done) => (done.rounds, done.prices.clone()),
        None => (0, Vec::new()),
    };
    // Thousands of cells for each of twenty rules would block an async thread.
    let reporting = tokio::task::spawn_blocking(move || {
        let firings = RunFirings::confirming(searched_again);
        RunReport::build(&run_info, &rules, stored, run.as_ref(), until, firings)
    });
    let reported = reporting.await.map_err(std::io::Error::other);
    let mut report = reported.flatten().map_err(|error| {
        tracing::error!(monitor = %slot.monitor, %error, "evaluating alert rules failed");
        NoReport::failure("an internal error; see the service's log")
    })?;
    if rounds < MAX_ROUNDS && !report.to_confirm.is_empty() {
        let found = std::mem::take(&mut report.to_confirm);
        match confirm::begin(lock, access, slot, found, confirmation, now).await? {
            Begun::Waits => return Err(NoReport::Waits),
            Begun::NotEnded => return Err(NoReport::NotEnded),
            Begun::Refused(reason) => report.record.add_failure(reason),
        }
    }
    store::save_states(lock.conn(), slot.tenant, slot.monitor, &report.states).await?;
    if let Some(event) = &report.event {
        channels::send(lock, event, &report.alerts, access.public_url, now).await?;
        let dispatch = held::dispatch(lock, event, now).await?;
        store::insert_alerts(lock.conn(), slot.tenant, &report.alerts, dispatch).await?;
    }
    Ok(report.record)
}

async fn read_rules(
    conn: &mut PgConnection,
    slot: &UnevaluatedSlot,
) -> Result<MonitorRules, NoReport> {
    let rules = store::monitor_rules(conn, slot.tenant, slot.monitor).await;
    rules.map_err(|error| match error {
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => {
            tracing::error!(monitor = %slot.monitor, %error, "decoding alert rules failed");
            NoReport::failure("the stored rules are unreadable; update `alerts`")
        }
        error => NoReport::Database(error),
    })
}

/// The run of a slot, if it has one, with what the rules ask beyond its cells; and when the time for
/// its rules is over.
async fn read_run(
    conn: &mut PgConnection,
    slot: &UnevaluatedSlot,
    rules: &[(RuleKey, Rule)],
    max_time: Duration,
    now: Timestamp,
) -> Result<(Option<RunSnapshot>, Instant), NoReport> {
    let nothing = || Err(NoReport::Recorded(EvaluationRecord::default()));
    if rules.is_empty() {
        return nothing();
    }
    let Some(scan) = slot.scan else {
        // The previous run is slow but gets answers: its own report decides.
        if slot.overlap && store::is_answered_since_slot_before(conn, slot).await? {
            return nothing();
        }
        return Ok((None, Instant::now() + max_time));
    };
    let cells = cells::load_ended(conn, slot.tenant, scan).await?;
    let mut run = RunSnapshot::new(cells.ok_or(NoReport::NotEnded)?);
    let began = Instant::now();
    // The rules that ask nothing keep half of the time.
    let (until, until_half) = (began + max_time / 4, began + max_time / 2);
    past::mark_implausible(conn, slot, scan, rules, &mut run, until).await?;
    past::look_up(conn, slot, scan, rules, &mut run, until_half).await?;
    let is_about_plan = |rule: &Rule| rules::of(rule).subject() == RuleSubject::Plan;
    if rules.iter().any(|(_, rule)| is_about_plan(rule)) {
        let api = run.cells.endpoint.api();
        run.plan = plan_forecast(conn, slot.tenant, api, now).await?;
    }
    Ok((Some(run), began + max_time))
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

/// What a run is reported with, ready to be written.
pub(super) struct RunReport {
    /// Compressed.
    pub(super) states: Vec<(RuleKey, Vec<u8>)>,
    pub(super) alerts: Vec<Alert>,
    event: Option<MonitorAlerts>,
    pub(super) record: EvaluationRecord,
    /// The prices on which rules with `confirm` would fire, the strongest first.
    to_confirm: Vec<FirstPrice>,
}

impl RunReport {
    /// Applies rule by rule until the time limit; the remaining rules keep their states.
    pub(super) fn build(
        run_info: &RunInfo,
        rules: &[(RuleKey, Rule)],
        stored: Vec<(RuleKey, Vec<u8>)>,
        run: Option<&RunSnapshot>,
        until: Instant,
        mut firings: RunFirings,
    ) -> std::io::Result<Self> {
        let mut states: HashMap<_, _> = stored.into_iter().collect();
        let mut failures = Vec::new();
        if run.is_some_and(|run| run.is_plausibility_unread) {
            let why = "implausible prices were not left out: the price history was not read, or not in time";
            failures.push(why.to_owned());
        }
        for (index, (key, rule)) in rules.iter().enumerate() {
            if Instant::now() >= until {
                failures.push(format!(
                    "`alerts[{index}]` and the rules after it were not evaluated: the run exceeded the time limit"
                ));
                break;
            }
            if run.is_some_and(|run| run.is_past_unread) && rules::of(rule).past().is_some() {
                failures.push(format!(
                    "`alerts[{index}]` was not evaluated: the price history was not read, or not in time"
                ));
                continue;
            }
            let before = states.remove(key);
            let before = before.map(|packed| store::decode_states(rule, &packed));
            let before = before.transpose().unwrap_or_else(|error| {
                tracing::error!(monitor = %run_info.monitor, %error, "decoding a rule's state failed; state reset");
                failures.push(format!("the state of `alerts[{index}]` was unreadable and has been reset"));
                None
            });
            let after = firings.apply_rule(index, rule, before.unwrap_or_default(), run);
            states.insert(*key, store::encode_states(&after)?);
        }
        let keys = rules.iter().map(|(key, _)| *key);
        let states = keys.filter_map(|key| Some((key, states.remove(&key)?)));
        let states = states.collect();
        let all = firings.fired.count;
        let fired = firings.fired.in_order();
        let alerts = alert_builder::build_alerts(run_info, rules, run, &fired);
        Ok(Self {
            states,
            event: (all > 0).then(|| alert_builder::webhook_event(run_info, all, &alerts)),
            record: EvaluationRecord {
                fired: all,
                stored: alerts.len(),
                not_comparable: firings.not_comparable,
                implausible: run.map_or(0, RunSnapshot::count_implausible),
                unconfirmed: firings.unconfirmed,
                failure: (!failures.is_empty()).then(|| failures.join("; ")),
            },
            alerts,
            to_confirm: run.map_or_else(Vec::new, |run| prices_to_confirm(run, firings.to_confirm)),
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
