//! Which table suits a scan, and the table: a calendar, dates against nights or markets, markets, or a
//! list.

use farescan_sheets::cell::CellValue;
use farescan_sheets::fifths::most_frequent;
use farescan_sheets::trip;
use serde_json::{Map, Value};

use crate::client::{ApiClient, ClientError};
use crate::pages::{Query, page_limit, rows};
use crate::render::{
    Calendar, CalendarDay, Column, ListTable, MarketRow, MarketTable, Matrix, MatrixAxis, Text,
    exact_text, legend,
};
use crate::terminal::Screen;
use farescan_contract::scans::{Grid, GridAxis, GridCell};
use farescan_contract::{Endpoint, Item, Scan};

/// The rows of a list of items.
const LIST_ROWS: usize = 50;
const MARKET: &str = "proxy_country";
const NIGHTS: &str = "nights";

/// Which table suits a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// Dates as a calendar; the cheapest of a second field is named in each cell.
    Calendar {
        dates: String,
        other: Option<String>,
    },
    /// Dates against nights or markets.
    Matrix { rows: String, columns: String },
    /// One stay from several markets; `nights` is an axis if the scan sweeps it.
    Markets {
        has_nights: bool,
        baseline: Option<String>,
    },
    /// Every item.
    List,
}

impl Layout {
    pub fn of(scan: &Scan) -> Self {
        let swept: Vec<&str> = swept_fields(&scan.sweep).collect();
        let several: Vec<&str> = swept
            .iter()
            .copied()
            .filter(|name| has_several(&scan.sweep[*name]))
            .collect();
        if several.contains(&"currency") {
            return Self::List;
        }
        let dates = several
            .iter()
            .copied()
            .find(|name| ["departure_date", "checkin_date"].contains(name));
        let has = |name: &str| several.contains(&name);
        match dates {
            Some(dates) if has(NIGHTS) || has(MARKET) => Self::Matrix {
                rows: dates.to_owned(),
                columns: if has(MARKET) { MARKET } else { NIGHTS }.to_owned(),
            },
            Some(dates) => Self::Calendar {
                dates: dates.to_owned(),
                other: several
                    .iter()
                    .find(|name| **name != dates)
                    .map(|name| (*name).to_owned()),
            },
            None if several == [MARKET] => Self::Markets {
                has_nights: swept.contains(&NIGHTS),
                baseline: scan.sweep[MARKET][0].as_str().map(str::to_owned),
            },
            None => Self::List,
        }
    }

    pub fn is_calendar(&self) -> bool {
        matches!(self, Self::Calendar { .. })
    }

    /// The tables as text.
    pub async fn render(
        &self,
        client: &ApiClient,
        scan: &Scan,
        screen: Screen,
    ) -> Result<String, ClientError> {
        let grid = |rows: &str, columns: Option<&str>, baseline: Option<&str>| {
            Query::new(format!("/v1/scans/{}/grid", scan.id))
                .with("rows", Some(rows))
                .with("columns", columns)
                .with("baseline", baseline)
                .path()
        };
        match self {
            Self::Calendar { dates, other } => {
                let grid: Grid = client.get(&grid(dates, other.as_deref(), None)).await?;
                Ok(calendar_text(scan, &grid, screen))
            }
            Self::Matrix { rows, columns } => {
                let grid: Grid = client.get(&grid(rows, Some(columns), None)).await?;
                let title = format!(
                    "{}, by {} and {}",
                    title(scan, &grid),
                    words(rows),
                    words(columns)
                );
                let matrix = matrix(&grid);
                Ok(format!(
                    "{title}\n{}\n{}",
                    matrix.render(screen),
                    legend(matrix.values(), screen.colour)
                ))
            }
            Self::Markets {
                has_nights,
                baseline,
            } => {
                let is_comparable = matches!(
                    scan.endpoint,
                    Endpoint::HotelsByName | Endpoint::HotelsRooms
                );
                let baseline = baseline.as_deref().filter(|_| is_comparable);
                let columns = has_nights.then_some(NIGHTS);
                let grid: Grid = client.get(&grid(MARKET, columns, baseline)).await?;
                Ok(format!(
                    "{}\n{}",
                    title(scan, &grid),
                    markets(&grid).table(screen.colour)
                ))
            }
            Self::List => {
                let path = Query::new(format!("/v1/scans/{}/items", scan.id))
                    .with("sort", Some("price"))
                    .with("limit", Some(page_limit(Some(LIST_ROWS))))
                    .path();
                let items: Vec<Item> = rows(client, &path, Some(LIST_ROWS)).await?;
                Ok(list(scan, &items, screen))
            }
        }
    }
}

