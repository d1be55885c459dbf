//! `/scans`: a caller's scans, newest first, with filters in the URL.

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use farescan_sheets::scan;
use maud::{Markup, html};

use super::filters::ListFilters;
use super::many_buttons::cancel_all_button;
use super::{PATH, views};
use crate::failure::PageFailure;
use crate::form::FormFields;
use crate::layout::{NavItem, page};
use crate::parts;
use crate::session::Session;
use crate::sheet;
use farescan_core::app::AppState;
use farescan_core::contract::scans::{Scan, ScanPage};
use farescan_core::scans;

pub(super) fn routes() -> Router<AppState> {
    Router::new().route(PATH, get(list))
}

async fn list(session: Session, fields: FormFields) -> Result<Response, PageFailure> {
    let filters = ListFilters::read(&fields)?;
    render(&session, &filters, &html! {}).await
}

/// The list, with a notice above.
pub(super) async fn render(
    session: &Session,
    filters: &ListFilters,
    notice: &Markup,
) -> Result<Response, PageFailure> {
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
    let live = match session.tenant() {
        Some(tenant) => scans::read::live(session.pool()?, tenant).await?,
        None => Vec::new(),
    };
    let buttons = html! {
        (cancel_all_button(session, &live))
        a class="button primary" href="/scans/new" { "New scan" }
    };
    let [views, view_form] = views::parts(session, filters).await?;
    let body = html! {
        (parts::head(&html! {}, "Scans", &html! { "One request over many dates or markets. Each search costs one request of your plan." }, &buttons))
        (notice)
        div class="card" {
            (views)
            (filters.tabs())
            (filters.form())
            (view_form)
            @if scans.data.is_empty() { (nothing(filters)) } @else { (table("Scans", &scans.data)) }
            (parts::next_page(&filters.path_with(&[], None), scans.next_cursor.as_deref()))
        }
    };
    Ok(page(session, "Scans", NavItem::Scans, body))
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
pub(crate) fn table(name: &'static str, scans: &[Scan]) -> Markup {
    sheet::table(&scan::table(name, scans))
}
