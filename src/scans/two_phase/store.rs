//! Statements on two-phase scans.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use rust_decimal::Decimal;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use crate::ids::{ScanId, TenantId};
use crate::planner::TwoPhase;
use crate::scans::store::lock::LockedScan;

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

/// A scan whose second phase is due.
pub(super) struct DueTwoPhaseScan {
    pub(super) tenant: TenantId,
    pub(super) scan: ScanId,
}

/// Scans of which all but the deferred items have ended, and scans that ended before their second
/// phase; in the order of their ids, after the given one.
pub(super) async fn find_due(
    pool: &PgPool,
    after: Option<(TenantId, ScanId)>,
    limit: i64,
) -> sqlx::Result<Vec<DueTwoPhaseScan>> {
    let (tenant, scan) = after.map_or((Uuid::nil(), Uuid::nil()), |(tenant, scan)| {
        (tenant.uuid(), scan.uuid())
    });
    sqlx::query_as!(
        DueTwoPhaseScan,
        "select t.tenant_id as tenant, t.scan_id as scan
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

/// The ids and positions of the deferred items, in the order of their ids.
pub(super) async fn deferred_items(lock: &mut LockedScan<'_>) -> sqlx::Result<Vec<(Uuid, usize)>> {
    let rows = sqlx::query!(
        "select item_id, position from scan_items where tenant_id = $1 and scan_id = $2 and state = 'deferred'
         order by item_id",
        lock.tenant().uuid(),
        lock.id().uuid(),
    );
    let rows = rows.fetch_all(lock.conn()).await?;
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

/// The phases of the scan, if its second phase is still due: a retry may have reopened the first
/// phase, or a pause or another process may have come first.
pub(super) async fn find_if_due(lock: &mut LockedScan<'_>) -> sqlx::Result<Option<TwoPhase>> {
    let row = sqlx::query!(
        "select t.coarse_step, t.refine, t.dates, t.inner_items, t.combinations
         from scan_strategies t join scans s on s.tenant_id = t.tenant_id and s.scan_id = t.scan_id
         where t.tenant_id = $1 and t.scan_id = $2 and t.skipped is null and t.deferred > 0
           and (s.finished_at is not null
                or s.status in ('queued', 'running')
                   and s.total - t.deferred = s.ok + s.empty + s.partial + s.degraded + s.failed + s.cancelled)",
        lock.tenant().uuid(),
        lock.id().uuid(),
    );
    let number = |number: i32| usize::try_from(number).unwrap_or(1).max(1);
    Ok(row.fetch_optional(lock.conn()).await?.map(|row| TwoPhase {
        coarse_step: number(row.coarse_step.into()),
        refine: number(row.refine.into()),
        dates: number(row.dates),
        inner_items: number(row.inner_items),
        combinations: number(row.combinations),
    }))
}

/// The prices of the first phase, by position, in the currency of the scan's best price.
pub(super) async fn prices(lock: &mut LockedScan<'_>) -> sqlx::Result<Vec<(usize, Decimal)>> {
    let rows = sqlx::query!(
        r#"select i.position, i.best_price as "price!"
           from scan_items i join scans s on s.tenant_id = i.tenant_id and s.scan_id = i.scan_id
           where i.tenant_id = $1 and i.scan_id = $2 and i.state = 'done' and i.best_price is not null and i.currency = s.best_currency"#,
        lock.tenant().uuid(),
        lock.id().uuid(),
    );
    let rows = rows.fetch_all(lock.conn()).await?;
    Ok(rows
        .into_iter()
        .map(|row| (usize::try_from(row.position).unwrap_or_default(), row.price))
        .collect())
}

/// Clears the deferred count of a scan that was cancelled in its first phase.
pub(super) async fn clear_deferred(lock: &mut LockedScan<'_>) -> sqlx::Result<()> {
    sqlx::query!(
        "update scan_strategies set deferred = 0 where tenant_id = $1 and scan_id = $2",
        lock.tenant().uuid(),
        lock.id().uuid()
    )
    .execute(lock.conn())
    .await?;
    Ok(())
}

/// Makes the selected items pending and removes the others from the scan's total. The scan ends
/// here if none is selected.
pub(super) async fn start_second_phase(
    lock: &mut LockedScan<'_>,
    selected: &[(Uuid, usize)],
    skipped: &[(Uuid, usize)],
    now: Timestamp,
) -> sqlx::Result<()> {
    let sequence = lock.sequence();
    let ids = |items: &[(Uuid, usize)]| items.iter().map(|(id, _)| *id).collect::<Vec<_>>();
    sqlx::query!(
        "update scan_items i set state = 'pending', turn = $3::bigint + x.place * $4::bigint
         from unnest($2::uuid[]) with ordinality as x (item_id, place)
         where i.tenant_id = $1 and i.item_id = x.item_id",
        lock.tenant().uuid(),
        &ids(selected),
        sequence.start,
        sequence.stride,
    )
    .execute(lock.conn())
    .await?;
    sqlx::query!(
        "update scan_items set state = 'skipped' where tenant_id = $1 and item_id = any ($2)",
        lock.tenant().uuid(),
        &ids(skipped),
    )
    .execute(lock.conn())
    .await?;
    let skipped_count = i32::try_from(skipped.len()).unwrap_or(i32::MAX);
    sqlx::query!(
        "with strategy as (update scan_strategies set skipped = $3 where tenant_id = $1 and scan_id = $2)
         update scans set total = total - $3 where tenant_id = $1 and scan_id = $2",
        lock.tenant().uuid(),
        lock.id().uuid(),
        skipped_count,
    )
    .execute(lock.conn())
    .await?;
    if selected.is_empty() {
        sqlx::query!(
            "select from count_ended($1, $2, $3, 0, 0, 0, 0, 0, 0, 0)",
            now.to_sqlx() as _,
            lock.tenant().uuid(),
            lock.id().uuid(),
        )
        .execute(lock.conn())
        .await?;
    }
    Ok(())
}
