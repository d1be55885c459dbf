//! What was asked, and what it cost.

use farescan_contract::Api;
use farescan_contract::ids::{MonitorId, ScanId};
use farescan_contract::usage::{
    ForecastCause, PlanForecast, Usage, UsageCounts, UsageGroup, UsageRow, UsageTotal,
};

use crate::numbers::{count, counted};
use crate::plan::api_name;
use crate::sheet::{Cell, Column, Link, Table, Value};

/// What is used of a plan, and what will be when it is renewed, or when it ends, at the present rate.
pub fn forecast(of: &PlanForecast) -> String {
    let (api, rate) = (of.api, of.requests_per_day);
    let used = of
        .requests_limit
        .map(|limit| limit - of.requests_left.min(limit));
    let begin = match of.requests_limit.zip(used) {
        Some((limit, used)) => {
            let (used, limit) = (count(used), counted(limit, "request"));
            format!("{used} of {limit} of {api} used; at {rate} a day")
        }
        None => format!("At {rate} requests of {api} a day"),
    };
    let then = used.zip(of.requests_expected);
    let end = match (
        of.ends_on,
        of.resets_at.map(|at| at.strftime("%-d %B %Y")),
        then,
    ) {
        (Some(day), ..) => format!("the plan ends on {}", day.strftime("%-d %B %Y")),
        (None, Some(at), Some((used, expected))) => {
            let then = count(used.saturating_add(expected));
            format!("about {then} by {at}, when the plan is renewed")
        }
        (None, Some(at), None) => format!("the plan lasts until it is renewed on {at}"),
        (None, None, _) => "the plan lasts for the next 31 days".to_owned(),
    };
    let percent: u32 = of.causes.iter().map(|cause| u32::from(cause.percent)).sum();
    let causes: Vec<_> = of.causes.iter().map(cause).collect();
    match causes.split_last() {
        None => format!("{begin} {end}."),
        Some((only, [])) => format!("{begin} {end}; {only} cause {percent} % of that."),
        Some((last, others)) => format!(
            "{begin} {end}; {} and {last} cause {percent} % of that.",
            others.join(", ")
        ),
    }
}

/// The name of a monitor is as its caller gave it.
fn cause(cause: &ForecastCause) -> String {
    match (&cause.name, cause.key.as_str()) {
        (Some(name), _) => format!("runs of \u{201c}{name}\u{201d}"),
        (None, "single") => "single searches".to_owned(),
        (None, _) => "scans without a monitor".to_owned(),
    }
}

/// The usage by day, endpoint, scan or monitor, and in all.
pub fn table(usage: &Usage, rows: &[UsageRow]) -> Table {
    let columns = [
        Column::text(usage.group.title()),
        Column::text("API").rank(1),
        Column::number("Asked").rank(1),
        Column::number("Billed"),
        Column::number("Reused").rank(1),
        Column::number("Not needed").rank(1),
        Column::number("Searches").rank(2),
        Column::number("ok").rank(3),
        Column::number("empty").rank(3),
        Column::number("partial").rank(3),
        Column::number("degraded").rank(2),
        Column::number("none").rank(4),
    ];
    // Scans and monitors are shown in pages.
    let name = match usage.group {
        UsageGroup::Scan | UsageGroup::Monitor => "Total of all",
        UsageGroup::Day | UsageGroup::Endpoint => "Total",
    };
    let totals = Api::ALL
        .iter()
        .map(|api| (*api, &usage.totals.of(*api).counts));
    let is_used = |counts: &UsageCounts| *counts != UsageCounts::default();
    let is_any = Api::ALL
        .iter()
        .any(|api| is_used(&usage.totals.of(*api).counts));
    let totals = totals.filter(|(_, counts)| !is_any || is_used(counts));
    let totals = totals.map(|(api, counts)| {
        let total = Value::Strong(name.to_owned());
        (None, cells(total, api, counts))
    });
    let rows = rows.iter().map(|row| {
        let key = key(usage.group, row.key.as_deref());
        (None, cells(key, row.api, &row.counts))
    });
    Table::new("Billed requests", columns, rows.chain(totals))
}

fn cells(key: Value, api: Api, counts: &UsageCounts) -> [Cell; 12] {
    let by = counts.search_status;
    let number = |number| vec![Value::Count(number)];
    [
        vec![key],
        vec![api.as_str().into()],
        number(counts.asked),
        number(counts.billed),
        number(counts.reused),
        number(counts.not_needed),
        number(counts.attempts),
        number(by.ok),
        number(by.empty),
        number(by.partial),
        number(by.degraded),
        number(by.none),
    ]
}

/// What a row is about.
fn key(group: UsageGroup, key: Option<&str>) -> Value {
    let link = |id: &str| match group {
        UsageGroup::Scan => id.parse::<ScanId>().ok().map(Link::of),
        UsageGroup::Monitor => id.parse::<MonitorId>().ok().map(Link::of),
        UsageGroup::Day | UsageGroup::Endpoint => None,
    };
    match (group, key) {
        (UsageGroup::Scan | UsageGroup::Monitor, Some("single")) => {
            "single searches and key checks".into()
        }
        (_, Some(key)) => match link(key) {
            Some(link) => Value::Link(link, Some(key.to_owned())),
            None => key.into(),
        },
        (UsageGroup::Monitor, None) => "scans without a monitor, and deleted monitors".into(),
        (_, None) => "deleted scans".into(),
    }
}

/// The usage of an API in money, while its plan is known.
pub fn money(api: Api, total: &UsageTotal) -> Option<String> {
    let money = total.money?;
    Some(format!(
        "{}: {} USD billed, {} USD saved, at {} USD for each included request of the plan {}.",
        api_name(api),
        money.billed_usd,
        money.saved_usd,
        money.usd_per_request,
        money.plan
    ))
}
