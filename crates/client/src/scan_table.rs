//! Which table suits a scan, and the table: a calendar, dates against nights or markets, markets, or a
//! list.

use farescan_sheets::price_table::{GridFields, MARKET, PriceTable, SecondField};
use farescan_sheets::{item, trip};

use crate::client::{ApiClient, ClientError};
use crate::pages::{Query, page_limit, rows};
use crate::render::{price_table, sheet};
use crate::terminal::Screen;
use farescan_contract::scans::Grid;
use farescan_contract::{Item, Scan};

/// The rows of a list of items.
const LIST_ROWS: usize = 50;
const NIGHTS: &str = "nights";

/// The fields of the grid that suits a scan: of several dates, lengths or markets.
fn grid_fields(scan: &Scan) -> Option<GridFields> {
    let fields = GridFields::of(scan)?;
    let is_side =
        ["departure_date", "checkin_date", NIGHTS, MARKET].contains(&fields.rows.as_str());
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
        return Ok(sheet::table(&item::table(scan, &items), screen));
    };
    let path = Query::new(format!("/v1/scans/{}/grid", scan.id));
    let path = fields
        .pairs()
        .fold(path, |path, (name, value)| path.with(name, Some(value)));
    let grid: Grid = client.get(&path.path()).await?;
    let prices = PriceTable::of_scan(&grid, SecondField::Cheapest);
    let mut text = price_table::render(&prices, screen);
    if let Some(markets) = &prices.markets {
        text = format!("{text}\n\n{}", sheet::section(markets, screen));
    }
    let subject = trip::title(scan.endpoint, &scan.request, &scan.sweep);
    Ok(format!("{subject}: {}\n{text}", prices.title))
}
