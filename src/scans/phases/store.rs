//! Statements on scans with a strategy, and on their decisions.

mod decisions;
mod known;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff_sqlx::ToSqlx as _;
use rust_decimal::Decimal;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

pub(in crate::scans) use self::decisions::decisions;
pub(super) use self::decisions::{NewDecision, insert_decision, learned};
pub(super) use self::known::earlier;
pub(in crate::scans) use self::known::{KnownSearches, find_earlier, find_rates};
use super::view::{AskedWithin, DecidedItem, Question};
use crate::contract::SearchStatus;
use crate::contract::scans::{FindGoal, WatchGoal};
use crate::ids::{ScanId, TenantId};
use crate::planner::{ChangeRates, ExplainedDecision, TwoPhase, WatchQuestion};
use crate::scans::item_state::StoredItemState;
use crate::scans::plan::ScanPlan;
use crate::scans::store::lock::LockedScan;

/// The columns of a question.
#[derive(Default)]
struct QuestionColumns {
    find: Option<FindGoal>,
    max_risk: Option<f64>,
    watch: Option<WatchGoal>,
    below: Option<Decimal>,
    budget: Option<i32>,
}

impl QuestionColumns {
    fn of(asks: AskedWithin) -> Self {
        let (question, budget) = match asks {
            AskedWithin::Find { below, max_risk } => {
                let goal = below.map_or(FindGoal::Cheapest, |_| FindGoal::Below);
                return Self {
                    find: Some(goal),
                    max_risk: Some(max_risk),
                    below,
                    ..Self::default()
                };
            }
            AskedWithin::Watch { question, budget } => (question, number(budget)),
        };
        let (goal, below) = match question {
            WatchQuestion::Cheapest => (WatchGoal::Cheapest, None),
            WatchQuestion::Below(price) => (WatchGoal::Below, Some(price)),
            WatchQuestion::EveryDate => (WatchGoal::EveryDate, None),
        };
        Self {
            watch: Some(goal),
            below,
            budget: Some(budget),
            ..Self::default()
        }
    }

    /// What they ask; `None`: nothing.
    fn asks(&self) -> Option<AskedWithin> {
        if let Some(max_risk) = self.max_risk {
            let below = self.below;
            return Some(AskedWithin::Find { below, max_risk });
        }
        let question = match (self.watch?, self.below) {
            (WatchGoal::Cheapest, _) => WatchQuestion::Cheapest,
            (WatchGoal::Below, price) => WatchQuestion::Below(price?),
            (WatchGoal::EveryDate, _) => WatchQuestion::EveryDate,
        };
        let budget = count(self.budget?);
        Some(AskedWithin::Watch { question, budget })
    }
}

/// Stores the strategy of a new scan of which so many items wait for a decision; nothing if it has
/// none.
pub(in crate::scans) async fn insert(
    conn: &mut PgConnection,
    tenant: TenantId,
    scan: ScanId,
    plan: &ScanPlan,
    deferred: usize,
) -> sqlx::Result<()> {
    let Some(strategy) = &plan.strategy else {
        return Ok(());
    };
    let small = |number: usize| i16::try_from(number).unwrap_or(i16::MAX);
    let phases = strategy.phases();
    let question = Question::of(plan);
    let columns = question
        .as_ref()
        .map(|question| QuestionColumns::of(question.asks));
    let columns = columns.unwrap_or_default();
    sqlx::query!(
        "insert into scan_strategies (tenant_id, scan_id, coarse_step, refine, dates, inner_items, combinations, deferred, find, max_risk,
                                      batch, currency, settled, watch, below, budget)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)",
        tenant.uuid(),
        scan.uuid(),
        small(phases.coarse_step),
        small(phases.refine),
        number(phases.dates),
        number(phases.inner_items),
        number(phases.combinations),
        number(deferred),
        columns.find.map(FindGoal::as_str),
        columns.max_risk,
        question.as_ref().map(|question| number(question.batch)),
        question.as_ref().map(|question| question.currency.as_str()),
        question.is_none() && deferred == 0,
        columns.watch.map(WatchGoal::as_str),
        columns.below,
        columns.budget,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Items of a question that were searched before its first decision do not wait for it.
pub(in crate::scans) async fn set_deferred(
    lock: &mut LockedScan<'_>,
    searched: usize,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update scan_strategies set deferred = deferred - $3 where tenant_id = $1 and scan_id = $2 and currency is not null",
        lock.tenant().uuid(),
        lock.id().uuid(),
        number(searched),
    )
    .execute(lock.conn())
    .await?;
    Ok(())
}

