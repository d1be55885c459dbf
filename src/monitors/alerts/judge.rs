//! One slot is judged: once, in one transaction, under its monitor's lock.

use jiff::Timestamp;
use sqlx::PgConnection;

use super::evidence::{self, Of};
use super::identity::{self, RuleKey};
use super::sight::Run;
use super::state::States;
use super::store;
use super::verdicts::{self, Verdicts};
use crate::contract::monitors::{Alert, MonitorAlerts, Rule};
use crate::ids::{MonitorId, TenantId};
use crate::monitors::store::Run as Slot;
use crate::scans::cells;
use crate::webhooks::{self, WebhookError};

/// The type of the event that a webhook is told.
const EVENT: &str = "monitor.alerts";

/// Judges a slot that was taken (its monitor is locked, nobody has judged it): what its rules remember, the alerts, one delivery and the
/// mark on the slot become one commit. false: its scan has not ended after all, because a retry has begun; nothing was done.
pub(in crate::monitors) async fn judge(conn: &mut PgConnection, slot: &Slot, now: Timestamp) -> sqlx::Result<bool> {
    let monitor = store::monitor(conn, slot.tenant, slot.monitor).await?;
    let (keys, rules) = identity::distinct(monitor.rules);
    if rules.is_empty() {
        return store::mark(conn, slot, &Marks::default(), now).await.map(|()| true);
    }
    let run = match slot.scan {
        // What is in its way is slow, and no run without an answer: that is known once it has ended.
        None if slot.overlap && store::is_answered_since_slot_before(conn, slot).await? => {
            return store::mark(conn, slot, &Marks::default(), now).await.map(|()| true);
        }
        None => None,
        Some(scan) => match cells::ended(conn, slot.tenant, scan).await? {
            None => return Ok(false),
            Some(cells) => Some(Run::new(cells)),
        },
    };
    let kept = store::states(conn, slot.tenant, slot.monitor).await?;
    // As exact as the table keeps it: cursors name it.
    let fired_at = Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now);
    let of = Of { monitor: slot.monitor, name: monitor.name, slot: slot.slot, kind: slot.kind, scan: slot.scan, fired_at };
    // Thousands of cells for each of twenty rules: not on a thread that others' requests wait for.
    let judged = tokio::task::spawn_blocking(move || Judged::of(&of, keys, &rules, kept, run)).await;
    let judged = judged.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))?;
    store::keep_states(conn, slot.tenant, slot.monitor, &judged.states).await?;
    store::insert(conn, slot.tenant, &judged.alerts).await?;
    if let Some(event) = &judged.event {
        tell(conn, slot.tenant, event, now).await?;
    }
    store::mark(conn, slot, &judged.marks, now).await?;
    Ok(true)
}

/// A caller has changed the monitor, under its lock. A rule that is no more forgets; if it `searches` something else now, all rules do,
/// and the runs of what it searched before, which have not ended, are judged by none.
pub(in crate::monitors) async fn changed(
    conn: &mut PgConnection,
    tenant: TenantId,
    monitor: MonitorId,
    rules: &[Rule],
    searches_else: bool,
    now: Timestamp,
) -> sqlx::Result<()> {
    if searches_else {
        store::forget_but(conn, tenant, monitor, &[]).await?;
        return store::mark_all(conn, tenant, monitor, now).await;
    }
    let keys: Vec<_> = rules.iter().map(identity::key).collect();
    store::forget_but(conn, tenant, monitor, &keys).await
}

/// What is on record of a slot that was judged.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Marks {
    pub(super) fired: usize,
    pub(super) kept: usize,
    pub(super) not_comparable: usize,
}

/// All that is written, worked out.
struct Judged {
    /// Packed.
    states: Vec<(RuleKey, Vec<u8>)>,
    alerts: Vec<Alert>,
    event: Option<MonitorAlerts>,
    marks: Marks,
}

impl Judged {
    fn of(of: &Of, keys: Vec<RuleKey>, rules: &[Rule], kept: Vec<(RuleKey, Vec<u8>)>, run: Option<Run>) -> sqlx::Result<Self> {
        let unpacked = kept.into_iter().map(|(key, packed)| Ok((key, store::unpacked(&packed)?)));
        let before: Vec<States> = verdicts::in_order(&keys, unpacked.collect::<sqlx::Result<_>>()?);
        let Verdicts { states, fired, not_comparable } = match &run {
            Some(run) => verdicts::judged(rules, before, run),
            None => verdicts::unanswered(rules, before),
        };
        let states = keys.into_iter().zip(&states).map(|(key, states)| Ok((key, store::packed(states)?)));
        let states = states.collect::<sqlx::Result<_>>()?;
        let all = fired.all;
        let alerts = evidence::alerts(of, rules, run.as_ref(), &fired.in_order());
        let event = (all > 0).then(|| evidence::told(of, all, &alerts));
        let marks = Marks { fired: all, kept: alerts.len(), not_comparable };
        Ok(Self { states, alerts, event, marks })
    }
}

/// One event a run, for the monitor's webhook if it has one; sent once this transaction is committed.
async fn tell(conn: &mut PgConnection, tenant: TenantId, event: &MonitorAlerts, now: Timestamp) -> sqlx::Result<()> {
    match webhooks::enqueue(conn, tenant, event.monitor_id, EVENT, event, now).await {
        Ok(_) => Ok(()),
        Err(WebhookError::Database(error)) => Err(error),
        Err(other) => Err(sqlx::Error::Encode(other.into())),
    }
}
