//! `max_requests_per_month`: what a run needs of it, and what it may take. Pure.

use crate::contract::monitors::MonitorRequest;
use crate::contract::scans::{MaxRequests, RequestRange};
use crate::contract::{Fault, FieldValue as _};
use crate::scans::plan::Plan;
use crate::scans::preview;

/// What must be left for a run to begin: a request for each of its searches. Retries may find more than is left gone, and then end.
pub(super) fn needed(plan: &Plan) -> u32 {
    u32::try_from(*plan.searches().end()).unwrap_or(u32::MAX)
}

/// Lets a run take no more than is left of its month.
pub(super) fn cap(plan: &mut Plan, left: u32) {
    let most = plan
        .order
        .max_requests
        .map_or(left, |max| max.get().min(left));
    plan.order.max_requests = MaxRequests::new(most.min(MaxRequests::MAX));
}

/// A ceiling under which no run could ever begin.
pub(super) fn too_low(request: &MonitorRequest, plan: &Plan) -> Option<Fault> {
    let (ceiling, needed) = (request.max_requests_per_month?, needed(plan));
    (ceiling.get() < needed).then(|| {
        let allowed = format!("at least {needed}: one request for each search of a run");
        Fault::new("max_requests_per_month", &ceiling.to_value(), allowed)
    })
}

/// What so many runs take together. A run begins while the ceiling leaves what it needs, and nothing is spent beyond it.
pub(super) fn monthly(plan: &Plan, slots: u32, ceiling: Option<u32>) -> RequestRange {
    let run = preview::requests(plan);
    let all = |requests: u64| requests.saturating_mul(slots.into());
    let Some(ceiling) = ceiling.map(u64::from) else {
        return RequestRange {
            least: all(run.least),
            most: all(run.most),
        };
    };
    let begin = ceiling
        .checked_sub(needed(plan).into())
        .map_or(0, |spare| spare / run.least.max(1) + 1);
    RequestRange {
        least: all(run.least).min(begin.saturating_mul(run.least)),
        most: all(run.most).min(ceiling),
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use serde_json::{Value, json};

    use super::*;

    fn plan(more: Value) -> Plan {
        let mut order = json!({
            "endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR"},
            "sweep": {"departure_date": {"from": "2027-01-01", "to": "2027-01-10"}}
        });
        order
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        crate::scans::plan::plan(order.as_object().unwrap(), date(2026, 12, 1)).unwrap()
    }

    #[test]
    fn a_month_holds_the_runs_that_the_ceiling_lets_begin() {
        let month = |plan: &Plan, slots, ceiling| {
            let range = monthly(plan, slots, ceiling);
            (range.least, range.most)
        };
        let plain = plan(json!({}));
        assert_eq!(month(&plain, 30, None), (300, 600));
        assert_eq!(month(&plain, 30, Some(1_000)), (300, 600));
        assert_eq!(month(&plain, 30, Some(305)), (300, 305));
        assert_eq!(month(&plain, 30, Some(299)), (290, 299));
        assert_eq!(month(&plain, 30, Some(10)), (10, 10));
        assert_eq!(month(&plain, 0, Some(10)), (0, 0));
        let two_phase = plan(json!({"strategy": {"coarse_step": 5, "refine": 1}}));
        let run = preview::requests(&two_phase);
        assert!(run.least < needed(&two_phase).into());
        // The last one begins only where it could search all that it may.
        let spare = u64::from(needed(&two_phase));
        assert_eq!(
            month(&two_phase, 30, Some(needed(&two_phase))),
            (run.least, spare)
        );
    }

    #[test]
    fn a_run_takes_no_more_than_is_left() {
        for (own, left, taken) in [
            (None, 12, 12),
            (Some(11), 12, 11),
            (Some(15), 12, 12),
            (None, u32::MAX, MaxRequests::MAX),
        ] {
            let mut plan = plan(own.map_or(json!({}), |own| json!({"max_requests": own})));
            cap(&mut plan, left);
            assert_eq!(plan.order.max_requests.map(MaxRequests::get), Some(taken));
        }
    }
}
