//! What a question would need, from what is stored now.

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::civil::Date;
use sqlx::PgConnection;

use crate::ids::TenantId;
use crate::planner::{ChangeRates, PlannerDecision, SearchView, play};
use crate::scans::phases::store::KnownSearches;
use crate::scans::phases::{self, Asked, Earlier, Question};
use crate::scans::plan::ScanPlan;
use crate::scans::searches::Searches;

/// The requests of a question, without second tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QuestionForecast {
    /// Those of the first decision.
    pub(super) least: u64,
    /// All, if every item has a stored answer and those were still true.
    pub(super) expected: Option<u64>,
}

/// What is stored for a question.
#[derive(Debug, Default)]
pub(super) struct StoredPrices {
    earlier: Earlier,
    rates: ChangeRates,
}

/// The stored answers to the searches of a question, and how often they change.
pub(super) async fn stored_prices(
    conn: &mut PgConnection,
    tenant: TenantId,
    plan: &ScanPlan,
    now: Timestamp,
) -> sqlx::Result<StoredPrices> {
    let Some(question) = Question::of(plan) else {
        return Ok(StoredPrices::default());
    };
    let (positions, searches) = Searches::of(plan.items.iter().enumerate());
    let known = KnownSearches {
        positions: &positions,
        searches: &searches,
        except: None,
    };
    let is_watch = question.is_watch();
    let earlier = phases::store::find_earlier(conn, tenant, &known, is_watch, now).await?;
    let rates = phases::store::find_rates(conn, tenant, &searches, now)
        .await?
        .rates;
    Ok(StoredPrices { earlier, rates })
}

/// Makes the first decision of the question, and plays it with the stored prices. The positions in
/// `free` would take an answer.
pub(super) fn forecast(
    plan: &ScanPlan,
    stored: &StoredPrices,
    free: &BTreeSet<usize>,
    now: Timestamp,
) -> Option<QuestionForecast> {
    let question = Question::of(plan)?;
    let otherwise = plan.question()?.otherwise;
    let max = plan.scan_request.max_requests;
    let limit = max.map(|max| usize::try_from(max.get()).unwrap_or(usize::MAX));
    let asked = Asked {
        // What is free does not count.
        may_search: limit.map(|limit| limit.saturating_add(free.len())),
        now,
    };
    let planner = question.planner(otherwise, &stored.rates, asked);
    let dates = plan
        .items
        .iter()
        .map(|item| item.first_date().unwrap_or(Date::MAX));
    let mut candidates = phases::candidates(dates, &stored.earlier, now);
    let view = SearchView {
        candidates: &candidates,
    };
    let billed = |positions: &[usize]| {
        let billed = positions
            .iter()
            .filter(|position| !free.contains(position))
            .count();
        u64::try_from(billed.min(limit.unwrap_or(usize::MAX))).unwrap_or(u64::MAX)
    };
    let least = match planner.decide(&view) {
        PlannerDecision::Search(first) => billed(&first),
        PlannerDecision::Stop(_) => 0,
    };
    let prices: Vec<_> = candidates
        .iter()
        .map(|candidate| candidate.stored.map(|stored| stored.price))
        .collect();
    let is_known =
        prices.iter().all(Option::is_some) && prices.iter().flatten().any(Option::is_some);
    let expected = is_known.then(|| {
        let played = play(planner.as_ref(), &mut candidates, |position| {
            prices[position].flatten()
        });
        billed(&played.searched)
    });
    Some(QuestionForecast { least, expected })
}
