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
mod slots;
mod webhook;

use std::collections::HashMap;

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use farescan_sheets::monitor::{self, Run};
use maud::{Markup, html};

use super::failure::PageFailure;
use super::form::FormFields;
use super::layout::{NavItem, page};
use super::links;
use super::parts;
use super::session::Session;
use super::sheet;
use farescan_core::app::AppState;
use farescan_core::contract::monitors::{Monitor, MonitorPage, MonitorStatus, MonitorsQuery};
use farescan_core::ids::{MonitorId, TenantId};
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
        .merge(actions::routes())
}

async fn list(session: Session, query: FormFields) -> Result<Response, PageFailure> {
    let filter = MonitorsQuery::from_query(query.pairs().filter(|(_, text)| !text.is_empty()))?;
    let now = session.context()?.now;
    let mut monitors = MonitorPage {
        data: Vec::new(),
        next_cursor: None,
    };
    let mut prices = HashMap::new();
    if let Some(tenant) = session.tenant() {
        let ring = session.context()?.ring;
        monitors = read::monitors(session.pool()?, ring, tenant, &filter, now).await?;
        let ids: Vec<_> = monitors.data.iter().map(|monitor| monitor.id).collect();
        prices = runs(&session, tenant, &ids, RUNS).await?;
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
                @let runs = |of: &Monitor| prices.get(&of.id).map_or(&[][..], Vec::as_slice);
                (sheet::table(&monitor::table(&monitors.data, runs)))
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

/// The last runs of monitors, for sheets.
pub(super) async fn runs(
    session: &Session,
    tenant: TenantId,
    monitors: &[MonitorId],
    most: u16,
) -> Result<HashMap<MonitorId, Vec<Run>>, PageFailure> {
    let mut conn = session.pool()?.acquire().await?;
    let found = run_prices::run_prices(&mut conn, tenant, monitors, most).await?;
    let run = |of: RunPrice| Run {
        slot: of.slot,
        scan: of.scan,
        best: of.best,
        implausible: of.implausible,
    };
    let runs = |found: Vec<RunPrice>| found.into_iter().map(run).collect();
    Ok(found
        .into_iter()
        .map(|(id, found)| (id, runs(found)))
        .collect())
}
