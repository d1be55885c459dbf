//! `/monitors`: scans on a schedule. Here: the list. Not here: one monitor (`one`), what its buttons
//! do (`actions`), a new one (`new`).

mod actions;
mod backtest;
mod edit;
mod edit_fields;
mod forecast;
mod new;
mod new_form;
mod one;
mod parity;
pub(super) mod rules;
mod slots;
mod webhook;

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use farescan_sheets::numbers;
use farescan_sheets::trip;
use maud::{Markup, html};

use super::charts::{Unit, sparkline};
use super::failure::PageFailure;
use super::form::FormFields;
use super::layout::{NavItem, page};
use super::links;
use super::parts::{self, Tone};
use super::session::Session;
use farescan_core::app::AppState;
use farescan_core::contract::monitors::{
    Monitor, MonitorPage, MonitorPause, MonitorStatus, MonitorsQuery,
};
use farescan_core::ids::MonitorId;
use farescan_core::monitors::read;
use farescan_core::monitors::run_prices::{self, RunPrice};

const PATH: &str = links::MONITORS;
const NEW_PATH: &str = "/monitors/new";
/// Runs of a sparkline.
const RUNS: u16 = 30;

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route(PATH, get(list))
        .merge(new::routes())
        .merge(one::routes())
        .merge(edit::routes())
        .merge(backtest::routes())
        .merge(parity::routes())
        .merge(actions::routes())
}

async fn list(session: Session, query: FormFields) -> Result<Response, PageFailure> {
    let filter = MonitorsQuery::from_query(query.pairs().filter(|(_, text)| !text.is_empty()))?;
    let now = session.context()?.now;
    let mut monitors = MonitorPage {
        data: Vec::new(),
        next_cursor: None,
    };
    let mut prices = std::collections::HashMap::new();
    if let Some(tenant) = session.tenant() {
        let ring = session.context()?.ring;
        monitors = read::monitors(session.pool()?, ring, tenant, &filter, now).await?;
        let ids: Vec<_> = monitors.data.iter().map(|monitor| monitor.id).collect();
        let mut conn = session.pool()?.acquire().await?;
        prices = run_prices::run_prices(&mut conn, tenant, &ids, RUNS).await?;
    }
    let status = filter.status.map(MonitorStatus::as_str);
    let here = status.map_or_else(
        || PATH.to_owned(),
        |status| parts::with_query(PATH, "status", status),
    );
    let body = html! {
        div class="head" {
            div {
                h1 { "Monitors" }
                p class="sub" { "Scans that repeat on a schedule and send an alert when a price moves." }
            }
            div class="actions" { a class="button primary" href=(NEW_PATH) { "New monitor" } }
        }
        nav class="tabs" aria-label="Status" {
            a href=(PATH) aria-current=[status.is_none().then_some("true")] { "All" }
            @for one in MonitorStatus::ALL {
                a href=(parts::with_query(PATH, "status", one.as_str())) aria-current=[(status == Some(one.as_str())).then_some("true")] {
                    (match one { MonitorStatus::Active => "Active", MonitorStatus::Paused => "Paused" })
                }
            }
        }
        section class="card" {
            @if monitors.data.is_empty() {
                (empty(status.is_some()))
            } @else {
                div class="scroll" tabindex="0" role="region" aria-label="Monitors" { (table(&monitors.data, &prices)) }
                (parts::next_page(&here, monitors.next_cursor.as_deref()))
            }
        }
    };
    Ok(page(&session, "Monitors", NavItem::Monitors, body))
}

fn empty(is_filtered: bool) -> Markup {
    parts::empty_state(&html! {
        @if is_filtered {
            p { "No monitor is in this state." }
            a class="button" href=(PATH) { "All monitors" }
        } @else {
            p { "No monitors yet. A monitor repeats a scan, keeps the prices, and tells you when one drops." }
            p { "Start from a route in Prices, or describe the search yourself. You see the cost of a month before anything is stored." }
            a class="button primary" href=(NEW_PATH) { "New monitor" }
        }
    })
}

