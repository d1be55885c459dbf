//! What the database knows of an account. Every statement begins with the tenant.

use jiff_sqlx::{Timestamp, ToSqlx as _};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::usage::Range;
use crate::ids::{ScanId, TenantId};

/// What one day, endpoint or scan has cost.
pub(super) struct SpentRow {
    /// The day or the endpoint.
    pub(super) word: Option<String>,
    /// The scan; none: the scans that were deleted.
    pub(super) scan: Option<Uuid>,
    pub(super) attempts: i64,
    pub(super) requests: i64,
    pub(super) ok: i64,
    pub(super) empty: i64,
    pub(super) partial: i64,
    pub(super) degraded: i64,
}

pub(super) async fn by_day(conn: &mut PgConnection, tenant: TenantId, range: &Range) -> sqlx::Result<Vec<SpentRow>> {
    sqlx::query_as!(
        SpentRow,
        r#"select day::text as word, null::uuid as scan, sum(attempts)::bigint as "attempts!", sum(requests)::bigint as "requests!",
                  sum(ok)::bigint as "ok!", sum(empty)::bigint as "empty!", sum(partial)::bigint as "partial!",
                  sum(degraded)::bigint as "degraded!"
           from usage_rows($1, $2, $3) group by day order by day"#,
        tenant.uuid(),
        range.since.to_sqlx() as _,
        range.until.to_sqlx() as _,
    )
    .fetch_all(conn)
    .await
}

pub(super) async fn by_endpoint(conn: &mut PgConnection, tenant: TenantId, range: &Range) -> sqlx::Result<Vec<SpentRow>> {
    sqlx::query_as!(
        SpentRow,
        r#"select endpoint as word, null::uuid as scan, sum(attempts)::bigint as "attempts!", sum(requests)::bigint as "requests!",
                  sum(ok)::bigint as "ok!", sum(empty)::bigint as "empty!", sum(partial)::bigint as "partial!",
                  sum(degraded)::bigint as "degraded!"
           from usage_rows($1, $2, $3) group by endpoint order by endpoint collate "C""#,
        tenant.uuid(),
        range.since.to_sqlx() as _,
        range.until.to_sqlx() as _,
    )
    .fetch_all(conn)
    .await
}

/// The newest first, those that were deleted together and last.
pub(super) async fn by_scan(
    conn: &mut PgConnection,
    tenant: TenantId,
    range: &Range,
    after: Option<ScanId>,
    limit: i64,
) -> sqlx::Result<Vec<SpentRow>> {
    sqlx::query_as!(
        SpentRow,
        r#"select null::text as word, scan_id as scan, sum(attempts)::bigint as "attempts!", sum(requests)::bigint as "requests!",
                  sum(ok)::bigint as "ok!", sum(empty)::bigint as "empty!", sum(partial)::bigint as "partial!",
                  sum(degraded)::bigint as "degraded!"
           from usage_rows($1, $2, $3)
           where $4::uuid is null or scan_id is null or scan_id < $4
           group by scan_id order by scan_id desc nulls last limit $5"#,
        tenant.uuid(),
        range.since.to_sqlx() as _,
        range.until.to_sqlx() as _,
        after.map(ScanId::uuid),
        limit,
    )
    .fetch_all(conn)
    .await
}

/// A lane as it stands.
pub(super) struct LaneRow {
    pub(super) api: String,
    pub(super) seconds_per_search: f64,
    pub(super) burst: i32,
    pub(super) max_in_flight: i32,
    pub(super) in_flight: i64,
    pub(super) plan_limit: Option<i64>,
    pub(super) plan_remaining: Option<i64>,
    pub(super) plan_reset_at: Option<Timestamp>,
    pub(super) plan_seen_at: Option<Timestamp>,
    /// Why it is stopped now.
    pub(super) paused: Option<String>,
    /// None: until a resume.
    pub(super) paused_until: Option<Timestamp>,
}

pub(super) async fn lanes(pool: &PgPool, tenant: TenantId) -> sqlx::Result<Vec<LaneRow>> {
    sqlx::query_as!(
        LaneRow,
        r#"select l.api, extract(epoch from l.emission)::double precision as "seconds_per_search!", l.burst, l.max_in_flight,
                  -- By the index of what is in flight; what was only claimed has not been sent.
                  (select count(*) from scan_items i
                   where i.tenant_id = l.tenant_id and i.api = l.api and i.state in ('claimed', 'calling') and i.state = 'calling')
                      as "in_flight!",
                  l.plan_limit, l.plan_remaining, l.plan_reset_at as "plan_reset_at: Timestamp", l.plan_seen_at as "plan_seen_at: Timestamp",
                  case when l.paused_until > clock_timestamp() then l.pause_reason end as paused,
                  nullif(l.paused_until, 'infinity') as "paused_until: Timestamp"
           from lanes l where l.tenant_id = $1"#,
        tenant.uuid(),
    )
    .fetch_all(pool)
    .await
}
