//! Statements on decisions.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use rust_decimal::Decimal;
use sqlx::PgPool;

use super::{count, number, rounded};
use crate::contract::scans::{DecisionBest, DecisionReason, StrategyDecision};
use crate::ids::{ScanId, TenantId};
use crate::planner::{Candidate, SearchDecision};
use crate::scans::question::view::{Earlier, EarlierAnswer, Learned};
use crate::scans::store::lock::LockedScan;

/// What each decision of the scan was the first to know.
pub(in crate::scans::question) async fn learned(
    lock: &mut LockedScan<'_>,
) -> sqlx::Result<Vec<Learned>> {
    let rows = sqlx::query!(
        r#"select stored_positions, stored_prices as "stored_prices: Vec<Option<Decimal>>",
                  stored_at as "stored_at: Vec<jiff_sqlx::Timestamp>",
                  tried_positions, tried_at as "tried_at: Vec<jiff_sqlx::Timestamp>",
                  found_positions, found_prices as "found_prices: Vec<Option<Decimal>>", unanswered, implausible
           from scan_decisions where tenant_id = $1 and scan_id = $2 order by number"#,
        lock.tenant().uuid(),
        lock.id().uuid(),
    );
    let rows = rows.fetch_all(lock.conn()).await?;
    let learned = rows.into_iter().map(|row| {
        let times = row.stored_at.into_iter().map(jiff_sqlx::Timestamp::to_jiff);
        let stored = row
            .stored_positions
            .into_iter()
            .zip(row.stored_prices)
            .zip(times);
        let tried_at = row.tried_at.into_iter().map(jiff_sqlx::Timestamp::to_jiff);
        let tried = row.tried_positions.into_iter().map(count).zip(tried_at);
        let found = row.found_positions.into_iter().zip(row.found_prices);
        Learned {
            earlier: Earlier {
                stored: stored
                    .map(|((position, price), observed_at)| EarlierAnswer {
                        position: count(position),
                        price,
                        observed_at,
                    })
                    .collect(),
                tried: tried.collect(),
            },
            found: found
                .map(|(position, price)| (count(position), price))
                .collect(),
            unanswered: row.unanswered.into_iter().map(count).collect(),
            implausible: row.implausible.into_iter().map(count).collect(),
        }
    });
    Ok(learned.collect())
}

/// A decision to store.
pub(in crate::scans::question) struct NewDecision<'a> {
    pub(in crate::scans::question) number: i32,
    pub(in crate::scans::question) decision: &'a SearchDecision,
    pub(in crate::scans::question) candidates: &'a [Candidate],
    pub(in crate::scans::question) searched: usize,
    pub(in crate::scans::question) may_search: Option<usize>,
    pub(in crate::scans::question) learned: &'a Learned,
    pub(in crate::scans::question) now: Timestamp,
}

impl NewDecision<'_> {
    fn known(&self) -> i32 {
        let has_price = |candidate: &&Candidate| {
            candidate
                .stored
                .is_some_and(|stored| stored.price.is_some())
        };
        number(self.candidates.iter().filter(has_price).count())
    }
}

/// Stores a decision, which its searches wait for.
pub(in crate::scans::question) async fn insert_decision(
    lock: &mut LockedScan<'_>,
    decision: &NewDecision<'_>,
) -> sqlx::Result<()> {
    let (tenant, scan) = (lock.tenant(), lock.id());
    let Learned {
        earlier: Earlier { stored, tried },
        found,
        unanswered,
        implausible,
    } = decision.learned;
    let implausible: Vec<_> = implausible.iter().copied().collect();
    let best = decision.decision.best;
    let stored_positions: Vec<_> = stored.iter().map(|answer| answer.position).collect();
    let stored_prices: Vec<_> = stored.iter().map(|answer| answer.price).collect();
    let stored_at: Vec<_> = stored
        .iter()
        .map(|answer| answer.observed_at.to_sqlx())
        .collect();
    let tried_positions: Vec<_> = tried.iter().map(|(position, _)| *position).collect();
    let tried_at: Vec<_> = tried.iter().map(|(_, at)| at.to_sqlx()).collect();
    let found_positions: Vec<_> = found.iter().map(|(position, _)| *position).collect();
    let found_prices: Vec<_> = found.iter().map(|(_, price)| *price).collect();
    sqlx::query!(
        "insert into scan_decisions (tenant_id, scan_id, number, decided_at, reason, searches, risk, best_position, best_price, known,
                                     searched, may_search, stored_positions, stored_prices, stored_at, found_positions, found_prices,
                                     unanswered, tried_positions, tried_at, implausible)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)",
        tenant.uuid(),
        scan.uuid(),
        decision.number,
        decision.now.to_sqlx() as _,
        decision.decision.reason.as_str(),
        &numbers(&decision.decision.search),
        decision.decision.risk.map(|risk| risk.share()),
        best.map(|(position, _)| number(position)),
        best.map(|(_, price)| price),
        decision.known(),
        number(decision.searched),
        decision.may_search.map(number),
        &numbers(&stored_positions),
        &stored_prices as _,
        &stored_at as _,
        &numbers(&found_positions),
        &found_prices as _,
        &numbers(unanswered),
        &numbers(&tried_positions),
        &tried_at as _,
        &numbers(&implausible),
    )
    .execute(lock.conn())
    .await?;
    sqlx::query!(
        "update scan_strategies set decisions = $3, known = coalesce(known, $4), implausible = $5 where tenant_id = $1 and scan_id = $2",
        tenant.uuid(),
        scan.uuid(),
        decision.number,
        decision.known(),
        &numbers(&implausible),
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

fn numbers(positions: &[usize]) -> Vec<i32> {
    positions.iter().copied().map(number).collect()
}
