//! The grid of a scan: a calendar or some of them, or a matrix.

use farescan_sheets::price_table::{GridFields, PriceTable, SecondField};
use farescan_sheets::trip::capitalised;
use maud::{Markup, html};

use crate::failure::PageFailure;
use crate::price_table::{self, MOST_CALENDARS};
use crate::session::Session;
use crate::sheet;
use farescan_core::commands::CommandError;
use farescan_core::contract::scans::{GridQuery, Scan};
use farescan_core::ids::TenantId;
use farescan_core::scans;

/// More cells than this are shown without the second field, so that the page stays small.
const MAX_CELLS: u32 = 2_500;

/// A scan's grid.
#[derive(Debug)]
pub(super) struct ScanGrid {
    pub(super) table: PriceTable,
    /// Of several airports a calendar of each, below that of the cheapest.
    each: Option<PriceTable>,
    is_shortened: bool,
}

/// The grid of a scan; `None` if it sweeps nothing.
pub(super) async fn read(
    session: &Session,
    tenant: TenantId,
    scan: &Scan,
) -> Result<Option<ScanGrid>, PageFailure> {
    let Some(mut fields) = GridFields::of(scan) else {
        return Ok(None);
    };
    let is_shortened = fields.columns.is_some() && scan.items.total > MAX_CELLS;
    if is_shortened {
        fields.columns = None;
        fields.baseline = None;
    }
    let _permits = session.heavy_read_permits().await?;
    let query = GridQuery::from_query(fields.pairs())?;
    match scans::grid::grid_of_prices(session.pool()?, tenant, scan, &query).await {
        Ok(grid) => {
            let calendars = PriceTable::of_scan(&grid, SecondField::Calendars(MOST_CALENDARS));
            let columns = grid.columns.as_ref().map(|columns| columns.field.as_str());
            let is_of_airports = matches!(columns, Some("from_airport" | "to_airport"));
            let cheapest =
                is_of_airports.then(|| PriceTable::of_scan(&grid, SecondField::Cheapest));
            let (table, each) = match cheapest {
                Some(cheapest) => (cheapest, Some(calendars)),
                None => (calendars, None),
            };
            Ok(Some(ScanGrid {
                table,
                each,
                is_shortened,
            }))
        }
        // A sweep of three fields, one of them the currency, has no such grid.
        Err(CommandError::ValidationErrors(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl ScanGrid {
    /// The grid with its heading, legend and notes.
    pub(super) fn render(&self) -> Markup {
        html! {
            @if let Some(markets) = &self.table.markets {
                h2 { (markets.title) }
                @if let Some(sentence) = &markets.sentence { p { (sentence) } }
                @if let Some(table) = &markets.table { (sheet::table(table)) }
            }
            h2 { (capitalised(&self.table.title)) }
            (price_table::markup(&self.table, None))
            @if let Some(each) = &self.each {
                details class="fold" {
                    summary { "Each airport" }
                    (price_table::markup(each, None))
                }
            }
            @if self.is_shortened {
                p class="hint" { "This scan has too many cells for one page: each date shows its cheapest price. The exports have all of them." }
            }
        }
    }
}
