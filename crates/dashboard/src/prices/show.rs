//! The page of one route, hotel or place.

use axum::response::Response;
use farescan_sheets::numbers;
use jiff::ToSpan as _;
use jiff::civil::Date;
use maud::{Markup, html};

use super::chosen::{ShownProduct, grid_query, read_choice, shown};
use super::subject::PriceSubject;
use super::{export, table, trip};
use crate::failure::PageFailure;
use crate::form::FormFields;
use crate::layout::{NavItem, page as layout_page};
use crate::parts;
use crate::price_table::{self, DateLinks};
use crate::session::Session;
use farescan_core::history::buckets::{self, BucketRange};
use farescan_core::history::{judged_grid, judged_latest, lead_times};

pub(super) async fn page(
    session: &Session,
    query: &FormFields,
    subject: &PriceSubject,
) -> Result<Response, PageFailure> {
    let now = session.context()?.now;
    let choice = read_choice(query, subject, now)?;
    let grid_query = grid_query(&choice)?;
    let title = subject.title();
    let Some(tenant) = session.tenant() else {
        return Ok(empty_page(session, &title, &html! {}));
    };
    let permits = session.heavy_read_permits().await?;
    let of_trip = trip::markup(session, subject).await;
    let grids = {
        let mut conn = session.history_pool()?.acquire().await?;
        judged_grid::grids(&mut conn, tenant, &grid_query, now).await?
    };
    let Some(mut shown) = shown(choice, &grids, now) else {
        return Ok(empty_page(session, &title, &of_trip));
    };
    let conn = session.history_pool()?.acquire().await?;
    let judged_query = shown.judged_query()?;
    let items = shown.cells.iter().filter_map(|(_, cell)| cell.item_id);
    let items = items.collect();
    let (judged, _) =
        judged_latest::calendar(conn, tenant, &judged_query, Some(&items), now).await?;
    let judged = judged.into_iter();
    shown.verdicts = judged
        .filter_map(|price| Some((price.item(), price.history_verdict?)))
        .collect();
    let series_query = shown.series_query(shown.date())?;
    let range = BucketRange::of(&series_query, now)?;
    let conn = session.history_pool()?.acquire().await?;
    let (series, _) = buckets::series(conn, tenant, &series_query, &range).await?;
    let all_dates = shown.series_query(None)?;
    let conn = session.history_pool()?.acquire().await?;
    let nights = shown.nights.and_then(|nights| i32::try_from(nights).ok());
    let leads = lead_times::lead_times(conn, tenant, &all_dates, &range, nights).await?;
    drop(permits);
    let link = |date: Date, _: &_| {
        Some(format!(
            "{}#over-time",
            shown.link(&[("date", date.to_string())])
        ))
    };
    let links = DateLinks {
        path: &link,
        chosen: shown.choice.date,
    };
    let body = html! {
        (shown.head())
        (shown.choices())
        (shown.stats())
        section class="card" {
            h2 { "Last known price of each " (subject.names().first_word.to_lowercase()) " date" }
            p class="sub" { (shown.product.label()) ". Choose a date to see its price over time." }
            (price_table::markup(&shown.table(), Some(links)))
            @if shown.truncated {
                p class="hint" { "There are more products than fit here. The files have all of them." }
            }
            (shown.earlier())
        }
        (shown.over_time(&series))
        (of_trip)
        (shown.by_lead_time(&leads))
        (table::markup(&shown))
        (export::links(&shown.export_pairs(), subject.api()))
    };
    Ok(layout_page(session, &title, NavItem::Trips, body))
}

impl ShownProduct<'_> {
    fn head(&self) -> Markup {
        html! {
            (parts::head(&html! { a href=(super::PATH) { "Trips" } }, &self.choice.subject.title(), &html! { (self.product.label()) @if let Some(nights) = self.nights { ", " (numbers::counted(nights.unsigned_abs(), "night")) } }, &html! { a class="button primary" href=(self.watch_link()) { "Watch this" } }))
        }
    }

    fn choices(&self) -> Markup {
        html! {
            @if self.products.len() > 1 {
                nav class="tabs" aria-label="Product" {
                    @for product in &self.products {
                        a href=(self.link(&[("product", product.digest()), ("date", String::new())])) aria-current=[(*product == self.product).then_some("true")] { (product.label()) }
                    }
                }
            }
            @if self.lengths.len() > 1 {
                nav class="tabs" aria-label="Nights" {
                    @for nights in &self.lengths {
                        a href=(self.link(&[("nights", nights.to_string())])) aria-current=[(Some(*nights) == self.nights).then_some("true")] { (numbers::counted(nights.unsigned_abs(), "night")) }
                    }
                }
            }
        }
    }

    fn earlier(&self) -> Markup {
        let earlier = self.choice.from.saturating_sub(90.days());
        html! {
            p class="hint no-print" {
                a href=(self.link(&[("from", earlier.to_string()), ("date", String::new())])) { "Earlier " (self.choice.subject.names().first_word.to_lowercase()) " dates" }
                @if self.choice.from != self.choice.today {
                    " · " a href=(self.link(&[("from", String::new())])) { "From today" }
                }
            }
        }
    }
}

fn empty_page(session: &Session, title: &str, of_trip: &Markup) -> Response {
    let body = html! {
        (parts::head(&html! { a href=(super::PATH) { "Trips" } }, title, &html! {}, &html! {}))
        div class="card" {
            (parts::empty_state(&html! {
                p { "No searched date from today on." }
                p { "Scan some dates, and their prices stay here." }
                a class="button primary" href="/scans/new" { "New scan" }
            }))
        }
        (of_trip)
    };
    layout_page(session, title, NavItem::Trips, body)
}
