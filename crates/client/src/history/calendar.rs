//! Last known prices as calendars and tables.

use std::io::Write as _;

use farescan_sheets::price_table::{MARKET, PriceTable};
use farescan_sheets::prices::product;

use super::{FlightHistory, HotelHistory, bounds};
use crate::Failure;
use crate::client::ServiceSession;
use crate::pages::{Query, print_nothing};
use crate::render::price_table;
use crate::wrap::note;
use farescan_contract::history_grid::{HistoryGrid, HistoryGrids};
use farescan_contract::{Api, Endpoint};

/// `history oneway`.
pub(super) async fn oneway(args: FlightHistory) -> Result<(), Failure> {
    flights(args, Endpoint::FlightsOneway, None).await
}

/// `history roundtrip`.
pub(super) async fn roundtrip(args: FlightHistory) -> Result<(), Failure> {
    flights(args, Endpoint::FlightsRoundtrip, Some("nights")).await
}

async fn flights(
    args: FlightHistory,
    endpoint: Endpoint,
    columns: Option<&str>,
) -> Result<(), Failure> {
    let session = args.client.open()?;
    let (first, last) = bounds(args.depart.as_ref())?;
    let path = Query::new("/v1/history/flights/grid")
        .with("from_airport", Some(args.from.to_ascii_uppercase()))
        .with("to_airport", Some(args.to.to_ascii_uppercase()))
        .with("departure_from", Some(first))
        .with("departure_to", Some(last))
        .with("rows", Some("departure_date"))
        .with("columns", columns)
        .with("currency", args.currency)
        .path();
    let scan = match endpoint {
        Endpoint::FlightsRoundtrip => format!(
            "farescan scan roundtrip {} {} --depart {first}..{last} --nights 7",
            args.from, args.to
        ),
        _ => format!(
            "farescan scan oneway {} {} --depart {first}..{last}",
            args.from, args.to
        ),
    };
    print(&session, &path, Some(endpoint), &scan).await
}

/// `history hotel`.
pub(super) async fn hotel(args: HotelHistory) -> Result<(), Failure> {
    let session = args.client.open()?;
    let (first, last) = bounds(args.checkin.as_ref())?;
    let columns = match (args.nights, args.markets) {
        (None, _) => Some("nights"),
        (Some(_), true) => Some("proxy_country"),
        (Some(_), false) => None,
    };
    let path = Query::new("/v1/history/hotels/grid")
        .with("hotel_name", Some(&args.hotel))
        .with("checkin_from", Some(first))
        .with("checkin_to", Some(last))
        .with("rows", Some("checkin_date"))
        .with("columns", columns)
        .with("nights", args.nights)
        .with("proxy_country", args.market)
        .with("currency", args.currency)
        .path();
    let scan = format!(
        "farescan scan hotel {:?} --checkin {first} --nights 3",
        args.hotel
    );
    print(&session, &path, None, &scan).await
}

/// Prints a grid for each product; `scan` is the command that searches where there is none.
async fn print(
    session: &ServiceSession,
    path: &str,
    endpoint: Option<Endpoint>,
    scan: &str,
) -> Result<(), Failure> {
    let Some(grids) = session.read::<HistoryGrids>(path).await? else {
        return Ok(());
    };
    let mut out = anstream::stdout();
    let shown: Vec<_> = grids
        .data
        .iter()
        .filter(|grid| endpoint.is_none_or(|endpoint| grid.endpoint == endpoint))
        .collect();
    if shown.is_empty() {
        let meaning = format!(
            "Nothing is known about these dates yet.\n  next: `{scan}` shows the cost of a search"
        );
        return print_nothing(&session.client, &meaning).await;
    }
    for grid in shown {
        let (columns, cells) = (grid.columns.as_ref(), grid.cells.iter());
        let table = PriceTable::of_history(&grid.currency, &grid.rows, columns, cells, |_| None);
        let text = price_table::render(&table, session.screen);
        writeln!(out, "{}: {}\n{text}", title(grid), table.title)?;
    }
    note!("With each price its age. Nothing was spent.");
    if grids.truncated {
        note!("There are more products: narrow the dates, or name a currency.");
    }
    Ok(())
}

/// `TLV → LHR, one way, 1 adult, USD`.
fn title(grid: &HistoryGrid) -> String {
    let from = grid.from_airport.iter().map(|from| format!("{from} → "));
    let from: String = from.collect();
    let has_markets = grid
        .columns
        .as_ref()
        .is_some_and(|axis| axis.field == MARKET);
    let has_one = grid.endpoint.api() == Api::Hotels && !has_markets;
    let market = has_one.then_some(grid.proxy_country.as_deref());
    let product = product(grid.endpoint, &grid.product, market, &grid.currency);
    format!("{from}{}, {product}", grid.place)
}
