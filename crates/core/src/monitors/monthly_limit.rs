//! `max_requests_per_month`: how many requests a run needs and may spend. Pure.

use crate::contract::monitors::MonitorRequest;
use crate::contract::scans::{MaxRequests, RequestRange};
use crate::contract::{FieldValue as _, ValidationError};
use crate::scans::plan::ScanPlan;

/// The requests that must be left for a run to start: one for each search. Retries stop once the
/// limit is spent.
pub(super) fn requests_needed(plan: &ScanPlan) -> u32 {
    u32::try_from(*plan.searches().end()).unwrap_or(u32::MAX)
}

/// The requests that a month with these spent leaves for a run that needs so many.
///
/// # Errors
/// Why the run does not start: too few are left.
pub(super) fn left_for_run(ceiling: i64, spent: i64, needed: u32) -> Result<u32, String> {
    let left = u32::try_from(ceiling - spent).unwrap_or_default();
    if left < needed {
        return Err(format!(
            "the monitor has spent {spent} of {ceiling} requests this month and a run needs {needed}; raise `max_requests_per_month` or wait for the next month"
        ));
    }
    Ok(left)
}

/// Limits a run to the requests left in its month.
pub(super) fn cap_plan(plan: &mut ScanPlan, left: u32) {
    let cap = plan
        .scan_request
        .max_requests
        .map_or(left, |max| max.get().min(left));
    plan.scan_request.max_requests = MaxRequests::new(cap.min(MaxRequests::MAX));
}

/// The error for a limit under which no run could ever start.
pub(super) fn limit_too_low(request: &MonitorRequest, plan: &ScanPlan) -> Option<ValidationError> {
    let (ceiling, needed) = (request.max_requests_per_month?, requests_needed(plan));
    (ceiling.get() < needed).then(|| {
        let expected = format!("at least {needed}, one request for each search of a run");
        ValidationError::new("max_requests_per_month", &ceiling.to_value(), expected)
    })
}

/// The requests of `slots` runs of this cost together. A run starts while the limit leaves enough for it, and no
/// request exceeds the limit.
pub(super) fn requests_per_month(
    plan: &ScanPlan,
    run: RequestRange,
    slots: u32,
    ceiling: Option<u32>,
) -> RequestRange {
    let all = |requests: u64| requests.saturating_mul(slots.into());
    let Some(ceiling) = ceiling.map(u64::from) else {
        return RequestRange {
            least: all(run.least),
            expected: None,
            most: all(run.most),
        };
    };
    let begin = ceiling
        .checked_sub(requests_needed(plan).into())
        .map_or(0, |spare| spare / run.least.max(1) + 1);
    RequestRange {
        least: all(run.least).min(begin.saturating_mul(run.least)),
        expected: None,
        most: all(run.most).min(ceiling),
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use serde_json::{Value, json};

    use super::*;
    use crate::scans::preview;

    fn plan(more: Value) -> ScanPlan {
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
    fn a_month_counts_the_runs_that_fit_under_the_limit() {
        let month = |plan: &ScanPlan, slots, ceiling| {
            let range = requests_per_month(plan, preview::requests_with(plan, 0), slots, ceiling);
            (range.least, range.most)
        };
        let plain = plan(json!({}));
        assert_eq!(month(&plain, 30, None), (300, 600));
        assert_eq!(month(&plain, 30, Some(1_000)), (300, 600));
        assert_eq!(month(&plain, 30, Some(305)), (300, 305));
        assert_eq!(month(&plain, 30, Some(299)), (290, 299));
        assert_eq!(month(&plain, 30, Some(10)), (10, 10));
        assert_eq!(month(&plain, 0, Some(10)), (0, 0));
        let find = plan(json!({"strategy": {"find": "cheapest"}}));
        let run = preview::requests_with(&find, 0);
        assert!(run.least < requests_needed(&find).into());
        // The last run starts only if the limit covers all of its searches.
        let spare = u64::from(requests_needed(&find));
        assert_eq!(
            month(&find, 30, Some(requests_needed(&find))),
            (run.least, spare)
        );
    }

    #[test]
    fn a_run_spends_no_more_than_the_month_has_left() {
        for (own, left, taken) in [
            (None, 12, 12),
            (Some(11), 12, 11),
            (Some(15), 12, 12),
            (None, u32::MAX, MaxRequests::MAX),
        ] {
            let mut plan = plan(own.map_or(json!({}), |own| json!({"max_requests": own})));
            cap_plan(&mut plan, left);
            assert_eq!(
                plan.scan_request.max_requests.map(MaxRequests::get),
                Some(taken)
            );
        }
    }
}
