//! The last known prices as a table, with the room or carrier and the item that found each.

use farescan_sheets::item::search_tone;
use farescan_sheets::numbers::{amount, count, duration, price};
use farescan_sheets::prices::class;
use farescan_sheets::sheet::{Cell, Column, Link, Table, Value};
use farescan_sheets::trip::words;
use jiff::civil::Date;
use maud::{Markup, html};

use super::chosen::ShownProduct;
use crate::sheet;
use farescan_core::contract::history_grid::HistoryCell;

/// Rows on the page; the files have all of them.
const MOST_ROWS: usize = 120;

pub(super) fn markup(shown: &ShownProduct<'_>) -> Markup {
    let cells = shown.cells.iter();
    let searched = cells.filter(|(_, cell)| cell.looked_at.is_some());
    let all = searched.clone().count();
    let columns = [
        Column::text(shown.choice.subject.names().first_word),
        Column::number("Price"),
        Column::text("By your past prices"),
        Column::text("Seller"),
        Column::number("Usual range"),
        Column::text("Found"),
        Column::text("Last search"),
    ];
    let rows = searched.take(MOST_ROWS);
    let rows = rows.map(|(date, cell)| (None, row(shown, *date, cell)));
    let table = Table::new("Last known prices", columns, rows);
    html! {
        section class="card" {
            div class="card-head" { h2 { "As a table" } span class="muted" { (count(all as u64)) " searched dates" } }
            details class="fold" {
                summary { "Show the table" }
                (sheet::table(&table))
                @if all > MOST_ROWS { p class="hint" { "The first " (MOST_ROWS) " dates. The files have all of them." } }
            }
        }
    }
}

fn row(shown: &ShownProduct<'_>, date: Date, cell: &HistoryCell) -> [Cell; 7] {
    let day = |date: Date| date.strftime("%a %-d %b %Y").to_string();
    let dates = std::iter::once(date).chain(cell.last_date).map(day);
    let dates: Vec<_> = dates.collect();
    let price = cell.price.map(|found| {
        let price = price(found, &shown.product.currency);
        match cell.item_id {
            Some(item) => Value::Link(Link::of(item), Some(price)),
            None => Value::Text(price),
        }
    });
    let verdict = shown.verdict_on(cell).map(|verdict| class(verdict.class));
    let band = cell.price_insights_low.zip(cell.price_insights_high);
    let band = band.map(|(low, high)| format!("{}–{}", amount(low), amount(high)));
    let age = cell.age_seconds.map(|age| format!("{} ago", duration(age)));
    let status = cell.search_status;
    let status = status.map(|status| Value::Word(search_tone(status), status.to_string()));
    let reason = cell
        .reason
        .as_ref()
        .map(|reason| Value::Muted(words(reason)));
    [
        vec![dates.join(" – ").into()],
        price.into_iter().collect(),
        verdict.into_iter().collect(),
        cell.seller.iter().cloned().map(Value::Text).collect(),
        band.into_iter().map(Value::Text).collect(),
        age.into_iter().map(Value::Text).collect(),
        status.into_iter().chain(reason).collect(),
    ]
}
