//! Searches items of an ended scan once more, before a rule of its monitor fires (monitors.md, rules
//! 85 to 89; docs/decisions/0046).
//!
//! The scan is opened again as by a retry, so its lane, budget, ledger and events are those of every
//! search. What is special: the items have good answers, which are kept until their searches have
//! ended (`settle_confirmations`). Not here: which prices are confirmed, and what follows
//! (`monitors`).

use jiff::Timestamp;
use sqlx::PgConnection;

use super::plan::earliest_today;
use super::question;
use super::retry::reseal_key;
use super::store::{
    self,
    lock::{LockedScan, LockedScanRow},
};
use crate::commands::RequestContext;
use crate::contract::scans::ScanStatus;
use crate::ids::{ItemId, ScanId, TenantId};

/// What became of an order to search items once more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confirming {
    /// These are searched.
    Began {
        items: Vec<ItemId>,
        /// The budget does not cover the others.
        is_cut: bool,
    },
    /// The scan has not ended: its caller has retried it.
    NotEnded,
    /// Nothing is searched, and why.
    Refused(&'static str),
}

const CANCELLED: &str = "the scan was cancelled";
const CHANGED: &str = "their dates have passed, or their answers have changed";
/// Why a price is not confirmed for lack of budget.
pub const NO_BUDGET: &str =
    "`max_requests`, `max_requests_per_month` or the plan leaves too few requests";

/// The requests that are left besides those of the scan's own `max_requests`; `None`: no limit.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestsLeft {
    /// Of the month. It becomes a limit of the scan if it is less than the scan has left.
    pub month: Option<u32>,
    /// Of the plan.
    pub plan: Option<u32>,
}

/// Makes those of the items pending again that still have the answer of the given time, in the given
/// order as far as the budget certainly covers them, with all their second tries and further
/// attempts: a scan that stopped for its budget would wait for its caller. The key of the context is
/// sealed for them.
pub async fn search_once_more(
    conn: &mut PgConnection,
    context: RequestContext<'_>,
    (tenant, id): (TenantId, ScanId),
    answered: &[(ItemId, Timestamp)],
    left: RequestsLeft,
) -> sqlx::Result<Confirming> {
    let Some((mut scan, found)) = LockedScan::lock_answered(conn, tenant, id, answered).await?
    else {
        return Ok(Confirming::Refused(CANCELLED));
    };
    if !scan.row.finished {
        return Ok(Confirming::NotEnded);
    }
    if scan.row.status == ScanStatus::Cancelled {
        return Ok(Confirming::Refused(CANCELLED));
    }
    let today = earliest_today(context.now);
    let rank = |item: &store::lock::EndedItem| {
        let is_it = |(other, _): &(ItemId, Timestamp)| other.uuid() == item.item_id;
        answered.iter().position(is_it)
    };
    let mut again: Vec<_> = found
        .into_iter()
        .filter(|item| item.first_date.is_none_or(|date| date.to_jiff() >= today))
        .collect();
    if again.is_empty() {
        return Ok(Confirming::Refused(CHANGED));
    }
    again.sort_by_key(rank);
    let budget = Budget::of(&scan.row, left);
    let is_cut = budget.searches < again.len();
    again.truncate(budget.searches);
    if again.is_empty() {
        return Ok(Confirming::Refused(NO_BUDGET));
    }
    store::keep_answers(&mut scan, &again).await?;
    store::requeue_items(&mut scan, &again, false, budget.new_limit).await?;
    question::store::reopen(&mut scan).await?;
    reseal_key(&mut scan, context).await?;
    Ok(Confirming::Began {
        items: again.iter().map(|item| item.item_id.into()).collect(),
        is_cut,
    })
}

/// What a scan may still spend.
#[derive(Debug, PartialEq, Eq)]
struct Budget {
    /// How many searches it covers whatever they cost.
    searches: usize,
    /// The scan's new limit, if the month leaves less than its own.
    new_limit: Option<i32>,
}

impl Budget {
    fn of(scan: &LockedScanRow, left: RequestsLeft) -> Self {
        let number = |left: u32| i32::try_from(left).unwrap_or(i32::MAX);
        let own = scan.max_requests.map(|max| max - scan.requests_spent);
        let month = left.month.map(number);
        let of_limits = own.into_iter().chain(month).min();
        let most_of_one = 2 * i32::from(scan.max_attempts);
        let covered = |left: i32| {
            // The last request of the last attempt may be missing: no second try is made then.
            let searches = left.max(0).saturating_add(1) / most_of_one;
            usize::try_from(searches).unwrap_or_default()
        };
        let least = of_limits.into_iter().chain(left.plan.map(number)).min();
        Self {
            searches: least.map_or(usize::MAX, covered),
            new_limit: of_limits
                .filter(|left| own.is_none_or(|own| *left < own))
                .map(|left| scan.requests_spent.saturating_add(left)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_covers_searches_with_all_their_attempts() {
        for (max, spent, attempts, (month, plan), searches, new_limit) in [
            (None, 5, 1, (None, None), usize::MAX, None),
            (Some(10), 10, 1, (None, None), 0, None),
            (Some(11), 10, 1, (None, None), 1, None),
            (Some(12), 10, 1, (None, None), 1, None),
            (Some(13), 10, 1, (None, None), 2, None),
            (Some(16), 10, 3, (None, None), 1, None),
            (Some(14), 10, 3, (None, None), 0, None),
            (Some(20), 10, 1, (Some(30), None), 5, None),
            (Some(20), 10, 1, (Some(3), None), 2, Some(13)),
            (None, 10, 1, (Some(3), None), 2, Some(13)),
            (None, 10, 1, (Some(0), None), 0, Some(10)),
            (None, 10, 1, (None, Some(0)), 0, None),
            (Some(20), 10, 1, (Some(30), Some(3)), 2, None),
        ] {
            let scan = LockedScanRow {
                status: ScanStatus::Completed,
                status_reason: None,
                priority: crate::contract::scans::Priority::Scheduled,
                requests_spent: spent,
                max_requests: max,
                max_attempts: attempts,
                finished: true,
                grant_id: None,
            };
            let expected = Budget {
                searches,
                new_limit,
            };
            let left = RequestsLeft { month, plan };
            assert_eq!(Budget::of(&scan, left), expected, "{max:?} {left:?}");
        }
    }
}
