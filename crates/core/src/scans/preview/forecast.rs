//! What a question would need, from what is stored now.

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::civil::Date;
use sqlx::PgConnection;

use crate::ids::TenantId;
use crate::planner::{BoundSearch, Ends, Known, Misses, SearchPlanner as _, play};
use crate::scans::plan::{QuestionEnd, ScanPlan};
use crate::scans::question::{self, Learned, store};
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
    learned: Learned,
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
    let (positions, searches) = Searches::of((0..).zip(&plan.items));
    let watches_at = question.is_watch().then_some(now);
    let searches = (&positions[..], &searches);
    let api = plan.scan_request.endpoint.get().api();
    Ok(StoredPrices {
        learned: store::find_earlier(conn, tenant, searches, None, watches_at).await?,
        misses: store::misses(conn, tenant, api).await?,
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
    let limit = max.map_or(usize::MAX, |max| {
        usize::try_from(max.get()).unwrap_or(usize::MAX)
    });
    let dates = plan
        .items
        .iter()
        .map(|item| item.first_date().unwrap_or(Date::MAX));
    let learned = std::slice::from_ref(&stored.learned);
    let mut candidates = question::candidates(dates, plan.lines, learned, now);
    let ends = match question.ends {
        QuestionEnd::Spent { budget } => Ends::Spent { budget },
        QuestionEnd::Answered { max_risk } => {
            Ends::Answered(stored.misses.choose(Known::of(&candidates), max_risk))
        }
    };
    let search = BoundSearch {
        wanted: question.wanted,
        ends,
        // What is free does not count.
        most: limit.saturating_add(free.len()),
    };
    let billed = |positions: &[usize]| {
        let billed = positions.iter().filter(|position| !free.contains(position));
        u64::try_from(billed.count().min(limit)).unwrap_or(u64::MAX)
    };
    let least = billed(&search.decide(&candidates).search);
    let stored: Vec<_> = candidates.iter().map(|one| one.stored).collect();
    let is_known = stored.iter().all(Option::is_some)
        && stored.iter().flatten().any(|one| one.price.is_some());
    let played = play(&search, &mut candidates, |at| stored[at]?.price);
    let all = billed(&played.searched);
    // A watch spends what it may, whatever is found.
    let is_watch = question.is_watch();
    Some(QuestionForecast {
        least: if is_watch { all } else { least },
        expected: (is_watch || is_known).then_some(all),
    })
}
