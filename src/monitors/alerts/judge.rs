//! One slot is judged: once, in one transaction, under its monitor's lock.

use std::collections::HashMap;
use std::fmt::Display;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use sqlx::PgConnection;

use super::evidence::{self, Of};
use super::identity::{self, RuleKey};
use super::sight::Run;
use super::state::States;
use super::store;
use super::verdicts::Verdicts;
use crate::contract::monitors::{Alert, MonitorAlerts, Rule};
use crate::db;
use crate::ids::{MonitorId, TenantId};
use crate::monitors::store::Run as Slot;
use crate::scans::cells;
use crate::webhooks::{self, MonitorLock, WebhookError};

/// The type of the event that a webhook is told.
const EVENT: &str = "monitor.alerts";
/// How long rules may take where nothing else is said. The transaction waits for them, and the database cuts one that is idle for 30
/// seconds: the slot would be judged again for ever, and those after it never.
pub const MOST_TIME: Duration = Duration::from_secs(20);

/// Judges a slot that was taken (its monitor is locked, nobody has judged it): what its rules remember, the alerts, one delivery and the
/// mark on the slot become one commit. false: its scan has not ended after all, because a retry has begun; nothing was done.
///
/// What cannot be judged, now or later (rules or states that cannot be read, a run that takes too long, a mistake of ours), is put on the
/// slot's record as its reason: a slot that is tried for ever would hold up all that come after it. Only the database's own failures are
/// tried again.
pub(in crate::monitors) async fn judge(
    lock: &mut MonitorLock<'_>,
    slot: &Slot,
    most_time: Duration,
    now: Timestamp,
) -> sqlx::Result<bool> {
    let monitor = match store::monitor(lock.conn(), slot.tenant, slot.monitor).await {
        Ok(monitor) => monitor,
        Err(error @ (sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_))) => {
            tracing::error!(monitor = %slot.monitor, %error, "rules cannot be read");
            let unread = Marks::failure("they cannot be read; a change of `alerts` brings others");
            return store::mark(lock.conn(), slot, &unread, now)
                .await
                .map(|()| true);
        }
        Err(error) => return Err(error),
    };
    let rules = identity::distinct(monitor.rules);
    if rules.is_empty() {
        return store::mark(lock.conn(), slot, &Marks::default(), now)
            .await
            .map(|()| true);
    }
    let run = match slot.scan {
        // What is in its way is slow, and no run without an answer: that is known once it has ended.
        None if slot.overlap && store::is_answered_since_slot_before(lock.conn(), slot).await? => {
            return store::mark(lock.conn(), slot, &Marks::default(), now)
                .await
                .map(|()| true);
        }
        None => None,
        Some(scan) => match cells::ended(lock.conn(), slot.tenant, scan).await? {
            None => return Ok(false),
            Some(cells) => Some(Run::new(cells)),
        },
    };
    let kept = store::states(lock.conn(), slot.tenant, slot.monitor).await?;
    // As exact as the table keeps it: cursors name it.
    let fired_at = db::kept_time(now);
    let of = Of {
        monitor: slot.monitor,
        name: monitor.name,
        slot: slot.slot,
        kind: slot.kind,
        scan: slot.scan,
        fired_at,
    };
    let until = Instant::now() + most_time;
    // Thousands of cells for each of twenty rules: not on a thread that others' requests wait for.
    let judged =
        tokio::task::spawn_blocking(move || Judged::of(&of, &rules, kept, run.as_ref(), until))
            .await;
    let judged = match judged
        .map_err(|panic| panic.to_string())
        .and_then(|judged| judged.map_err(|error| error.to_string()))
    {
        Ok(judged) => judged,
        Err(error) => {
            tracing::error!(monitor = %slot.monitor, error, "a run cannot be judged");
            let broken = Marks::failure("a mistake of this service, which is in its log");
            return store::mark(lock.conn(), slot, &broken, now)
                .await
                .map(|()| true);
        }
    };
    store::keep_states(lock.conn(), slot.tenant, slot.monitor, &judged.states).await?;
    store::insert(lock.conn(), slot.tenant, &judged.alerts).await?;
    if let Some(event) = &judged.event {
        tell(lock, event, now).await?;
    }
    store::mark(lock.conn(), slot, &judged.marks, now).await?;
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
#[derive(Debug, Clone, Default)]
pub(super) struct Marks {
    pub(super) fired: usize,
    pub(super) kept: usize,
    pub(super) not_comparable: usize,
    /// What could not be judged, and why.
    pub(super) failure: Option<String>,
}

impl Marks {
    fn failure(why: impl Display) -> Self {
        Self {
            failure: Some(format!("its rules were not judged: {why}")),
            ..Self::default()
        }
    }
}

/// All that is written, worked out.
pub(super) struct Judged {
    /// Packed.
    pub(super) states: Vec<(RuleKey, Vec<u8>)>,
    pub(super) alerts: Vec<Alert>,
    event: Option<MonitorAlerts>,
    pub(super) marks: Marks,
}

impl Judged {
    /// Rule by rule, until the time is up; what is left then remembers what it did.
    pub(super) fn of(
        of: &Of,
        rules: &[(RuleKey, Rule)],
        kept: Vec<(RuleKey, Vec<u8>)>,
        run: Option<&Run>,
        until: Instant,
    ) -> std::io::Result<Self> {
        let mut kept: HashMap<_, _> = kept.into_iter().collect();
        let (mut states, mut verdicts, mut failures) =
            (Vec::new(), Verdicts::default(), Vec::new());
        for (place, (key, rule)) in rules.iter().enumerate() {
            let held = kept.remove(key);
            if Instant::now() >= until {
                failures.push(format!(
                    "`alerts[{place}]` and what follows were not judged: the run is too large for the time there is"
                ));
                let left = rules[place..]
                    .iter()
                    .filter_map(|(key, _)| Some((*key, kept.remove(key)?)));
                states.extend(held.map(|held| (*key, held)).into_iter().chain(left));
                break;
            }
            let before = held.map_or_else(
                || Ok(States::new()),
                |packed| store::unpacked(rule, &packed),
            );
            let before = before.unwrap_or_else(|error| {
                tracing::error!(monitor = %of.monitor, %error, "what a rule remembers cannot be read; it begins anew");
                failures.push(format!("`alerts[{place}]` began anew: what it remembered could not be read"));
                States::new()
            });
            let after = verdicts.judge(place, rule, before, run);
            states.push((*key, store::packed(&after)?));
        }
        let Verdicts {
            fired,
            not_comparable,
        } = verdicts;
        let all = fired.all;
        let alerts = evidence::alerts(of, rules, run, &fired.in_order());
        let event = (all > 0).then(|| evidence::told(of, all, &alerts));
        let failure = (!failures.is_empty()).then(|| failures.join("; "));
        let marks = Marks {
            fired: all,
            kept: alerts.len(),
            not_comparable,
            failure,
        };
        Ok(Self {
            states,
            alerts,
            event,
            marks,
        })
    }
}

/// One event a run, for the monitor's webhook if it has one; sent once this transaction is committed.
async fn tell(
    lock: &mut MonitorLock<'_>,
    event: &MonitorAlerts,
    now: Timestamp,
) -> sqlx::Result<()> {
    match webhooks::enqueue(lock, EVENT, event, now).await {
        Ok(_) => Ok(()),
        Err(WebhookError::Database(error)) => Err(error),
        Err(other) => Err(sqlx::Error::Encode(other.into())),
    }
}
