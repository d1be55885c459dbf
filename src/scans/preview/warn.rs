//! What a caller may want to know before ordering: pure. A warning forbids nothing.

use std::collections::BTreeSet;

use jiff::civil::Date;
use serde_json::Value;

use super::Lane;
use crate::contract::scans::{RequestRange, Warning, WarningKind};
use crate::contract::{Api, Endpoint, Request};
use crate::scans::plan::Plan;

/// Airlines begin to sell a seat this many days ahead.
const SEATS_SOLD_DAYS: i64 = 330;
/// Hardly a hotel sells a night further ahead than this.
const NIGHTS_SOLD_DAYS: i64 = 500;
const DAY_SECONDS: u64 = 86_400;

/// What a warning may come from, beside the plan.
pub(super) struct Facts<'a> {
    pub(super) lane: &'a Lane,
    pub(super) requests: RequestRange,
    /// The most requests if there were no `max_requests`.
    pub(super) uncapped: u64,
    pub(super) seconds: u64,
    /// Which bound a submit would meet now.
    pub(super) refusal: Option<String>,
    pub(super) today: Date,
}

/// In the order of [`WarningKind::ALL`], each kind once at most.
pub(super) fn warnings(plan: &Plan, facts: &Facts<'_>) -> Vec<Warning> {
    let warning = |kind: &WarningKind| {
        message(*kind, plan, facts).map(|message| Warning {
            kind: *kind,
            message,
        })
    };
    WarningKind::ALL.iter().filter_map(warning).collect()
}

fn message(kind: WarningKind, plan: &Plan, facts: &Facts<'_>) -> Option<String> {
    match kind {
        WarningKind::DatesNotOnSale => not_on_sale(plan, facts.today),
        WarningKind::BandLost => band_lost(plan),
        WarningKind::MarketsNotComparable => markets(plan),
        WarningKind::CurrenciesNotComparable => currencies(plan),
        WarningKind::OverQuota => over_quota(facts),
        WarningKind::BudgetMayBeSpent => budget(plan, facts),
        WarningKind::LongerThanADay => (facts.seconds > DAY_SECONDS).then(|| {
            let hours = facts.seconds.div_ceil(3600);
            format!("at the lane's pace it takes about {hours} hours: sweep less, or have a plan with a higher rate")
        }),
        WarningKind::LanePaused => facts
            .lane
            .paused
            .map(|reason| format!("the lane for these searches is paused now ({reason}): the scan would wait until it goes on")),
        WarningKind::TooMuchUnderway => facts.refusal.clone(),
    }
}

fn not_on_sale(plan: &Plan, today: Date) -> Option<String> {
    let (days, what) = match plan.order.endpoint.get().api() {
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
        format!("{beyond} of the searches are about dates after {last_on_sale}; {what} about {days} days ahead, so these may find nothing")
    })
}

/// Contract 3: the engine leaves the band and the verdict out when either filter is sent.
fn band_lost(plan: &Plan) -> Option<String> {
    let costs = |item: &Request| {
        let body = item.to_body();
        body.contains_key("max_price") || body.get("sort_type").is_some_and(|sort| sort == "Price")
    };
    let flights = plan.order.endpoint.get().api() == Api::Flights;
    (flights && plan.order.upstream_filters_or_default() && plan.items.iter().any(costs)).then(|| {
        "`upstream_filters` sends `max_price` and `sort_type: \"Price\"` upstream, and such answers have no price band and no verdict: \
         leave it out to have them applied here"
            .to_owned()
    })
}

fn markets(plan: &Plan) -> Option<String> {
    (plan.order.endpoint.get() == Endpoint::HotelsSearch && distinct(plan, "proxy_country") > 1).then(|| {
        "hotels/search may list other hotels in each market, so its prices do not compare: sweep `proxy_country` over hotels/by-name or \
         hotels/rooms to compare markets"
            .to_owned()
    })
}

fn currencies(plan: &Plan) -> Option<String> {
    let currencies = distinct(plan, "currency");
    (currencies > 1).then(|| {
        format!("{currencies} currencies are swept; their prices do not compare, and the scan's best is the best of one of them")
    })
}

/// How many values a field has over the items.
fn distinct(plan: &Plan, field: &str) -> usize {
    let value = |item: &Request| {
        item.to_body()
            .get(field)
            .map(Value::to_string)
            .map(|text| text.to_ascii_lowercase())
    };
    plan.items.iter().map(value).collect::<BTreeSet<_>>().len()
}

fn over_quota(facts: &Facts<'_>) -> Option<String> {
    let (least, left) = (facts.requests.least, facts.lane.plan_remaining?);
    (least > left).then(|| {
        format!("{least} searches need more requests than the {left} that are left of the plan: it ends in overage, or pauses")
    })
}

/// A second try takes a place too (contract 17), and so an item after it may find none.
fn budget(plan: &Plan, facts: &Facts<'_>) -> Option<String> {
    let max = plan.order.max_requests?.get();
    (facts.uncapped > u64::from(max)).then(|| {
        format!(
            "second tries of server errors and further attempts may take up to {} requests, and `max_requests` is {max}: once that many \
             are spent the scan pauses until a resume gives it more",
            facts.uncapped
        )
    })
}
