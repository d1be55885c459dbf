//! `/overview`: what runs, what needs a decision, what happened last, the monitors, and what was spent.

mod decisions;

use std::collections::HashMap;

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use farescan_sheets::monitor;
use farescan_sheets::numbers::{self, count, counted};
use farescan_sheets::scan::waits_for_caller;
use farescan_sheets::sheet::{Column, Figure, Link, Table};
use farescan_sheets::trip::words;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::{Markup, html};

use self::decisions::Decisions;
use super::ask::find_or_ask_box;
use super::failure::PageFailure;
use super::layout::{NavItem, page};
use super::links;
use super::parts::{self, Tone, chip};
use super::session::Session;
use super::sheet;
use super::usage::bill;
use super::{activity, channels, monitors as monitor_pages, scans as scan_pages};
use farescan_core::account::quota::quota;
use farescan_core::account::usage::usage;
use farescan_core::app::AppState;
use farescan_core::contract::Api;
use farescan_core::contract::monitors::{Monitor, MonitorsQuery};
use farescan_core::contract::quota::{LaneQuota, Quota};
use farescan_core::contract::scans::{Scan, ScanStatus, ScansQuery};
use farescan_core::contract::usage::{Usage, UsageCounts, UsageQuery};
use farescan_core::contract::webhooks::DeliveriesQuery;
use farescan_core::ids::{MonitorId, TenantId};
use farescan_core::monitors::run_prices::{self, RunPrice};
use farescan_core::scans::read::ScanConditions;
use farescan_core::scans::undecided;
use farescan_core::{monitors, scans, webhooks};

const PATH: &str = links::OVERVIEW;
/// Rows of each list.
const ROWS: &str = "10";
/// Rows of what happened last.
const LATEST: u16 = 8;
/// Rows of the scans that run or wait.
const LIVE_ROWS: usize = 20;
/// Runs of a sparkline.
const RUNS: u16 = 30;

pub(super) fn routes() -> Router<AppState> {
    Router::new().route(PATH, get(overview))
}

/// What the page shows of a caller who has submitted something.
#[derive(Default)]
struct Work {
    live: Vec<Scan>,
    monitors: Vec<Monitor>,
    prices: HashMap<MonitorId, Vec<RunPrice>>,
    decisions: Decisions,
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
    let live = work.live.iter().take(LIVE_ROWS);
    let live: Vec<_> = live.map(|scan| scan.id).collect();
    let latest_rows = activity::latest(&session, LATEST, &live, now).await?;
    let body = html! {
        (parts::head(&html! {}, "Home", &html! {}, &html! {
            @if session.goes_on() { a class="button" href=(links::PAUSE_ALL) { "Pause everything" } }
            a class="button primary" href="/scans/new" { "New scan" }
        }))
        section class="card" { (find_or_ask_box("")) }
        (figures(&work, &usage, &quota))
        (work.decisions.section(&session))
        (running(&session, &work))
        @if latest_rows.is_some() || live.is_empty() { (latest(latest_rows)) }
        div class="grid2" {
            (monitor_list(&work))
            (plan(&quota))
        }
    };
    Ok(page(&session, "Home", NavItem::Home, body))
}

async fn work(session: &Session, tenant: TenantId, now: Timestamp) -> Result<Work, PageFailure> {
    let pool = session.pool()?;
    let lately = ScanConditions {
        created_from: Some(now - undecided::DECISION_AGE),
        is_undismissed: true,
        ..ScanConditions::default()
    };
    let (mut live, paused): (Vec<_>, Vec<_>) = scans::read::live(pool, tenant)
        .await?
        .into_iter()
        .partition(|scan| !waits_for_caller(scan));
    live.sort_by_key(|scan| match scan.status {
        ScanStatus::Running => 0,
        ScanStatus::Queued => 1,
        _ => 2,
    });
    let query = ScansQuery::from_query([("status", "incomplete"), ("limit", ROWS)])?;
    let incomplete = scans::read::scans_where(pool, tenant, &query, &lately).await?;
    let query = MonitorsQuery::from_query([("limit", ROWS)])?;
    let ring = &session.custody()?.ring;
    let monitors = monitors::read::monitors(pool, ring, tenant, &query, now)
        .await?
        .data;
    let ids: Vec<_> = monitors.iter().map(|monitor| monitor.id).collect();
    let prices = {
        let mut conn = pool.acquire().await?;
        run_prices::run_prices(&mut conn, tenant, &ids, RUNS).await?
    };
    let query = DeliveriesQuery::from_query([("status", "failed"), ("limit", ROWS)])?;
    let deliveries = webhooks::read::deliveries(pool, tenant, &query).await?;
    let (failing, all_failing) =
        monitors::read::failing(pool, ring, tenant, decisions::MOST, now).await?;
    let (deliveries, after) =
        deliveries.map_or_else(|| (Vec::new(), None), |page| (page.data, page.next_cursor));
    Ok(Work {
        live,
        monitors,
        prices,
        decisions: Decisions {
            paused,
            all_incomplete: if incomplete.data.len() > 1 {
                undecided::list(pool, tenant, now).await?
            } else {
                Vec::new()
            },
            incomplete: incomplete.data,
            has_more_incomplete: incomplete.next_cursor.is_some(),
            monitors: failing,
            all_monitors: usize::try_from(all_failing).unwrap_or(usize::MAX),
            channels: channels::failing(session).await?,
            deliveries,
            has_more_deliveries: after.is_some(),
        },
    })
}

