//! `/scans/{id}`: one scan with its progress, grid, items and what can be done with it.

use axum::Router;
use axum::extract::Path;
use axum::response::Response;
use axum::routing::get;
use farescan_sheets::fare;
use farescan_sheets::numbers;
use farescan_sheets::scan::{Cheapest, ended};
use farescan_sheets::sheet::{NextStep, Sheet};
use maud::{Markup, html};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::watched::watched;
use super::{ALREADY_STARTED, WATCHED, actions, grid, items, new, same_as, scan_of};
use crate::failure::PageFailure;
use crate::form::FormFields;
use crate::layout::{NavItem, live_page};
use crate::links;
use crate::parts::{self, VERDICT_TIMEOUT};
use crate::session::Session;
use crate::sheet;
use farescan_core::app::AppState;
use farescan_core::contract::Api;
use farescan_core::contract::scans::{Item, Scan};
use farescan_core::ids::{ScanId, TenantId};
use farescan_core::scans;

/// After how many seconds a live page is read again without JavaScript.
const AGAIN_AFTER: u8 = 15;

pub(super) fn routes() -> Router<AppState> {
    Router::new().route("/scans/{id}", get(show))
}

async fn show(
    session: Session,
    Path(id): Path<String>,
    filters: FormFields,
) -> Result<Response, PageFailure> {
    let (tenant, id) = session.owned::<ScanId>(&id)?;
    let scan = scan_of(&session, tenant, id).await?;
    let grid = grid::read(&session, tenant, &scan).await?;
    let items = items::section(&session, tenant, &scan, &filters).await?;
    let mut best = match &scan.best {
        Some(best) => scans::read::item(session.pool()?, tenant, best.item, None).await?,
        None => None,
    };
    // A live page is read again with each event, so only the price of a scan that has ended is judged.
    let mut fare = None;
    if scan.finished_at.is_some() {
        let judging = judge(&session, tenant, id, best.as_mut_slice());
        ((), fare) = tokio::join!(judging, fare_of(&session, tenant, &scan));
    }
    let beside = grid.as_ref().and_then(|grid| grid.table.against_median());
    let cheapest = Cheapest {
        item: best.as_ref(),
        offer: fare.as_deref(),
        beside: beside.as_deref(),
    };
    let sheet = farescan_sheets::scan::sheet(&scan, cheapest);
    let watch = match filters.text(WATCHED) {
        Some(monitor) => watched(&session, tenant, monitor).await?,
        None => html! {},
    };
    let body = html! {
        (head(&session, &scan, &sheet))
        @if filters.text(ALREADY_STARTED).is_some() { (already_started(&scan)) }
        (watch)
        div id="scan-state" data-live class="stack-16" {
            (sheet::figures(&sheet.figures))
            (progress(&scan))
            (notices(&session, &scan, &sheet))
            @if let Some(sentence) = &sheet.sentence { p class="hint" { (sentence) } }
        }
        @if let Some(grid) = &grid {
            section id="scan-grid" data-live class="card" { (grid.render()) }
        }
        (items)
        (same_as::section(&scan))
    };
    let again_after = (!scan.status.is_ended()).then_some(AGAIN_AFTER);
    Ok(live_page(
        &session,
        &sheet.title,
        NavItem::Scans,
        again_after,
        body,
    ))
}

/// The flight of the cheapest price: airline, times, duration, stops. Without the answer, or if it is not
/// read in time, there is none.
async fn fare_of(session: &Session, tenant: TenantId, scan: &Scan) -> Option<String> {
    let best = scan.best.as_ref()?;
    if scan.endpoint.api() != Api::Flights {
        return None;
    }
    let (endpoint, price) = (scan.endpoint, best.price);
    let read = async {
        let _permits = session.heavy_read_permits().await?;
        let mut conn = session.pool()?.acquire().await?;
        let answer = scans::read::answer(&mut conn, tenant, best.item).await?;
        drop(conn);
        // An answer may have megabytes.
        let line = move || fare::line(endpoint, answer?.as_str(), price, None);
        Ok::<_, PageFailure>(spawn_blocking(line).await.ok().flatten())
    };
    timeout(VERDICT_TIMEOUT, read).await.ok()?.ok()?
}

/// Adds the verdicts of items. Without the history, or if it is not read in time, they have none.
pub(crate) async fn judge(session: &Session, tenant: TenantId, scan: ScanId, items: &mut [Item]) {
    let judged = async {
        let _permits = session.heavy_read_permits().await?;
        let (pool, history) = (session.pool()?, session.history_pool()?);
        scans::read::judge_items(pool, history, tenant, scan, items).await?;
        Ok::<_, PageFailure>(())
    };
    drop(timeout(VERDICT_TIMEOUT, judged).await);
}

fn head(session: &Session, scan: &Scan, sheet: &Sheet) -> Markup {
    html! {
        div id="scan-head" data-live class="head" {
            div {
                @if let Some(monitor) = scan.monitor_id { p class="sub" { a href=(links::monitor(monitor)) { "Run of a monitor" } } }
                h1 { (sheet.title) " " (parts::scan_status(scan.status)) }
                p class="sub" { (sheet::facts(sheet)) }
                p class="sub mono" { (scan.id) }
            }
            div class="actions" { (actions::buttons(session, scan)) }
        }
        @if !scan.status.is_ended() {
            div hidden data-events={ (links::of(scan.id)) "/events" } {}
            p class="hint without-script" {
                "Without JavaScript this page is read again every " (AGAIN_AFTER) " seconds. "
                a href=(links::of(scan.id)) { "Reload" }
            }
        }
    }
}

/// For who pressed again the button that has started the scan.
fn already_started(scan: &Scan) -> Markup {
    html! {
        div class="notice notice-action" role="status" {
            p {
                b { "This scan was already started " (parts::time(scan.created_at)) ". " }
                "The same button starts no second one."
            }
            div class="actions" {
                @match scan.monitor_id {
                    Some(monitor) => { a class="button" href=(links::monitor(monitor)) { "The monitor" } }
                    None => { a class="button" href=(new::preview_like(scan.id)) { "Start another" } }
                }
            }
        }
    }
}

/// What stops the scan or asks for a decision.
fn notices(session: &Session, scan: &Scan, sheet: &Sheet) -> Markup {
    html! {
        @for notice in &sheet.notices {
            @let is_retry = notice.next.contains(&NextStep::AskAgain);
            @let buttons = is_retry.then(|| actions::retry_buttons(session, scan));
            (sheet::notice(notice, buttons.as_ref()))
        }
    }
}

/// The progress of a live scan.
fn progress(scan: &Scan) -> Markup {
    html! {
        @if !scan.status.is_ended() {
            div class="card progress" {
                progress max="1" value=(scan.progress) aria-label="Share of the searches that have ended" {}
                p { (numbers::count(ended(&scan.items))) " of " (numbers::count(scan.items.total)) " searches" }
            }
        }
    }
}
