//! Statements shared by the commands on scans: scans, items, new lanes. Also here: the lock order
//! ([`lock`]).

pub(super) mod implausible;
pub(super) mod lock;

use std::ops::Range;

use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::{Date, ToSqlx as _};
use serde_json::Value;
use sqlx::PgConnection;

use self::lock::{EndedItem, LockedScan};
use super::per_minute;
use super::plan::ScanPlan;
use super::reuse;
use super::sequence::{self, Sequence};
use crate::config::PaceConfig;
use crate::contract::scans::{DelaySeconds, MaxAttempts, RetryPolicy, ScanRequest};
use crate::contract::{Api, FieldValue as _};
use crate::ids::{GrantId, ItemId, MonitorId, ScanId, TenantId};
use crate::tenants::acceptance::Probation;

/// The live scans and items of a caller.
pub(super) struct TenantLoad {
    pub(super) live_scans: i64,
    /// Items of live scans that have not ended.
    pub(super) open_items: i64,
    /// Whether a marketplace has accepted the caller's key.
    pub(super) accepted: bool,
}

/// Serialises the submissions of a caller, so that each counts the earlier ones. Taken before any
/// lane.
pub async fn lock_submissions(conn: &mut PgConnection, tenant: TenantId) -> sqlx::Result<()> {
    let name = format!("farescan.orders {tenant}");
    sqlx::query!(
        "select pg_advisory_xact_lock(hashtextextended($1, 0))",
        name
    )
    .execute(conn)
    .await?;
    Ok(())
}

pub(super) async fn load(conn: &mut PgConnection, tenant: TenantId) -> sqlx::Result<TenantLoad> {
    sqlx::query_as!(
        TenantLoad,
        r#"select count(*) as "live_scans!",
                  coalesce(sum(total - ok - empty - partial - degraded - failed - cancelled), 0)::bigint as "open_items!",
                  exists (select from tenants t where t.tenant_id = $1 and t.accepted_at is not null) as "accepted!"
           from scans where tenant_id = $1 and finished_at is null"#,
        tenant.uuid(),
    )
    .fetch_one(conn)
    .await
}

/// The facts that decide whether a caller that is not accepted yet may submit to this lane. The
/// caller may not be a tenant yet.
pub(super) async fn probation(
    conn: &mut PgConnection,
    tenant: Option<TenantId>,
    api: Api,
    now: Timestamp,
) -> sqlx::Result<Probation> {
    let minute_ago = now - SignedDuration::from_mins(1);
    let row = sqlx::query!(
        r#"select (select count(*) from tenants o where o.accepted_at is null and (o.tenant_id = $1) is not true) as "others!",
                  (select count(*) from tenants o where o.accepted_at is null and (o.tenant_id = $1) is not true and o.created_at > $3) as "new_others!",
                  (select count(*) from scans s where s.tenant_id = $1) as "scans!",
                  exists (select from scans s where s.tenant_id = $1 and s.finished_at is null) as "is_live!",
                  (select s.status in ('completed', 'incomplete') from scans s
                   where s.tenant_id = $1 order by s.scan_id desc limit 1) as ended_by_itself,
                  (select l.pause_reason from lanes l
                   where l.tenant_id = $1 and l.api = $2 and l.pause_reason in ('key_rejected', 'not_subscribed')) as refusal,
                  (select t.ordered_at from tenants t where t.tenant_id = $1) as "ordered_at: jiff_sqlx::Timestamp""#,
        tenant.map(TenantId::uuid),
        api.as_str(),
        minute_ago.to_sqlx() as _,
    )
    .fetch_one(conn)
    .await?;
    Ok(Probation {
        others: row.others,
        new_others: row.new_others,
        scans: row.scans,
        is_live: row.is_live,
        ended_by_itself: row.ended_by_itself.unwrap_or(false),
        ordered_at: row.ordered_at.map(jiff_sqlx::Timestamp::to_jiff),
        refusal: row.refusal,
    })
}

/// Creates the caller's lane if it is missing, locks it and wakes the claimers. Returns the first
/// sequence number for new items.
pub async fn ensure_and_wake_lane(
    conn: &mut PgConnection,
    tenant: TenantId,
    api: Api,
    pace: &PaceConfig,
) -> sqlx::Result<i64> {
    ensure_lane(conn, tenant, api, pace).await?;
    wake_lane(conn, tenant, api).await
}

