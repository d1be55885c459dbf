//! Statements on the questions of scans, and on their decisions.

mod counts;
mod decisions;
mod known;

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

pub(in crate::scans) use self::counts::misses;
pub(super) use self::counts::{DueReplay, add_counts, find_due_replays, insert_due, take_due};
pub(in crate::scans) use self::decisions::decisions;
pub(super) use self::decisions::{DecidedFrom, insert_decision, learned};
pub(in crate::scans) use self::known::find_earlier;
pub(super) use self::known::{find_before, searches};
use super::DueScan;
use super::view::{DecidedItem, count};
use crate::contract::scans::FindGoal;
use crate::contract::{Api, SearchStatus};
use crate::ids::{ScanId, TenantId};
use crate::planner::{SearchDecision, SettingChoice, Wanted};
use crate::scans::item_state::StoredItemState;
use crate::scans::plan::{DateLines, QuestionEnd, QuestionPlan, ScanPlan};
use crate::scans::store::lock::LockedScan;

/// Stores the question of a new scan of which so many items wait for a decision; nothing if it asks
/// none.
pub(in crate::scans) async fn insert(
    conn: &mut PgConnection,
    tenant: TenantId,
    scan: ScanId,
    plan: &ScanPlan,
    deferred: usize,
) -> sqlx::Result<()> {
    let Some(question) = &plan.question else {
        return Ok(());
    };
    let (goal, below) = match question.wanted {
        Wanted::Cheapest => (FindGoal::Cheapest, None),
        Wanted::Below(price) => (FindGoal::Below, Some(price)),
    };
    let goal = Some(goal.as_str());
    let (find, max_risk, watch, budget) = match question.ends {
        QuestionEnd::Answered { max_risk } => (goal, Some(max_risk), None, None),
        QuestionEnd::Spent { budget } => (None, None, goal, Some(number(budget))),
    };
    sqlx::query!(
        "insert into scan_strategies (tenant_id, scan_id, dates, date_step, deferred, find, max_risk, currency, watch, below, budget)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        tenant.uuid(),
        scan.uuid(),
        number(plan.lines.dates),
        number(plan.lines.step),
        number(deferred),
        find,
        max_risk,
        question.currency.as_str(),
        watch,
        below,
        budget,
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
        "update scan_strategies set deferred = deferred - $3 where tenant_id = $1 and scan_id = $2",
        lock.tenant().uuid(),
        lock.id().uuid(),
        number(searched),
    )
    .execute(lock.conn())
    .await?;
    Ok(())
}

/// A retry changes what a question has found: its risk is stated anew once the scan has ended.
pub(in crate::scans) async fn reopen(lock: &mut LockedScan<'_>) -> sqlx::Result<()> {
    sqlx::query!(
        "update scan_strategies set settled = false, risk = null, ended_by = null
         where tenant_id = $1 and scan_id = $2",
        lock.tenant().uuid(),
        lock.id().uuid(),
    )
    .execute(lock.conn())
    .await?;
    Ok(())
}

/// Undecided scans of which all but the deferred items have ended, and those that have ended; in
/// the order of their ids, after the given one.
pub(super) async fn find_due(
    pool: &PgPool,
    (after_tenant, after_scan): (Uuid, Uuid),
    limit: i64,
) -> sqlx::Result<Vec<DueScan>> {
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
        after_tenant,
        after_scan,
    )
    .fetch_all(pool)
    .await
}

/// A stored question.
pub(super) struct StoredQuestion {
    pub(super) api: Api,
    pub(super) plan: QuestionPlan,
    pub(super) lines: DateLines,
    /// How its bounds are made; `None` of a watch, and before the first decision.
    pub(super) choice: Option<SettingChoice>,
}

