//! The last known prices as a table, with the room or carrier and the item that found each.

use farescan_sheets::numbers;
use farescan_sheets::trip;
use jiff::civil::Date;
use maud::{Markup, html};

use super::chosen::ShownProduct;
use crate::parts;
use farescan_core::contract::history_grid::HistoryCell;

/// Rows on the page; the files have all of them.
const MOST_ROWS: usize = 120;

pub(super) fn markup(shown: &ShownProduct<'_>) -> Markup {
    let searched: Vec<_> = shown
        .cells
        .iter()
        .filter(|(_, cell)| cell.looked_at.is_some())
        .collect();
    let has_return = searched.iter().any(|(_, cell)| cell.last_date.is_some());
    html! {
        section class="card" {
            div class="card-head" { h2 { "As a table" } span class="muted" { (searched.len()) " searched dates" } }
            details class="fold" {
                summary { "Show the table" }
                div class="scroll" tabindex="0" role="region" aria-label="Last known prices" {
                    table class="rows" {
                        thead {
                            tr {
                                th scope="col" { (shown.choice.subject.names().first_word) }
                                @if has_return { th scope="col" { "Until" } }
                                th scope="col" class="num" { "Price" }
                                th scope="col" { "By your past prices" }
                                th scope="col" { "Seller" }
                                th scope="col" class="num" { "Usual range" }
                                th scope="col" { "Found" }
                                th scope="col" { "Last search" }
                            }
                        }
                        tbody {
                            @for (date, cell) in searched.iter().take(MOST_ROWS) {
                                (row(shown, *date, cell, has_return))
                            }
                        }
                    }
                }
                @if searched.len() > MOST_ROWS {
                    p class="hint" { "The first " (MOST_ROWS) " dates. The files have all of them." }
                }
            }
        }
    }
}

fn row(shown: &ShownProduct<'_>, date: Date, cell: &HistoryCell, has_return: bool) -> Markup {
    let band = cell.price_insights_low.zip(cell.price_insights_high);
    html! {
        tr {
            td class="nowrap" { (date.strftime("%a %-d %b %Y")) }
            @if has_return {
                td class="nowrap" { @if let Some(last) = cell.last_date { (last.strftime("%a %-d %b %Y")) } }
            }
            td class="num" {
                @match cell.price {
                    Some(price) => {
                        @let price = numbers::price(price, &shown.product.currency);
                        @match cell.item_id {
                            Some(item) => a href=(parts::item_path(item)) { (price) },
                            None => (price),
                        }
                    }
                    None => "–"
                }
            }
            td { @if let Some(verdict) = shown.verdict_on(cell) { (parts::price_class(verdict.class)) } }
            td { (cell.seller.as_deref().unwrap_or_default()) }
            td class="num" { @if let Some((low, high)) = band { (numbers::amount(low)) "–" (numbers::amount(high)) } }
            td class="nowrap" { @if let Some(age) = cell.age_seconds { (numbers::duration(age)) " ago" } }
            td {
                @if let Some(status) = cell.search_status { (parts::search_status(status)) }
                @if let Some(reason) = &cell.reason { " " span class="muted" { (trip::words(reason)) } }
            }
        }
    }
}
