//! Statements on scans with a strategy, and on their decisions.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff_sqlx::ToSqlx as _;
use rust_decimal::Decimal;
use serde_json::Value;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::view::{Learned, Question, StoredAnswer};
use crate::contract::scans::{Decision, DecisionBest, DecisionReason};
use crate::contract::{Endpoint, Request, SearchStatus};
use crate::ids::{ScanId, TenantId};
use crate::planner::{Candidate, ExplainedDecision, PlannerDecision, TwoPhase};
use crate::scans::item_state::StoredItemState;
use crate::scans::plan::PlannedStrategy;
use crate::scans::searches::Searches;
use crate::scans::store::lock::LockedScan;

/// Stores the strategy of a new scan of which so many items wait for a decision.
pub(in crate::scans) async fn insert(
    conn: &mut PgConnection,
    tenant: TenantId,
    scan: ScanId,
    strategy: &PlannedStrategy,
    deferred: usize,
) -> sqlx::Result<()> {
    let small = |number: usize| i16::try_from(number).unwrap_or(i16::MAX);
    let phases = strategy.phases();
    let question = match strategy {
        PlannedStrategy::FindCheapest(find) => Some(find),
        PlannedStrategy::TwoPhase(_) => None,
    };
    sqlx::query!(
        "insert into scan_strategies (tenant_id, scan_id, coarse_step, refine, dates, inner_items, combinations, deferred, find, max_risk,
                                      batch, currency, settled)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
        tenant.uuid(),
        scan.uuid(),
        small(phases.coarse_step),
        small(phases.refine),
        number(phases.dates),
        number(phases.inner_items),
        number(phases.combinations),
        number(deferred),
        question.map(|_| "cheapest"),
        question.map(|find| find.max_risk),
        question.map(|find| number(find.batch)),
        question.map(|find| find.currency.as_str()),
        question.is_none() && deferred == 0,
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
        "update scan_strategies set deferred = deferred - $3 where tenant_id = $1 and scan_id = $2 and find is not null",
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
         where tenant_id = $1 and scan_id = $2 and find is not null",
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
        "select t.coarse_step, t.refine, t.dates, t.inner_items, t.combinations, t.max_risk, t.batch, t.currency, t.decisions, s.best_currency
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
    Ok(row.map(|row| StoredStrategy {
        phases: TwoPhase {
            coarse_step: number(row.coarse_step.into()),
            refine: number(row.refine.into()),
            dates: number(row.dates),
            inner_items: number(row.inner_items),
            combinations: number(row.combinations),
        },
        question: row.max_risk.zip(row.batch).zip(row.currency).map(
            |((max_risk, batch), currency)| Question {
                max_risk,
                batch: number(batch),
                currency,
            },
        ),
        decisions: row.decisions,
        best_currency: row.best_currency,
    }))
}

/// An item of a decision.
pub(super) struct DecidedItem {
    pub(super) item_id: Uuid,
    pub(super) state: StoredItemState,
    pub(super) search_status: Option<SearchStatus>,
    pub(super) best_price: Option<Decimal>,
    pub(super) currency: Option<String>,
    /// Its first date.
    pub(super) date: Date,
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

/// The latest answers from before the scan to its searches.
pub(super) async fn stored_answers(lock: &mut LockedScan<'_>) -> sqlx::Result<Vec<StoredAnswer>> {
    let (tenant, scan) = (lock.tenant(), lock.id());
    let rows = sqlx::query!(
        r#"select s.endpoint as "endpoint: Endpoint", i.position, i.body
           from scans s join scan_items i on i.tenant_id = s.tenant_id and i.scan_id = s.scan_id
           where s.tenant_id = $1 and s.scan_id = $2 order by i.position"#,
        tenant.uuid(),
        scan.uuid(),
    );
    let rows = rows.fetch_all(lock.conn()).await?;
    let requests: Vec<_> = rows
        .into_iter()
        .filter_map(|row| {
            let Value::Object(body) = row.body else {
                return None;
            };
            let checked = Request::check(row.endpoint, &body).ok()?;
            Some((count(row.position), checked.request))
        })
        .collect();
    let requests = requests
        .iter()
        .map(|(position, request)| (*position, request));
    let (positions, searches) = Searches::of(requests);
    find_answers(lock.conn(), tenant, &positions, &searches, Some(scan)).await
}

/// The latest answers to searches, each a price or an empty answer, but for those of one scan. Each
/// look-up reads one row, however long the history is.
pub(in crate::scans) async fn find_answers(
    conn: &mut PgConnection,
    tenant: TenantId,
    positions: &[usize],
    searches: &Searches,
    except: Option<ScanId>,
) -> sqlx::Result<Vec<StoredAnswer>> {
    let [first_dates, last_dates] = searches.sql_dates();
    let rows = sqlx::query!(
        r#"select x.nth as "nth!", p.price, p.at as "at!: jiff_sqlx::Timestamp"
           from unnest($2::bytea[], $3::date[], $4::date[]) with ordinality as x (series, first_date, last_date, nth)
           cross join lateral (
               select case when c.is_empty then null else l.price end as price, case when c.is_empty then l.sampled_at else l.observed_at end as at,
                      case when c.is_empty then l.sample_item_id else l.item_id end as item_id
               from latest_prices l
               cross join lateral (select l.sample_status = 'empty' and (l.observed_at is null or l.sampled_at > l.observed_at) as is_empty) c
               where l.tenant_id = $1 and l.series = x.series and l.first_date = x.first_date and l.last_date = x.last_date) p
           where p.at is not null
             and not exists (select from scan_items i where i.tenant_id = $1 and i.item_id = p.item_id and i.scan_id = $5)
           order by x.nth"#,
        tenant.uuid(),
        &searches.series,
        &first_dates as _,
        &last_dates as _,
        except.map(ScanId::uuid),
    );
    let rows = rows.fetch_all(conn).await?;
    let answer = |nth: i64| positions.get(usize::try_from(nth - 1).ok()?).copied();
    Ok(rows
        .into_iter()
        .filter_map(|row| {
            Some(StoredAnswer {
                position: answer(row.nth)?,
                price: row.price,
                observed_at: row.at.to_jiff(),
            })
        })
        .collect())
}

/// What each decision of the scan was the first to know.
pub(super) async fn learned(lock: &mut LockedScan<'_>) -> sqlx::Result<Vec<Learned>> {
    let rows = sqlx::query!(
        r#"select stored_positions, stored_prices as "stored_prices: Vec<Option<Decimal>>",
                  stored_at as "stored_at: Vec<jiff_sqlx::Timestamp>",
                  found_positions, found_prices as "found_prices: Vec<Option<Decimal>>", unanswered
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
        let found = row.found_positions.into_iter().zip(row.found_prices);
        Learned {
            stored: stored
                .map(|((position, price), observed_at)| StoredAnswer {
                    position: count(position),
                    price,
                    observed_at,
                })
                .collect(),
            found: found
                .map(|(position, price)| (count(position), price))
                .collect(),
            unanswered: row.unanswered.into_iter().map(count).collect(),
        }
    });
    Ok(learned.collect())
}

