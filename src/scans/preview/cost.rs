//! What a scan costs on each plan of the marketplace: pure.

use super::Lane;
use crate::contract::Api;
use crate::contract::plans::Plan;
use crate::contract::scans::{PlanCost, PlanFit, RequestRange, UsdRange};

/// The scan on each plan. The caller's own plan is the one with its monthly limit, and counts from what is left of it; any other counts
/// from a whole month.
pub(super) fn on_each_plan(api: Api, requests: RequestRange, lane: &Lane) -> Vec<PlanCost> {
    Plan::all(api)
        .iter()
        .map(|plan| on_plan(plan, requests, lane))
        .collect()
}

fn on_plan(plan: &Plan, requests: RequestRange, lane: &Lane) -> PlanCost {
    let current = lane.plan_limit == Some(plan.requests_per_month);
    let left = lane
        .plan_remaining
        .filter(|_| current)
        .unwrap_or(plan.requests_per_month);
    let beyond = RequestRange {
        least: requests.least.saturating_sub(left),
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
