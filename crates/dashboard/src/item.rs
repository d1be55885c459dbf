//! `/items/{id}`: one search with its story: what was asked, each call, what came back.

use axum::Router;
use axum::extract::Path;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use farescan_sheets::fare::{self, FlightLeg};
use farescan_sheets::item::{self as sheets, latency};
use farescan_sheets::numbers::{self, counted};
use farescan_sheets::trip::{self, search_title};
use maud::{Markup, html};
use serde_json::Value;

use super::failure::PageFailure;
use super::layout::{NavItem, page};
use super::links;
use super::parts;
use super::scans as scan_pages;
use super::session::Session;
use super::sheet;
use farescan_core::app::AppState;
use farescan_core::contract::scans::{Attempt, Expand, Item, Scan};
use farescan_core::contract::{Api, Endpoint, Offer, RawJson, SearchStatus, offers};
use farescan_core::ids::{ItemId, TenantId};
use farescan_core::scans;

/// Offers of one page; the raw answer has all.
const MAX_OFFERS: usize = 100;

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/items/{id}", get(show))
        .route("/items/{id}/answer", get(answer))
}

fn no_such_item() -> PageFailure {
    PageFailure::not_found("search")
}

/// The caller's tenant and the item of a path.
async fn own_item(session: &Session, id: &str) -> Result<(TenantId, Item), PageFailure> {
    let id: ItemId = id.parse().map_err(|_| no_such_item())?;
    let tenant = session.tenant().ok_or_else(no_such_item)?;
    let _permits = session.heavy_read_permits().await?;
    let item = scans::read::item(session.pool()?, tenant, id, Some(Expand::Answer)).await?;
    Ok((tenant, item.ok_or_else(no_such_item)?))
}

/// The answer as the marketplace sent it.
async fn answer(session: Session, Path(id): Path<String>) -> Result<Response, PageFailure> {
    let (_, item) = own_item(&session, &id).await?;
    let answer = item
        .answer
        .ok_or_else(|| PageFailure::not_found("answer: it was not stored, or was removed"))?;
    let json = HeaderValue::from_static("application/json");
    Ok(([(CONTENT_TYPE, json)], answer.as_str().to_owned()).into_response())
}

async fn show(session: Session, Path(id): Path<String>) -> Result<Response, PageFailure> {
    let (tenant, item) = own_item(&session, &id).await?;
    let pool = session.pool()?;
    let scan = scans::read::scan(pool, tenant, item.scan_id)
        .await?
        .ok_or_else(no_such_item)?;
    let mut item = item;
    if item.best_price.is_some() {
        scan_pages::judge(&session, tenant, scan.id, std::slice::from_mut(&mut item)).await;
    }
    let attempts = scans::read::attempts(pool, tenant, item.id)
        .await?
        .ok_or_else(no_such_item)?;
    let title = search_title(scan.endpoint, &item.search);
    let body = html! {
        div class="head" {
            div {
                p class="sub" {
                    a href=(links::of(scan.id)) { (trip::title(scan.endpoint, &scan.request, &scan.sweep)) }
                    " · search " (item.position + 1) @if scan.strategy.is_none() { " of " (scan.items.total) }
                }
                h1 { (title) " " (scan_pages::item_state(&item)) }
                p class="sub mono" { (item.id) }
            }
            div class="actions" { (scan_pages::watch_button(&session, &scan, "Watch the scan")) }
        }
        @if let Some(notice) = sheets::notice(&item) { (sheet::notice(&notice, None)) }
        (sheet::figures(&sheets::figures(&item)))
        (offer_table(scan.endpoint, &item))
        (timeline(&scan, &attempts.data))
        (search_fields(&item))
    };
    Ok(page(&session, &title, NavItem::Scans, body))
}

/// Each call, oldest first.
fn timeline(scan: &Scan, attempts: &[Attempt]) -> Markup {
    html! {
        section class="card" {
            h2 { "Calls" }
            ol class="timeline" {
                li {
                    span class="dot" {}
                    div { b { "Submitted" } " " span class="muted" { (parts::time(scan.created_at)) } }
                }
                @for attempt in attempts { (attempt_entry(attempt)) }
                @if attempts.is_empty() {
                    li { span class="dot wait" {} div class="muted" { "No call was made yet." } }
                }
            }
        }
    }
}

