//! The warnings of a preview: pure. A warning does not prevent a submit.

use std::collections::BTreeSet;

use jiff::civil::Date;
use serde_json::Value;

use super::LaneState;
use crate::contract::scans::{RequestRange, Warning, WarningKind};
use crate::contract::{Api, Endpoint, Request};
use crate::scans::plan::ScanPlan;

/// How many days ahead airlines sell seats.
const SEATS_SOLD_DAYS: i64 = 330;
/// How many days ahead most hotels sell nights.
const NIGHTS_SOLD_DAYS: i64 = 500;
const DAY_SECONDS: u64 = 86_400;

/// The facts that warnings depend on, besides the plan.
pub(super) struct WarningInputs<'a> {
    pub(super) lane: &'a LaneState,
    pub(super) requests: RequestRange,
    /// The most requests without `max_requests`.
    pub(super) uncapped: u64,
    pub(super) seconds: u64,
    /// Why a submit would be refused now.
    pub(super) refusal: Option<String>,
    pub(super) today: Date,
}

/// In the order of [`WarningKind::ALL`], at most one of each kind.
pub(super) fn warnings(plan: &ScanPlan, facts: &WarningInputs<'_>) -> Vec<Warning> {
    let warning = |kind: &WarningKind| {
        message(*kind, plan, facts).map(|message| Warning {
            kind: *kind,
            message,
        })
    };
    WarningKind::ALL.iter().filter_map(warning).collect()
}

fn message(kind: WarningKind, plan: &ScanPlan, facts: &WarningInputs<'_>) -> Option<String> {
    match kind {
        WarningKind::DatesNotOnSale => not_on_sale(plan, facts.today),
        WarningKind::BandLost => band_lost(plan),
        WarningKind::MarketsNotComparable => markets(plan),
        WarningKind::CurrenciesNotComparable => currencies(plan),
        WarningKind::OverQuota => over_quota(facts),
        WarningKind::BudgetMayBeSpent => budget(plan, facts),
        WarningKind::LongerThanADay => (facts.seconds > DAY_SECONDS).then(|| {
            let hours = facts.seconds.div_ceil(3600);
            format!("at the lane's pace it takes about {hours} hours: sweep fewer values, or use a plan with a higher rate")
        }),
        WarningKind::LanePaused => facts
            .lane
            .paused
            .map(|reason| format!("the lane for these searches is paused now ({reason}): the scan would wait until the pause ends")),
        WarningKind::TooMuchUnderway => facts.refusal.clone(),
    }
}

fn not_on_sale(plan: &ScanPlan, today: Date) -> Option<String> {
    let (days, what) = match plan.scan_request.endpoint.get().api() {
        Api::Flights => (SEATS_SOLD_DAYS, "airlines sell seats"),
        Api::Hotels => (NIGHTS_SOLD_DAYS, "hotels sell nights"),
    };
    let last_on_sale = today.saturating_add(jiff::Span::new().days(days));
    let last = |item: &Request| item.last_date().or(item.first_date());
    let beyond = plan
        .items
        .iter()
        .filter(|item| last(item).is_some_and(|date| date > last_on_sale))
        .count();
    (beyond > 0).then(|| {
        format!("{beyond} of the searches are for dates after {last_on_sale}; {what} about {days} days ahead, so these may find nothing")
    })
}

/// The engine leaves out the band and the verdict when either filter is sent (gateway.md, rule 3).
fn band_lost(plan: &ScanPlan) -> Option<String> {
    let costs = |item: &Request| {
        let body = item.to_body();
        body.contains_key("max_price") || body.get("sort_type").is_some_and(|sort| sort == "Price")
    };
    let flights = plan.scan_request.endpoint.get().api() == Api::Flights;
    (flights && plan.scan_request.upstream_filters_or_default() && plan.items.iter().any(costs)).then(|| {
        "`upstream_filters` sends `max_price` and `sort_type: \"Price\"` upstream, and such answers have no price band and no verdict: \
         leave it out, and this service applies both filters itself"
            .to_owned()
    })
}

fn markets(plan: &ScanPlan) -> Option<String> {
    (plan.scan_request.endpoint.get() == Endpoint::HotelsSearch && distinct(plan, "proxy_country") > 1).then(|| {
        "hotels/search may list different hotels in each market, so its prices are not comparable: sweep `proxy_country` over \
         hotels/by-name or hotels/rooms to compare markets"
            .to_owned()
    })
}

fn currencies(plan: &ScanPlan) -> Option<String> {
    let currencies = distinct(plan, "currency");
    (currencies > 1).then(|| {
        format!("the sweep has {currencies} currencies; their prices are not comparable, and the scan's best price is in one of them")
    })
}

/// The number of distinct values of a field over all items, ignoring case.
fn distinct(plan: &ScanPlan, field: &str) -> usize {
    let value = |item: &Request| {
        item.to_body()
            .get(field)
            .map(Value::to_string)
            .map(|text| text.to_ascii_lowercase())
    };
    plan.items.iter().map(value).collect::<BTreeSet<_>>().len()
}

fn over_quota(facts: &WarningInputs<'_>) -> Option<String> {
    let (least, left) = (facts.requests.least, facts.lane.plan_remaining?);
    (least > left).then(|| {
        format!("{least} searches need more requests than the {left} that remain of the plan: the scan causes overage, or pauses")
    })
}

/// Second tries count towards `max_requests` too (gateway.md, rule 17).
fn budget(plan: &ScanPlan, facts: &WarningInputs<'_>) -> Option<String> {
    let max = plan.scan_request.max_requests?.get();
    (facts.uncapped > u64::from(max)).then(|| {
        format!(
            "second tries after server errors and further attempts may take up to {} requests, and `max_requests` is {max}: once these \
             are spent, the scan pauses until a resume raises the limit",
            facts.uncapped
        )
    })
}
