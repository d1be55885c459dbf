//! Statements on decisions.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use rust_decimal::Decimal;
use sqlx::PgPool;

use super::{number, rounded};
use crate::contract::scans::{DecisionBest, DecisionReason, StrategyDecision};
use crate::ids::{ScanId, TenantId};
use crate::planner::{Candidate, SearchDecision, unsearched};
use crate::scans::question::view::Learned;
use crate::scans::store::lock::LockedScan;

/// What each decision of the scan was the first to know.
pub(in crate::scans::question) async fn learned(
    lock: &mut LockedScan<'_>,
) -> sqlx::Result<Vec<Learned>> {
    let rows = sqlx::query_as!(
        Learned,
        r#"select stored_positions, stored_prices as "stored_prices: Vec<Option<Decimal>>", stored_at as "stored_at: Vec<jiff_sqlx::Timestamp>",
                  tried_positions, tried_at as "tried_at: Vec<jiff_sqlx::Timestamp>",
                  found_positions, found_prices as "found_prices: Vec<Option<Decimal>>", unanswered
           from scan_decisions where tenant_id = $1 and scan_id = $2 order by number"#,
        lock.tenant().uuid(),
        lock.id().uuid(),
    );
    rows.fetch_all(lock.conn()).await
}

/// What a decision was made from.
pub(in crate::scans::question) struct DecidedFrom<'a> {
    /// What those before it have learned, and what is new.
    pub(in crate::scans::question) decisions: &'a [Learned],
    pub(in crate::scans::question) now: Timestamp,
    /// Positions whose found prices are implausible.
    pub(in crate::scans::question) implausible: &'a [i32],
    pub(in crate::scans::question) candidates: &'a [Candidate],
    pub(in crate::scans::question) may_search: Option<usize>,
}

/// Stores a decision, which its searches wait for.
pub(in crate::scans::question) async fn insert_decision(
    lock: &mut LockedScan<'_>,
    decision: &SearchDecision,
    from: &DecidedFrom<'_>,
) -> sqlx::Result<()> {
    let (tenant, scan) = (lock.tenant(), lock.id());
    let DecidedFrom {
        candidates,
        decisions,
        ..
    } = from;
    let nth = number(decisions.len());
    let Some(learned) = decisions.last() else {
        return Ok(());
    };
    let prices = candidates.iter().filter_map(|one| one.stored?.price);
    let known = number(prices.count());
    let searches: Vec<_> = decision.search.iter().copied().map(number).collect();
    sqlx::query!(
        "insert into scan_decisions (tenant_id, scan_id, number, decided_at, reason, searches, risk, best_position, best_price, known,
                                     searched, may_search, stored_positions, stored_prices, stored_at, found_positions, found_prices,
                                     unanswered, tried_positions, tried_at, implausible)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)",
        tenant.uuid(),
        scan.uuid(),
        nth,
        from.now.to_sqlx() as _,
        decision.reason.as_str(),
        &searches,
        decision.risk,
        decision.best.map(|(position, _)| number(position)),
        decision.best.map(|(_, price)| price),
        known,
        number(candidates.len() - unsearched(candidates).count()),
        from.may_search.map(number),
        &learned.stored_positions,
        &learned.stored_prices as _,
        &learned.stored_at as _,
        &learned.found_positions,
        &learned.found_prices as _,
        &learned.unanswered,
        &learned.tried_positions,
        &learned.tried_at as _,
        from.implausible,
    )
    .execute(lock.conn())
    .await?;
    sqlx::query!(
        "update scan_strategies set decisions = $3, known = coalesce(known, $4), implausible = $5 where tenant_id = $1 and scan_id = $2",
        tenant.uuid(),
        scan.uuid(),
        nth,
        known,
        from.implausible,
    )
    .execute(lock.conn())
    .await?;
    Ok(())
}

/// The decisions of a scan after a number, oldest first.
pub(in crate::scans) async fn decisions(
    pool: &PgPool,
    tenant: TenantId,
    scan: ScanId,
    after: u32,
    limit: i64,
) -> sqlx::Result<Vec<StrategyDecision>> {
    let rows = sqlx::query!(
        r#"select number, decided_at as "decided_at: jiff_sqlx::Timestamp", reason as "reason: DecisionReason", searches, risk, best_position,
                  best_price, known, searched, may_search
           from scan_decisions where tenant_id = $1 and scan_id = $2 and number > $3 order by number limit $4"#,
        tenant.uuid(),
        scan.uuid(),
        i32::try_from(after).unwrap_or(i32::MAX),
        limit,
    );
    let whole = |number: i32| u32::try_from(number).unwrap_or_default();
    let rows = rows.fetch_all(pool).await?;
    let decisions = rows.into_iter().map(|row| StrategyDecision {
        number: whole(row.number),
        decided_at: row.decided_at.to_jiff(),
        reason: row.reason,
        searches: row.searches.into_iter().map(whole).collect(),
        risk: row.risk.map(rounded),
        best: row
            .best_position
            .zip(row.best_price)
            .map(|(position, price)| DecisionBest {
                position: whole(position),
                price: price.normalize(),
            }),
        stored_prices: whole(row.known),
        searched: whole(row.searched),
        may_search: row.may_search.map(whole),
    });
    Ok(decisions.collect())
}
