//! Which table suits a scan, and the table: a calendar, dates against nights or markets, markets, or a
//! list.

use farescan_sheets::cell::CellValue;
use farescan_sheets::price_table::{GridFields, MARKET, PriceTable};
use farescan_sheets::trip;
use serde_json::{Map, Value};

use crate::client::{ApiClient, ClientError};
use crate::pages::{Query, page_limit, rows};
use crate::render::{
    Column, ListTable, MarketRow, MarketTable, Text, exact_text, price_table,
};
use crate::terminal::Screen;
use farescan_contract::scans::Grid;
use farescan_contract::{Item, Scan};

/// The rows of a list of items.
const LIST_ROWS: usize = 50;
const NIGHTS: &str = "nights";

/// The fields of the grid that suits a scan: of several dates, lengths or markets.
fn grid_fields(scan: &Scan) -> Option<GridFields> {
    let fields = GridFields::of(scan)?;
    let is_side = ["departure_date", "checkin_date", NIGHTS, MARKET].contains(&fields.rows.as_str());
    let several = &scan.sweep[&fields.rows];
    let has_several = several.as_array().is_none_or(|values| values.len() > 1);
    let is_mixed = fields.columns.as_deref() == Some("currency");
    (is_side && has_several && !is_mixed).then_some(fields)
}

/// Whether a scan fills a calendar, or dates against something else.
pub fn has_dates(scan: &Scan) -> bool {
    grid_fields(scan).is_some_and(|fields| fields.rows.ends_with("_date"))
}

/// The tables of a scan as text.
pub async fn render(
    client: &ApiClient,
    scan: &Scan,
    screen: Screen,
) -> Result<String, ClientError> {
    let Some(fields) = grid_fields(scan) else {
        let path = Query::new(format!("/v1/scans/{}/items", scan.id))
            .with("sort", Some("price"))
            .with("limit", Some(page_limit(Some(LIST_ROWS))))
            .path();
        let items: Vec<Item> = rows(client, &path, Some(LIST_ROWS)).await?;
        return Ok(list(scan, &items, screen));
    };
    let path = Query::new(format!("/v1/scans/{}/grid", scan.id));
    let path = fields.pairs().fold(path, |path, (name, value)| path.with(name, Some(value)));
    let grid: Grid = client.get(&path.path()).await?;
    let prices = PriceTable::of_scan(&grid, 1);
    let text = if fields.rows == MARKET && fields.columns.is_none() {
        markets(&grid).table(screen.colour).to_string()
    } else {
        price_table::render(&prices, screen)
    };
    let subject = trip::title(scan.endpoint, &scan.request, &scan.sweep);
    Ok(format!("{subject}: {}\n{text}", prices.title))
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