/// Creates the lane if it is missing, locks it, wakes the claimers and reserves the sequence
/// numbers of the plan's items.
pub(super) async fn reserve_sequence(
    conn: &mut PgConnection,
    tenant: TenantId,
    plan: &ScanPlan,
    pace: &PaceConfig,
) -> sqlx::Result<Sequence> {
    let api = plan.scan_request.endpoint.get().api();
    let priority = plan.scan_request.priority_or_default();
    ensure_lane(conn, tenant, api, pace).await?;
    let start = sqlx::query_scalar!(
        r#"select reserve_sequence($1, $2, $3, $4) as "start!""#,
        tenant.uuid(),
        api.as_str(),
        i32::try_from(plan.items.len()).unwrap_or(i32::MAX),
        sequence::stride(priority),
    )
    .fetch_one(conn)
    .await?;
    Ok(Sequence::new(start, priority))
}

/// Creates the caller's lane if it is missing.
pub async fn ensure_lane(
    conn: &mut PgConnection,
    tenant: TenantId,
    api: Api,
    pace: &PaceConfig,
) -> sqlx::Result<()> {
    let max_in_flight = i32::try_from(pace.max_in_flight).unwrap_or(i32::MAX);
    sqlx::query!(
        "select create_lane($1, $2, $3, $4)",
        tenant.uuid(),
        api.as_str(),
        f64::from(per_minute(pace, api)),
        max_in_flight
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Locks the lane and wakes the claimers. Returns the first sequence number for new items.
async fn wake_lane(conn: &mut PgConnection, tenant: TenantId, api: Api) -> sqlx::Result<i64> {
    sqlx::query_scalar!(
        r#"select wake_lane($1, $2) as "start!""#,
        tenant.uuid(),
        api.as_str()
    )
    .fetch_one(conn)
    .await
}

pub(super) async fn insert_scan(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: ScanId,
    grant: Option<GrantId>,
    plan: &ScanPlan,
    monitor: Option<MonitorId>,
    now: Timestamp,
) -> sqlx::Result<()> {
    let ScanRequest {
        endpoint,
        request,
        sweep,
        label,
        tags,
        max_requests,
        retry,
        max_age_seconds,
        ..
    } = &plan.scan_request;
    let tags: Vec<String> = tags
        .iter()
        .flat_map(|tags| tags.as_slice())
        .map(|tag| tag.as_str().to_owned())
        .collect();
    let max_attempts = retry
        .as_ref()
        .map_or(MaxAttempts::ONE, RetryPolicy::max_attempts_or_default);
    let delay = retry
        .as_ref()
        .map_or(DelaySeconds::MINUTE, RetryPolicy::delay_seconds_or_default);
    sqlx::query!(
        "insert into scans (tenant_id, scan_id, endpoint, api, request, sweep, label, tags, priority, upstream_filters, upstream_limit,
                            max_attempts, retry_delay, status, total, max_requests, grant_id, created_at, monitor_id, verbatim, max_age)
         values ($1, $2, $3, $4, $5::text::json, $6::text::json, $7, $8, $9, $10, $11, $12, make_interval(secs => $13), 'queued', $14, $15, $16, $17, $18, $19,
                 make_interval(secs => $20))",
        tenant.uuid(),
        id.uuid(),
        endpoint.get().as_str(),
        endpoint.get().api().as_str(),
        request.to_value().to_string(),
        sweep.as_ref().map_or_else(|| "{}".to_owned(), |sweep| sweep.to_value().to_string()),
        label.as_ref().map(|label| label.as_str()),
        &tags,
        plan.scan_request.priority_or_default().as_str(),
        plan.scan_request.upstream_filters_or_default(),
        plan.upstream_limit(),
        i16::from(max_attempts.get()),
        f64::from(delay.get()),
        i32::try_from(plan.items.len()).unwrap_or(i32::MAX),
        max_requests.and_then(|max| i32::try_from(max.get()).ok()),
        grant.map(GrantId::uuid),
        now.to_sqlx(),
        monitor.map(MonitorId::uuid),
        plan.verbatim,
        max_age_seconds.map(|age| f64::from(age.get())),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Which items of a plan are stored now.
pub(super) struct NewItems {
    pub(super) positions: Range<usize>,
    /// Whether their caller is accepted.
    pub(super) accepted: bool,
}

/// Inserts the items at these positions in one statement, in state `held` if their scan is paused.
/// Those that may take an answer that is there end at once. Returns how many wait for a decision.
/// Their sequence numbers start at the lane's virtual time, so that a short scan does not wait
/// behind a long one of the same caller.
pub(super) async fn insert_items(
    conn: &mut PgConnection,
    tenant: TenantId,
    scan: ScanId,
    plan: &ScanPlan,
    NewItems {
        positions,
        accepted,
    }: NewItems,
    sequence: &Sequence,
    now: Timestamp,
) -> sqlx::Result<usize> {
    let items = &plan.items[positions.clone()];
    let ids: Vec<_> = items.iter().map(|_| ItemId::new().uuid()).collect();
    let bodies: Vec<_> = items
        .iter()
        .map(|item| Value::Object(item.to_body()))
        .collect();
    let dates: Vec<Option<Date>> = items
        .iter()
        .map(|item| item.first_date().map(|date| date.to_sqlx()))
        .collect();
    let first = i64::try_from(positions.start).unwrap_or(i64::MAX);
    let deferred: Vec<_> = positions.map(|_| plan.is_deferred(accepted)).collect();
    sqlx::query!(
        "insert into scan_items (tenant_id, item_id, scan_id, api, position, body, first_date, state, turn)
         select $1, x.item_id, $2, $3, $10::bigint + x.place - 1, x.body, x.first_date,
                case when x.deferred then 'deferred' when s.status = 'paused' then 'held' else 'pending' end,
                $4 + (x.place - 1) * $5
         from scans s cross join unnest($6::uuid[], $7::jsonb[], $8::date[], $9::boolean[]) with ordinality
              as x (item_id, body, first_date, deferred, place)
         where s.tenant_id = $1 and s.scan_id = $2",
        tenant.uuid(),
        scan.uuid(),
        plan.scan_request.endpoint.get().api().as_str(),
        sequence.start,
        sequence.stride,
        &ids,
        &bodies,
        &dates as _,
        &deferred,
        first,
    )
    .execute(&mut *conn)
    .await?;
    if plan.scan_request.max_age_seconds.is_some() {
        reuse::insert_searches(conn, tenant, scan, ids.iter().copied().zip(items)).await?;
        reuse::reuse_answers(conn, tenant, scan, &ids, now).await?;
    }
    Ok(deferred.iter().filter(|deferred| **deferred).count())
}

/// Sets the grant of a scan that has none.
pub(super) async fn set_grant(scan: &mut LockedScan<'_>, grant: GrantId) -> sqlx::Result<()> {
    let (tenant, id) = (scan.tenant(), scan.id());
    sqlx::query!(
        "update scans set grant_id = $3 where tenant_id = $1 and scan_id = $2",
        tenant.uuid(),
        id.uuid(),
        grant.uuid(),
    )
    .execute(scan.conn())
    .await?;
    Ok(())
}

/// Removes the expansion of a cancelled scan, under its lock. Returns how many of its items were
/// never stored.
async fn remove_unexpanded(
    conn: &mut PgConnection,
    tenant: TenantId,
    scan: ScanId,
) -> sqlx::Result<u64> {
    let missing = sqlx::query_scalar!(
        r#"delete from unexpanded_scans u using scans s
           where u.tenant_id = $1 and u.scan_id = $2 and s.tenant_id = $1 and s.scan_id = $2
           returning s.total - u.stored as "missing!""#,
        tenant.uuid(),
        scan.uuid(),
    );
    Ok(missing
        .fetch_optional(conn)
        .await?
        .map_or(0, |missing| u64::try_from(missing).unwrap_or_default()))
}

/// Cancels a live scan under all its locks. Calls in flight continue; without any, the scan ends
/// here and its key is destroyed.
pub(super) async fn cancel_scan(scan: &mut LockedScan<'_>, now: Timestamp) -> sqlx::Result<()> {
    let (tenant, id) = (scan.tenant(), scan.id());
    let conn = scan.conn();
    sqlx::query!(
        "update scans set status = 'cancelled', status_reason = null where tenant_id = $1 and scan_id = $2",
        tenant.uuid(),
        id.uuid(),
    )
    .execute(&mut *conn)
    .await?;
    let ended = sqlx::query!(
        "update scan_items set state = 'cancelled', worker_id = null, not_before = null
         where tenant_id = $1 and scan_id = $2 and state in ('pending', 'claimed', 'delayed', 'held', 'deferred')",
        tenant.uuid(),
        id.uuid(),
    )
    .execute(&mut *conn)
    .await?
    .rows_affected();
    let ended = ended + remove_unexpanded(&mut *conn, tenant, id).await?;
    sqlx::query!(
        "select from count_ended($1, $2, $3, 0, 0, 0, 0, 0, $4, 0)",
        now.to_sqlx() as _,
        tenant.uuid(),
        id.uuid(),
        i64::try_from(ended).unwrap_or(i64::MAX),
    )
    .execute(&mut *conn)
    .await?;
    // Nobody can wait for a search that is not made.
    sqlx::query!(
        "delete from shared_searches r using scan_items i
         where r.tenant_id = $1 and i.tenant_id = $1 and i.scan_id = $2 and i.item_id = r.item_id and i.state = 'cancelled'",
        tenant.uuid(),
        id.uuid(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Keeps the answers of items that are about to be searched once more, until that search has ended
/// (`settle_confirmations`). The price is text: a JSON number would be rounded on its way.
pub(super) async fn keep_answers(
    scan: &mut LockedScan<'_>,
    items: &[EndedItem],
) -> sqlx::Result<()> {
    let (tenant, id) = (scan.tenant(), scan.id());
    let conn = scan.conn();
    let ids: Vec<_> = items.iter().map(|item| item.item_id).collect();
    sqlx::query!(
        "update scan_items i
         set earlier = jsonb_build_object(
                 'kept_status', i.search_status, 'kept_reason', i.reason, 'kept_results', i.results, 'kept_price', i.best_price::text,
                 'kept_currency', i.currency, 'kept_at', i.observed_at, 'kept_latency', i.latency_ms, 'kept_attempt', i.attempt,
                 'kept_offer', (select to_jsonb(o) from item_offers o where o.tenant_id = $1 and o.item_id = i.item_id))
         where i.tenant_id = $1 and i.item_id = any ($2)",
        tenant.uuid(),
        &ids,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "update scans set confirming = $3 where tenant_id = $1 and scan_id = $2",
        tenant.uuid(),
        id.uuid(),
        &ids,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Makes ended items pending again under all locks (`held` if their scan is paused), subtracts them
/// from the scan's counts and reopens it. With `resumes`, a paused scan runs again and its `held`
/// items become pending after them, with consecutive sequence numbers: five remaining items wait as
/// long as a scan of five.
pub(super) async fn requeue_items(
    scan: &mut LockedScan<'_>,
    items: &[EndedItem],
    resumes: bool,
    max_requests: Option<i32>,
) -> sqlx::Result<()> {
    let (tenant, id, sequence) = (scan.tenant(), scan.id(), scan.sequence());
    let conn = scan.conn();
    let ids: Vec<_> = items.iter().map(|item| item.item_id).collect();
    sqlx::query!(
        "with again as (
             select item_id, state, search_status from scan_items where tenant_id = $1 and item_id = any ($3)
         ), counted as (
             select count(*) filter (where state = 'done' and search_status = 'ok')::integer as ok,
                    count(*) filter (where state = 'done' and search_status = 'partial')::integer as partial,
                    count(*) filter (where state = 'done' and search_status = 'degraded')::integer as degraded,
                    count(*) filter (where state = 'failed')::integer as failed
             from again
         )
         update scans s
         set ok = s.ok - c.ok, partial = s.partial - c.partial, degraded = s.degraded - c.degraded, failed = s.failed - c.failed,
             status = case when s.status = 'paused' and not $4 then s.status else 'running' end,
             status_reason = case when s.status = 'paused' and not $4 then s.status_reason end,
             max_requests = coalesce($5, s.max_requests), finished_at = null
         from counted c
         where s.tenant_id = $1 and s.scan_id = $2",
        tenant.uuid(),
        id.uuid(),
        &ids,
        resumes,
        max_requests,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "update scan_items i
         set state = case when s.status = 'paused' then 'held' else 'pending' end, turn = $4::bigint + x.place * $5::bigint, counted_calls = 0,
             not_before = null, search_status = null, reason = null, results = null, best_price = null, currency = null,
             observed_at = null, latency_ms = null, error = null
         from unnest($3::uuid[]) with ordinality as x (item_id, place), scans s
         where i.tenant_id = $1 and i.item_id = x.item_id and s.tenant_id = $1 and s.scan_id = $2",
        tenant.uuid(),
        id.uuid(),
        &ids,
        sequence.start,
        sequence.stride,
    )
    .execute(&mut *conn)
    .await?;
    // A retry searches: it takes no answer, and nobody waits for it.
    sqlx::query!(
        "delete from shared_searches where tenant_id = $1 and item_id = any ($2)",
        tenant.uuid(),
        &ids,
    )
    .execute(&mut *conn)
    .await?;
    if resumes {
        sqlx::query!(
            "update scan_items i
             set state = case when h.early then 'delayed' else 'pending' end, turn = $3::bigint + h.place * $4::bigint,
                 not_before = case when h.early then i.not_before end
             from (select item_id, row_number() over (order by position) + $5 as place,
                          coalesce(not_before > clock_timestamp(), false) as early
                   from scan_items where tenant_id = $1 and scan_id = $2 and state = 'held') h
             where i.tenant_id = $1 and i.item_id = h.item_id",
            tenant.uuid(),
            id.uuid(),
            sequence.start,
            sequence.stride,
            i64::try_from(ids.len()).unwrap_or(i64::MAX),
        )
        .execute(&mut *conn)
        .await?;
    }
    sqlx::query!(
        "select from update_best_price($1, $2, $3)",
        tenant.uuid(),
        id.uuid(),
        &ids
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The age that a caller has set for submissions that name none.
pub(super) async fn default_max_age(
    conn: &mut PgConnection,
    tenant: TenantId,
) -> sqlx::Result<Option<i32>> {
    let age = sqlx::query_scalar!(
        "select max_age_seconds from account_settings where tenant_id = $1",
        tenant.uuid()
    );
    Ok(age.fetch_optional(conn).await?.flatten())
}
