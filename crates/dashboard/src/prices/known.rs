//! What is known of the dates of a question in words, for its own page: the cheapest price, and the
//! cheapest of each date over all routes of the question. One statement reads them; nothing is searched.

use std::collections::{BTreeSet, HashMap};

use farescan_ask::question::MOST_KNOWN_ROUTES;
use farescan_ask::{Question, QuestionSubject};
use farescan_sheets::cell::CellValue;
use farescan_sheets::numbers::{counted, price, short_age};
use farescan_sheets::price_table::{MARKET, PriceCell, PriceTable};
use jiff::ToSpan as _;
use jiff::civil::Date;
use maud::{Markup, html};
use rust_decimal::Decimal;
use serde_json::Value;
use tokio::time::timeout;

use super::product::ProductName;
use super::subject::PriceSubject;
use super::trip;
use crate::failure::PageFailure;
use crate::links;
use crate::parts::VERDICT_TIMEOUT;
use crate::price_table::{self, DateLinks};
use crate::session::Session;
use farescan_core::contract::history_grid::{HistoryCell, HistoryGrid};
use farescan_core::contract::monitors::MonitorStatus;
use farescan_core::contract::scans::GridAxis;
use farescan_core::contract::{Api, Endpoint, Request};
use farescan_core::history::{Product, SeriesKey, Subject, judged_grid};

/// What is known of a question's dates.
pub(crate) struct KnownPrices {
    /// In a sentence; empty where the question asks for several stays in a hotel or several markets, which
    /// do not compare.
    pub(crate) answer: Markup,
    /// The cheapest price.
    pub(crate) cheapest: Option<Decimal>,
    /// The monitors of the first route, or of the hotel or place; empty without one.
    pub(crate) monitors: Markup,
    /// Whether it is below the amount of the question, and as new as what a daily watch knows.
    pub(crate) is_below: bool,
    /// The calendar, and the pages of all prices.
    pub(crate) card: Markup,
}

const DAY_SECONDS: u64 = 86_400;

/// A route, hotel or place of a question.
struct QuestionProduct {
    subject: PriceSubject,
    /// What distinguishes it from the others: `LTN`.
    name: String,
    series: SeriesKey,
    product: ProductName,
}

/// A known price or failed search of a date, and the index of its product among the asked ones.
type KnownCell = (usize, Date, HistoryCell);

/// Reads what is known. What can be asked does not depend on it: an error or too long a wait is a sentence.
pub(crate) async fn known(session: &Session, question: &Question) -> KnownPrices {
    let subjects = subjects(question);
    let products = products(question, &subjects);
    let reading = async {
        if products.is_empty() {
            return None;
        }
        Some(timeout(VERDICT_TIMEOUT, cells(session, question, &products)).await)
    };
    let (read, monitors) = tokio::join!(reading, monitors(session, subjects.first()));
    let (answer, cheapest, is_below, calendar) = match read {
        None => (html! {}, None, false, html! {}),
        Some(Ok(Ok(cells))) => {
            let cheapest = cheapest(&cells);
            let answer = answer(question, &products, cheapest);
            let price = cheapest.map(|(price, _)| price);
            let is_below = cheapest.is_some_and(|found| is_below(question, found));
            let calendar = calendar(question, &products, &cells);
            (answer, price, is_below, calendar)
        }
        Some(_) => {
            let sorry = html! { "The known prices could not be read." };
            (sorry, None, false, html! {})
        }
    };
    let card = html! {
        section class="card" {
            h2 { "Known prices" }
            (calendar)
            p class="hint" {
                "All prices of "
                @for (index, subject) in subjects.iter().enumerate() {
                    @if index > 0 { " · " }
                    a href=(subject.path()) { (subject.title()) }
                }
            }
        }
    };
    KnownPrices {
        answer,
        cheapest,
        monitors,
        is_below,
        card,
    }
}

/// Those of any dates: a new watch may cost twice.
async fn monitors(session: &Session, subject: Option<&PriceSubject>) -> Markup {
    let Some(subject) = subject else {
        return html! {};
    };
    let found = trip::watching(session, subject).await;
    html! {
        @for (index, monitor) in found.iter().enumerate() {
            @if index == 0 { "Watched already: " } @else { ", " }
            a href=(links::monitor(monitor.id)) { (monitor.name) }
            @if monitor.status == MonitorStatus::Paused { " (paused)" }
        }
    }
}

