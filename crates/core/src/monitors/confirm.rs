//! Searches prices of an ended run once more, before rules with `confirm` fire on them (monitors.md,
//! rules 85 to 89). Not here: which prices (`alerts`), the scan (`scans::confirm`).

use std::collections::HashSet;
use std::time::Duration;

use jiff::Timestamp;
use sqlx::PgPool;

use super::schedule::Schedule;
use super::store::{self, FirstPrice, LockedMonitor, StoredConfirmation, UnevaluatedSlot};
use crate::commands::RequestContext;
use crate::ids::GrantId;
use crate::scans::cancel::cancel_refused;
use crate::scans::confirm::{Confirming, NO_BUDGET, RequestsLeft, search_once_more};
use crate::tenants::{self, GrantError, Keyring};
use crate::webhooks::MonitorLock;

/// The most prices of one rule that a run confirms. Those of the scope `cell` may be thousands.
pub(super) const MAX_OF_RULE: usize = 10;

/// How often a run chooses prices to confirm. A rule about the whole scan has one price at a time:
/// if that is not found again, the next one is searched.
pub(super) const MAX_ROUNDS: usize = 3;

/// The longest pause of the caller's lane with which a confirmation begins. Alerts of the run's other
/// rules wait too, and a quota may be exhausted for weeks.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// What opens the key of a monitor, and what its messages link to.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyAccess<'a> {
    pub(super) pool: &'a PgPool,
    pub(super) ring: &'a Keyring,
    /// The root of the dashboard's pages.
    pub(super) public_url: Option<&'a str>,
}

/// What became of the wish to confirm prices.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Begun {
    /// They are searched; the run is evaluated when its scan has ended again.
    Waits,
    /// The scan has not ended.
    NotEnded,
    /// They are not searched, and why.
    Refused(String),
}

/// Begins the second searches of these prices, the strongest first, after those of `earlier`, in the
/// transaction that holds the locks of the caller's keys and of the monitor.
pub(super) async fn begin(
    lock: &mut MonitorLock<'_>,
    access: KeyAccess<'_>,
    slot: &UnevaluatedSlot,
    found: Vec<FirstPrice>,
    earlier: Option<StoredConfirmation>,
    now: Timestamp,
) -> sqlx::Result<Begun> {
    let refused = |why: &str| Ok(Begun::Refused(reason(why)));
    let Some(scan) = slot.scan else {
        return refused("the run has no scan");
    };
    let monitor = store::locked_row(lock).await?;
    if store::has_later_run(lock.conn(), slot).await? {
        return refused("the next run had begun");
    }
    if let Some(refusal) =
        store::lane_refusal(lock.conn(), slot.tenant, monitor.api, Some(LONGEST_WAIT)).await?
    {
        return refused(&refusal);
    }
    let left = RequestsLeft {
        month: month_left(lock, &monitor, slot).await?,
        // Else the lane would pause in the middle, until the plan's reset.
        plan: store::plan_left(lock.conn(), slot.tenant, monitor.api, LONGEST_WAIT).await?,
    };
    let grant = GrantId::from(monitor.grant_id);
    let key = match tenants::open_grant(lock.conn(), access.ring, slot.tenant, grant).await {
        Ok(key) => key,
        Err(GrantError::Database(error)) => return Err(error),
        Err(gone) => return refused(&format!("the monitor's key cannot be decrypted: {gone}")),
    };
    let context = RequestContext {
        pool: access.pool,
        ring: access.ring,
        key: &key,
        now,
    };
    let answered: Vec<_> = found.iter().map(|price| (price.item, price.at)).collect();
    let scan = (slot.tenant, scan);
    match search_once_more(lock.conn(), context, scan, &answered, left).await? {
        Confirming::NotEnded => Ok(Begun::NotEnded),
        Confirming::Refused(why) => refused(why),
        Confirming::Began { items, is_cut } => {
            let items: HashSet<_> = items.into_iter().collect();
            let mut confirmation = earlier.unwrap_or_default();
            confirmation.began_at = now;
            confirmation.rounds += 1;
            let searched = found.into_iter();
            let searched = searched.filter(|price| items.contains(&price.item));
            confirmation.prices.extend(searched);
            let cut = is_cut.then(|| reason(NO_BUDGET));
            let stored = Some(&confirmation);
            store::record_confirmation(lock.conn(), slot, stored, cut.as_deref()).await?;
            Ok(Begun::Waits)
        }
    }
}

/// Ends the run of a slot whose key the marketplace refuses, as by a cancel: its items keep their first
/// answers. The slot gets the reason in the same transaction, and a later pass evaluates it: calls in
/// flight may end first, and the locks of the lane and of the scan are not held meanwhile.
pub(super) async fn end_refused(
    lock: &mut MonitorLock<'_>,
    slot: &UnevaluatedSlot,
    confirmation: Option<&StoredConfirmation>,
    now: Timestamp,
) -> sqlx::Result<()> {
    let Some(scan) = slot.scan else {
        return Ok(());
    };
    let monitor = store::locked_row(lock).await?;
    let refusal = store::lane_refusal(lock.conn(), slot.tenant, monitor.api, None).await?;
    let Some(why) = refusal else {
        return Ok(());
    };
    let runs = store::active_runs(lock.conn(), slot.tenant, slot.monitor).await?;
    if runs
        .iter()
        .any(|run| run.scan == scan && run.may_end_refused())
    {
        cancel_refused(lock.conn(), slot.tenant, scan, now).await?;
        let why = format!("the run was ended: {why}");
        store::record_confirmation(lock.conn(), slot, confirmation, Some(&why)).await?;
    }
    Ok(())
}

fn reason(why: &str) -> String {
    format!("prices were not confirmed: {why}")
}

/// The requests that the slot's month leaves; `None`: no limit.
async fn month_left(
    lock: &mut MonitorLock<'_>,
    monitor: &LockedMonitor,
    slot: &UnevaluatedSlot,
) -> sqlx::Result<Option<u32>> {
    let Some(ceiling) = monitor.max_requests_per_month else {
        return Ok(None);
    };
    let Some(schedule) = Schedule::parse(&monitor.cron, &monitor.timezone) else {
        return Ok(Some(0));
    };
    let (begin, end) = schedule.month(slot.slot);
    let months = [(slot.monitor, begin, end)];
    let spent = store::requests_spent(lock.conn(), slot.tenant, &months).await?;
    let spent: i64 = spent.iter().map(|(_, spent)| spent).sum();
    Ok(Some(
        u32::try_from(i64::from(ceiling) - spent).unwrap_or_default(),
    ))
}
