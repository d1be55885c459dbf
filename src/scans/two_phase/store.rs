//! Two-phase scans in the database.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use rust_decimal::Decimal;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::TwoPhase;
use crate::ids::{ScanId, TenantId};
use crate::scans::store::Turns;

pub(in crate::scans) async fn insert(
    conn: &mut PgConnection,
    tenant: TenantId,
    scan: ScanId,
    phases: &TwoPhase,
    deferred: usize,
) -> sqlx::Result<()> {
    let small = |number: usize| i16::try_from(number).unwrap_or(i16::MAX);
    let number = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    sqlx::query!(
        "insert into scan_strategies (tenant_id, scan_id, coarse_step, refine, dates, inner_items, combinations, deferred)
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
        tenant.uuid(),
        scan.uuid(),
        small(phases.coarse_step),
        small(phases.refine),
        number(phases.dates),
        number(phases.inner_items),
        number(phases.combinations),
        number(deferred),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// A scan whose second phase is to begin.
pub(super) struct Due {
    pub(super) tenant: TenantId,
    pub(super) scan: ScanId,
    pub(super) api: String,
}

/// Scans of which all but the deferred items have ended, and scans that have ended before they came so far; those after one of them, in
/// the order of their ids.
pub(super) async fn due(
    pool: &PgPool,
    after: Option<(TenantId, ScanId)>,
    limit: i64,
) -> sqlx::Result<Vec<Due>> {
    let (tenant, scan) = after.map_or((Uuid::nil(), Uuid::nil()), |(tenant, scan)| {
        (tenant.uuid(), scan.uuid())
    });
    sqlx::query_as!(
        Due,
        "select t.tenant_id as tenant, t.scan_id as scan, s.api
         from scan_strategies t join scans s on s.tenant_id = t.tenant_id and s.scan_id = t.scan_id
         where t.skipped is null and t.deferred > 0 and (t.tenant_id, t.scan_id) > ($2, $3)
           and (s.finished_at is not null
                or s.status in ('queued', 'running')
                   and s.total - t.deferred = s.ok + s.empty + s.partial + s.degraded + s.failed + s.cancelled
                   and not exists (select from unexpanded_scans u where u.tenant_id = t.tenant_id and u.scan_id = t.scan_id))
         order by t.tenant_id, t.scan_id limit $1",
        limit,
        tenant,
        scan,
    )
    .fetch_all(pool)
    .await
}

/// The deferred items and their positions, locked in the order that everybody keeps.
pub(super) async fn lock_deferred(
    conn: &mut PgConnection,
    due: &Due,
) -> sqlx::Result<Vec<(Uuid, usize)>> {
    let rows = sqlx::query!(
        "select item_id, position from scan_items where tenant_id = $1 and scan_id = $2 and state = 'deferred'
         order by item_id for no key update",
        due.tenant.uuid(),
        due.scan.uuid(),
    );
    let rows = rows.fetch_all(conn).await?;
    Ok(rows
        .into_iter()
        .map(|row| {
            (
                row.item_id,
                usize::try_from(row.position).unwrap_or_default(),
            )
        })
        .collect())
}

/// A scan that is ready under its lock.
pub(super) struct Ready {
    pub(super) phases: TwoPhase,
    pub(super) priority: String,
}

/// The scan under its lock, if it is ready still: a retry may have opened its first phase again, a pause or another process come first.
pub(super) async fn lock_ready(conn: &mut PgConnection, due: &Due) -> sqlx::Result<Option<Ready>> {
    let row = sqlx::query!(
        "select t.coarse_step, t.refine, t.dates, t.inner_items, t.combinations, s.priority
         from scan_strategies t join scans s on s.tenant_id = t.tenant_id and s.scan_id = t.scan_id
         where t.tenant_id = $1 and t.scan_id = $2 and t.skipped is null and t.deferred > 0
           and (s.finished_at is not null
                or s.status in ('queued', 'running')
                   and s.total - t.deferred = s.ok + s.empty + s.partial + s.degraded + s.failed + s.cancelled)
         for no key update",
        due.tenant.uuid(),
        due.scan.uuid(),
    );
    let number = |number: i32| usize::try_from(number).unwrap_or(1).max(1);
    Ok(row.fetch_optional(conn).await?.map(|row| Ready {
        phases: TwoPhase {
            coarse_step: number(row.coarse_step.into()),
            refine: number(row.refine.into()),
            dates: number(row.dates),
            inner_items: number(row.inner_items),
            combinations: number(row.combinations),
        },
        priority: row.priority,
    }))
}

/// The prices that the first phase saw, by position, in the currency of the scan's best.
pub(super) async fn prices(
    conn: &mut PgConnection,
    due: &Due,
) -> sqlx::Result<Vec<(usize, Decimal)>> {
    let rows = sqlx::query!(
        r#"select i.position, i.best_price as "price!"
           from scan_items i join scans s on s.tenant_id = i.tenant_id and s.scan_id = i.scan_id
           where i.tenant_id = $1 and i.scan_id = $2 and i.state = 'done' and i.best_price is not null and i.currency = s.best_currency"#,
        due.tenant.uuid(),
        due.scan.uuid(),
    );
    let rows = rows.fetch_all(conn).await?;
    Ok(rows
        .into_iter()
        .map(|row| (usize::try_from(row.position).unwrap_or_default(), row.price))
        .collect())
}

/// Takes a scan off the list that was cancelled in its first phase.
pub(super) async fn forget(conn: &mut PgConnection, due: &Due) -> sqlx::Result<()> {
    sqlx::query!(
        "update scan_strategies set deferred = 0 where tenant_id = $1 and scan_id = $2",
        due.tenant.uuid(),
        due.scan.uuid()
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Makes the wanted items pending and takes the others out of the scan, which ends here if none is wanted.
pub(super) async fn begin(
    conn: &mut PgConnection,
    due: &Due,
    wanted: &[(Uuid, usize)],
    skipped: &[(Uuid, usize)],
    turns: &Turns,
    now: Timestamp,
) -> sqlx::Result<()> {
    let ids = |items: &[(Uuid, usize)]| items.iter().map(|(id, _)| *id).collect::<Vec<_>>();
    sqlx::query!(
        "update scan_items i set state = 'pending', turn = $3::bigint + x.place * $4::bigint
         from unnest($2::uuid[]) with ordinality as x (item_id, place)
         where i.tenant_id = $1 and i.item_id = x.item_id",
        due.tenant.uuid(),
        &ids(wanted),
        turns.start,
        turns.stride,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "update scan_items set state = 'skipped' where tenant_id = $1 and item_id = any ($2)",
        due.tenant.uuid(),
        &ids(skipped),
    )
    .execute(&mut *conn)
    .await?;
    let left_out = i32::try_from(skipped.len()).unwrap_or(i32::MAX);
    sqlx::query!(
        "with strategy as (update scan_strategies set skipped = $3 where tenant_id = $1 and scan_id = $2)
         update scans set total = total - $3 where tenant_id = $1 and scan_id = $2",
        due.tenant.uuid(),
        due.scan.uuid(),
        left_out,
    )
    .execute(&mut *conn)
    .await?;
    if wanted.is_empty() {
        sqlx::query!(
            "select from count_ended($1, $2, $3, 0, 0, 0, 0, 0, 0, 0)",
            now.to_sqlx() as _,
            due.tenant.uuid(),
            due.scan.uuid(),
        )
        .execute(conn)
        .await?;
    }
    Ok(())
}
