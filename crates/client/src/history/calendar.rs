//! Last known prices as calendars and tables.

use std::io::Write as _;

use farescan_sheets::cell::CellValue;
use farescan_sheets::draft::plain;

use super::{FlightHistory, HotelHistory, bounds};
use crate::Failure;
use crate::client::ServiceSession;
use crate::format::{DAY_SECONDS, short_age};
use crate::layout::{axis_text, column_axis};
use crate::pages::{Query, print_nothing};
use crate::render::{Calendar, CalendarDay, Matrix, MatrixAxis, MatrixCell, legend};
use crate::wrap::note;
use farescan_contract::Endpoint;
use farescan_contract::history_grid::{HistoryCell, HistoryGrid, HistoryGrids};

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
    let answer = session.client.ask(path).await?;
    let mut out = anstream::stdout();
    if session.json {
        writeln!(out, "{}", answer.text.trim_end())?;
        return Ok(());
    }
    let grids: HistoryGrids = answer.read()?;
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
    let mut values = Vec::new();
    for grid in shown {
        writeln!(out, "{}", title(grid))?;
        let table = if grid.columns.is_some() {
            let matrix = matrix(grid);
            values.extend(matrix.values());
            matrix.render(session.screen)
        } else {
            let calendar = calendar(grid);
            values.extend(calendar.values());
            calendar.render(session.screen)
        };
        writeln!(out, "{table}")?;
    }
    writeln!(out, "{}", legend(values, session.screen.colour))?;
    note!(
        "With each price its age: m minutes, h hours, d days; a price with d is a day old or more. Nothing was spent."
    );
    if grids.truncated {
        note!("There are more products: narrow the dates, or name a currency.");
    }
    Ok(())
}

/// `TLV → LHR, flights/oneway, in USD (passengers [1])`.
fn title(grid: &HistoryGrid) -> String {
    let from = grid
        .from_airport
        .as_ref()
        .map(|from| format!("{from} → "))
        .unwrap_or_default();
    let market = grid
        .proxy_country
        .as_ref()
        .map(|country| format!(", market {}", country.to_uppercase()))
        .unwrap_or_default();
    let fields = grid.product.iter().filter(|(_, value)| !value.is_null());
    let fields: Vec<_> = fields
        .map(|(name, value)| format!("{name} {}", plain(value)))
        .collect();
    let fields = if fields.is_empty() {
        String::new()
    } else {
        format!(" ({})", fields.join(", "))
    };
    format!(
        "{from}{}, {}{market}, last known price in {}{fields}",
        grid.place, grid.endpoint, grid.currency
    )
}

/// The searched dates with the age of each price.
fn calendar(grid: &HistoryGrid) -> Calendar {
    let searched = grid.cells.iter().filter(|cell| cell.looked_at.is_some());
    searched
        .filter_map(|cell| {
            Some(CalendarDay {
                date: cell.row.as_str()?.parse().ok()?,
                value: CellValue::of_history(cell),
                note: Some(cell.age_seconds.map(short_age).unwrap_or_default()),
                is_old: is_old(cell),
            })
        })
        .collect()
}

/// The searched dates against nights or markets.
fn matrix(grid: &HistoryGrid) -> Matrix {
    let rows = MatrixAxis {
        values: &grid.rows.values,
        labels: grid.rows.values.iter().map(axis_text).collect(),
    };
    let cells = grid.cells.iter().filter(|cell| cell.looked_at.is_some());
    Matrix::new(
        rows,
        column_axis(grid.columns.as_ref()),
        cells.filter_map(|cell| {
            let shown = MatrixCell {
                value: CellValue::of_history(cell),
                note: cell.age_seconds.map(short_age).unwrap_or_default(),
                is_old: is_old(cell),
            };
            Some((&cell.row, cell.column.as_ref()?, shown))
        }),
    )
}

fn is_old(cell: &HistoryCell) -> bool {
    cell.age_seconds.is_some_and(|age| age >= DAY_SECONDS)
}
