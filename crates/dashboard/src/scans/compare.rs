//! `/scans/{id}/compare`: which scan to compare with; `/scans/{id}/compare/{other}`: what became
//! cheaper or dearer from the first to the second, as a link that can be passed on.

use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;
use farescan_sheets::compare::{change_words, count_of, figures, table};
use farescan_sheets::numbers;
use farescan_sheets::price_table::PriceTable;
use farescan_sheets::scan as sheets;
use farescan_sheets::sheet::{Link, Value as Cell};
use farescan_sheets::trip::{capitalised, facts, title};
use maud::{Markup, html};
use serde_json::Value;

use super::scan_of;
use crate::failure::PageFailure;
use crate::form::FormFields;
use crate::layout::{NavItem, page};
use crate::links;
use crate::parts::{self, Tone};
use crate::price_table::{self, MOST_CALENDARS};
use crate::session::Session;
use crate::sheet;
use farescan_core::app::AppState;
use farescan_core::app::error::ApiError;
use farescan_core::contract::scans::{Change, ComparedCell, Comparison, Scan, ScansQuery};
use farescan_core::ids::{ScanId, TenantId};
use farescan_core::scans;
use farescan_core::scans::read::ScanConditions;

/// Rows of the table; the command and the API have all.
const MAX_ROWS: usize = 200;
/// Scans to choose from.
const CANDIDATES: &str = "200";

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/scans/{id}/compare", get(choose))
        .route("/scans/{id}/compare/{other}", get(show))
}

/// The page of a comparison.
fn path(before: ScanId, after: ScanId) -> String {
    format!("{}/compare/{after}", links::of(before))
}

/// The scans of the same route or hotel; `with` names one and leads on.
async fn choose(
    session: Session,
    Path(id): Path<String>,
    fields: FormFields,
) -> Result<Response, PageFailure> {
    let (tenant, id) = session.owned::<ScanId>(&id)?;
    let scan = scan_of(&session, tenant, id).await?;
    if let Some(with) = fields.text("with") {
        let (_, with) = session.owned::<ScanId>(with)?;
        let other = scan_of(&session, tenant, with).await?;
        return Ok(Redirect::to(&sheet::href(&in_order(&scan, &other))).into_response());
    }
    let others = candidates(&session, tenant, &scan).await?;
    let name = title(scan.endpoint, &scan.request, &scan.sweep);
    let body = html! {
        (parts::head(&html! { a href=(links::of(id)) { (name) } }, "Compare with another scan", &html! { "Created " (parts::time(scan.created_at)) " · " (facts(scan.endpoint, &scan.request, &scan.sweep).join(" · ")) }, &html! {}))
        section class="card" {
            @if others.is_empty() {
                (parts::empty_state(&html! {
                    p { "There is no other scan of " (name) " yet." }
                    a class="button primary" href={ "/scans/new?like=" (id) } { "New scan like this" }
                }))
            } @else {
                (candidate_table(&scan, &others))
            }
            form class="filters" method="get" action={ (links::of(id)) "/compare" } {
                div class="field" {
                    label for="with" { "Or the id of a scan" }
                    input id="with" name="with" placeholder="scn_…" required spellcheck="false";
                }
                button type="submit" { "Compare" }
            }
        }
    };
    Ok(page(&session, "Compare scans", NavItem::Scans, body))
}

/// The earlier scan first.
fn in_order(one: &Scan, other: &Scan) -> Link {
    if one.created_at <= other.created_at {
        Link::Comparison(one.id, other.id)
    } else {
        Link::Comparison(other.id, one.id)
    }
}

/// Scans with the same title; those of the same searches first, then the newest.
async fn candidates(
    session: &Session,
    tenant: TenantId,
    scan: &Scan,
) -> Result<Vec<Scan>, PageFailure> {
    let text = |name: &str| {
        let value = scan.request.get(name).and_then(Value::as_str);
        value.map(str::to_owned)
    };
    let airport = |name: &str| text(name).map(|code| code.to_ascii_uppercase());
    let conditions = ScanConditions {
        from_airport: airport("from_airport"),
        to_airport: airport("to_airport"),
        hotel: text("hotel_name").or_else(|| text("destination")),
        ..ScanConditions::default()
    };
    let query =
        ScansQuery::from_query([("endpoint", scan.endpoint.as_str()), ("limit", CANDIDATES)])?;
    let page = scans::read::scans_where(session.pool()?, tenant, &query, &conditions).await?;
    let name = title(scan.endpoint, &scan.request, &scan.sweep).to_lowercase();
    let mut others: Vec<_> = page
        .data
        .into_iter()
        .filter(|other| other.id != scan.id)
        .filter(|other| title(other.endpoint, &other.request, &other.sweep).to_lowercase() == name)
        .collect();
    others.sort_by_key(|other| !is_same(scan, other));
    others.truncate(50);
    Ok(others)
}

