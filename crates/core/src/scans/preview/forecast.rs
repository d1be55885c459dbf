//! What a question would need, from what is stored now.

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::civil::Date;
use sqlx::PgConnection;

use crate::ids::TenantId;
use crate::planner::{Misses, SearchView, play};
use crate::scans::plan::{QuestionEnd, ScanPlan};
use crate::scans::question::store::KnownSearches;
use crate::scans::question::{self, Earlier};
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
    misses: Misses,
}

/// The stored answers to the searches of a question, and how often such questions were missed.
pub(super) async fn stored_prices(
    conn: &mut PgConnection,
    tenant: TenantId,
    plan: &ScanPlan,
    now: Timestamp,
) -> sqlx::Result<StoredPrices> {
    let Some(question) = &plan.question else {
        return Ok(StoredPrices::default());
    };
    let (positions, searches) = Searches::of(plan.items.iter().enumerate());
    let known = KnownSearches {
        positions: &positions,
        searches: &searches,
        except: None,
    };
    let is_watch = question.is_watch();
    let api = plan.scan_request.endpoint.get().api();
    Ok(StoredPrices {
        earlier: question::store::find_earlier(conn, tenant, &known, is_watch, now).await?,
        misses: question::store::misses(conn, tenant, api).await?,
    })
}

/// Makes the first decision of the question, and plays it with the stored prices. The positions in
/// `free` would take an answer.
pub(super) fn forecast(
    plan: &ScanPlan,
    stored: &StoredPrices,
    free: &BTreeSet<usize>,
    now: Timestamp,
) -> Option<QuestionForecast> {
    let question = plan.question.as_ref()?;
    let max = plan.scan_request.max_requests;
    let limit = max.map(|max| usize::try_from(max.get()).unwrap_or(usize::MAX));
    // What is free does not count.
    let may_search = limit.map(|limit| limit.saturating_add(free.len()));
    let dates = plan
        .items
        .iter()
        .map(|item| item.first_date().unwrap_or(Date::MAX));
    let mut candidates = question::candidates_before(dates, plan.lines, &stored.earlier, now);
    let view = SearchView {
        candidates: &candidates,
    };
    let choice = question.choose(&stored.misses, &view);
    let search = question::bound_search(question, choice, candidates.len(), may_search);
    let billed = |positions: &[usize]| {
        let billed = positions
            .iter()
            .filter(|position| !free.contains(position))
            .count();
        u64::try_from(billed.min(limit.unwrap_or(usize::MAX))).unwrap_or(u64::MAX)
    };
    let least = billed(&search.explain(&view).search);
    let prices: Vec<_> = candidates
        .iter()
        .map(|candidate| candidate.stored.map(|stored| stored.price))
        .collect();
    let is_known =
        prices.iter().all(Option::is_some) && prices.iter().flatten().any(Option::is_some);
    let mut played = || {
        let price = |position: usize| prices[position].flatten();
        billed(&play(&search, &mut candidates, price).searched)
    };
    Some(match question.ends {
        // It spends what it may, whatever is found.
        QuestionEnd::Spent { .. } => {
            let all = played();
            QuestionForecast {
                least: all,
                expected: Some(all),
            }
        }
        QuestionEnd::Answered { .. } => QuestionForecast {
            least,
            expected: is_known.then(played),
        },
    })
}
