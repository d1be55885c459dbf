//! Statements on reused answers.

use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::ToSqlx as _;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::contract::scans::MaxAgeSeconds;
use crate::ids::{ItemId, ScanId, TenantId};
use crate::scans::plan::ScanPlan;
use crate::scans::searches::Searches;

pub(super) async fn insert_searches(
    conn: &mut PgConnection,
    tenant: TenantId,
    scan: ScanId,
    items: &[Uuid],
    searches: &Searches,
) -> sqlx::Result<()> {
    let [first_dates, last_dates] = searches.sql_dates();
    sqlx::query!(
        "insert into shared_searches (tenant_id, item_id, search_key, series, first_date, last_date)
         select $1, x.item_id, search_key(s.endpoint, sent_options(s.upstream_limit, s.upstream_filters, i.body), x.series, x.first_date,
                    x.last_date),
                x.series, x.first_date, x.last_date
         from unnest($3::uuid[], $4::bytea[], $5::date[], $6::date[]) as x (item_id, series, first_date, last_date)
         join scans s on s.tenant_id = $1 and s.scan_id = $2
         cross join lateral (select body from scan_items
                             where tenant_id = $1 and item_id between x.item_id and x.item_id order by item_id limit 1) i",
        tenant.uuid(),
        scan.uuid(),
        items,
        &searches.series,
        &first_dates as _,
        &last_dates as _,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Ends the pending items for which there is an answer, under all locks of their scan.
pub(in crate::scans) async fn reuse_answers(
    conn: &mut PgConnection,
    tenant: TenantId,
    scan: ScanId,
    items: &[Uuid],
    now: Timestamp,
) -> sqlx::Result<i64> {
    sqlx::query_scalar!(
        r#"select reuse_answers($1, $2, $3, $4) as "reused!""#,
        now.to_sqlx() as _,
        tenant.uuid(),
        scan.uuid(),
        items,
    )
    .fetch_one(conn)
    .await
}

/// How many answers the items of a caller's newest scans took, of those submitted within an hour.
pub(in crate::scans) async fn reused_within_hour(
    conn: &mut PgConnection,
    tenant: TenantId,
    now: Timestamp,
) -> sqlx::Result<i64> {
    let since = now - SignedDuration::from_hours(1);
    sqlx::query_scalar!(
        r#"select coalesce(sum(s.reused + s.joined), 0)::bigint as "reused!"
           from (select reused, joined, created_at from scans where tenant_id = $1 order by scan_id desc limit 10000) s
           where s.created_at > $2"#,
        tenant.uuid(),
        since.to_sqlx() as _,
    )
    .fetch_one(conn)
    .await
}

/// The searches for which there is an answer, counted from 1.
pub(super) async fn find_reusable(
    conn: &mut PgConnection,
    tenant: TenantId,
    plan: &ScanPlan,
    max_age: MaxAgeSeconds,
    searches: &Searches,
    now: Timestamp,
) -> sqlx::Result<Vec<i64>> {
    let [first_dates, last_dates] = searches.sql_dates();
    sqlx::query_scalar!(
        r#"select nth as "nth!"
           from reusable_answers($1, $2, make_interval(secs => $3), $4, false,
                                 array(select sent_options($5, $6, b.body) from unnest($7::jsonb[]) with ordinality as b (body, nth) order by b.nth),
                                 $8, $9, $10)"#,
        now.to_sqlx() as _,
        tenant.uuid(),
        f64::from(max_age.get()),
        plan.scan_request.endpoint.get().as_str(),
        plan.upstream_limit(),
        plan.scan_request.upstream_filters_or_default(),
        &searches.bodies,
        &searches.series,
        &first_dates as _,
        &last_dates as _,
    )
    .fetch_all(conn)
    .await
}

pub(super) async fn settle_shared_searches(
    conn: &mut PgConnection,
    tenant: TenantId,
    api: &str,
    items: &[ItemId],
    now: Timestamp,
) -> sqlx::Result<i64> {
    let items: Vec<_> = items.iter().map(|item| item.uuid()).collect();
    sqlx::query_scalar!(
        r#"select settle_shared_searches($1, $2, $3, $4) as "settled!""#,
        now.to_sqlx() as _,
        tenant.uuid(),
        api,
        &items,
    )
    .fetch_one(conn)
    .await
}
