//! Slots: decisions, the cost of their runs, and which of them need an evaluation.

use jiff::Timestamp;
use jiff_sqlx::{Timestamp as SqlTimestamp, ToSqlx as _};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use sqlx::types::Json;
use sqlx::{PgConnection, PgPool};

use crate::contract::monitors::{SlotKind, SlotOutcome};
use crate::contract::scans::{PauseReason, ScanStatus};
use crate::ids::{ItemId, MonitorId, ScanId, TenantId};
use crate::webhooks::MonitorLock;

/// The decision of a slot.
#[derive(Debug, Clone)]
pub(in crate::monitors) struct Decision {
    pub(in crate::monitors) slot: Timestamp,
    pub(in crate::monitors) kind: SlotKind,
    pub(in crate::monitors) outcome: SlotOutcome,
    pub(in crate::monitors) reason: Option<String>,
    pub(in crate::monitors) scan: Option<ScanId>,
}

/// Inserts decisions. Fails if a slot is already decided.
pub(in crate::monitors) async fn record_decisions(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: MonitorId,
    decisions: &[Decision],
    now: Timestamp,
) -> sqlx::Result<()> {
    let slots: Vec<_> = decisions
        .iter()
        .map(|decision| decision.slot.to_sqlx())
        .collect();
    let kinds: Vec<_> = decisions
        .iter()
        .map(|decision| decision.kind.as_str().to_owned())
        .collect();
    let outcomes: Vec<_> = decisions
        .iter()
        .map(|decision| decision.outcome.as_str().to_owned())
        .collect();
    let reasons: Vec<_> = decisions
        .iter()
        .map(|decision| decision.reason.clone())
        .collect();
    let scans: Vec<_> = decisions
        .iter()
        .map(|decision| decision.scan.map(ScanId::uuid))
        .collect();
    sqlx::query!(
        "insert into monitor_slots (tenant_id, monitor_id, slot, kind, outcome, reason, scan_id, decided_at)
         select $1, $2, x.slot, x.kind, x.outcome, x.reason, x.scan_id, $3
         from unnest($4::timestamptz[], $5::text[], $6::text[], $7::text[], $8::uuid[]) as x (slot, kind, outcome, reason, scan_id)",
        tenant.uuid(),
        id.uuid(),
        now.to_sqlx() as _,
        &slots as _,
        &kinds,
        &outcomes,
        &reasons as _,
        &scans as _,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The newest decided slot of its schedule. The monitor's lock keeps it current.
pub(in crate::monitors) async fn last_decided(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: MonitorId,
) -> sqlx::Result<Option<Timestamp>> {
    let last = sqlx::query_scalar!(
        r#"select max(slot) as "last: SqlTimestamp" from monitor_slots where tenant_id = $1 and monitor_id = $2 and kind = 'schedule'"#,
        tenant.uuid(),
        id.uuid(),
    );
    Ok(last.fetch_one(conn).await?.map(SqlTimestamp::to_jiff))
}

/// The newest manual slot.
pub(in crate::monitors) async fn last_manual_slot(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: MonitorId,
) -> sqlx::Result<Option<Timestamp>> {
    let last = sqlx::query_scalar!(
        r#"select max(slot) as "last: SqlTimestamp" from monitor_slots where tenant_id = $1 and monitor_id = $2 and kind = 'manual'"#,
        tenant.uuid(),
        id.uuid(),
    );
    Ok(last.fetch_one(conn).await?.map(SqlTimestamp::to_jiff))
}

/// An unfinished run of a monitor.
#[derive(Debug)]
pub(in crate::monitors) struct ActiveRun {
    pub(in crate::monitors) scan: ScanId,
    status: ScanStatus,
    reason: Option<PauseReason>,
    /// A dead process holds one of its searches.
    is_abandoned: bool,
}

impl ActiveRun {
    /// The reason why another run cannot start.
    pub(in crate::monitors) fn description(&self) -> String {
        let Self {
            scan,
            status,
            reason,
            is_abandoned: _,
        } = self;
        match reason {
            Some(reason) => {
                format!("the previous run has not ended: its scan {scan} is {status} ({reason})")
            }
            None => format!("the previous run has not ended: its scan {scan} is {status}"),
        }
    }

    /// Whether it will end without an action of its caller.
    pub(in crate::monitors) fn is_progressing(&self) -> bool {
        matches!(self.status, ScanStatus::Queued | ScanStatus::Running)
    }

    /// Whether it may end because its key is refused: its caller has neither cancelled nor paused it.
    pub(in crate::monitors) fn may_end_refused(&self) -> bool {
        self.status != ScanStatus::Cancelled && self.reason != Some(PauseReason::ByCaller)
    }

    /// Whether a process died in one of its searches and the outcome is not settled yet.
    pub(in crate::monitors) fn is_abandoned(&self) -> bool {
        self.is_abandoned
    }
}

/// The unfinished runs of a monitor.
pub(in crate::monitors) async fn active_runs(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: MonitorId,
) -> sqlx::Result<Vec<ActiveRun>> {
    let rows = sqlx::query!(
        r#"select c.scan_id, v.status as "status!", v.status_reason,
                  exists (select from scan_items i left join workers w on w.worker_id = i.worker_id
                          where i.tenant_id = c.tenant_id and i.api = c.api and i.scan_id = c.scan_id and i.worker_id is not null
                            and (w.worker_id is null or w.dead or w.lease_until < clock_timestamp())) as "is_abandoned!"
           from scans c join shown_scans v on v.tenant_id = c.tenant_id and v.scan_id = c.scan_id
           where c.tenant_id = $1 and c.monitor_id = $2 and c.finished_at is null"#,
        tenant.uuid(),
        id.uuid(),
    )
    .fetch_all(conn)
    .await?;
    let run = rows.into_iter().map(|row| ActiveRun {
        scan: row.scan_id.into(),
        status: row.status,
        reason: row.status_reason,
        is_abandoned: row.is_abandoned,
    });
    Ok(run.collect())
}

/// The billed requests of each monitor's runs between two times, including those of deleted scans.
pub(in crate::monitors) async fn requests_spent(
    conn: &mut PgConnection,
    tenant: TenantId,
    months: &[(MonitorId, Timestamp, Timestamp)],
) -> sqlx::Result<Vec<(MonitorId, i64)>> {
    let ids: Vec<_> = months.iter().map(|(id, ..)| id.uuid()).collect();
    let begins: Vec<_> = months.iter().map(|(_, begin, _)| begin.to_sqlx()).collect();
    let ends: Vec<_> = months.iter().map(|(.., end)| end.to_sqlx()).collect();
    let rows = sqlx::query!(
        r#"select m.id as "id!", (
               select coalesce(sum(s.deleted_requests + coalesce(c.requests_spent, 0)), 0)::bigint
               from monitor_slots s left join scans c on c.tenant_id = s.tenant_id and c.scan_id = s.scan_id
               where s.tenant_id = $1 and s.monitor_id = m.id and s.slot >= m.begins and s.slot < m.ends
           ) as "spent!"
           from unnest($2::uuid[], $3::timestamptz[], $4::timestamptz[]) as m (id, begins, ends)"#,
        tenant.uuid(),
        &ids,
        &begins as _,
        &ends as _,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| (row.id.into(), row.spent))
        .collect())
}

