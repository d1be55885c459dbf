//! The rows of monitors and slots in the API.

use jiff::Timestamp;
use jiff_sqlx::{Timestamp as SqlTimestamp, ToSqlx as _};
use rust_decimal::Decimal;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use sqlx::types::Json;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::slots::StoredConfirmation;
use crate::contract::monitors::{MonitorsQuery, SlotKind, SlotOutcome, SlotsQuery};
use crate::contract::scans::SoughtText;
use crate::ids::{MonitorId, TenantId};
use crate::scans::read::SearchedPlace;

/// A monitor in the API.
pub(in crate::monitors) struct MonitorRow {
    pub(in crate::monitors) monitor_id: Uuid,
    pub(in crate::monitors) name: String,
    pub(in crate::monitors) cron: String,
    pub(in crate::monitors) timezone: String,
    pub(in crate::monitors) scan: Json<Box<RawValue>>,
    pub(in crate::monitors) rules: Value,
    pub(in crate::monitors) notify: Option<Value>,
    /// When its held alerts are sent.
    pub(in crate::monitors) notify_at: Option<SqlTimestamp>,
    pub(in crate::monitors) held_fired: i64,
    pub(in crate::monitors) notified_for: Option<SqlTimestamp>,
    pub(in crate::monitors) max_requests_per_month: Option<i32>,
    /// The reason of its pause.
    pub(in crate::monitors) pause: Option<String>,
    pub(in crate::monitors) next_slot: Option<SqlTimestamp>,
    pub(in crate::monitors) holds_key: bool,
    pub(in crate::monitors) last_slot: Option<Json<SlotRow>>,
    pub(in crate::monitors) created_at: SqlTimestamp,
    pub(in crate::monitors) updated_at: SqlTimestamp,
}

/// A slot in the API; the newest is nested in a monitor's row.
#[derive(Debug, Deserialize)]
pub(in crate::monitors) struct SlotRow {
    pub(in crate::monitors) slot: Timestamp,
    pub(in crate::monitors) kind: SlotKind,
    pub(in crate::monitors) outcome: SlotOutcome,
    pub(in crate::monitors) reason: Option<String>,
    pub(in crate::monitors) scan_id: Option<Uuid>,
    pub(in crate::monitors) decided_at: Timestamp,
    pub(in crate::monitors) evaluated_at: Option<Timestamp>,
    pub(in crate::monitors) fired: i32,
    pub(in crate::monitors) alerts: i32,
    pub(in crate::monitors) not_comparable: i32,
    pub(in crate::monitors) implausible: i32,
    pub(in crate::monitors) unconfirmed: i32,
    pub(in crate::monitors) confirmation: Option<StoredConfirmation>,
}

/// What monitors of a trip have.
#[derive(Debug, Clone, Default)]
pub struct MonitorConditions {
    /// Its scan departs from this airport, in upper case, among others.
    pub from_airport: Option<String>,
    /// Its scan goes to this airport, in upper case, among others.
    pub to_airport: Option<String>,
    /// Its scan is about exactly this hotel or place, among others.
    pub place: Option<SearchedPlace>,
}

/// Some monitors, or a page of a list.
pub(in crate::monitors) enum MonitorFilter<'a> {
    Ids(&'a [MonitorId]),
    List {
        query: &'a MonitorsQuery,
        before: Option<MonitorId>,
        limit: i64,
    },
    Where {
        conditions: &'a MonitorConditions,
        limit: i64,
    },
}

