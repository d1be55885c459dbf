//! `/overview`: what runs, what needs a decision, the monitors, and what was spent.

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::{Markup, html};

use super::failure::PageFailure;
use super::layout::{NavItem, page};
use super::parts::{self, BadgeTone, chip, count, counted, words};
use super::scans as scan_pages;
use super::session::Session;
use crate::account::quota::quota;
use crate::account::usage::usage;
use crate::contract::monitors::{Monitor, MonitorStatus, MonitorsQuery};
use crate::contract::quota::{LaneQuota, Quota};
use crate::contract::scans::{Scan, ScansQuery};
use crate::contract::usage::{Usage, UsageQuery};
use crate::contract::webhooks::{DeliveriesQuery, Delivery};
use crate::http::AppState;
use crate::ids::TenantId;
use crate::{monitors, scans, webhooks};

pub(super) const PATH: &str = "/overview";
/// Rows of each list.
const ROWS: &str = "10";

pub(super) fn routes() -> Router<AppState> {
    Router::new().route(PATH, get(overview))
}

/// What the page shows of a caller who has submitted something.
#[derive(Default)]
struct Work {
    live: Vec<Scan>,
    paused: Vec<Scan>,
    incomplete: Vec<Scan>,
    recent: Vec<Scan>,
    monitors: Vec<Monitor>,
    failed_deliveries: Vec<Delivery>,
}

async fn overview(session: Session) -> Result<Response, PageFailure> {
    let now = session.app().now()?;
    let work = match session.tenant() {
        Some(tenant) => work(&session, tenant, now).await?,
        None => Work::default(),
    };
    let pool = session.pool()?;
    let quota = quota(pool, session.tenant(), &session.custody()?.pace).await?;
    let month = month_so_far(now)?;
    let usage = usage(pool, session.tenant(), &month, now).await?;
    let body = html! {
        div class="head" {
            div {
                h1 { "Overview" }
                p class="sub" { "Everything of the key that you signed in with." }
            }
            div class="actions" { a class="button primary" href="/scans/new" { "New scan" } }
        }
        (figures(&work, &usage))
        (decisions(&work))
        (running(&work))
        div class="grid2" {
            (monitor_list(&work.monitors))
            (plan(&quota))
        }
    };
    Ok(page(&session, "Overview", NavItem::Overview, body))
}

async fn work(session: &Session, tenant: TenantId, now: Timestamp) -> Result<Work, PageFailure> {
    let pool = session.pool()?;
    let list = async |status: Option<&str>| {
        let status = status.map(|status| ("status", status));
        let query = ScansQuery::from_query(status.into_iter().chain([("limit", ROWS)]))?;
        let page = scans::read::scans(pool, tenant, &query).await?;
        Ok::<_, PageFailure>(page.data)
    };
    let mut live = list(Some("running")).await?;
    live.extend(list(Some("queued")).await?);
    let query = MonitorsQuery::from_query([("limit", ROWS)])?;
    let ring = &session.custody()?.ring;
    let monitors = monitors::read::monitors(pool, ring, tenant, &query, now).await?;
    let query = DeliveriesQuery::from_query([("status", "failed"), ("limit", ROWS)])?;
    let deliveries = webhooks::read::deliveries(pool, tenant, &query).await?;
    Ok(Work {
        live,
        paused: list(Some("paused")).await?,
        incomplete: list(Some("incomplete")).await?,
        recent: list(None).await?,
        monitors: monitors.data,
        failed_deliveries: deliveries.map(|page| page.data).unwrap_or_default(),
    })
}

/// The usage of this UTC month by endpoint.
fn month_so_far(now: Timestamp) -> Result<UsageQuery, PageFailure> {
    let today = now.to_zoned(TimeZone::UTC).date();
    let (first, last) = (today.first_of_month().to_string(), today.to_string());
    let pairs = [
        ("since", first.as_str()),
        ("until", last.as_str()),
        ("group", "endpoint"),
    ];
    Ok(UsageQuery::from_query(pairs)?)
}