/// The searched dates of the question, the first product first.
async fn cells(
    session: &Session,
    question: &Question,
    products: &[QuestionProduct],
) -> Result<Vec<KnownCell>, PageFailure> {
    let Some(tenant) = session.tenant() else {
        return Ok(Vec::new());
    };
    let now = session.context()?.now;
    let series: Vec<_> = products.iter().map(|product| product.series).collect();
    let nights: Vec<_> = question.nights.iter().map(|one| i32::from(*one)).collect();
    let dates = (question.from, question.to);
    let _permits = session.heavy_read_permits().await?;
    let mut conn = session.history_pool()?.acquire().await?;
    let grids = judged_grid::of_products(&mut conn, tenant, &series, dates, &nights, now).await?;
    let wanted: BTreeSet<Date> = question.dates().collect();
    let mut cells = Vec::new();
    for (index, product) in products.iter().enumerate() {
        let grid = grids.data.iter().find(|grid| product.is_of(grid));
        for cell in grid.into_iter().flat_map(|grid| &grid.cells) {
            let date = cell.first_date.filter(|date| wanted.contains(date));
            cells.extend(date.map(|date| (index, date, cell.clone())));
        }
    }
    Ok(cells)
}

impl QuestionProduct {
    fn is_of(&self, grid: &HistoryGrid) -> bool {
        let is_place = match &self.subject {
            PriceSubject::Route { from, to } => {
                grid.from_airport.as_ref() == Some(from) && grid.place == *to
            }
            PriceSubject::Place { .. } => true,
        };
        is_place && ProductName::from(grid) == self.product
    }

    /// The price of a date over time.
    fn path(&self, question: &Question, date: Date) -> String {
        let mut pairs = vec![
            ("product", self.product.digest()),
            ("date", date.to_string()),
        ];
        if let ([nights], true) = (&question.nights[..], self.subject.has_nights()) {
            pairs.push(("nights", nights.to_string()));
        }
        format!("{}#over-time", self.subject.path_with(pairs))
    }
}

fn is_below(question: &Question, (found, (_, _, cell)): (Decimal, &KnownCell)) -> bool {
    let is_new = cell.age_seconds.is_some_and(|age| age <= DAY_SECONDS);
    is_new && question.below.is_some_and(|below| found < below)
}

fn cheapest(cells: &[KnownCell]) -> Option<(Decimal, &KnownCell)> {
    let priced = cells.iter().filter_map(|cell| {
        let price = CellValue::of_history(&cell.2).price()?;
        Some((price, cell))
    });
    priced.min_by_key(|(price, _)| *price)
}

/// `Cheapest known: 22 March, 118 USD, LTN, 3 h ago`.
fn answer(
    question: &Question,
    products: &[QuestionProduct],
    cheapest: Option<(Decimal, &KnownCell)>,
) -> Markup {
    let Some((found, of)) = cheapest else {
        return html! { "No price of these dates is known yet." };
    };
    let (index, date, cell) = of;
    let product = &products[*index];
    let age = cell.age_seconds.map(|age| match short_age(age) {
        now if now == "now" => now,
        age => format!("{age} ago"),
    });
    html! {
        "Cheapest known: "
        a href=(product.path(question, *date)) { (date.strftime("%-d %B")) ", " (price(found, question.currency)) }
        @if products.len() > 1 { ", " (product.name) }
        @if let Some(age) = age { ", " (age) }
        @if is_below(question, (found, of)) { ": below your amount already" }
    }
}