/// The question of the scan, if a decision is still due: a retry may have reopened items, or a pause
/// or another process may have come first.
pub(super) async fn find_if_due(lock: &mut LockedScan<'_>) -> sqlx::Result<Option<StoredQuestion>> {
    let row = sqlx::query!(
        r#"select s.api as "api: Api", t.dates, t.date_step, t.max_risk, t.below, t.budget, t.currency, t.percent_a_day, t.is_patient,
                  t.counted_questions, t.counted_missed
           from scan_strategies t join scans s on s.tenant_id = t.tenant_id and s.scan_id = t.scan_id
           where t.tenant_id = $1 and t.scan_id = $2 and not t.settled
             and (s.finished_at is not null
                  or s.status in ('queued', 'running') and t.skipped is null
                     and s.total - t.deferred = s.ok + s.empty + s.partial + s.degraded + s.failed + s.cancelled)"#,
        lock.tenant().uuid(),
        lock.id().uuid(),
    );
    let row = row.fetch_optional(lock.conn()).await?;
    Ok(row.map(|row| {
        let budget = count(row.budget.unwrap_or_default());
        let ends = row
            .max_risk
            .map_or(QuestionEnd::Spent { budget }, |max_risk| {
                QuestionEnd::Answered { max_risk }
            });
        let counted = row.counted_questions.zip(row.counted_missed);
        let setting = row.percent_a_day.zip(row.is_patient);
        StoredQuestion {
            api: row.api,
            plan: QuestionPlan {
                wanted: row.below.map_or(Wanted::Cheapest, Wanted::Below),
                ends,
                currency: row.currency,
            },
            lines: lines(row.dates, row.date_step),
            choice: setting.map(|setting| counts::choice(setting, counted)),
        }
    }))
}

/// Stores how the question's bounds are made.
pub(super) async fn set_choice(
    lock: &mut LockedScan<'_>,
    choice: SettingChoice,
) -> sqlx::Result<()> {
    let number = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    sqlx::query!(
        "update scan_strategies set percent_a_day = $3, is_patient = $4, counted_questions = $5, counted_missed = $6
         where tenant_id = $1 and scan_id = $2",
        lock.tenant().uuid(),
        lock.id().uuid(),
        i16::from(choice.setting.percent_a_day),
        choice.setting.is_patient,
        choice.counted.map(|counted| number(counted.questions)),
        choice.counted.map(|counted| number(counted.missed)),
    )
    .execute(lock.conn())
    .await?;
    Ok(())
}

/// All items of a scan, by position.
pub(super) async fn items(
    conn: &mut PgConnection,
    tenant: TenantId,
    scan: ScanId,
) -> sqlx::Result<Vec<DecidedItem>> {
    sqlx::query_as!(
        DecidedItem,
        r#"select item_id, state as "state: StoredItemState", search_status as "search_status: SearchStatus", best_price, currency,
                  first_date as "first_date: jiff_sqlx::Date", reused_at is not null as "is_reused!"
           from scan_items where tenant_id = $1 and scan_id = $2 order by position"#,
        tenant.uuid(),
        scan.uuid(),
    )
    .fetch_all(conn)
    .await
}

/// Marks a scan of which nothing is left to decide.
pub(super) async fn settle(lock: &mut LockedScan<'_>) -> sqlx::Result<()> {
    sqlx::query!(
        "update scan_strategies set settled = true, deferred = case when skipped is null then 0 else deferred end
         where tenant_id = $1 and scan_id = $2",
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

/// Ends a question: the rest of its items is left out and removed from the scan's total, and the scan
/// ends. If it has ended before, nothing else would show its readers what was decided.
pub(super) async fn skip(
    lock: &mut LockedScan<'_>,
    rest: &[Uuid],
    decision: &SearchDecision,
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
        decision.risk,
        decision.reason.as_str(),
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
    sqlx::query!(
        "select from count_ended($1, $2, $3, 0, 0, 0, 0, 0, 0, 0)",
        now.to_sqlx() as _,
        tenant.uuid(),
        scan.uuid(),
    )
    .execute(lock.conn())
    .await?;
    Ok(())
}

/// A risk as it is shown: more digits would say more than is known.
pub(in crate::scans) fn rounded(risk: f64) -> f64 {
    (risk * 1e4).round() / 1e4
}

pub(super) fn number(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn lines(dates: i32, step: i32) -> DateLines {
    DateLines {
        dates: count(dates).max(1),
        step: count(step).max(1),
    }
}