fn figures(work: &Work, usage: &Usage) -> Markup {
    let saved: u64 = work
        .recent
        .iter()
        .filter_map(|scan| scan.strategy)
        .map(|strategy| u64::from(strategy.requests_saved))
        .sum();
    let attempts = usage.totals.search_status;
    html! {
        dl class="stats" {
            div class="stat" {
                dt { "Running now" }
                dd class="value" { (counted(work.live.len() as u64, "scan")) }
                dd class="note" {
                    @let left: u64 = work.live.iter().map(|scan| u64::from(scan.items.pending)).sum();
                    (count(left)) " searches to make"
                }
            }
            div class="stat" {
                dt { "Needs a decision" }
                dd class="value" { (decision_count(work)) }
                dd class="note" { "incomplete, paused or failing" }
            }
            div class="stat" {
                dt { "Spent this month (UTC)" }
                dd class="value" { (counted(usage.totals.requests, "request")) }
                dd class="note" { "by scans; " a href="/usage" { "usage" } }
            }
            div class="stat" {
                dt { "Searches this month" }
                dd class="value" { (count(usage.totals.attempts)) }
                dd class="note" {
                    (count(attempts.ok + attempts.empty)) " complete, " (count(attempts.partial + attempts.degraded)) " not"
                    @if saved > 0 { "; " (count(saved)) " saved by strategies" }
                }
            }
        }
    }
}

/// What the caller has to decide about.
fn decision_count(work: &Work) -> usize {
    work.paused.len()
        + work.incomplete.len()
        + failing(&work.monitors).count()
        + work.failed_deliveries.len()
}

fn failing(monitors: &[Monitor]) -> impl Iterator<Item = &Monitor> {
    monitors.iter().filter(|monitor| {
        monitor
            .status_reason
            .is_some_and(|reason| reason.as_str() != "by_caller")
    })
}

fn decisions(work: &Work) -> Markup {
    html! {
        @if decision_count(work) > 0 {
            section class="card" {
                h2 { "Needs a decision" }
                ul class="todo" {
                    @for scan in &work.paused { (paused(scan)) }
                    @for scan in &work.incomplete { (incomplete(scan)) }
                    @for monitor in failing(&work.monitors) {
                        li {
                            a href={ "/monitors/" (monitor.id) } { (monitor.name) } " "
                            (chip(BadgeTone::Bad, "failing"))
                            " " span class="muted" { (monitor.status_reason.map(|reason| words(reason.as_str())).unwrap_or_default()) }
                        }
                    }
                    @for delivery in &work.failed_deliveries {
                        li {
                            a href={ "/deliveries/" (delivery.id) } { "Delivery of an event" } " "
                            (chip(BadgeTone::Bad, "given up"))
                            " " span class="muted" { (delivery.reason.map(|reason| words(reason.as_str())).unwrap_or_default()) }
                        }
                    }
                }
            }
        }
    }
}

fn scan_link(scan: &Scan) -> Markup {
    let title = scan_pages::title(scan.endpoint, &scan.request, &scan.sweep);
    html! { a href=(scan_pages::path(scan.id)) { (scan.label.as_deref().unwrap_or(&title)) } }
}

fn paused(scan: &Scan) -> Markup {
    html! {
        li {
            (scan_link(scan)) " " (chip(BadgeTone::Warn, "paused")) " "
            span class="muted" {
                (scan.status_reason.map(|reason| words(reason.as_str())).unwrap_or_default())
                " · " (count(scan.items.pending.into())) " searches left"
            }
        }
    }
}

