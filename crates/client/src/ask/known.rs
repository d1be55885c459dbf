//! What is known of the dates of a question already: the cheapest price, which costs nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use farescan_ask::Question;
use farescan_ask::question::MOST_KNOWN_ROUTES;
use farescan_contract::Endpoint;
use farescan_contract::history_grid::{HistoryCell, HistoryGrid, HistoryGrids};
use farescan_sheets::cell::CellValue;
use farescan_sheets::numbers::{duration, price};
use farescan_sheets::trip::search_title;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::civil::Date;
use rust_decimal::Decimal;
use serde_json::{Map, Value};
use tokio::time::timeout;

use crate::client::ApiClient;
use crate::pages::Query;

/// How many of them are read at a time.
const READS_AT_A_TIME: usize = 2;
/// The cost of a question does not wait longer for what is known.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// The fields of a search that a grid has beside its product.
const SEARCH_FIELDS: [&str; 4] = ["from_airport", "to_airport", "departure_date", "currency"];

/// `Cheapest known: 118 USD, TLV → LTN, 22 Mar 2027, found 3 h 5 min ago`, of a question about flights. `None`
/// if no price is known, and if not all of it was read in time: what is unread may be cheaper.
pub(super) async fn cheapest(client: &ApiClient, question: &Question) -> Option<String> {
    let routes = question.routes();
    let paths: Vec<_> = routes.map(|(from, to)| path(question, from, to)).collect();
    if !(1..=MOST_KNOWN_ROUTES).contains(&paths.len()) {
        return None;
    }
    let reads = paths.iter().map(|path| client.get::<HistoryGrids>(path));
    let reads = stream::iter(reads).buffered(READS_AT_A_TIME).try_collect();
    let read: Vec<HistoryGrids> = timeout(LONGEST_WAIT, reads).await.ok()?.ok()?;
    if read.iter().any(|grids| grids.truncated) {
        return None;
    }
    let body = question.scan();
    let grids = read.iter().flat_map(|grids| &grids.data);
    let asked = grids.filter(|grid| is_asked(&body, grid));
    let dates: BTreeSet<Date> = question.dates().collect();
    let cells = asked.flat_map(|grid| grid.cells.iter().map(move |cell| (grid, cell)));
    let cells = cells.filter(|(_, cell)| has_asked_dates(question, &dates, cell));
    let priced = cells.filter_map(|(grid, cell)| {
        let price = CellValue::of_history(cell).price()?;
        Some((price, grid, cell))
    });
    let (found, grid, cell) = priced.min_by_key(|(price, ..)| *price)?;
    Some(said(found, grid, cell))
}

/// The known prices of a route, with a row for each date.
fn path(question: &Question, from: &str, to: &str) -> String {
    let query = Query::new("/v1/history/flights/grid")
        .with("from_airport", Some(from))
        .with("to_airport", Some(to))
        .with("departure_from", Some(question.from))
        .with("departure_to", Some(question.to))
        .with("rows", Some("departure_date"))
        .with("currency", Some(question.currency));
    let query = match question.nights.as_slice() {
        [] => query,
        [nights] => query.with("nights", Some(nights)),
        _ => query.with("columns", Some("nights")),
    };
    query.path()
}

/// Whether the prices of a grid are of the product that a body searches (history.md, rules 7 and 8): each
/// field of the product has the value that the body sends, or else the field's default.
fn is_asked(body: &Map<String, Value>, grid: &HistoryGrid) -> bool {
    let endpoint = body.get("endpoint").and_then(Value::as_str);
    let request = body.get("request").and_then(Value::as_object);
    let (Some(endpoint), Some(request)) = (endpoint.and_then(Endpoint::parse), request) else {
        return false;
    };
    let value = |name: &str| {
        let mut fields = endpoint.fields().iter();
        let default = || fields.find(|field| field.name == name)?.default_value();
        request.get(name).cloned().or_else(default)
    };
    let mut product = grid.product.iter();
    let is_known =
        |name: &String| SEARCH_FIELDS.contains(&name.as_str()) || grid.product.contains_key(name);
    grid.endpoint == endpoint
        && product.all(|(name, known)| value(name).as_ref() == Some(known))
        && request.keys().all(is_known)
}

/// Whether a cell is of a day, and of a length of stay, that the question asks for.
fn has_asked_dates(question: &Question, dates: &BTreeSet<Date>, cell: &HistoryCell) -> bool {
    let nights = cell.first_date.zip(cell.last_date);
    let nights = nights.map(|(first, last)| (last - first).get_days());
    let is_length = match nights {
        None => question.nights.is_empty(),
        Some(nights) => question.nights.iter().any(|one| i32::from(*one) == nights),
    };
    is_length && cell.first_date.is_some_and(|date| dates.contains(&date))
}

fn said(found: Decimal, grid: &HistoryGrid, cell: &HistoryCell) -> String {
    let date = |date: Option<Date>| date.map(|date| date.to_string());
    let fields = [
        ("from_airport", grid.from_airport.clone()),
        ("to_airport", Some(grid.place.clone())),
        ("departure_date", date(cell.first_date)),
        ("return_date", date(cell.last_date)),
    ];
    let fields = fields.into_iter();
    let search = fields.filter_map(|(name, text)| Some((name.to_owned(), text?.into())));
    let trip = search_title(grid.endpoint, &search.collect());
    let age = cell.age_seconds.map(duration);
    let age = age.map_or_else(String::new, |age| format!(", found {age} ago"));
    format!(
        "Cheapest known: {}, {trip}{age}",
        price(found, &grid.currency)
    )
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_service_that_does_not_answer_delays_the_cost_two_seconds() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let client = ApiClient::new(&base, "key").unwrap();
        let today = jiff::civil::date(2030, 1, 1);
        let question = farescan_ask::read("TLV LHR 2030-02", today).result.unwrap();
        let read = cheapest(&client, &question);
        let read = timeout(2 * LONGEST_WAIT, read).await;
        assert_eq!(read, Ok(None));
    }
}
