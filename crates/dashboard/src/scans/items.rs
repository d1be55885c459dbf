//! The searches of a scan: a page of them with filters, and the links to all of them as files.

use farescan_sheets::{item, numbers};
use maud::{Markup, html};

use super::{ALREADY_STARTED, WATCHED};
use crate::failure::PageFailure;
use crate::form::FormFields;
use crate::links;
use crate::parts;
use crate::session::Session;
use crate::sheet;
use farescan_core::contract::scans::{Item, ItemPage, ItemsQuery, Scan, StrategyProgress};
use farescan_core::ids::{Kind, TenantId};
use farescan_core::scans;

/// The formats of the exports with their names.
const FORMATS: [(&str, &str); 3] = [("csv", "CSV"), ("ndjson", "NDJSON"), ("parquet", "Parquet")];

/// Rows of a page: enough to look around; the exports have all.
const ROWS: &str = "25";

/// The section with one page of items.
pub(super) async fn section(
    session: &Session,
    tenant: TenantId,
    scan: &Scan,
    filters: &FormFields,
) -> Result<Markup, PageFailure> {
    let given = filters
        .pairs()
        .filter(|(name, _)| ["state", "search_status", "reason", "sort", "cursor"].contains(name));
    let query = ItemsQuery::from_query(given.chain([("limit", ROWS)]))?;
    let items = scans::read::items(session.pool()?, tenant, scan.id, &query)
        .await?
        .ok_or(Kind::Scan)?;
    Ok(render(scan, &items, filters))
}

fn render(scan: &Scan, items: &ItemPage, filters: &FormFields) -> Markup {
    let path = links::of(scan.id);
    html! {
        section id="items" data-live class="card" {
            div class="card-head" {
                h2 { "Searches" }
                div class="actions" {
                    span class="muted" { "All as" }
                    @for (format, name) in FORMATS {
                        a href={ (path) "/export?format=" (format) } download { (name) }
                    }
                }
            }
            (filter_links(scan, &path, filters))
            @if items.data.is_empty() {
                div class="empty" { "No search has these properties." }
            } @else {
                (sheet::table(&item::table(scan, &items.data)))
                (parts::next_page(&filtered_path(&path, filters), items.next_cursor.as_deref()))
            }
        }
    }
}

/// The scan's path with the filters; without the cursor, and without the notice above the page.
fn filtered_path(path: &str, filters: &FormFields) -> String {
    filters
        .pairs()
        .filter(|(name, text)| {
            !["cursor", ALREADY_STARTED, WATCHED].contains(name) && !text.is_empty()
        })
        .fold(path.to_owned(), |path, (name, text)| {
            links::with_query(&path, name, text)
        })
}

fn filter_links(scan: &Scan, path: &str, filters: &FormFields) -> Markup {
    let counts = &scan.items;
    // Those that a strategy leaves out are rows here, and not in the counts.
    let strategy = scan.strategy.as_ref();
    let left_out = strategy.map_or(0, StrategyProgress::not_searched);
    let views = [
        ("All", None, counts.total.saturating_add(left_out)),
        ("ok", Some(("search_status", "ok")), counts.ok),
        ("empty", Some(("search_status", "empty")), counts.empty),
        (
            "partial",
            Some(("search_status", "partial")),
            counts.partial,
        ),
        (
            "degraded",
            Some(("search_status", "degraded")),
            counts.degraded,
        ),
        ("failed", Some(("state", "failed")), counts.failed),
        ("pending", Some(("state", "pending")), counts.pending),
        ("cancelled", Some(("state", "cancelled")), counts.cancelled),
        ("left out", Some(("state", "skipped")), left_out),
    ];
    let active = ["search_status", "state"]
        .iter()
        .find_map(|name| filters.text(name).map(|text| (*name, text)));
    let sort = filters.text("sort").unwrap_or("position");
    html! {
        nav class="tabs" aria-label="Filter" {
            @for (name, field, count) in views {
                @if count > 0 || field == active {
                    @let sorted = if sort == "price" { links::with_query(path, "sort", "price") } else { path.to_owned() };
                    @let target = field.map_or(sorted.clone(), |(field, value)| links::with_query(&sorted, field, value));
                    a href={ (target) "#items" } aria-current=[(field == active).then_some("true")] {
                        (name) " " span class="muted" { (numbers::count(count)) }
                    }
                }
            }
            span class="spacer" {}
            @for (name, value) in [("In order", "position"), ("Cheapest first", "price")] {
                @let base = active.map_or(path.to_owned(), |(field, value)| links::with_query(path, field, value));
                a href={ (links::with_query(&base, "sort", value)) "#items" } aria-current=[(sort == value).then_some("true")] { (name) }
            }
        }
    }
}

/// The state of an item, or its search status once it is done.
pub(crate) fn state(item: &Item) -> Markup {
    sheet::value(&item::state(item))
}