/// A decision to store.
pub(super) struct NewDecision<'a> {
    pub(super) number: i32,
    pub(super) explained: &'a ExplainedDecision,
    pub(super) candidates: &'a [Candidate],
    pub(super) searched: usize,
    pub(super) may_search: Option<usize>,
    pub(super) learned: &'a Learned,
    pub(super) now: Timestamp,
}

impl NewDecision<'_> {
    fn searches(&self) -> Vec<i32> {
        match &self.explained.decision {
            PlannerDecision::Search(positions) => numbers(positions),
            PlannerDecision::Stop(_) => Vec::new(),
        }
    }

    fn known(&self) -> i32 {
        let has_price = |candidate: &&Candidate| {
            candidate
                .stored
                .is_some_and(|stored| stored.price.is_some())
        };
        number(self.candidates.iter().filter(has_price).count())
    }

    fn best(&self) -> Option<(usize, Decimal)> {
        let view = crate::planner::SearchView {
            candidates: self.candidates,
        };
        let position = view.cheapest_searched()?;
        Some((position, self.candidates[position].searched.flatten()?))
    }
}

/// Stores a decision, which its searches wait for.
pub(super) async fn insert_decision(
    lock: &mut LockedScan<'_>,
    decision: &NewDecision<'_>,
) -> sqlx::Result<()> {
    let (tenant, scan) = (lock.tenant(), lock.id());
    let Learned {
        stored,
        found,
        unanswered,
    } = decision.learned;
    let best = decision.best();
    let stored_positions: Vec<_> = stored.iter().map(|answer| answer.position).collect();
    let stored_prices: Vec<_> = stored.iter().map(|answer| answer.price).collect();
    let stored_at: Vec<_> = stored
        .iter()
        .map(|answer| answer.observed_at.to_sqlx())
        .collect();
    let found_positions: Vec<_> = found.iter().map(|(position, _)| *position).collect();
    let found_prices: Vec<_> = found.iter().map(|(_, price)| *price).collect();
    sqlx::query!(
        "insert into scan_decisions (tenant_id, scan_id, number, decided_at, reason, searches, risk, best_position, best_price, known,
                                     searched, may_search, stored_positions, stored_prices, stored_at, found_positions, found_prices,
                                     unanswered)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)",
        tenant.uuid(),
        scan.uuid(),
        decision.number,
        decision.now.to_sqlx() as _,
        decision.explained.reason.as_str(),
        &decision.searches(),
        decision.explained.risk,
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
    )
    .execute(lock.conn())
    .await?;
    sqlx::query!(
        "update scan_strategies set decisions = $3, known = coalesce(known, $4) where tenant_id = $1 and scan_id = $2",
        tenant.uuid(),
        scan.uuid(),
        decision.number,
        decision.known(),
    )
    .execute(lock.conn())
    .await?;
    Ok(())
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
/// ends here if nothing `is_searched` any more.
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

/// The decisions of a scan after a number, oldest first.
pub(in crate::scans) async fn decisions(
    pool: &PgPool,
    tenant: TenantId,
    scan: ScanId,
    after: u32,
    limit: i64,
) -> sqlx::Result<Vec<Decision>> {
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
    let decisions = rows.into_iter().map(|row| Decision {
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

/// A risk as it is shown: more digits would say more than is known.
pub(in crate::scans) fn rounded(risk: f64) -> f64 {
    (risk * 1e4).round() / 1e4
}

fn number(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn numbers(positions: &[usize]) -> Vec<i32> {
    positions.iter().copied().map(number).collect()
}

fn count(number: i32) -> usize {
    usize::try_from(number).unwrap_or_default()
}