/// A slot whose rules can be evaluated and have not been: its scan has ended, or it failed to start
/// one.
#[derive(Debug, Clone)]
pub(in crate::monitors) struct UnevaluatedSlot {
    pub(in crate::monitors) tenant: TenantId,
    pub(in crate::monitors) monitor: MonitorId,
    pub(in crate::monitors) slot: Timestamp,
    pub(in crate::monitors) kind: SlotKind,
    /// Whether the previous run had not ended.
    pub(in crate::monitors) overlap: bool,
    /// Whether its scan has not ended because the marketplace refuses the key.
    pub(in crate::monitors) is_refused: bool,
    pub(in crate::monitors) scan: Option<ScanId>,
}

/// The prices of a run that are searched once more (monitors.md, rule 86).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::monitors) struct StoredConfirmation {
    pub(in crate::monitors) began_at: Timestamp,
    pub(in crate::monitors) prices: Vec<FirstPrice>,
    /// How many times prices were chosen, one after another.
    #[serde(default = "one")]
    pub(in crate::monitors) rounds: usize,
}

const fn one() -> usize {
    1
}

impl StoredConfirmation {
    pub(in crate::monitors) fn items(&self) -> impl Iterator<Item = ItemId> {
        self.prices.iter().map(|price| price.item)
    }
}

/// A price as it was found first. Stored as text: a JSON number would round it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    into = "(ItemId, String, Timestamp)",
    try_from = "(ItemId, String, Timestamp)"
)]
pub(in crate::monitors) struct FirstPrice {
    pub(in crate::monitors) item: ItemId,
    pub(in crate::monitors) price: Decimal,
    pub(in crate::monitors) at: Timestamp,
}

impl From<FirstPrice> for (ItemId, String, Timestamp) {
    fn from(found: FirstPrice) -> Self {
        (found.item, found.price.to_string(), found.at)
    }
}

impl TryFrom<(ItemId, String, Timestamp)> for FirstPrice {
    type Error = rust_decimal::Error;

    fn try_from((item, price, at): (ItemId, String, Timestamp)) -> Result<Self, Self::Error> {
        let price = price.parse()?;
        Ok(Self { item, price, at })
    }
}

