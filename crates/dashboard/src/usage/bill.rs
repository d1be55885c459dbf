//! The bill: what was asked and what it cost, by day as bars, by endpoint, scan or monitor as a table,
//! and when the plans end.

use farescan_sheets::plan::api_name;
use farescan_sheets::usage as usages;
use jiff::Timestamp;
use maud::{Markup, html};

use crate::charts::{Bar, BarChart};
use crate::failure::PageFailure;
use crate::form::FormFields;
use crate::links;
use crate::parts;
use crate::session::Session;
use crate::sheet;
use farescan_core::account::usage;
use farescan_core::contract::Api;
use farescan_core::contract::usage::{
    PlanForecasts, Usage, UsageCounts, UsageGroup, UsageQuery, UsageRow,
};

/// Rows of a page of scans or monitors.
const LIMIT: &str = "20";

pub(super) async fn markup(
    session: &Session,
    query: &FormFields,
    now: Timestamp,
) -> Result<Markup, PageFailure> {
    let group = query.text("group").unwrap_or("day");
    let range: Vec<_> = ["since", "until"]
        .into_iter()
        .filter_map(|name| Some((name, query.text(name)?)))
        .collect();
    let mut pairs = range.clone();
    pairs.push(("group", group));
    if matches!(group, "scan" | "monitor") {
        pairs.push(("limit", LIMIT));
        pairs.extend(query.text("cursor").map(|cursor| ("cursor", cursor)));
    }
    let grouped = UsageQuery::from_query(pairs)?;
    let group = grouped.group_or_default();
    let (pool, tenant) = (session.pool()?, session.tenant());
    let usage = usage::usage(pool, tenant, &grouped, now).await?;
    let days = if group == UsageGroup::Day {
        usage.clone()
    } else {
        usage::usage(pool, tenant, &UsageQuery::from_query(range.clone())?, now).await?
    };
    let base = range
        .iter()
        .fold(super::PATH.to_owned(), |path, (name, text)| {
            links::with_query(&path, name, text)
        });
    Ok(html! {
        section class="card" id="spend" {
            div class="card-head" {
                h2 { "Billed requests" }
                span class="muted" { (usage.since.strftime("%-d %b %Y")) " to " (usage.until.strftime("%-d %b %Y")) ", UTC" }
            }
            (forecast(&usage.forecast))
            @if Api::ALL.iter().any(|api| usage.forecast.of(*api).is_some()) {
                p class="hint" { "By your last four weeks. Monitors that have not run yet, and scans underway, are not in it." }
            }
            (range_form(&usage))
            @for api in apis(&usage) {
                h3 { (api_name(api)) }
                @if let Some(money) = usages::money(api, usage.totals.of(api)) { p class="hint" { (money) } }
                (chart(api, &days))
            }
            nav class="tabs" aria-label="Grouped by" {
                @for one in UsageGroup::ALL {
                    a href=(format!("{}#spend", links::with_query(&base, "group", one.as_str()))) aria-current=[(*one == group).then_some("true")] { "By " (one) }
                }
            }
            (table(&usage, &base))
            p class="hint" {
                "Asked = billed + reused + not needed: what your searches would have cost without reuse and strategies. Single searches and key checks "
                "are in these sums, too. Flights and hotels are two plans."
            }
        }
    })
}

/// What is used of each plan, and when it ends or is renewed.
pub(crate) fn forecast(forecasts: &PlanForecasts) -> Markup {
    html! {
        @for api in Api::ALL {
            @if let Some(forecast) = forecasts.of(*api) {
                @let tone = if forecast.ends_on.is_some() { "notice warn" } else { "hint" };
                p class=(tone) { (usages::forecast(forecast)) }
            }
        }
    }
}

/// The APIs that were used; flights if none was.
fn apis(usage: &Usage) -> Vec<Api> {
    let used = |api: &Api| usage.totals.of(*api).counts != UsageCounts::default();
    let apis: Vec<_> = Api::ALL.iter().copied().filter(used).collect();
    if apis.is_empty() {
        vec![Api::Flights]
    } else {
        apis
    }
}

fn range_form(usage: &Usage) -> Markup {
    html! {
        form class="filters" method="get" action=(super::PATH) {
            div class="field" { label for="since" { "From" } input id="since" name="since" type="date" value=(usage.since); }
            div class="field" { label for="until" { "To" } input id="until" name="until" type="date" value=(usage.until); }
            input type="hidden" name="group" value=(usage.group);
            button type="submit" { "Show" }
        }
    }
}

fn chart(api: Api, days: &Usage) -> Markup {
    let bar = |row: &UsageRow| {
        Some(Bar {
            day: row.key.as_deref()?.parse().ok()?,
            value: row.counts.billed,
            others: vec![row.counts.attempts, row.counts.search_status.degraded],
        })
    };
    BarChart {
        id: &format!("{api}-by-day"),
        title: &format!("Billed requests of {api} by day (UTC)"),
        names: &["billed requests", "searches sent", "degraded"],
        range: (days.since, days.until),
        bars: days
            .data
            .iter()
            .filter(|row| row.api == api)
            .filter_map(bar)
            .collect(),
    }
    .markup()
}

fn table(usage: &Usage, base: &str) -> Markup {
    let here = links::with_query(base, "group", usage.group.as_str());
    html! {
        @if usage.data.is_empty() {
            (parts::empty_state(&html! {
                p { "Nothing was asked in this time." }
                a class="button" href="/scans/new" { "New scan" }
            }))
        } @else {
            (sheet::table(&usages::table(usage, &rows(usage))))
            (parts::next_page(&here, usage.next_cursor.as_deref()))
        }
    }
}

/// Days newest first, as every list; the others in the order of the API.
fn rows(usage: &Usage) -> Vec<UsageRow> {
    let mut rows = usage.data.clone();
    if usage.group == UsageGroup::Day {
        rows.reverse();
    }
    rows
}