/// The swept values of an item: `2027-02-04, CDG`.
pub fn cell_text(scan: &Scan, search: &Map<String, Value>) -> String {
    let values = swept_fields(&scan.sweep).filter_map(|name| match name {
        NIGHTS => nights_of(search).map(|nights| format!("{nights} nights")),
        MARKET => Some(search.get(MARKET)?.as_str()?.to_uppercase()),
        name => search.get(name).map(|value| {
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        }),
    });
    values.collect::<Vec<_>>().join(", ")
}

/// The search of a scan that sweeps nothing: `TLV → LHR, 2027-02-04`.
fn whole_text(scan: &Scan, search: &Map<String, Value>) -> String {
    let dates = [
        "departure_date",
        "checkin_date",
        "return_date",
        "checkout_date",
    ];
    let dates = dates
        .into_iter()
        .filter_map(|name| search.get(name)?.as_str());
    let mut parts = vec![trip::title(scan.endpoint, &scan.request, &scan.sweep)];
    parts.extend(dates.map(str::to_owned));
    parts.join(", ")
}

/// The nights between the two dates of a search.
fn nights_of(search: &Map<String, Value>) -> Option<i32> {
    let date = |names: [&str; 2]| {
        let text = names.iter().find_map(|name| search.get(*name))?.as_str()?;
        text.parse::<jiff::civil::Date>().ok()
    };
    let first = date(["departure_date", "checkin_date"])?;
    let last = date(["return_date", "checkout_date"])?;
    first.until(last).ok().map(|span| span.get_days())
}

fn swept_fields(sweep: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let swept = sweep
        .iter()
        .filter(|(name, value)| !value.is_null() && *name != "samples");
    swept.map(|(name, _)| name.as_str())
}

fn has_several(values: &Value) -> bool {
    values.as_array().is_none_or(|values| values.len() > 1)
}

fn words(field: &str) -> &str {
    match field {
        "departure_date" => "departure",
        "checkin_date" => "check-in",
        MARKET => "market",
        other => other,
    }
}

/// `TLV → LHR: cheapest one-way fare in USD`.
fn title(scan: &Scan, grid: &Grid) -> String {
    let currencies = grid
        .cells
        .iter()
        .filter_map(|cell| cell.currency.as_deref());
    let given = || scan.request.get("currency").and_then(Value::as_str);
    let currency = most_frequent(currencies).or_else(given).unwrap_or("USD");
    let what = match scan.endpoint {
        Endpoint::FlightsOneway => "cheapest one-way fare",
        Endpoint::FlightsRoundtrip => "cheapest round trip",
        _ => "lowest price of the stay",
    };
    let subject = trip::title(scan.endpoint, &scan.request, &scan.sweep);
    format!("{subject}: {what} in {currency}")
}

fn calendar_text(scan: &Scan, grid: &Grid, screen: Screen) -> String {
    let days = grid.rows.values.iter().filter_map(|row| {
        let date = row.as_str()?.parse().ok()?;
        let cells: Vec<&GridCell> = grid.cells.iter().filter(|cell| cell.row == *row).collect();
        Some(day(date, &cells))
    });
    let calendar: Calendar = days.collect();
    format!(
        "{}\n{}\n{}",
        title(scan, grid),
        calendar.render(screen),
        legend(calendar.values(), screen.colour)
    )
}

