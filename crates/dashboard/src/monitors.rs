//! `/monitors`: scans on a schedule. Here: the list. Not here: one monitor (`one`), what its buttons
//! do (`actions`), a new one (`new`).

mod actions;
mod backtest;
mod channel_choice;
mod edit;
mod edit_fields;
mod forecast;
mod new;
mod new_form;
mod one;
mod parity;
mod webhook;

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use farescan_sheets::sheet::{self, Cell, Value};
use farescan_sheets::trip::capitalised;
use farescan_sheets::{monitor, numbers};
use maud::{Markup, html};

use super::failure::PageFailure;
use super::form::FormFields;
use super::layout::{NavItem, page};
use super::links;
use super::parts;
use super::session::Session;
use super::sheet::table;
use farescan_core::app::AppState;
use farescan_core::contract::monitors::{Monitor, MonitorPage, MonitorStatus, MonitorsQuery};
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
    let filter = MonitorsQuery::from_query(query.filled())?;
    // No index serves a text: all rows of the caller may be read.
    let permits = match filter.text {
        Some(_) => Some(session.heavy_read_permits().await?),
        None => None,
    };
    let now = session.context()?.now;
    let mut monitors = MonitorPage {
        data: Vec::new(),
        next_cursor: None,
    };
    if let Some(tenant) = session.tenant() {
        let ring = session.context()?.ring;
        monitors = read::monitors(session.pool()?, ring, tenant, &filter, now).await?;
    }
    drop(permits);
    let rows = rows(&session, &monitors.data).await?;
    let status = filter.status.map(MonitorStatus::as_str);
    let all = MonitorStatus::ALL
        .iter()
        .map(|of| (of.as_str(), capitalised(of.as_str())));
    let text = filter.text.as_ref().map(|text| ("text", text.as_str()));
    let of_text = parts::path_with(PATH, text);
    let here = parts::path_with(
        PATH,
        status.map(|of| ("status", of)).into_iter().chain(text),
    );
    let body = html! {
        (parts::head(&html! {}, "Monitors", &html! { "Scans that repeat on a schedule and send an alert when a price moves." }, &html! { a class="button primary" href=(NEW_PATH) { "New monitor" } }))
        (parts::filter_tabs("Status", &of_text, "status", status, all))
        section class="card" {
            @if monitors.data.is_empty() {
                (empty(status.is_some() || text.is_some()))
            } @else {
                (rows)
                (parts::next_page(&here, monitors.next_cursor.as_deref()))
            }
        }
    };
    Ok(page(&session, "Monitors", NavItem::Monitors, body))
}

/// A table of the caller's monitors with the prices of their runs.
pub(super) async fn rows(session: &Session, monitors: &[Monitor]) -> Result<Markup, PageFailure> {
    let mut prices = std::collections::HashMap::new();
    if let Some(tenant) = session.tenant() {
        let ids: Vec<_> = monitors.iter().map(|monitor| monitor.id).collect();
        let mut conn = session.pool()?.acquire().await?;
        prices = run_prices::run_prices(&mut conn, tenant, &ids, RUNS).await?;
    }
    let of_runs = |of: &Monitor| {
        let runs = prices.get(&of.id).map_or(&[][..], Vec::as_slice);
        prices_of_runs(&of.name, runs)
    };
    Ok(table(&monitor::table(monitors, of_runs)))
}

fn empty(is_filtered: bool) -> Markup {
    parts::empty_state(&html! {
        @if is_filtered {
            p { "No monitor fits these filters." }
            a class="button" href=(PATH) { "All monitors" }
        } @else {
            p { "No monitors yet. A monitor repeats a scan, keeps the prices, and tells you when one drops." }
            p { "Start from a trip, or describe the search yourself. You see the cost of a month before anything is stored." }
            a class="button primary" href=(NEW_PATH) { "New monitor" }
        }
    })
}

/// The prices of a monitor's runs, and the last one.
pub(super) fn prices_of_runs(name: &str, runs: &[RunPrice]) -> [Cell; 2] {
    let none = || Value::Absent("no run with a price yet");
    let last = runs.last().map_or_else(Cell::new, price_of_run);
    [vec![price_line(name, runs).unwrap_or_else(none)], last]
}

/// The lowest price of each run; a change of currency begins anew.
fn price_line(name: &str, runs: &[RunPrice]) -> Option<Value> {
    let (_, currency) = runs.iter().rev().find_map(|run| run.best.as_ref())?;
    let price = |run: &RunPrice| {
        let best = run.best.as_ref().filter(|(_, of)| of == currency);
        best.map(|(price, _)| *price)
    };
    let what = format!("{name}, lowest price of the last {} runs", runs.len());
    let prices = runs.iter().map(price).collect();
    Some(Value::Series(what, prices, currency.clone()))
}

/// The lowest price of a run, and how many are implausible.
fn price_of_run(run: &RunPrice) -> Cell {
    let best = run.best.clone();
    let implausible = format!("{} implausible", numbers::count(run.implausible));
    sheet::cell([
        best.map(|(price, currency)| Value::Money(price, Some(currency))),
        (run.implausible > 0).then_some(Value::Muted(implausible)),
    ])
}