fn incomplete(scan: &Scan) -> Markup {
    let again = scan.items.partial + scan.items.degraded;
    html! {
        li {
            (scan_link(scan)) " " (chip(BadgeTone::Warn, "incomplete")) " "
            span class="muted" {
                (count((again + scan.items.failed).into())) " of " (count(scan.items.total.into())) " searches did not complete"
                @if again > 0 {
                    "; asking again costs " (count(again.into())) " to " (counted((2 * again).into(), "request"))
                }
            }
        }
    }
}

fn running(work: &Work) -> Markup {
    html! {
        section class="card" {
            div class="card-head" {
                h2 { @if work.live.is_empty() { "Last scans" } @else { "Running now" } }
                a href="/scans" { "All scans" }
            }
            @if !work.live.is_empty() { (scan_pages::table(&work.live)) }
            @else if work.recent.is_empty() {
                (parts::empty_state(&html! {
                    p { "No scans yet. A scan finds the cheapest date of a range, or compares markets." }
                    a class="button primary" href="/scans/new" { "New scan" }
                }))
            } @else { (scan_pages::table(&work.recent)) }
        }
    }
}

fn monitor_list(monitors: &[Monitor]) -> Markup {
    html! {
        section class="card" {
            div class="card-head" { h2 { "Monitors" } a href="/monitors" { "All monitors" } }
            @if monitors.is_empty() {
                (parts::empty_state(&html! {
                    p { "A monitor repeats a scan on a schedule and tells you when a price changes." }
                }))
            } @else {
                div class="scroll" {
                    table class="rows" {
                        thead { tr { th scope="col" { "Monitor" } th scope="col" { "Last slot" } th scope="col" { "State" } } }
                        tbody { @for monitor in monitors { (monitor_row(monitor)) } }
                    }
                }
            }
        }
    }
}

fn monitor_row(monitor: &Monitor) -> Markup {
    let fired = monitor
        .last_slot
        .as_ref()
        .and_then(|slot| slot.judged.as_ref())
        .map_or(0, |judged| judged.alerts);
    html! {
        tr {
            td { a href={ "/monitors/" (monitor.id) } { (monitor.name) } }
            td {
                @match &monitor.last_slot {
                    Some(slot) => { (parts::time(slot.slot)) " " span class="muted" { (words(slot.outcome.as_str())) } }
                    None => { span class="muted" { "none yet" } }
                }
            }
            td {
                @if monitor.status == MonitorStatus::Paused { (chip(BadgeTone::Plain, "paused")) }
                @else if fired > 0 { (chip(BadgeTone::Good, &counted(fired.into(), "alert"))) }
                @else { (chip(BadgeTone::Info, "watching")) }
            }
        }
    }
}

fn plan(quota: &Quota) -> Markup {
    html! {
        section class="card" {
            div class="card-head" { h2 { "Plan" } a href="/usage" { "Usage and limits" } }
            (lane("Flights", &quota.flights))
            (lane("Hotels", &quota.hotels))
        }
    }
}

fn lane(name: &str, lane: &LaneQuota) -> Markup {
    html! {
        div class="lane" {
            h3 {
                (name)
                @if let Some(paused) = &lane.paused { " " (chip(BadgeTone::Warn, &words(paused.reason.as_str()))) }
            }
            @match (lane.plan_requests_limit, lane.plan_requests_remaining) {
                (Some(limit), Some(left)) => {
                    progress max=(limit.max(1)) value=(limit.saturating_sub(left)) aria-label={ (name) ": used requests of the plan" } {}
                    p {
                        (count(left)) " of " (counted(limit, "request")) " left"
                        @if let Some(reset) = lane.plan_resets_at { span class="muted" { ", until " (parts::time(reset)) } }
                    }
                }
                _ => { p class="muted" { "The marketplace has not reported this plan yet." } }
            }
            p class="sub" {
                (parts::rate(lane.searches_per_minute)) " searches a minute, " (lane.in_flight) " in flight"
                @if lane.bounds.keep_in_reserve > 0 { ", " (count(lane.bounds.keep_in_reserve)) " kept in reserve" }
            }
        }
    }
}