/// Slots to evaluate, round-robin over the tenants, the oldest first. A tenant with many slots
/// delays no other tenant. Those of a caller that is being moved to another database wait for the
/// end of the move: until then only the other database evaluates and sends. With the runs that have
/// not ended because their key is refused: at once when they confirm prices, else ten minutes after
/// the last call of their lane. A call takes less than ten minutes itself.
pub(in crate::monitors) async fn unevaluated_slots(
    pool: &PgPool,
    limit: i64,
    now: Timestamp,
) -> sqlx::Result<Vec<UnevaluatedSlot>> {
    let rows = sqlx::query!(
        r#"select s.tenant_id, s.monitor_id, s.slot, s.kind, s.scan_id, s.outcome = 'overlap' as "overlap!",
                  c.finished_at is null and s.scan_id is not null as "is_refused!"
           from monitor_slots s join monitors m on m.tenant_id = s.tenant_id and m.monitor_id = s.monitor_id
                left join scans c on c.tenant_id = s.tenant_id and c.scan_id = s.scan_id
           where s.evaluated_at is null and (s.scan_id is not null or s.outcome in ('failed', 'overlap'))
             and (s.scan_id is null or c.finished_at is not null
                  or c.status <> 'cancelled' and c.status_reason is distinct from 'by_caller' and m.rules::text <> '[]' and exists (
                      select from lanes l where l.tenant_id = c.tenant_id and l.api = c.api and l.paused_until > clock_timestamp()
                        and l.pause_reason in ('key_rejected', 'not_subscribed'))
                     and (s.confirmation is not null or c.created_at < $2::timestamptz - interval '10 minutes' and not exists (
                      select from attempts a join scans o on o.tenant_id = a.tenant_id and o.scan_id = a.scan_id
                      where a.tenant_id = c.tenant_id and o.api = c.api and a.started_at > $2::timestamptz - interval '20 minutes'
                        and greatest(a.started_at, a.ended_at) > $2::timestamptz - interval '10 minutes')))
             and m.not_before is distinct from '9999-01-01 00:00:00+00'
           order by row_number() over (partition by s.tenant_id order by s.slot), s.slot limit $1"#,
        limit,
        now.to_sqlx() as _
    )
    .fetch_all(pool)
    .await?;
    let run = rows.into_iter().map(|row| UnevaluatedSlot {
        tenant: row.tenant_id.into(),
        monitor: row.monitor_id.into(),
        slot: row.slot.to_jiff(),
        kind: row.kind,
        overlap: row.overlap,
        is_refused: row.is_refused,
        scan: row.scan_id.map(ScanId::from),
    });
    Ok(run.collect())
}

/// Locks a slot and its monitor for evaluation. `None`: it was evaluated meanwhile, another process
/// holds the monitor, or an earlier slot comes first. With the prices that were searched once more.
pub(in crate::monitors) async fn lock_unevaluated<'t>(
    conn: &'t mut PgConnection,
    run: &UnevaluatedSlot,
) -> sqlx::Result<Option<(MonitorLock<'t>, Option<StoredConfirmation>)>> {
    let Some(mut lock) = MonitorLock::try_acquire(conn, run.tenant, run.monitor).await? else {
        return Ok(None);
    };
    let taken = sqlx::query_scalar!(
        r#"select confirmation as "confirmation: Json<StoredConfirmation>" from monitor_slots s
         where s.tenant_id = $1 and s.monitor_id = $2 and s.slot = $3 and s.kind = $4 and s.evaluated_at is null
           and not exists (
               select from monitor_slots o left join scans c on c.tenant_id = o.tenant_id and c.scan_id = o.scan_id
               where o.tenant_id = $1 and o.monitor_id = $2 and o.slot < $3 and o.evaluated_at is null
                 and (c.finished_at is not null or o.scan_id is null and o.outcome in ('failed', 'overlap')))
         for update of s"#,
        run.tenant.uuid(),
        run.monitor.uuid(),
        run.slot.to_sqlx() as _,
        run.kind.as_str(),
    );
    let taken = taken.fetch_optional(lock.conn()).await?;
    Ok(taken.map(|confirmation| (lock, confirmation.map(|confirmation| confirmation.0))))
}

/// Records which prices of a run are searched once more, and adds a reason; its rules are evaluated
/// when its scan has ended.
pub(in crate::monitors) async fn record_confirmation(
    conn: &mut PgConnection,
    slot: &UnevaluatedSlot,
    confirmation: Option<&StoredConfirmation>,
    reason: Option<&str>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update monitor_slots set confirmation = $5, reason = nullif(concat_ws('; ', reason, $6::text), '')
         where tenant_id = $1 and monitor_id = $2 and slot = $3 and kind = $4",
        slot.tenant.uuid(),
        slot.monitor.uuid(),
        slot.slot.to_sqlx() as _,
        slot.kind.as_str(),
        confirmation.map(Json) as _,
        reason,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Whether a run of the monitor began after this one.
pub(in crate::monitors) async fn has_later_run(
    conn: &mut PgConnection,
    slot: &UnevaluatedSlot,
) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists (
               select from monitor_slots s
               join monitor_slots o on o.tenant_id = $1 and o.monitor_id = $2 and o.outcome in ('ran', 'late')
                                   and (o.slot, o.kind) <> (s.slot, s.kind) and o.decided_at >= s.decided_at
               where s.tenant_id = $1 and s.monitor_id = $2 and s.slot = $3 and s.kind = $4
           ) as "is_there!""#,
        slot.tenant.uuid(),
        slot.monitor.uuid(),
        slot.slot.to_sqlx() as _,
        slot.kind.as_str(),
    )
    .fetch_one(conn)
    .await
}