fn table(
    monitors: &[Monitor],
    prices: &std::collections::HashMap<MonitorId, Vec<RunPrice>>,
) -> Markup {
    html! {
        table class="rows" {
            thead {
                tr {
                    th scope="col" { "Monitor" }
                    th scope="col" { "Lowest price of each run" }
                    th scope="col" class="num" { "Last" }
                    th scope="col" { "Last slot" }
                    th scope="col" { "Next slot" }
                    th scope="col" class="num" { "Requests this month" }
                    th scope="col" { "State" }
                }
            }
            tbody {
                @for monitor in monitors {
                    @let runs = prices.get(&monitor.id).map_or(&[][..], Vec::as_slice);
                    tr {
                        td {
                            a class="clip" href=(links::monitor(monitor.id)) title=(monitor.name) { (monitor.name) }
                            div class="sub" { (trip::monitor_scan(&monitor.scan)) }
                        }
                        td { (price_line(&monitor.name, runs)) }
                        td class="num" { (last_price(runs)) }
                        td class="nowrap" {
                            @match &monitor.last_slot {
                                Some(slot) => { (slots::outcome(slot.outcome)) " " (parts::zoned(slot.slot, &monitor.schedule.timezone)) }
                                None => { span class="muted" { "none yet" } }
                            }
                        }
                        td class="nowrap" {
                            @match monitor.next_slot {
                                Some(slot) => { (parts::zoned(slot, &monitor.schedule.timezone)) }
                                None => { span class="muted" { "none" } }
                            }
                        }
                        td class="num" {
                            (numbers::count(monitor.requests.this_month))
                            @if let Some(most) = monitor.requests.max_per_month { span class="muted" { " of " (numbers::count(most)) } }
                        }
                        td { (state(monitor)) }
                    }
                }
            }
        }
    }
}

/// A small line over runs; a change of currency begins it anew.
pub(super) fn price_line(name: &str, runs: &[RunPrice]) -> Markup {
    let currency = runs
        .iter()
        .rev()
        .find_map(|run| run.best.as_ref().map(|(_, currency)| currency.as_str()));
    let Some(currency) = currency else {
        return html! { span class="muted" { "no run with a price yet" } };
    };
    let values: Vec<_> = runs
        .iter()
        .map(|run| {
            let best = run.best.as_ref().filter(|(_, of)| of == currency);
            best.map(|(price, _)| *price)
        })
        .collect();
    sparkline(
        &format!("{name}, lowest price of the last {} runs", runs.len()),
        &values,
        Unit::Money(currency),
    )
}

pub(super) fn last_price(runs: &[RunPrice]) -> Markup {
    let Some((run, (price, currency))) = runs
        .last()
        .and_then(|run| run.best.as_ref().map(|best| (run, best)))
    else {
        return html! { "–" };
    };
    html! { (numbers::price(*price, currency)) (implausible_note(run)) }
}

/// How many prices of a run are implausible.
pub(super) fn implausible_note(run: &RunPrice) -> Markup {
    html! {
        @if run.implausible > 0 {
            div class="sub" { (numbers::count(run.implausible)) " implausible" }
        }
    }
}

/// Whether a monitor runs, and why not.
pub(super) fn state(monitor: &Monitor) -> Markup {
    match (monitor.status, monitor.status_reason) {
        (MonitorStatus::Active, _) if monitor.next_slot.is_none() => {
            parts::chip(Tone::Warn, "No further slot")
        }
        (MonitorStatus::Active, _) => parts::chip(Tone::Good, "Active"),
        (MonitorStatus::Paused, Some(MonitorPause::KeyRejected)) => {
            parts::chip(Tone::Bad, "Paused: key rejected")
        }
        (MonitorStatus::Paused, Some(MonitorPause::NotSubscribed)) => {
            parts::chip(Tone::Bad, "Paused: not subscribed")
        }
        (MonitorStatus::Paused, _) => parts::chip(Tone::Plain, "Paused"),
    }
}
