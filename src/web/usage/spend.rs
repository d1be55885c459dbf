//! What scans have cost: by day as bars, by endpoint, scan or monitor as a table.

use jiff::Timestamp;
use maud::{Markup, html};

use crate::account::usage;
use crate::contract::usage::{Usage, UsageGroup, UsageQuery, UsageRow};
use crate::web::charts::{Bar, BarChart};
use crate::web::failure::PageFailure;
use crate::web::form::FormFields;
use crate::web::parts;
use crate::web::session::Session;

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
            parts::with_query(&path, name, text)
        });
    Ok(html! {
        section class="card" id="spend" {
            div class="card-head" {
                h2 { "Billed requests of scans" }
                span class="muted" { (usage.since.strftime("%-d %b %Y")) " to " (usage.until.strftime("%-d %b %Y")) ", UTC" }
            }
            (range_form(&usage))
            (totals(&usage))
            (chart(&days))
            nav class="tabs" aria-label="Grouped by" {
                @for one in UsageGroup::ALL {
                    a href=(format!("{}#spend", parts::with_query(&base, "group", one.as_str()))) aria-current=[(*one == group).then_some("true")] { "By " (one) }
                }
            }
            (table(&usage, &base))
            p class="hint" { "Single searches are in these sums where they are stored. Each reports its cost in " code { "X-Upstream-Requests" } "." }
        }
    })
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

fn totals(usage: &Usage) -> Markup {
    let totals = usage.totals;
    let found = totals.search_status;
    html! {
        div class="stats flat" {
            div class="stat" { div class="label" { "Billed requests" } div class="value" { (parts::count(totals.requests)) } }
            div class="stat" { div class="label" { "Searches sent" } div class="value" { (parts::count(totals.attempts)) } }
            div class="stat" { div class="label" { "With an answer" } div class="value" { (parts::count(found.ok + found.empty + found.partial)) } }
            div class="stat" { div class="label" { "Degraded" } div class="value" { (parts::count(found.degraded)) } }
            @if totals.avoided > 0 {
                div class="stat" { div class="label" { "Answers reused" } div class="value" { (parts::count(totals.avoided)) } }
            }
        }
    }
}

fn chart(days: &Usage) -> Markup {
    let bar = |row: &UsageRow| {
        Some(Bar {
            day: row.key.as_deref()?.parse().ok()?,
            value: row.requests,
            others: vec![row.attempts, row.search_status.degraded],
        })
    };
    BarChart {
        id: "by-day",
        title: "Billed requests by day (UTC)",
        names: &["billed requests", "searches sent", "degraded"],
        range: (days.since, days.until),
        bars: days.data.iter().filter_map(bar).collect(),
    }
    .markup()
}

fn table(usage: &Usage, base: &str) -> Markup {
    let here = parts::with_query(base, "group", usage.group.as_str());
    html! {
        @if usage.data.is_empty() {
            (parts::empty_state(&html! {
                p { "No scan was billed in this time." }
                a class="button" href="/scans/new" { "New scan" }
            }))
        } @else {
            div class="scroll" tabindex="0" role="region" aria-label="Spend" {
                table class="rows" {
                    thead {
                        tr {
                            th scope="col" { (usage.group.as_str()) }
                            th scope="col" class="num" { "Billed requests" }
                            th scope="col" class="num" { "Searches" }
                            th scope="col" class="num" { "ok" }
                            th scope="col" class="num" { "empty" }
                            th scope="col" class="num" { "partial" }
                            th scope="col" class="num" { "degraded" }
                            th scope="col" class="num" { "none" }
                            @if usage.totals.avoided > 0 { th scope="col" class="num" { "reused" } }
                        }
                    }
                    tbody { @for row in rows(usage) { (row_markup(usage, row)) } }
                }
            }
            (parts::next_page(&here, usage.next_cursor.as_deref()))
        }
    }
}

/// Days newest first, as every list; the others in the order of the API.
fn rows(usage: &Usage) -> Vec<&UsageRow> {
    let mut rows: Vec<_> = usage.data.iter().collect();
    if usage.group == UsageGroup::Day {
        rows.reverse();
    }
    rows
}

fn row_markup(usage: &Usage, row: &UsageRow) -> Markup {
    let found = row.search_status;
    html! {
        tr {
            td { (key(usage.group, row.key.as_deref())) }
            td class="num" { b { (parts::count(row.requests)) } }
            td class="num" { (parts::count(row.attempts)) }
            @for number in [found.ok, found.empty, found.partial, found.degraded, found.none] {
                td class="num" { (parts::count(number)) }
            }
            @if usage.totals.avoided > 0 { td class="num" { (parts::count(row.avoided)) } }
        }
    }
}

fn key(group: UsageGroup, key: Option<&str>) -> Markup {
    match (group, key) {
        (UsageGroup::Scan, Some(id)) => html! { a href={ "/scans/" (id) } { code { (id) } } },
        (UsageGroup::Monitor, Some(id)) => html! { a href={ "/monitors/" (id) } { code { (id) } } },
        (_, Some(key)) => html! { (key) },
        (UsageGroup::Monitor, None) => html! { "scans without a monitor, and deleted ones" },
        (_, None) => html! { "deleted scans" },
    }
}