/// Whether two scans make the same searches.
fn is_same(one: &Scan, other: &Scan) -> bool {
    one.request == other.request && one.sweep == other.sweep
}

/// Each scan, leading to its comparison.
fn candidate_table(scan: &Scan, others: &[Scan]) -> Markup {
    let mut table = sheets::table("Scans to compare with", others);
    for (row, other) in table.rows.iter_mut().zip(others) {
        let same = Cell::word(Tone::Info, "same searches");
        row.cells[0].extend(is_same(scan, other).then_some(same));
        row.of = Some(in_order(scan, other));
    }
    sheet::table(&table)
}

async fn show(
    session: Session,
    Path((id, other)): Path<(String, String)>,
    fields: FormFields,
) -> Result<Response, PageFailure> {
    let (tenant, before) = session.owned::<ScanId>(&id)?;
    let (_, after) = session.owned::<ScanId>(&other)?;
    let one = scan_of(&session, tenant, before).await?;
    let two = scan_of(&session, tenant, after).await?;
    let permits = session.heavy_read_permits().await?;
    let pool = session.pool()?.clone();
    // In a task of its own: the work goes on when the browser is gone, and holds its permits.
    let comparing = tokio::spawn(async move {
        let _held = permits;
        scans::compare::compare(&pool, tenant, before, after).await
    });
    let comparison = comparing.await.map_err(ApiError::internal)??;
    let chosen = fields.text("change");
    let name = title(one.endpoint, &one.request, &one.sweep);
    let body = html! {
        (parts::head(&html! { a href=(links::of(before)) { (name) } }, "What changed", &html! { "From " (scan_link(&one)) " to " (scan_link(&two)) "." }, &html! { a class="button" href=(path(after, before)) { "Swap" } a class="button" href={ (links::of(after)) "/compare" } { "Another scan" } }))
        @if !one.status.is_ended() || !two.status.is_ended() {
            p class="notice" { "A scan has not ended yet: the changes of what it has not searched are unknown. Reload the page later." }
        }
        (sheet::figures(&figures(&comparison)))
        @if let Some(table) = PriceTable::of_comparison(&comparison, MOST_CALENDARS) {
            section class="card" {
                h2 { (capitalised(&table.title)) }
                (price_table::markup(&table, None))
            }
        }
        (changes(&comparison, chosen))
        (parts::same_as(
            &format!("/v1/scans/{before}/compare/{after}"),
            &format!("farescan compare {before} {after} --all"),
        ))
    };
    Ok(page(
        &session,
        &format!("What changed: {name}"),
        NavItem::Scans,
        body,
    ))
}

fn scan_link(scan: &Scan) -> Markup {
    html! {
        a href=(links::of(scan.id)) {
            @if let Some(label) = &scan.label { (label) ", " }
            (parts::time(scan.created_at))
        }
    }
}

/// The cells as a table: those that changed, or those of one kind.
fn changes(comparison: &Comparison, chosen: Option<&str>) -> Markup {
    let is_shown = |cell: &&ComparedCell| match chosen {
        Some("all") => true,
        Some(word) => cell.change.as_str() == word,
        None => !matches!(
            cell.change,
            Change::Unchanged | Change::NoPrice | Change::Unknown
        ),
    };
    let cells: Vec<_> = comparison.cells.iter().filter(is_shown).collect();
    let here = path(comparison.before, comparison.after);
    let link = |word: &str| format!("{}#changes", links::with_query(&here, "change", word));
    html! {
        section class="card" id="changes" {
            div class="card-head" { h2 { "Each price" } }
            nav class="tabs" aria-label="Change" {
                a href={ (here) "#changes" } aria-current=[chosen.is_none().then_some("true")] { "Changed" }
                @for change in Change::ALL {
                    @let count = count_of(&comparison.counts, *change);
                    @if count > 0 {
                        a href=(link(change.as_str())) aria-current=[(chosen == Some(change.as_str())).then_some("true")] {
                            (change_words(*change)) " " span class="muted" { (numbers::count(count)) }
                        }
                    }
                }
                a href=(link("all")) aria-current=[(chosen == Some("all")).then_some("true")] { "All" }
            }
            @if cells.is_empty() {
                (parts::empty_state(&html! { p { @if chosen.is_none() { "No price has changed." } @else { "Nothing of this kind." } } }))
            } @else {
                (sheet::table(&table(cells.iter().take(MAX_ROWS).copied())))
                @if cells.len() > MAX_ROWS {
                    p class="hint" { "The first " (MAX_ROWS) " of " (numbers::count(cells.len() as u64)) ". The command below has all." }
                }
            }
        }
    }
}