pub(in crate::monitors) async fn monitor_rows(
    conn: &mut PgConnection,
    tenant: TenantId,
    which: &MonitorFilter<'_>,
) -> sqlx::Result<Vec<MonitorRow>> {
    let any = MonitorConditions::default();
    let (ids, query, before, limit, conditions) = match which {
        MonitorFilter::Ids(ids) => {
            let uuids: Vec<_> = ids.iter().map(|id| id.uuid()).collect();
            (Some(uuids), None, None, i64::MAX, &any)
        }
        MonitorFilter::List {
            query,
            before,
            limit,
        } => (None, Some(query), before.map(MonitorId::uuid), *limit, &any),
        MonitorFilter::Where { conditions, limit } => (None, None, None, *limit, *conditions),
    };
    sqlx::query_as!(
        MonitorRow,
        r#"select m.monitor_id, m.name, m.cron, m.timezone, m.scan as "scan: Json<Box<RawValue>>", m.rules, m.notify, m.notify_at, m.held_fired, m.notified_for,
                  m.max_requests_per_month, p.pause, m.next_slot,
                  exists (select from key_grants g where g.tenant_id = $1 and g.grant_id = m.grant_id and g.wiped_at is null) as "holds_key!",
                  (select json_build_object('slot', s.slot, 'kind', s.kind, 'outcome', s.outcome, 'reason', s.reason, 'scan_id', s.scan_id,
                                            'decided_at', s.decided_at, 'evaluated_at', s.evaluated_at, 'fired', s.fired, 'alerts', s.alerts,
                                            'not_comparable', s.not_comparable, 'implausible', s.implausible,
                                            'unconfirmed', s.unconfirmed, 'confirmation', s.confirmation)
                   from monitor_slots s where s.tenant_id = $1 and s.monitor_id = m.monitor_id
                   order by s.slot desc, s.kind desc limit 1) as "last_slot: Json<SlotRow>",
                  m.created_at, m.updated_at
           from monitors m
           left join lanes l on l.tenant_id = $1 and l.api = m.api
           -- The caller's own word outranks what the lane says.
           cross join lateral (
               select case when m.paused then 'by_caller'
                           when l.paused_until > clock_timestamp() and l.pause_reason in ('key_rejected', 'not_subscribed')
                           then l.pause_reason end as pause
           ) p
           where m.tenant_id = $1 and ($2::uuid[] is null or m.monitor_id = any ($2)) and ($3::uuid is null or m.monitor_id < $3)
             and ($4::text is null or $4 = case when p.pause is null then 'active' else 'paused' end)
             and ($6::text is null or position($6 in upper(concat_ws(' ', m.scan #>> '{request,from_airport}', m.scan #>> '{sweep,from_airport}'))) > 0)
             and ($7::text is null or position($7 in upper(concat_ws(' ', m.scan #>> '{request,to_airport}', m.scan #>> '{sweep,to_airport}'))) > 0)
             and ($8::text is null or lower(m.scan #>> array['request', $8]) = lower($9)
                  or position(lower(to_json($9::text)::text) in lower(m.scan #>> array['sweep', $8])) > 0)
             and not exists (select from unnest($10::text[]) word where position(lower(word) in lower(concat_ws(' ', m.name,
                  m.scan #>> '{request,from_airport}', m.scan #>> '{sweep,from_airport}', m.scan #>> '{request,to_airport}', m.scan #>> '{sweep,to_airport}',
                  m.scan #>> '{request,hotel_name}', m.scan #>> '{request,destination}', m.scan #>> '{sweep,hotel_name}', m.scan #>> '{sweep,destination}'))) = 0)
           order by m.monitor_id desc limit $5"#,
        tenant.uuid(),
        ids.as_deref(),
        before,
        query.and_then(|query| query.status).map(|status| status.as_str()),
        limit,
        conditions.from_airport.as_deref(),
        conditions.to_airport.as_deref(),
        conditions.place.as_ref().map(|place| place.field),
        conditions.place.as_ref().map(|place| place.text.as_str()),
        &query.and_then(|query| query.text.as_ref()).map(SoughtText::words).unwrap_or_default(),
    )
    .fetch_all(conn)
    .await
}

/// All monitors that contain each word of a text, as the list of [`monitor_rows`] compares it.
pub(in crate::monitors) async fn ids_containing(
    pool: &PgPool,
    tenant: TenantId,
    text: &str,
) -> sqlx::Result<Vec<MonitorId>> {
    let ids = sqlx::query_scalar!(
        "select m.monitor_id from monitors m
           where m.tenant_id = $1 and not exists (select from unnest($2::text[]) word where position(lower(word) in lower(concat_ws(' ', m.name,
                 m.scan #>> '{request,from_airport}', m.scan #>> '{sweep,from_airport}', m.scan #>> '{request,to_airport}', m.scan #>> '{sweep,to_airport}',
                 m.scan #>> '{request,hotel_name}', m.scan #>> '{request,destination}', m.scan #>> '{sweep,hotel_name}', m.scan #>> '{sweep,destination}'))) = 0)",
        tenant.uuid(),
        &SoughtText::words_of(text),
    )
    .fetch_all(pool)
    .await?;
    Ok(ids.into_iter().map(Into::into).collect())
}

/// The newest monitors that do not do what they are for, and the number of all of them: the lane's
/// key is refused, the newest slot had no run for lack of budget or by a failure, or the webhook is
/// off. What their caller paused is as the caller wants it.
pub(in crate::monitors) async fn failing(
    conn: &mut PgConnection,
    tenant: TenantId,
    limit: i64,
) -> sqlx::Result<(Vec<MonitorId>, u64)> {
    let rows = sqlx::query!(
        r#"select m.monitor_id, count(*) over () as "total!"
           from monitors m
           left join lanes l on l.tenant_id = $1 and l.api = m.api
           where m.tenant_id = $1 and not m.paused
             and (l.paused_until > clock_timestamp() and l.pause_reason in ('key_rejected', 'not_subscribed')
                  or exists (select from webhook_endpoints w where w.tenant_id = $1 and w.monitor_id = m.monitor_id and w.off_at is not null)
                  or (select s.outcome from monitor_slots s where s.tenant_id = $1 and s.monitor_id = m.monitor_id
                      order by s.slot desc, s.kind desc limit 1) in ('failed', 'monthly_ceiling'))
           order by m.monitor_id desc limit $2"#,
        tenant.uuid(),
        limit,
    )
    .fetch_all(conn)
    .await?;
    let total = rows.first().map_or(0, |row| row.total.unsigned_abs());
    let ids = rows.into_iter().map(|row| row.monitor_id.into());
    Ok((ids.collect(), total))
}

/// What a caller has paused, of monitors and scans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pauses {
    /// The caller has paused something.
    pub has_paused: bool,
    /// Something else goes on. A monitor of a lane with a refused key does not; a scan that waits for
    /// its lane goes on by itself.
    pub goes_on: bool,
}

/// What a caller has paused.
pub async fn pauses(pool: &PgPool, tenant: TenantId) -> sqlx::Result<Pauses> {
    sqlx::query_as!(
        Pauses,
        r#"select exists (select from monitors m where m.tenant_id = $1 and m.paused)
                  or exists (select from scans s where s.tenant_id = $1 and s.finished_at is null
                               and s.status = 'paused' and s.status_reason = 'by_caller') as "has_paused!",
                  exists (select from monitors m where m.tenant_id = $1 and not m.paused
                            and not exists (select from lanes l where l.tenant_id = $1 and l.api = m.api and l.paused_until > clock_timestamp()
                                              and l.pause_reason in ('key_rejected', 'not_subscribed')))
                  or exists (select from scans s where s.tenant_id = $1 and s.finished_at is null
                               and s.status in ('queued', 'running')) as "goes_on!""#,
        tenant.uuid(),
    )
    .fetch_one(pool)
    .await
}

/// The newest first; `before` is the last slot of the previous page.
pub(in crate::monitors) async fn slot_rows(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: MonitorId,
    query: &SlotsQuery,
    before: Option<(Timestamp, SlotKind)>,
    limit: i64,
) -> sqlx::Result<Vec<SlotRow>> {
    let rows = sqlx::query!(
        r#"select slot, kind, outcome, reason, scan_id, decided_at, evaluated_at, fired, alerts, not_comparable, implausible, unconfirmed,
                  confirmation as "confirmation: Json<StoredConfirmation>" from monitor_slots
           where tenant_id = $1 and monitor_id = $2 and ($3::timestamptz is null or slot < $3 or slot = $3 and kind < $4)
             and ($5::text is null or outcome = $5)
           order by slot desc, kind desc limit $6"#,
        tenant.uuid(),
        id.uuid(),
        before.map(|(slot, _)| slot.to_sqlx()) as _,
        before.map(|(_, kind)| kind.as_str()),
        query.outcome.map(|outcome| outcome.as_str()),
        limit,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    let slots = rows.map(|row| SlotRow {
        slot: row.slot.to_jiff(),
        kind: row.kind,
        outcome: row.outcome,
        reason: row.reason,
        scan_id: row.scan_id,
        decided_at: row.decided_at.to_jiff(),
        evaluated_at: row.evaluated_at.map(SqlTimestamp::to_jiff),
        fired: row.fired,
        alerts: row.alerts,
        not_comparable: row.not_comparable,
        implausible: row.implausible,
        unconfirmed: row.unconfirmed,
        confirmation: row.confirmation.map(|confirmation| confirmation.0),
    });
    Ok(slots.collect())
}

/// The lowest price of an ended run.
pub(in crate::monitors) struct RunPriceRow {
    pub(in crate::monitors) monitor_id: Uuid,
    pub(in crate::monitors) slot: SqlTimestamp,
    pub(in crate::monitors) scan_id: Uuid,
    pub(in crate::monitors) price: Option<Decimal>,
    pub(in crate::monitors) currency: Option<String>,
    pub(in crate::monitors) item: Option<Uuid>,
    pub(in crate::monitors) implausible: i32,
}

/// The newest ended runs of each monitor, the oldest first.
pub(in crate::monitors) async fn run_prices(
    conn: &mut PgConnection,
    tenant: TenantId,
    monitors: &[MonitorId],
    runs: i64,
) -> sqlx::Result<Vec<RunPriceRow>> {
    let ids: Vec<_> = monitors.iter().map(|id| id.uuid()).collect();
    sqlx::query_as!(
        RunPriceRow,
        r#"select m.id as "monitor_id!", r.slot, r.scan_id, r.best_price as price, r.best_currency as currency, r.best_item_id as item, r.implausible
           from unnest($2::uuid[]) as m (id)
           cross join lateral (
               select s.slot, c.scan_id, c.best_price, c.best_currency, c.best_item_id, s.implausible
               from monitor_slots s join scans c on c.tenant_id = s.tenant_id and c.scan_id = s.scan_id
               where s.tenant_id = $1 and s.monitor_id = m.id and c.finished_at is not null
               order by s.slot desc limit $3
           ) r
           order by m.id, r.slot"#,
        tenant.uuid(),
        &ids,
        runs,
    )
    .fetch_all(conn)
    .await
}

pub(in crate::monitors) async fn monitor_exists(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: MonitorId,
) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists (select from monitors where tenant_id = $1 and monitor_id = $2) as "is_there!""#,
        tenant.uuid(),
        id.uuid(),
    )
    .fetch_one(conn)
    .await
}
