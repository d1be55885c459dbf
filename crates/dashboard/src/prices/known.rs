//! The calendar of known prices of a question in words, for its own page.

use std::collections::BTreeSet;

use farescan_ask::Question;
use farescan_sheets::numbers;
use farescan_sheets::price_table::MARKET;
use jiff::ToSpan as _;
use jiff::civil::Date;
use maud::{Markup, html};
use serde_json::Value;

use super::chosen::{ShownProduct, grid_query, read_choice, shown};
use super::product::ProductName;
use super::subject::PriceSubject;
use crate::failure::PageFailure;
use crate::form::FormFields;
use crate::price_table::{self, DateLinks};
use crate::session::Session;
use farescan_core::contract::{Api, Endpoint, Request};
use farescan_core::history::{Product, Subject, judged_grid};

/// The last known prices of the question's dates; `None` if none of them was searched, or if it asks for
/// several lengths or markets.
pub(crate) async fn known(
    session: &Session,
    subject: &PriceSubject,
    question: &Question,
) -> Result<Option<Markup>, PageFailure> {
    let (Some(tenant), Some(product)) = (session.tenant(), product(question)) else {
        return Ok(None);
    };
    let now = session.context()?.now;
    let nights = question.nights.first().map(ToString::to_string);
    let pairs = [
        ("from", Some(question.from.to_string())),
        ("product", Some(product.digest())),
        ("nights", nights),
    ];
    let pairs = pairs.into_iter();
    let pairs = pairs.filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let query = FormFields::from_pairs(pairs.collect());
    let choice = read_choice(&query, subject, now)?;
    let grid_query = grid_query(&choice)?;
    let permits = session.heavy_read_permits().await?;
    let grids = {
        let mut conn = session.history_pool()?.acquire().await?;
        judged_grid::grids(&mut conn, tenant, &grid_query, now).await?
    };
    drop(permits);
    let Some(mut shown) = shown(choice, &grids, now) else {
        return Ok(None);
    };
    let wanted = question.nights.first().map(|nights| i64::from(*nights));
    if shown.product != product || (subject.has_nights() && shown.nights != wanted) {
        return Ok(None);
    }
    let dates: BTreeSet<Date> = question.dates().collect();
    shown
        .cells
        .retain(|(date, cell)| dates.contains(date) && cell.looked_at.is_some());
    Ok((!shown.cells.is_empty()).then(|| card(&shown, subject, dates.len() as u64)))
}

/// The product of the only route, length and market that are asked for.
fn product(question: &Question) -> Option<ProductName> {
    let body = question.scan();
    let endpoint = Endpoint::parse(body.get("endpoint")?.as_str()?)?;
    let mut request = body.get("request")?.as_object()?.clone();
    let [first, last] = match endpoint.api() {
        Api::Flights => ["departure_date", "return_date"],
        Api::Hotels => ["checkin_date", "checkout_date"],
    };
    request.insert(first.to_owned(), question.from.to_string().into());
    match question.nights[..] {
        [] => {}
        [nights] => {
            let back = question.from.saturating_add(i64::from(nights).days());
            request.insert(last.to_owned(), back.to_string().into());
        }
        _ => return None,
    }
    let request = Request::check(endpoint, &request).ok()?.request;
    // Of one search nothing is swept.
    let sweep = body.get("sweep").and_then(Value::as_object);
    let is_one_market = sweep.is_none_or(|sweep| !sweep.contains_key(MARKET));
    let subject = Subject::of(&request).filter(|_| is_one_market)?;
    Some(ProductName::from(&Product::of(&subject.series)))
}

/// `all` is how many dates are asked for.
fn card(shown: &ShownProduct<'_>, subject: &PriceSubject, all: u64) -> Markup {
    let link = |date: Date| {
        format!(
            "{}#over-time",
            shown.link(&[
                ("date", date.to_string()),
                ("product", shown.product.digest()),
                ("from", String::new()),
            ])
        )
    };
    let links = DateLinks {
        path: &link,
        chosen: None,
    };
    html! {
        section class="card" {
            div class="card-head" { h2 { "Known prices" } a href=(subject.path()) { "All prices of " (subject.title()) } }
            p class="sub" {
                (shown.product.label()) @if let Some(nights) = shown.nights { ", " (numbers::counted(nights.unsigned_abs(), "night")) }
                ". " (shown.cells.len()) " of " (numbers::counted(all, "date")) ", at no cost."
            }
            (price_table::markup(&shown.table(), Some(links)))
        }
    }
}
