//! The calendar of known prices of a question in words, for its own page.

use farescan_ask::Question;
use farescan_sheets::numbers;
use jiff::civil::Date;
use maud::{Markup, html};

use super::chosen::{ShownProduct, grid_query, read_choice, shown};
use super::subject::PriceSubject;
use crate::failure::PageFailure;
use crate::form::FormFields;
use crate::price_table::{self, DateLinks};
use crate::session::Session;
use farescan_core::history::judged_grid;

/// The last known prices of the question's dates; `None` if none of them was searched.
pub(crate) async fn known(
    session: &Session,
    subject: &PriceSubject,
    question: &Question,
) -> Result<Option<Markup>, PageFailure> {
    let Some(tenant) = session.tenant() else {
        return Ok(None);
    };
    let now = session.context()?.now;
    let nights = question
        .nights
        .first()
        .map(|nights| ("nights".to_owned(), nights.to_string()));
    let query =
        FormFields::from_pairs(vec![("from".to_owned(), question.from.to_string())]).with(nights);
    let choice = read_choice(&query, subject, now)?;
    let grid_query = grid_query(&choice)?;
    let permits = session.heavy_read_permits().await?;
    let mut grids = {
        let mut conn = session.history_pool()?.acquire().await?;
        judged_grid::grids(&mut conn, tenant, &grid_query, now).await?
    };
    drop(permits);
    let body = question.scan();
    let endpoint = body
        .get("endpoint")
        .and_then(serde_json::Value::as_str)
        .unwrap_or_default()
        .to_owned();
    grids
        .data
        .retain(|grid| grid.endpoint.as_str() == endpoint && grid.currency == question.currency);
    let Some(mut shown) = shown(choice, &grids, now) else {
        return Ok(None);
    };
    shown
        .cells
        .retain(|(date, cell)| *date <= question.to && cell.looked_at.is_some());
    if shown.cells.is_empty() {
        return Ok(None);
    }
    Ok(Some(card(&shown, subject, question)))
}

fn card(shown: &ShownProduct<'_>, subject: &PriceSubject, question: &Question) -> Markup {
    let link = |date: Date| {
        format!(
            "{}#over-time",
            shown.link(&[("date", date.to_string()), ("from", String::new())])
        )
    };
    let links = DateLinks {
        path: &link,
        chosen: None,
    };
    let all = (question.to - question.from).get_days().unsigned_abs() + 1;
    html! {
        section class="card" {
            div class="card-head" { h2 { "Known prices" } a href=(subject.path()) { "All of them" } }
            p class="sub" {
                (shown.product.label()) @if let Some(nights) = shown.nights { ", " (numbers::counted(nights.unsigned_abs(), "night")) }
                ". " (shown.cells.len()) " of " (numbers::counted(all, "date")) ", at no cost."
            }
            (price_table::markup(&shown.table(), Some(links)))
        }
    }
}
