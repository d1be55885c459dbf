//! Monitors and their slots in the database. Every statement begins with the tenant, but for the looks of the tick, which finds what is
//! due, whoever's it is.

use jiff::Timestamp;
use jiff_sqlx::{Timestamp as SqlTimestamp, ToSqlx as _};
use serde::Deserialize;
use serde_json::Value;
use sqlx::types::Json;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use crate::contract::Api;
use crate::contract::monitors::{MonitorsQuery, SlotKind, SlotOutcome, SlotsQuery};
use crate::ids::{GrantId, MonitorId, ScanId, TenantId};

/// What a monitor is, as it is written.
pub(super) struct Written<'a> {
    pub(super) name: &'a str,
    pub(super) cron: &'a str,
    pub(super) timezone: &'a str,
    pub(super) scan: &'a Value,
    pub(super) api: Api,
    pub(super) rules: &'a Value,
    pub(super) max_requests_per_month: Option<i32>,
    /// None: its schedule has no more.
    pub(super) next_slot: Option<Timestamp>,
}

pub(super) async fn count(conn: &mut PgConnection, tenant: TenantId) -> sqlx::Result<i64> {
    sqlx::query_scalar!(r#"select count(*) as "count!" from monitors where tenant_id = $1"#, tenant.uuid()).fetch_one(conn).await
}

pub(super) async fn insert(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: MonitorId,
    written: &Written<'_>,
    grant: GrantId,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into monitors (tenant_id, monitor_id, name, cron, timezone, scan, api, rules, max_requests_per_month, next_slot, grant_id,
                               created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6::text::json, $7, $8::text::json, $9, $10, $11, $12, $12)",
        tenant.uuid(),
        id.uuid(),
        written.name,
        written.cron,
        written.timezone,
        written.scan.to_string(),
        written.api.as_str(),
        written.rules.to_string(),
        written.max_requests_per_month,
        written.next_slot.map(|slot| slot.to_sqlx()) as _,
        grant.uuid(),
        now.to_sqlx() as _,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Writes a monitor anew, under its lock.
pub(super) async fn update(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: MonitorId,
    written: &Written<'_>,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update monitors
         set name = $3, cron = $4, timezone = $5, scan = $6::text::json, api = $7, rules = $8::text::json, max_requests_per_month = $9,
             next_slot = $10, updated_at = $11
         where tenant_id = $1 and monitor_id = $2",
        tenant.uuid(),
        id.uuid(),
        written.name,
        written.cron,
        written.timezone,
        written.scan.to_string(),
        written.api.as_str(),
        written.rules.to_string(),
        written.max_requests_per_month,
        written.next_slot.map(|slot| slot.to_sqlx()) as _,
        now.to_sqlx() as _,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// A monitor under its lock.
pub(super) struct LockedMonitor {
    pub(super) name: String,
    pub(super) cron: String,
    pub(super) timezone: String,
    pub(super) scan: Value,
    pub(super) api: String,
    pub(super) rules: Value,
    pub(super) max_requests_per_month: Option<i32>,
    pub(super) paused: bool,
    pub(super) next_slot: Option<SqlTimestamp>,
    pub(super) grant_id: Uuid,
}

pub(super) async fn lock(conn: &mut PgConnection, tenant: TenantId, id: MonitorId) -> sqlx::Result<Option<LockedMonitor>> {
    sqlx::query_as!(
        LockedMonitor,
        "select name, cron, timezone, scan, api, rules, max_requests_per_month, paused, next_slot, grant_id
         from monitors where tenant_id = $1 and monitor_id = $2 for update",
        tenant.uuid(),
        id.uuid(),
    )
    .fetch_optional(conn)
    .await
}

/// The same for whoever ticks: none if its slot has been decided meanwhile, or another process is at it.
pub(super) async fn lock_due(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: MonitorId,
    now: Timestamp,
) -> sqlx::Result<Option<LockedMonitor>> {
    sqlx::query_as!(
        LockedMonitor,
        "select name, cron, timezone, scan, api, rules, max_requests_per_month, paused, next_slot, grant_id
         from monitors where tenant_id = $1 and monitor_id = $2 and next_slot is not null and greatest(next_slot, not_before) <= $3
         for update skip locked",
        tenant.uuid(),
        id.uuid(),
        now.to_sqlx() as _,
    )
    .fetch_optional(conn)
    .await
}

/// Monitors whose slot has come, the longest waiting first.
pub(super) async fn due(pool: &PgPool, now: Timestamp, most: i64) -> sqlx::Result<Vec<(TenantId, MonitorId)>> {
    let rows = sqlx::query!(
        "select tenant_id, monitor_id from monitors where next_slot is not null and greatest(next_slot, not_before) <= $1
         order by greatest(next_slot, not_before) limit $2",
        now.to_sqlx() as _,
        most
    )
    .fetch_all(pool)
    .await?;
    Ok(rows.into_iter().map(|row| (row.tenant_id.into(), row.monitor_id.into())).collect())
}

/// When a monitor is next to be looked at.
pub(super) async fn next(pool: &PgPool) -> sqlx::Result<Option<Timestamp>> {
    let next = sqlx::query_scalar!(
        r#"select min(greatest(next_slot, not_before)) as "next: SqlTimestamp" from monitors where next_slot is not null"#
    );
    Ok(next.fetch_one(pool).await?.map(SqlTimestamp::to_jiff))
}

/// Sets the next slot to be decided, and when it is looked at again if that is later.
pub(super) async fn set_next(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: MonitorId,
    next: Option<Timestamp>,
    not_before: Option<Timestamp>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update monitors set next_slot = $3, not_before = $4 where tenant_id = $1 and monitor_id = $2",
        tenant.uuid(),
        id.uuid(),
        next.map(|slot| slot.to_sqlx()) as _,
        not_before.map(|time| time.to_sqlx()) as _,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Pauses a monitor or lets it go on, by its caller's word.
pub(super) async fn set_paused(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: MonitorId,
    paused: bool,
    next: Option<Timestamp>,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update monitors set paused = $3, next_slot = $4, not_before = null, updated_at = $5 where tenant_id = $1 and monitor_id = $2",
        tenant.uuid(),
        id.uuid(),
        paused,
        next.map(|slot| slot.to_sqlx()) as _,
        now.to_sqlx() as _,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Deletes a monitor with its slots, its key and the answers kept for repeated POSTs on it. Its scans stay.
pub(super) async fn delete(conn: &mut PgConnection, tenant: TenantId, id: MonitorId, grant: GrantId) -> sqlx::Result<()> {
    sqlx::query!("delete from monitors where tenant_id = $1 and monitor_id = $2", tenant.uuid(), id.uuid())
        .execute(&mut *conn)
        .await?;
    sqlx::query!("delete from key_grants where tenant_id = $1 and grant_id = $2", tenant.uuid(), grant.uuid())
        .execute(&mut *conn)
        .await?;
    sqlx::query!(
        "delete from idempotency_keys where tenant_id = $1 and starts_with(path, $2)",
        tenant.uuid(),
        format!("/v1/monitors/{id}/"),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// A slot that is decided.
#[derive(Debug, Clone)]
pub(super) struct Decision {
    pub(super) slot: Timestamp,
    pub(super) kind: SlotKind,
    pub(super) outcome: SlotOutcome,
    pub(super) reason: Option<String>,
    pub(super) scan: Option<ScanId>,
}

/// Puts decisions on record. A slot that has been decided before is an error: nobody may decide it twice.
pub(super) async fn record(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: MonitorId,
    decisions: &[Decision],
    now: Timestamp,
) -> sqlx::Result<()> {
    let slots: Vec<_> = decisions.iter().map(|decision| decision.slot.to_sqlx()).collect();
    let kinds: Vec<_> = decisions.iter().map(|decision| decision.kind.as_str().to_owned()).collect();
    let outcomes: Vec<_> = decisions.iter().map(|decision| decision.outcome.as_str().to_owned()).collect();
    let reasons: Vec<_> = decisions.iter().map(|decision| decision.reason.clone()).collect();
    let scans: Vec<_> = decisions.iter().map(|decision| decision.scan.map(ScanId::uuid)).collect();
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

/// The runs of a monitor that have not ended.
pub(super) async fn live_runs(conn: &mut PgConnection, tenant: TenantId, id: MonitorId) -> sqlx::Result<Vec<ScanId>> {
    let runs = sqlx::query_scalar!(
        "select scan_id from scans where tenant_id = $1 and monitor_id = $2 and finished_at is null",
        tenant.uuid(),
        id.uuid(),
    );
    Ok(runs.fetch_all(conn).await?.into_iter().map(ScanId::from).collect())
}

/// Why the caller's lane waits for a good key, if it does.
pub(super) async fn refusal(conn: &mut PgConnection, tenant: TenantId, api: &str) -> sqlx::Result<Option<String>> {
    let reason = sqlx::query_scalar!(
        "select pause_reason from lanes
         where tenant_id = $1 and api = $2 and pause_reason in ('key_rejected', 'not_subscribed') and paused_until > clock_timestamp()",
        tenant.uuid(),
        api,
    );
    Ok(reason.fetch_optional(conn).await?.flatten())
}

/// What monitors have spent on the runs of these stretches of time: billed requests, those of deleted scans too.
pub(super) async fn spent(
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
    Ok(rows.into_iter().map(|row| (row.id.into(), row.spent)).collect())
}

/// A monitor as it is shown.
pub(super) struct MonitorRow {
    pub(super) monitor_id: Uuid,
    pub(super) name: String,
    pub(super) cron: String,
    pub(super) timezone: String,
    pub(super) scan: Value,
    pub(super) rules: Value,
    pub(super) max_requests_per_month: Option<i32>,
    /// Why it is paused.
    pub(super) pause: Option<String>,
    pub(super) next_slot: Option<SqlTimestamp>,
    pub(super) holds_key: bool,
    pub(super) last_slot: Option<Json<LastSlot>>,
    pub(super) created_at: SqlTimestamp,
    pub(super) updated_at: SqlTimestamp,
}

/// A slot inside a monitor's row.
#[derive(Debug, Deserialize)]
pub(super) struct LastSlot {
    pub(super) slot: Timestamp,
    pub(super) kind: String,
    pub(super) outcome: String,
    pub(super) reason: Option<String>,
    pub(super) scan_id: Option<Uuid>,
    pub(super) decided_at: Timestamp,
}

/// One monitor, or those that a list shows.
pub(super) enum Which<'a> {
    One(MonitorId),
    List { query: &'a MonitorsQuery, before: Option<MonitorId>, most: i64 },
}

pub(super) async fn shown(conn: &mut PgConnection, tenant: TenantId, which: &Which<'_>) -> sqlx::Result<Vec<MonitorRow>> {
    let (one, status, before, most) = match which {
        Which::One(id) => (Some(id.uuid()), None, None, 1),
        Which::List { query, before, most } => (None, query.status.map(|s| s.as_str()), before.map(MonitorId::uuid), *most),
    };
    sqlx::query_as!(
        MonitorRow,
        r#"select m.monitor_id, m.name, m.cron, m.timezone, m.scan, m.rules, m.max_requests_per_month, p.pause, m.next_slot,
                  exists (select from key_grants g where g.tenant_id = $1 and g.grant_id = m.grant_id and g.wiped_at is null) as "holds_key!",
                  (select json_build_object('slot', s.slot, 'kind', s.kind, 'outcome', s.outcome, 'reason', s.reason, 'scan_id', s.scan_id,
                                            'decided_at', s.decided_at)
                   from monitor_slots s where s.tenant_id = $1 and s.monitor_id = m.monitor_id
                   order by s.slot desc, s.kind desc limit 1) as "last_slot: Json<LastSlot>",
                  m.created_at, m.updated_at
           from monitors m
           left join lanes l on l.tenant_id = $1 and l.api = m.api
           -- The caller's own word outranks what the lane says.
           cross join lateral (
               select case when m.paused then 'by_caller'
                           when l.paused_until > clock_timestamp() and l.pause_reason in ('key_rejected', 'not_subscribed')
                           then l.pause_reason end as pause
           ) p
           where m.tenant_id = $1 and ($2::uuid is null or m.monitor_id = $2) and ($3::uuid is null or m.monitor_id < $3)
             and ($4::text is null or $4 = case when p.pause is null then 'active' else 'paused' end)
           order by m.monitor_id desc limit $5"#,
        tenant.uuid(),
        one,
        before,
        status,
        most,
    )
    .fetch_all(conn)
    .await
}

/// A slot as it is shown.
pub(super) struct SlotRow {
    pub(super) slot: SqlTimestamp,
    pub(super) kind: String,
    pub(super) outcome: String,
    pub(super) reason: Option<String>,
    pub(super) scan_id: Option<Uuid>,
    pub(super) decided_at: SqlTimestamp,
}

/// The newest first; `before` is the last of the page before.
pub(super) async fn slots(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: MonitorId,
    query: &SlotsQuery,
    before: Option<(Timestamp, SlotKind)>,
    most: i64,
) -> sqlx::Result<Vec<SlotRow>> {
    sqlx::query_as!(
        SlotRow,
        "select slot, kind, outcome, reason, scan_id, decided_at from monitor_slots
         where tenant_id = $1 and monitor_id = $2 and ($3::timestamptz is null or slot < $3 or slot = $3 and kind < $4)
           and ($5::text is null or outcome = $5)
         order by slot desc, kind desc limit $6",
        tenant.uuid(),
        id.uuid(),
        before.map(|(slot, _)| slot.to_sqlx()) as _,
        before.map(|(_, kind)| kind.as_str()),
        query.outcome.map(|outcome| outcome.as_str()),
        most,
    )
    .fetch_all(conn)
    .await
}

pub(super) async fn is_there(conn: &mut PgConnection, tenant: TenantId, id: MonitorId) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists (select from monitors where tenant_id = $1 and monitor_id = $2) as "is_there!""#,
        tenant.uuid(),
        id.uuid(),
    )
    .fetch_one(conn)
    .await
}

/// A run whose scan has ended and whose alert rules have not looked at it.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) tenant: TenantId,
    pub(super) monitor: MonitorId,
    pub(super) slot: Timestamp,
    pub(super) kind: SlotKind,
    pub(super) scan: ScanId,
}

/// Runs that can be judged, the oldest first.
pub(super) async fn to_judge(pool: &PgPool, most: i64) -> sqlx::Result<Vec<Run>> {
    let rows = sqlx::query!(
        r#"select s.tenant_id, s.monitor_id, s.slot, s.kind, s.scan_id as "scan_id!"
           from monitor_slots s join scans c on c.tenant_id = s.tenant_id and c.scan_id = s.scan_id
           where s.judged_at is null and s.scan_id is not null and c.finished_at is not null
           order by s.slot limit $1"#,
        most
    )
    .fetch_all(pool)
    .await?;
    let run = rows.into_iter().map(|row| Run {
        tenant: row.tenant_id.into(),
        monitor: row.monitor_id.into(),
        slot: row.slot.to_jiff(),
        kind: SlotKind::parse(&row.kind).unwrap_or(SlotKind::Schedule),
        scan: row.scan_id.into(),
    });
    Ok(run.collect())
}

/// Takes a run to judge it, under its monitor's lock; false: it was judged meanwhile, another process is at the monitor, or a run before
/// it comes first.
pub(super) async fn take_run(conn: &mut PgConnection, run: &Run) -> sqlx::Result<bool> {
    let locked = sqlx::query!(
        "select from monitors where tenant_id = $1 and monitor_id = $2 for update skip locked",
        run.tenant.uuid(),
        run.monitor.uuid(),
    )
    .execute(&mut *conn)
    .await?;
    if locked.rows_affected() == 0 {
        return Ok(false);
    }
    let taken = sqlx::query!(
        "select from monitor_slots s
         where s.tenant_id = $1 and s.monitor_id = $2 and s.slot = $3 and s.kind = $4 and s.judged_at is null
           and not exists (
               select from monitor_slots o join scans c on c.tenant_id = o.tenant_id and c.scan_id = o.scan_id
               where o.tenant_id = $1 and o.monitor_id = $2 and o.slot < $3 and o.judged_at is null and c.finished_at is not null)
         for update of s",
        run.tenant.uuid(),
        run.monitor.uuid(),
        run.slot.to_sqlx() as _,
        run.kind.as_str(),
    )
    .execute(conn)
    .await?;
    Ok(taken.rows_affected() == 1)
}

pub(super) async fn mark_judged(conn: &mut PgConnection, run: &Run, now: Timestamp) -> sqlx::Result<()> {
    sqlx::query!(
        "update monitor_slots set judged_at = $5 where tenant_id = $1 and monitor_id = $2 and slot = $3 and kind = $4",
        run.tenant.uuid(),
        run.monitor.uuid(),
        run.slot.to_sqlx() as _,
        run.kind.as_str(),
        now.to_sqlx() as _,
    )
    .execute(conn)
    .await?;
    Ok(())
}