/// One date: the cheapest of its plausible cells, if it has one. It is only `empty` if all of them are.
fn day(date: jiff::civil::Date, cells: &[&GridCell]) -> CalendarDay {
    let cheapest = cells
        .iter()
        .filter_map(|cell| Some((cell.price?, *cell)))
        .min_by_key(|(price, cell)| (cell.implausible, *price));
    let value = match cheapest {
        Some((_, cell)) => CellValue::of_scan(cell),
        None => CellValue::without_price(cells.iter().map(|cell| CellValue::of_scan(cell))),
    };
    let note = cheapest.and_then(|(_, cell)| cell.column.as_ref()?.as_str().map(str::to_owned));
    CalendarDay {
        date,
        value,
        note,
        is_old: false,
    }
}

fn matrix(grid: &Grid) -> Matrix {
    let rows = MatrixAxis {
        values: &grid.rows.values,
        labels: grid.rows.values.iter().map(axis_text).collect(),
    };
    let cells = grid.cells.iter();
    Matrix::new(
        rows,
        column_axis(grid.columns.as_ref()),
        cells.filter_map(|cell| Some((&cell.row, cell.column.as_ref()?, CellValue::of_scan(cell)))),
    )
}

/// The columns of a grid.
pub fn column_axis(axis: Option<&GridAxis>) -> MatrixAxis<'_> {
    let field = axis.map_or("", |axis| axis.field.as_str());
    let values = axis.map_or(&[][..], |axis| axis.values.as_slice());
    MatrixAxis {
        values,
        labels: values
            .iter()
            .map(|value| column_text(field, value))
            .collect(),
    }
}

/// A date with its weekday.
pub fn axis_text(value: &Value) -> String {
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    match text.parse::<jiff::civil::Date>() {
        Ok(date) => date.strftime("%Y-%m-%d %a").to_string(),
        Err(_) => text,
    }
}

/// `7 n`, `DE`.
fn column_text(field: &str, value: &Value) -> String {
    match (field, value.as_str()) {
        (NIGHTS, _) => format!("{value} n"),
        (MARKET, Some(country)) => country.to_uppercase(),
        (_, Some(text)) => text.to_owned(),
        (_, None) => value.to_string(),
    }
}

fn markets(grid: &Grid) -> MarketTable {
    MarketTable {
        currency: grid
            .cells
            .iter()
            .find_map(|cell| cell.currency.clone())
            .unwrap_or_default(),
        markets: grid
            .cells
            .iter()
            .map(|cell| MarketRow {
                country: cell.row.as_str().unwrap_or("–").to_owned(),
                value: CellValue::of_scan(cell),
                room: cell.room.clone(),
                parity: cell.parity.as_ref().map(|parity| parity.verdict),
            })
            .collect(),
    }
}

fn list(scan: &Scan, items: &[Item], screen: Screen) -> String {
    let currency = items
        .iter()
        .find_map(|item| item.currency.as_deref())
        .unwrap_or("Price");
    let mut table = ListTable::new([
        Column::text("Search"),
        Column::number(currency),
        Column::text("Status"),
        Column::text("Reason").rank(1),
        Column::text("Item").rank(2),
    ]);
    for item in items {
        let is_implausible = scan.implausible.iter().any(|price| price.item == item.id);
        let value =
            CellValue::of(item.best_price, item.state, item.search_status).marked(is_implausible);
        let cell = match cell_text(scan, &item.search) {
            cell if cell.is_empty() => whole_text(scan, &item.search),
            cell => cell,
        };
        table.row([
            Text::from(cell),
            exact_text(value),
            item.search_status
                .map_or_else(|| item.state.to_string(), |status| status.to_string())
                .into(),
            item.reason.clone().unwrap_or_default().into(),
            item.id.to_string().into(),
        ]);
    }
    table.render(screen)
}