fn attempt_entry(attempt: &Attempt) -> Markup {
    let tone = match attempt.search_status {
        Some(SearchStatus::Ok | SearchStatus::Empty) => "good",
        Some(SearchStatus::Partial) => "warn",
        None if attempt.ended_at.is_none() => "busy",
        Some(SearchStatus::Degraded) | None => "bad",
    };
    html! {
        li {
            span class={ "dot " (tone) } {}
            div {
                b { "Attempt " (attempt.number) } " "
                @if let Some(status) = attempt.search_status { (parts::search_status(status)) " " }
                span class="muted" {
                    "sent " (parts::time(attempt.started_at))
                    @match (attempt.ended_at, attempt.latency_ms) {
                        (Some(_), Some(ms)) => { ", answered after " (latency(ms)) }
                        (Some(ended), None) => { ", ended " (parts::time(ended)) }
                        (None, _) => { ", in flight" }
                    }
                    ", " (counted(attempt.requests_spent, "request"))
                    @if let Some(status) = attempt.http_status { ", HTTP " (status) }
                    @if let Some(reason) = &attempt.reason { ", " (trip::words(reason)) }
                }
                @if let Some(error) = &attempt.error { p class="sub" { (error) } }
                @if !attempt.search_headers.is_empty() {
                    details class="fold" {
                        summary { "Headers" }
                        pre tabindex="0" { @for (name, value) in &attempt.search_headers { (name) ": " (value) "\n" } }
                    }
                }
            }
        }
    }
}

fn offer_table(endpoint: Endpoint, item: &Item) -> Markup {
    let Some(answer) = &item.answer else {
        return no_answer(item);
    };
    let mut offers = offers_with_rows(endpoint, answer);
    offers.sort_by_key(|(offer, _)| offer.price);
    let counted = item
        .results
        .and_then(|results| usize::try_from(results).ok());
    let currency = item.currency.as_deref().unwrap_or_default();
    html! {
        section class="card" {
            div class="card-head" {
                h2 { "Offers" }
                a href={ "/items/" (item.id) "/answer" } { "Raw answer as JSON" }
            }
            @if offers.is_empty() { div class="empty" { "The answer has no price." } }
            @else {
                @if let Some((cheapest, _)) = offers.first() { (usual_prices(cheapest, currency)) }
                @if let Some(counted) = counted.filter(|counted| *counted < offers.len()) {
                    p class="sub" { "The answer has " (offers.len()) " offers, " (counted) " of them within the limit and filters of the request." }
                }
                (offer_rows(endpoint, &offers, currency))
            }
            @if offers.len() > MAX_OFFERS {
                p class="hint" { "The cheapest " (MAX_OFFERS) " of " (offers.len()) "; the raw answer has all." }
            }
            (raw_answer(answer))
        }
    }
}

fn no_answer(item: &Item) -> Markup {
    let had_answer = matches!(
        item.search_status,
        Some(SearchStatus::Ok | SearchStatus::Partial)
    );
    html! {
        @if had_answer {
            section class="card" {
                h2 { "Offers" }
                p class="sub" { "The answer is older than answers are kept. Its best price stays in the history." }
            }
        }
    }
}

/// The offers of an answer; of fares each with its row, which has the times.
fn offers_with_rows(endpoint: Endpoint, answer: &RawJson) -> Vec<(Offer, Value)> {
    let answer = answer.as_str();
    if endpoint.api() != Api::Flights {
        let offers = offers(endpoint, answer.as_bytes()).into_iter();
        return offers.map(|offer| (offer, Value::Null)).collect();
    }
    let rows: Vec<Value> = serde_json::from_str(answer).unwrap_or_default();
    rows.into_iter()
        .filter_map(|row| Some((offers(endpoint, format!("[{row}]").as_bytes()).pop()?, row)))
        .collect()
}