fn calendar(question: &Question, products: &[QuestionProduct], cells: &[KnownCell]) -> Markup {
    let Some(first) = products.first().filter(|_| !cells.is_empty()) else {
        return html! {};
    };
    let mut of_item = HashMap::new();
    let of_date: BTreeSet<_> = cells.iter().map(|(_, date, _)| *date).collect();
    let named = cells.iter().map(|(index, _, cell)| {
        of_item.extend(cell.item_id.map(|item| (item, *index)));
        let column = Some(Value::from(products[*index].name.as_str()));
        HistoryCell {
            column,
            ..cell.clone()
        }
    });
    let named: Vec<_> = named.collect();
    let axis = |field: &str, values: Vec<Value>| GridAxis {
        field: field.to_owned(),
        values,
    };
    let dates = of_date.iter().map(|date| date.to_string().into());
    let rows = axis(first.subject.names().date, dates.collect());
    let names = products.iter().map(|product| product.name.as_str().into());
    let columns = (products.len() > 1).then(|| axis("to_airport", names.collect()));
    let mut table = PriceTable::of_history(
        question.currency,
        &rows,
        columns.as_ref(),
        named.iter(),
        |_| None,
    );
    if columns.is_some() {
        table.notes = "its airport";
    }
    table.add_unsearched(question.dates());
    let link = |date: Date, cell: &PriceCell| {
        let of_item = cell.item.and_then(|item| of_item.get(&item));
        let is_only = products.len() == 1 && of_date.contains(&date);
        let index = of_item.copied().or_else(|| is_only.then_some(0))?;
        Some(products[index].path(question, date))
    };
    let links = DateLinks {
        path: &link,
        chosen: None,
    };
    html! {
        p class="sub" {
            (first.product.label())
            @if let [nights] = question.nights[..] { ", " (counted(nights, "night")) }
            ". " (of_date.len()) " of " (counted(question.dates().count() as u64, "date")) ", at no cost."
        }
        (price_table::markup(&table, Some(links)))
    }
}

/// The routes, hotel or place of a question; of many routes the first.
fn subjects(question: &Question) -> Vec<PriceSubject> {
    let place = |field: &'static str, text: &String| {
        let text = text.clone();
        vec![PriceSubject::Place { field, text }]
    };
    match &question.subject {
        QuestionSubject::Flights { .. } => {
            let route = |(from, to): (&str, &str)| PriceSubject::Route {
                from: from.to_owned(),
                to: to.to_owned(),
            };
            question
                .routes()
                .take(MOST_KNOWN_ROUTES)
                .map(route)
                .collect()
        }
        QuestionSubject::Hotel { name, .. } => place("hotel_name", name),
        QuestionSubject::Hotels { destination, .. } => place("destination", destination),
    }
}

/// The product of each; none if the question asks for several markets, for stays of several lengths, or
/// for more routes than are read: what is unread may be cheaper.
fn products(question: &Question, subjects: &[PriceSubject]) -> Vec<QuestionProduct> {
    let has_several_stays = question.nights.len() > 1 && !question.is_of_flights();
    let has_more_routes = question.routes().nth(MOST_KNOWN_ROUTES).is_some();
    let body = question.scan();
    let sweep = body.get("sweep").and_then(Value::as_object);
    if has_several_stays || has_more_routes || sweep.is_some_and(|sweep| sweep.contains_key(MARKET))
    {
        return Vec::new();
    }
    let of = |subject: &PriceSubject| asked_product(question, &body, subject);
    subjects.iter().filter_map(of).collect()
}

fn asked_product(
    question: &Question,
    body: &serde_json::Map<String, Value>,
    subject: &PriceSubject,
) -> Option<QuestionProduct> {
    let endpoint = Endpoint::parse(body.get("endpoint")?.as_str()?)?;
    let mut request = body.get("request")?.as_object()?.clone();
    let [first, last] = match endpoint.api() {
        Api::Flights => ["departure_date", "return_date"],
        Api::Hotels => ["checkin_date", "checkout_date"],
    };
    request.insert(first.to_owned(), question.from.to_string().into());
    if let Some(nights) = question.nights.first() {
        let back = question.from.saturating_add(i64::from(*nights).days());
        request.insert(last.to_owned(), back.to_string().into());
    }
    for (field, text) in subject.pairs() {
        request.insert(field.to_owned(), text.into());
    }
    let request = Request::check(endpoint, &request).ok()?.request;
    let series = Subject::of(&request)?.series;
    Some(QuestionProduct {
        name: name(question, subject),
        subject: subject.clone(),
        series: series.key,
        product: ProductName::from(&Product::of(&series)),
    })
}

/// The airport that only this route has: `LTN`, or both: `SDV-LTN`.
fn name(question: &Question, subject: &PriceSubject) -> String {
    match (&question.subject, subject) {
        (
            QuestionSubject::Flights {
                from: of, to: at, ..
            },
            PriceSubject::Route { from, to },
        ) => match (of.len(), at.len()) {
            (_, 1) => from.clone(),
            (1, _) => to.clone(),
            _ => format!("{from}-{to}"),
        },
        _ => subject.title(),
    }
}
