//! `/scans`: a caller's scans, newest first, with filters in the URL.

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use farescan_sheets::numbers;
use farescan_sheets::scan::ended;
use farescan_sheets::trip::{self, facts, title};
use maud::{Markup, html};

use super::filters::ListFilters;
use super::{PATH, views};
use crate::failure::PageFailure;
use crate::form::FormFields;
use crate::layout::{NavItem, page};
use crate::parts;
use crate::session::Session;
use farescan_core::app::AppState;
use farescan_core::contract::scans::{Scan, ScanPage};
use farescan_core::scans;

pub(super) fn routes() -> Router<AppState> {
    Router::new().route(PATH, get(list))
}

async fn list(session: Session, fields: FormFields) -> Result<Response, PageFailure> {
    let filters = ListFilters::read(&fields)?;
    let permits = if filters.may_read_all() {
        Some(session.heavy_read_permits().await?)
    } else {
        None
    };
    let scans = match session.tenant() {
        Some(tenant) => {
            let pool = session.pool()?;
            scans::read::scans_where(pool, tenant, &filters.query, &filters.conditions).await?
        }
        None => ScanPage {
            data: Vec::new(),
            next_cursor: None,
        },
    };
    drop(permits);
    let [views, view_form] = views::parts(&session, &filters).await?;
    let body = html! {
        div class="head" {
            div {
                h1 { "Scans" }
                p class="sub" { "One request over many dates or markets. Each search costs one request of your plan." }
            }
            div class="actions" { a class="button primary" href="/scans/new" { "New scan" } }
        }
        div class="card" {
            (views)
            (filters.tabs())
            (filters.form())
            (view_form)
            @if scans.data.is_empty() { (nothing(&filters)) } @else { (table("Scans", &scans.data)) }
            (parts::next_page(&filters.path_with(&[], None), scans.next_cursor.as_deref()))
        }
    };
    Ok(page(&session, "Scans", NavItem::Scans, body))
}

fn nothing(filters: &ListFilters) -> Markup {
    parts::empty_state(&html! {
        @if filters.is_empty() {
            p { "No scans yet. A scan finds the cheapest date of a range, or compares markets." }
            a class="button primary" href="/scans/new" { "New scan" }
        } @else {
            p { "No scan has these properties." }
            a class="button" href=(PATH) { "Show all scans" }
        }
    })
}

/// A table of scans, also of the overview. `name` is unique on the page.
pub(crate) fn table(name: &str, scans: &[Scan]) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label=(name) {
            table class="rows scans" {
                thead {
                    tr {
                        th scope="col" { "Scan" } th scope="col" { "Status" } th scope="col" { "Searches" }
                        th scope="col" class="num" { "Cheapest" } th scope="col" class="num" { "Requests" }
                        th scope="col" { "Created" }
                    }
                }
                tbody { @for scan in scans { (row(scan)) } }
            }
        }
    }
}

fn row(scan: &Scan) -> Markup {
    html! {
        tr {
            td class="what" {
                @let name = scan.label.clone().unwrap_or_else(|| title(scan.endpoint, &scan.request, &scan.sweep));
                a class="clip" href=(super::path(scan.id)) title=(name) { (name) }
                div class="sub" {
                    @if scan.label.is_some() { (title(scan.endpoint, &scan.request, &scan.sweep)) " · " }
                    (facts(scan.endpoint, &scan.request, &scan.sweep).join(" · "))
                    @for tag in &scan.tags { " " span class="chip" { (tag) } }
                }
            }
            td {
                (parts::scan_status(scan.status))
                @if let Some(reason) = scan.status_reason { div class="sub" { (trip::words(reason.as_str())) } }
            }
            td class="progress-cell" {
                progress max="1" value=(scan.progress) aria-label="Progress" {}
                div class="sub nowrap" {
                    (numbers::count(ended(&scan.items))) " of " (numbers::count(scan.items.total))
                    @let incomplete = scan.items.partial + scan.items.degraded + scan.items.failed;
                    @if incomplete > 0 { " · " span class="warn-text" { (incomplete) " incomplete" } }
                }
            }
            td class="num" {
                @match &scan.best {
                    Some(best) => { (numbers::price(best.price, &best.currency)) }
                    None => { span class="muted" { "–" } }
                }
            }
            td class="num" {
                (numbers::count(scan.requests.spent))
                @if let Some(max) = scan.requests.max { span class="muted" { " / " (numbers::count(max)) } }
            }
            td class="nowrap" { (parts::time(scan.created_at)) }
        }
    }
}
