//! The cost of a scan on each plan of the marketplace: pure.

use super::LaneState;
use crate::contract::Api;
use crate::contract::plans::MarketplacePlan;
use crate::contract::scans::{PlanCost, PlanFit, RequestRange, UsdRange};

/// The cost on each plan. The caller's own plan is the one with its monthly limit; it has the
/// remaining requests, and every other plan has a full month's.
pub(super) fn on_each_plan(api: Api, requests: RequestRange, lane: &LaneState) -> Vec<PlanCost> {
    MarketplacePlan::all(api)
        .iter()
        .map(|plan| on_plan(plan, requests, lane))
        .collect()
}

fn on_plan(plan: &MarketplacePlan, requests: RequestRange, lane: &LaneState) -> PlanCost {
    let current = lane.plan_limit == Some(plan.requests_per_month);
    let left = lane
        .plan_remaining
        .filter(|_| current)
        .unwrap_or(plan.requests_per_month);
    let beyond = RequestRange {
        least: requests.least.saturating_sub(left),
        expected: None,
        most: requests.most.saturating_sub(left),
    };
    let usd = plan
        .usd_beyond(beyond.least)
        .zip(plan.usd_beyond(beyond.most));
    let fit = match (&usd, beyond.least, beyond.most) {
        (_, _, 0) => PlanFit::Included,
        (Some(_), _, _) => PlanFit::Overage,
        (None, 0, _) => PlanFit::MayStop,
        (None, _, _) => PlanFit::NotPossible,
    };
    PlanCost {
        plan: plan.name,
        current,
        usd_per_month: plan.usd_per_month,
        requests_left: left,
        fit,
        overage_requests: beyond,
        overage_usd: usd.map(|(least, most)| UsdRange { least, most }),
    }
}