/// The usage of this UTC month. By day, because its totals are summed from the days.
fn month_so_far(now: Timestamp) -> Result<UsageQuery, PageFailure> {
    let today = now.to_zoned(TimeZone::UTC).date();
    let (first, last) = (today.first_of_month().to_string(), today.to_string());
    let pairs = [
        ("since", first.as_str()),
        ("until", last.as_str()),
        ("group", "day"),
    ];
    Ok(UsageQuery::from_query(pairs)?)
}

fn figures(work: &Work, usage: &Usage, quota: &Quota) -> Markup {
    let of = |number: fn(&UsageCounts) -> u64| -> String {
        let each = Api::ALL.iter().map(|api| {
            let number = number(&usage.totals.of(*api).counts);
            format!("{} {api}", count(number))
        });
        each.collect::<Vec<_>>().join(", ")
    };
    let left: u64 = work
        .live
        .iter()
        .map(|scan| u64::from(scan.items.pending))
        .sum();
    let live = counted(work.live.len() as u64, "scan");
    let decisions = work.decisions.count();
    let more = if work.decisions.has_more() { "+" } else { "" };
    let asked = of(|counts| counts.asked);
    let figures = [
        Figure::new("Running now", live).note(format!("{} searches to make", count(left))),
        Figure::new("Needs a decision", format!("{decisions}{more}"))
            .note("incomplete, paused or failing"),
        Figure::new("Billed this month (UTC)", of(|counts| counts.billed))
            .note(against_plans(quota)),
        Figure::new(
            "Saved this month",
            of(|counts| counts.reused + counts.not_needed),
        )
        .note(format!("reused or not needed, of {asked} asked")),
    ];
    html! {
        (sheet::figures(&figures))
        (bill::forecast(&usage.forecast))
    }
}

/// What each plan has left, and how much of it is kept in reserve.
fn against_plans(quota: &Quota) -> String {
    let lanes = [(Api::Flights, &quota.flights), (Api::Hotels, &quota.hotels)];
    let known = lanes.into_iter().filter_map(|(api, lane)| {
        let left = format!("{} left of {api}", count(lane.plan_requests_remaining?));
        Some(match lane.bounds.keep_in_reserve {
            0 => left,
            kept => format!("{left}, {} of them in reserve", count(kept)),
        })
    });
    let known: Vec<_> = known.collect();
    if known.is_empty() {
        return "the plans are not reported yet".to_owned();
    }
    known.join("; ")
}

/// The scans that run or wait, if there are any.
fn running(session: &Session, work: &Work) -> Markup {
    html! {
        @if !work.live.is_empty() {
            section class="card" {
                div class="card-head" {
                    h2 { "Running now" }
                    div class="actions" { (scan_pages::cancel_all_button(session, &work.live)) a href="/scans" { "All scans" } }
                }
                (scan_pages::table("Running now", work.live.get(..LIVE_ROWS).unwrap_or(&work.live)))
                @if work.live.len() > LIVE_ROWS {
                    p class="hint" { (counted((work.live.len() - LIVE_ROWS) as u64, "more scan")) " not shown." }
                }
            }
        }
    }
}

fn latest(rows: Option<Markup>) -> Markup {
    html! {
        section class="card" {
            div class="card-head" { h2 { "Latest" } a href=(links::ACTIVITY) { "All activity" } }
            @match rows {
                Some(rows) => { (rows) }
                None => {
                    (parts::empty_state(&html! {
                        p { "No scans yet. A scan finds the cheapest date of a range, or compares markets." }
                        a class="button primary" href="/scans/new" { "New scan" }
                    }))
                }
            }
        }
    }
}

fn monitor_list(work: &Work) -> Markup {
    html! {
        section class="card" {
            div class="card-head" { h2 { "Monitors" } a href="/monitors" { "All monitors" } }
            @if work.monitors.is_empty() {
                (parts::empty_state(&html! {
                    p { "A monitor repeats a scan on a schedule and tells you when a price changes." }
                    a class="button" href="/monitors/new" { "New monitor" }
                }))
            } @else {
                (sheet::table(&monitor_table(work)))
            }
        }
    }
}

fn monitor_table(work: &Work) -> Table {
    let columns = [
        Column::text("Monitor"),
        Column::text("Lowest price of each run"),
        Column::number("Last"),
        Column::text("State"),
    ];
    let rows = work.monitors.iter().map(|monitor| {
        let runs = work.prices.get(&monitor.id).map_or(&[][..], Vec::as_slice);
        let [prices, last] = monitor_pages::prices_of_runs(&monitor.name, runs);
        let cells = [
            vec![monitor.name.clone().into()],
            prices,
            last,
            vec![monitor::state(monitor)],
        ];
        (Some(Link::of(monitor.id)), cells)
    });
    Table::new("Monitors", columns, rows)
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
                @if let Some(paused) = &lane.paused { " " (chip(Tone::Warn, &words(paused.reason.as_str()))) }
            }
            @match (lane.plan_requests_limit, lane.plan_requests_remaining) {
                (Some(limit), Some(left)) => {
                    @let used = limit.saturating_sub(left);
                    @if parts::is_visible_share(used, limit) {
                        progress max=(limit.max(1)) value=(used) aria-label={ (name) ": used requests of the plan" } {}
                    }
                    p {
                        (count(left)) " of " (counted(limit, "request")) " left"
                        @if let Some(reset) = lane.plan_resets_at { span class="muted" { ", until " (parts::time(reset)) } }
                    }
                }
                _ => { p class="muted" { "The marketplace has not reported this plan yet." } }
            }
            p class="sub" {
                (numbers::rate(lane.searches_per_minute)) " searches a minute, " (lane.in_flight) " in flight"
                @if lane.bounds.keep_in_reserve > 0 { ", " (count(lane.bounds.keep_in_reserve)) " kept in reserve" }
            }
        }
    }
}