/// A retry changes what a question has found: its risk is estimated anew once the scan has ended.
pub(in crate::scans) async fn reopen(lock: &mut LockedScan<'_>) -> sqlx::Result<()> {
    sqlx::query!(
        "update scan_strategies set settled = false, risk = null, ended_by = null
         where tenant_id = $1 and scan_id = $2 and currency is not null",
        lock.tenant().uuid(),
        lock.id().uuid(),
    )
    .execute(lock.conn())
    .await?;
    Ok(())
}

/// A scan with a strategy that is due for a decision.
pub(super) struct DueScan {
    pub(super) tenant: TenantId,
    pub(super) scan: ScanId,
}

/// Undecided scans of which all but the deferred items have ended, and those that have ended; in
/// the order of their ids, after the given one.
pub(super) async fn find_due(
    pool: &PgPool,
    after: Option<(TenantId, ScanId)>,
    limit: i64,
) -> sqlx::Result<Vec<DueScan>> {
    let (tenant, scan) = after.map_or((Uuid::nil(), Uuid::nil()), |(tenant, scan)| {
        (tenant.uuid(), scan.uuid())
    });
    sqlx::query_as!(
        DueScan,
        "select t.tenant_id as tenant, t.scan_id as scan
         from scan_strategies t join scans s on s.tenant_id = t.tenant_id and s.scan_id = t.scan_id
         where not t.settled and (t.tenant_id, t.scan_id) > ($2, $3)
           and (s.finished_at is not null
                or s.status in ('queued', 'running') and t.skipped is null
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

/// A stored strategy.
pub(super) struct StoredStrategy {
    pub(super) phases: TwoPhase,
    pub(super) question: Option<Question>,
    /// How often prices change; the prior before the first decision.
    pub(super) rates: ChangeRates,
    /// The number of its decisions.
    pub(super) decisions: i32,
    /// The currency of the scan's best price.
    best_currency: Option<String>,
}

impl StoredStrategy {
    /// The currency of the prices that it compares.
    pub(super) fn currency(&self) -> Option<&str> {
        let question = self.question.as_ref();
        question
            .map(|question| question.currency.as_str())
            .or(self.best_currency.as_deref())
    }

    /// Whether a decision is left to make.
    pub(super) fn is_undecided(&self, items: &[DecidedItem]) -> bool {
        self.question.is_some() || items.iter().any(|item| item.state.is_deferred())
    }
}

/// The strategy of the scan, if a decision is still due: a retry may have reopened items, or a pause
/// or another process may have come first.
pub(super) async fn find_if_due(lock: &mut LockedScan<'_>) -> sqlx::Result<Option<StoredStrategy>> {
    let row = sqlx::query!(
        "select t.coarse_step, t.refine, t.dates, t.inner_items, t.combinations, t.max_risk, t.watch, t.below, t.budget, t.batch, t.currency, t.decisions, t.rates, s.best_currency
         from scan_strategies t join scans s on s.tenant_id = t.tenant_id and s.scan_id = t.scan_id
         where t.tenant_id = $1 and t.scan_id = $2 and not t.settled
           and (s.finished_at is not null
                or s.status in ('queued', 'running') and t.skipped is null
                   and s.total - t.deferred = s.ok + s.empty + s.partial + s.degraded + s.failed + s.cancelled)",
        lock.tenant().uuid(),
        lock.id().uuid(),
    );
    let number = |number: i32| usize::try_from(number).unwrap_or(1).max(1);
    let row = row.fetch_optional(lock.conn()).await?;
    Ok(row.map(|row| {
        let columns = QuestionColumns {
            find: None,
            max_risk: row.max_risk,
            watch: row.watch.as_deref().and_then(WatchGoal::parse),
            below: row.below,
            budget: row.budget,
        };
        let parts = columns.asks().zip(row.batch).zip(row.currency);
        StoredStrategy {
            phases: TwoPhase {
                coarse_step: number(row.coarse_step.into()),
                refine: number(row.refine.into()),
                dates: number(row.dates),
                inner_items: number(row.inner_items),
                combinations: number(row.combinations),
            },
            question: parts.map(|((asks, batch), currency)| Question {
                asks,
                batch: number(batch),
                currency,
            }),
            rates: row
                .rates
                .and_then(|counts| ChangeRates::of_counts(&counts))
                .unwrap_or_default(),
            decisions: row.decisions,
            best_currency: row.best_currency,
        }
    }))
}

/// All items, by position.
pub(super) async fn items(lock: &mut LockedScan<'_>) -> sqlx::Result<Vec<DecidedItem>> {
    let rows = sqlx::query!(
        r#"select item_id, state as "state: StoredItemState", search_status as "search_status: SearchStatus", best_price, currency,
                  first_date as "first_date: jiff_sqlx::Date"
           from scan_items where tenant_id = $1 and scan_id = $2 order by position"#,
        lock.tenant().uuid(),
        lock.id().uuid(),
    );
    let rows = rows.fetch_all(lock.conn()).await?;
    let items = rows.into_iter().map(|row| DecidedItem {
        item_id: row.item_id,
        state: row.state,
        search_status: row.search_status,
        best_price: row.best_price,
        currency: row.currency,
        // Every search has one; two phases do not use it.
        date: row.first_date.map_or(Date::MAX, jiff_sqlx::Date::to_jiff),
    });
    Ok(items.collect())
}

/// Marks a scan of which nothing is left to decide.
pub(super) async fn settle(lock: &mut LockedScan<'_>) -> sqlx::Result<()> {
    sqlx::query!(
        "update scan_strategies set settled = true, deferred = 0 where tenant_id = $1 and scan_id = $2 and skipped is null",
        lock.tenant().uuid(),
        lock.id().uuid()
    )
    .execute(lock.conn())
    .await?;
    sqlx::query!(
        "update scan_strategies set settled = true where tenant_id = $1 and scan_id = $2",
        lock.tenant().uuid(),
        lock.id().uuid()
    )
    .execute(lock.conn())
    .await?;
    Ok(())
}

/// Makes deferred items pending, in this order.
pub(super) async fn search(lock: &mut LockedScan<'_>, items: &[Uuid]) -> sqlx::Result<()> {
    let sequence = lock.sequence();
    sqlx::query!(
        "update scan_items i set state = 'pending', turn = $3::bigint + x.place * $4::bigint
         from unnest($2::uuid[]) with ordinality as x (item_id, place)
         where i.tenant_id = $1 and i.item_id = x.item_id",
        lock.tenant().uuid(),
        items,
        sequence.start,
        sequence.stride,
    )
    .execute(lock.conn())
    .await?;
    set_deferred(lock, items.len()).await
}

/// Ends a strategy: the rest of its items is left out and removed from the scan's total. The scan
/// ends here if nothing `is_searched` any more. If it has ended before, nothing else would show its
/// readers what was decided.
pub(super) async fn skip(
    lock: &mut LockedScan<'_>,
    rest: &[Uuid],
    is_searched: bool,
    explained: &ExplainedDecision,
    now: Timestamp,
) -> sqlx::Result<()> {
    let (tenant, scan) = (lock.tenant(), lock.id());
    sqlx::query!(
        "update scan_items set state = 'skipped' where tenant_id = $1 and item_id = any ($2)",
        tenant.uuid(),
        rest,
    )
    .execute(lock.conn())
    .await?;
    // Nobody can wait for a search that is not made.
    sqlx::query!(
        "delete from shared_searches where tenant_id = $1 and item_id = any ($2)",
        tenant.uuid(),
        rest,
    )
    .execute(lock.conn())
    .await?;
    let skipped = number(rest.len());
    sqlx::query!(
        "with strategy as (
             update scan_strategies set skipped = coalesce(skipped, 0) + $3, settled = true, risk = $4, ended_by = $5
             where tenant_id = $1 and scan_id = $2)
         update scans set total = total - $3 where tenant_id = $1 and scan_id = $2",
        tenant.uuid(),
        scan.uuid(),
        skipped,
        explained.risk,
        explained.reason.as_str(),
    )
    .execute(lock.conn())
    .await?;
    if lock.row.finished {
        sqlx::query!(
            "with numbered as (
                 update scans set event_count = event_count + 1 where tenant_id = $1 and scan_id = $2 returning scan_id)
             select pg_notify('farescan_scan', n.scan_id::text) from numbered n",
            tenant.uuid(),
            scan.uuid(),
        )
        .execute(lock.conn())
        .await?;
    }
    if !is_searched {
        sqlx::query!(
            "select from count_ended($1, $2, $3, 0, 0, 0, 0, 0, 0, 0)",
            now.to_sqlx() as _,
            tenant.uuid(),
            scan.uuid(),
        )
        .execute(lock.conn())
        .await?;
    }
    Ok(())
}

/// A risk as it is shown: more digits would say more than is known.
pub(in crate::scans) fn rounded(risk: f64) -> f64 {
    (risk * 1e4).round() / 1e4
}

fn number(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn count(number: i32) -> usize {
    usize::try_from(number).unwrap_or_default()
}
