//! `/scans`: a caller's scans, newest first, with filters in the URL.

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use maud::{Markup, html};

use super::PATH;
use super::describe::{facts, title};
use crate::contract::Endpoint;
use crate::contract::scans::{Scan, ScanPage, ScanStatus, ScansQuery};
use crate::http::AppState;
use crate::scans;
use crate::web::failure::PageFailure;
use crate::web::form::FormFields;
use crate::web::layout::{NavItem, page};
use crate::web::parts;
use crate::web::session::Session;

pub(super) fn routes() -> Router<AppState> {
    Router::new().route(PATH, get(list))
}

/// The views above the list: a name and the status that they show.
const VIEWS: [(&str, Option<ScanStatus>); 6] = [
    ("All", None),
    ("Running", Some(ScanStatus::Running)),
    ("Paused", Some(ScanStatus::Paused)),
    ("Incomplete", Some(ScanStatus::Incomplete)),
    ("Completed", Some(ScanStatus::Completed)),
    ("Cancelled", Some(ScanStatus::Cancelled)),
];

async fn list(session: Session, filters: FormFields) -> Result<Response, PageFailure> {
    let query = ScansQuery::from_query(filters.pairs())?;
    let scans = match session.tenant() {
        Some(tenant) => scans::read::scans(session.pool()?, tenant, &query).await?,
        None => ScanPage {
            data: Vec::new(),
            next_cursor: None,
        },
    };
    let next = path_with(&filters, &["cursor"], None);
    let body = html! {
        div class="head" {
            div {
                h1 { "Scans" }
                p class="sub" { "One request over many dates or markets. Each search costs one request of your plan." }
            }
            div class="actions" { a class="button primary" href="/scans/new" { "New scan" } }
        }
        div class="card" {
            (view_links(&filters, &query))
            (filter_form(&query))
            @if scans.data.is_empty() { (nothing(&filters)) } @else { (table(&scans.data)) }
            (parts::next_page(&next, scans.next_cursor.as_deref()))
        }
    };
    Ok(page(&session, "Scans", NavItem::Scans, body))
}

/// The path of this list without some fields, and with one more.
fn path_with(filters: &FormFields, without: &[&str], more: Option<(&str, &str)>) -> String {
    let kept = filters
        .pairs()
        .filter(|(name, text)| !without.contains(name) && !text.is_empty());
    let query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(kept.chain(more))
        .finish();
    if query.is_empty() {
        PATH.to_owned()
    } else {
        format!("{PATH}?{query}")
    }
}

fn view_links(filters: &FormFields, query: &ScansQuery) -> Markup {
    html! {
        nav class="tabs" aria-label="Status" {
            @for (name, status) in VIEWS {
                @let field = status.map(|status| ("status", status.as_str()));
                a href=(path_with(filters, &["status", "cursor"], field))
                    aria-current=[(query.status == status).then_some("true")] { (name) }
            }
        }
    }
}

fn filter_form(query: &ScansQuery) -> Markup {
    let endpoint = query.endpoint.map(|endpoint| endpoint.get());
    html! {
        form class="filters" method="get" action=(PATH) {
            @if let Some(status) = query.status { input type="hidden" name="status" value=(status.as_str()); }
            div class="field" {
                label for="endpoint" { "Search" }
                select id="endpoint" name="endpoint" {
                    option value="" { "all" }
                    @for known in Endpoint::SEARCHES {
                        option value=(known.as_str()) selected[endpoint == Some(*known)] { (known.as_str()) }
                    }
                }
            }
            div class="field" {
                label for="tag" { "Tag" }
                input id="tag" name="tag" value=[query.tag.as_ref().map(|tag| tag.as_str())] maxlength="50";
            }
            div class="field" {
                label for="monitor_id" { "Monitor" }
                input id="monitor_id" name="monitor_id" placeholder="mon_…" value=[query.monitor_id.map(|id| id.to_string())];
            }
            div class="field" {
                label for="limit" { "Rows" }
                select id="limit" name="limit" {
                    @for limit in [50_u16, 100, 500] {
                        option value=(limit) selected[query.limit_or_default().get() == limit] { (limit) }
                    }
                }
            }
            button type="submit" { "Filter" }
        }
    }
}

fn nothing(filters: &FormFields) -> Markup {
    let is_filtered = filters
        .pairs()
        .any(|(name, text)| name != "limit" && !text.is_empty());
    parts::empty_state(&html! {
        @if is_filtered {
            p { "No scan has these properties." }
            a class="button" href=(PATH) { "Show all scans" }
        } @else {
            p { "No scans yet. A scan finds the cheapest date of a range, or compares markets." }
            a class="button primary" href="/scans/new" { "New scan" }
        }
    })
}

/// A table of scans, also of the overview.
pub(in crate::web) fn table(scans: &[Scan]) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label="Scans" {
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
    let ended = scan.items.total - scan.items.pending - scan.items.running;
    html! {
        tr {
            td class="what" {
                a href=(super::path(scan.id)) {
                    (scan.label.clone().unwrap_or_else(|| title(scan.endpoint, &scan.request, &scan.sweep)))
                }
                div class="sub" {
                    @if scan.label.is_some() { (title(scan.endpoint, &scan.request, &scan.sweep)) " · " }
                    (facts(scan.endpoint, &scan.request, &scan.sweep).join(" · "))
                    @for tag in &scan.tags { " " span class="chip" { (tag) } }
                }
            }
            td {
                (parts::scan_status(scan.status))
                @if let Some(reason) = scan.status_reason { div class="sub" { (parts::words(reason.as_str())) } }
            }
            td class="progress-cell" {
                progress max="1" value=(scan.progress) aria-label="Progress" {}
                div class="sub nowrap" {
                    (parts::count(ended.into())) " of " (parts::count(scan.items.total.into()))
                    @let incomplete = scan.items.partial + scan.items.degraded + scan.items.failed;
                    @if incomplete > 0 { " · " span class="warn-text" { (incomplete) " incomplete" } }
                }
            }
            td class="num" {
                @match &scan.best {
                    Some(best) => { (parts::price(best.price, &best.currency)) }
                    None => { span class="muted" { "–" } }
                }
            }
            td class="num" {
                (parts::count(scan.requests.spent.into()))
                @if let Some(max) = scan.requests.max { span class="muted" { " / " (parts::count(max.into())) } }
            }
            td class="nowrap" { (parts::time(scan.created_at)) }
        }
    }
}