/// The marketplace's verdict on a search, which each of its fares repeats.
fn usual_prices(cheapest: &Offer, currency: &str) -> Markup {
    let band = cheapest.band_low.zip(cheapest.band_high);
    let currency = cheapest.currency.as_deref().unwrap_or(currency);
    html! {
        @if cheapest.verdict.is_some() || band.is_some() {
            p class="sub" {
                @match cheapest.verdict {
                    Some(verdict) => { "The marketplace calls the price of this search " (verdict.as_str()) }
                    None => { "The marketplace gives no verdict on the price of this search" }
                }
                @if let Some((low, high)) = band { ": usual is " (numbers::amount(low)) " to " (numbers::price(high, currency)) }
                "."
            }
        }
    }
}

fn offer_rows(endpoint: Endpoint, offers: &[(Offer, Value)], currency: &str) -> Markup {
    let is_flight = endpoint.api() == Api::Flights;
    html! {
        div class="scroll" tabindex="0" role="region" aria-label="Offers" {
            table class="rows" {
                thead {
                    tr {
                        th scope="col" class="num tight" { "Price" }
                        @if is_flight {
                            th scope="col" { "Departs" } th scope="col" { "Arrives" } th scope="col" { "Duration" }
                            th scope="col" { "Stops" } th scope="col" { "Airline" }
                        } @else {
                            th scope="col" { "Hotel" } th scope="col" { "Room" } th scope="col" { "Board" }
                        }
                        th scope="col" { span class="visually-hidden" { "Booking page" } }
                    }
                }
                tbody {
                    @for (offer, row) in offers.iter().take(MAX_OFFERS) {
                        tr {
                            td class="num" { b { (numbers::price(offer.price, offer.currency.as_deref().unwrap_or(currency))) } }
                            @if is_flight { (flight_cells(offer, &fare::legs(endpoint, row))) } @else {
                                td { (offer.hotel.as_deref().unwrap_or_default()) }
                                td { (offer.carrier_or_room.as_deref().unwrap_or_default()) }
                                td { (offer.board.as_deref().unwrap_or_default()) }
                            }
                            td {
                                @if let Some(link) = offer.link.as_deref().filter(|link| is_web_link(link)) {
                                    a href=(link) rel="noreferrer noopener" target="_blank" { "Open" }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Of a round trip that of both ways: `7:15 AM / 6:40 PM`.
fn flight_cells(offer: &Offer, legs: &[FlightLeg]) -> Markup {
    let of_legs = |part: fn(&FlightLeg) -> &str| {
        let parts: Vec<_> = legs
            .iter()
            .map(part)
            .filter(|part| !part.is_empty())
            .collect();
        parts.join(" / ")
    };
    html! {
        td class="nowrap" { (of_legs(|leg| &leg.departs)) }
        td class="nowrap" { (of_legs(|leg| &leg.arrives)) }
        td { (of_legs(|leg| &leg.duration)) }
        td class="nowrap" { @match offer.stops { Some(0) => { "non-stop" } Some(stops) => { (stops) } None => { "" } } }
        td { (offer.carrier_or_room.as_deref().unwrap_or_default()) }
    }
}

/// A link of an answer may be anything; only http and https lead to a page.
fn is_web_link(link: &str) -> bool {
    link.starts_with("https://") || link.starts_with("http://")
}

/// The beginning of the answer, indented.
fn raw_answer(answer: &RawJson) -> Markup {
    const MAX_CHARS: usize = 6_000;
    let value: Value = serde_json::from_str(answer.as_str()).unwrap_or_default();
    let text = serde_json::to_string_pretty(&value).unwrap_or_default();
    let shown: String = text.chars().take(MAX_CHARS).collect();
    let is_cut = shown.len() < text.len();
    html! {
        details class="fold" {
            summary { "Raw answer" }
            pre tabindex="0" { code { (shown) @if is_cut { "\n…" } } }
        }
    }
}

fn search_fields(item: &Item) -> Markup {
    html! {
        section class="card" {
            h2 { "Search" }
            p class="sub" { "What was sent." }
            dl class="kv" {
                @for (name, value) in &item.search {
                    dt { code { (name) } }
                    dd { @match value { Value::String(text) => { (text) } other => { (other) } } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_links_are_followed() {
        for (link, followed) in [
            ("https://example.com/fare", true),
            ("http://example.com", true),
            ("javascript:alert(1)", false),
            ("//example.com", false),
            ("data:text/html,x", false),
        ] {
            assert_eq!(is_web_link(link), followed, "{link}");
        }
    }
}
