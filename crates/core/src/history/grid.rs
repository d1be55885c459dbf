//! The last known prices as grids: one grid per product. A cell has the price, its age and the
//! status of the newest search.
//!
//! The grid of a scan is in `scans::grid`.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use super::latest::age_seconds;
use super::presenter;
use super::query::PriceQuery;
use super::series_key::SeriesKey;
use super::store::grid::{self, HistoryGridRow};
use crate::contract::history_grid::{HistoryCell, HistoryGrid, HistoryGrids};
use crate::contract::scans::GridAxis;
use crate::contract::{Endpoint, SearchStatus};
use crate::ids::TenantId;
use crate::paging;

/// Rows of `latest_prices` that one answer reads.
const MAX_ROWS: usize = 20_000;
/// Cells in one answer: as many as a scan can have items.
const MAX_CELLS: usize = 10_000;

/// The dimension that an axis shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HistoryAxis {
    First,
    Nights,
    Market,
}

/// The axes of a grid, and the date range that a date axis covers completely.
#[derive(Debug, Clone, Copy)]
pub(super) struct HistoryLayout<'a> {
    rows: (HistoryAxis, &'a str),
    columns: Option<(HistoryAxis, &'a str)>,
    dates: Option<(Date, Date)>,
}

/// A value on an axis. The order of the variants' values is the order of the axis.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum GridValue {
    Day(Date),
    Nights(i32),
    Market(Option<String>),
}

/// The last known prices of a grid's products, and whether there are more.
pub(super) async fn read(
    conn: &mut PgConnection,
    tenant: TenantId,
    query: &PriceQuery,
) -> sqlx::Result<(Vec<HistoryGridRow>, bool)> {
    let limit = paging::limit_plus_one(MAX_ROWS);
    let known = grid::latest_by_date(conn, tenant, query, limit).await?;
    Ok(whole_products(known))
}

/// The same of these products at these dates.
pub(super) async fn read_products(
    conn: &mut PgConnection,
    tenant: TenantId,
    products: &[SeriesKey],
    dates: (Date, Date),
    nights: &[i32],
) -> sqlx::Result<(Vec<HistoryGridRow>, bool)> {
    let limit = paging::limit_plus_one(MAX_ROWS);
    let known = grid::latest_of_products(conn, tenant, products, dates, nights, limit).await?;
    Ok(whole_products(known))
}

fn whole_products(mut known: Vec<HistoryGridRow>) -> (Vec<HistoryGridRow>, bool) {
    let truncated = known.len() > MAX_ROWS;
    if truncated {
        // A truncated product would show its missing dates as never searched.
        let cut = known.last().map(|row| row.series.clone());
        known.retain(|row| Some(&row.series) != cut.as_ref());
    }
    (known, truncated)
}

/// The grids of these prices. A cell shows that of an implausible item if it has no other.
pub(super) fn build(
    (known, mut truncated): (Vec<HistoryGridRow>, bool),
    implausible: &HashSet<Uuid>,
    layout: &HistoryLayout<'_>,
    now: Timestamp,
) -> HistoryGrids {
    let (mut data, mut cells) = (Vec::new(), 0);
    for rows in products(known, layout).into_values() {
        let most = MAX_CELLS - cells;
        let Some(grid) = build_grid(&rows, implausible, layout, now, most) else {
            truncated = true;
            continue;
        };
        cells += grid.cells.len();
        data.push(grid);
    }
    HistoryGrids { data, truncated }
}

/// Groups rows by product. If the market is an axis, it is not part of the product.
fn products(
    known: Vec<HistoryGridRow>,
    layout: &HistoryLayout<'_>,
) -> BTreeMap<(Endpoint, String), Vec<HistoryGridRow>> {
    let markets = layout.axes().any(|side| side == HistoryAxis::Market);
    let mut products = BTreeMap::<_, Vec<_>>::new();
    for row in known {
        let mut product = row.product.clone();
        if let Some(product) = product.as_object_mut().filter(|_| markets) {
            product.shift_remove("proxy_country");
        }
        products
            .entry((row.endpoint, product.to_string()))
            .or_default()
            .push(row);
    }
    products
}

impl<'a> HistoryLayout<'a> {
    /// Of products at dates: a row for each.
    pub(super) const fn by_date(dates: (Date, Date)) -> Self {
        Self {
            rows: (HistoryAxis::First, "first_date"),
            columns: None,
            dates: Some(dates),
        }
    }

    pub(super) fn of(query: &'a PriceQuery) -> Self {
        let axis = |field: &'a str| match field {
            "nights" => (HistoryAxis::Nights, field),
            "proxy_country" => (HistoryAxis::Market, field),
            _ => (HistoryAxis::First, field),
        };
        Self {
            rows: axis(&query.rows),
            columns: query.columns.as_deref().map(axis),
            dates: query.first_from().zip(query.first_to()),
        }
    }

    fn axes(&self) -> impl Iterator<Item = HistoryAxis> {
        [Some(self.rows.0), self.columns.map(|columns| columns.0)]
            .into_iter()
            .flatten()
    }

    /// The values of an axis: all days of the range, or the values that occur.
    fn axis_values(&self, side: HistoryAxis, known: &[HistoryGridRow]) -> Vec<GridValue> {
        match side {
            HistoryAxis::First => {
                let days = |(first, last): (Date, Date)| {
                    let days = first.series(jiff::Span::new().days(1));
                    days.take_while(move |day| *day <= last)
                };
                let days = self.dates.into_iter().flat_map(days);
                days.map(GridValue::Day).collect()
            }
            _ => known
                .iter()
                .map(|row| axis_value(side, row))
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect(),
        }
    }
}

fn axis_value(side: HistoryAxis, row: &HistoryGridRow) -> GridValue {
    let (first, last) = (row.first_date.to_jiff(), row.last_date.to_jiff());
    match side {
        HistoryAxis::First => GridValue::Day(first),
        HistoryAxis::Nights => {
            GridValue::Nights(first.until(last).map_or(0, |span| span.get_days()))
        }
        HistoryAxis::Market => GridValue::Market(row.market.clone()),
    }
}

impl GridValue {
    fn to_json(&self) -> Value {
        match self {
            Self::Day(day) => day.to_string().into(),
            Self::Nights(nights) => (*nights).into(),
            Self::Market(market) => market.clone().into(),
        }
    }
}

/// The grid of one product; `None` if it would exceed `max_cells`.
fn build_grid(
    known: &[HistoryGridRow],
    implausible: &HashSet<Uuid>,
    layout: &HistoryLayout<'_>,
    now: Timestamp,
    max_cells: usize,
) -> Option<HistoryGrid> {
    let first = known.first()?;
    let endpoint = first.endpoint;
    let rows = layout.axis_values(layout.rows.0, known);
    let columns = layout
        .columns
        .map(|(side, _)| layout.axis_values(side, known));
    if rows.len() * columns.as_ref().map_or(1, Vec::len) > max_cells {
        return None;
    }
    let mut places = BTreeMap::<(GridValue, Option<GridValue>), Vec<&HistoryGridRow>>::new();
    for row in known {
        let at = (
            axis_value(layout.rows.0, row),
            layout.columns.map(|(side, _)| axis_value(side, row)),
        );
        places.entry(at).or_default().push(row);
    }
    let of_row = |row: &GridValue| match &columns {
        Some(columns) => columns
            .iter()
            .map(|column| (row.clone(), Some(column.clone())))
            .collect(),
        None => vec![(row.clone(), None)],
    };
    let cells = rows
        .iter()
        .flat_map(of_row)
        .map(|at| {
            let known = places.get(&at).map(Vec::as_slice).unwrap_or_default();
            let shown = representative(known, implausible);
            HistoryCell {
                implausible: shown.is_some_and(|row| is_implausible(row, implausible)),
                ..cell(&at, shown, now)
            }
        })
        .collect();
    let axis = |(_, field): (HistoryAxis, &str), axis_values: &[GridValue]| GridAxis {
        field: field.to_owned(),
        values: axis_values.iter().map(GridValue::to_json).collect(),
    };
    let markets = layout.axes().any(|side| side == HistoryAxis::Market);
    Some(HistoryGrid {
        endpoint,
        from_airport: first.origin.clone(),
        place: first.place.clone(),
        proxy_country: first.market.clone().filter(|_| !markets),
        product: presenter::other_fields(endpoint, &first.product),
        currency: first.currency.clone(),
        rows: axis(layout.rows, &rows),
        columns: layout
            .columns
            .zip(columns.as_deref())
            .map(|(side, axis_values)| axis(side, axis_values)),
        cells,
    })
}

fn is_implausible(row: &HistoryGridRow, implausible: &HashSet<Uuid>) -> bool {
    row.item_id.is_some_and(|item| implausible.contains(&item))
}

/// The row that a cell shows: the one with the lowest price, a plausible one if there is one, else
/// the newest search.
fn representative<'a>(
    known: &[&'a HistoryGridRow],
    implausible: &HashSet<Uuid>,
) -> Option<&'a HistoryGridRow> {
    let cheapest = known
        .iter()
        .filter(|row| row.price.is_some())
        .min_by_key(|row| (is_implausible(row, implausible), row.price));
    cheapest
        .or_else(|| {
            known
                .iter()
                .max_by_key(|row| row.sampled_at.map(jiff_sqlx::Timestamp::to_jiff))
        })
        .copied()
}

fn cell(
    at: &(GridValue, Option<GridValue>),
    known: Option<&HistoryGridRow>,
    now: Timestamp,
) -> HistoryCell {
    let observed_at = known
        .and_then(|row| row.observed_at)
        .map(jiff_sqlx::Timestamp::to_jiff);
    let sampled_at = known
        .and_then(|row| row.sampled_at)
        .map(jiff_sqlx::Timestamp::to_jiff);
    let status = known.and_then(|row| row.sample_status);
    let is_trip = known.is_some_and(|row| row.endpoint != Endpoint::FlightsOneway);
    HistoryCell {
        row: at.0.to_json(),
        column: at.1.as_ref().map(GridValue::to_json),
        price: known
            .and_then(|row| row.price)
            .map(|price| price.normalize()),
        implausible: false,
        first_date: known.map(|row| row.first_date.to_jiff()),
        last_date: known.filter(|_| is_trip).map(|row| row.last_date.to_jiff()),
        seller: known.and_then(|row| row.seller.clone()),
        price_insights_low: known
            .and_then(|row| row.band_low)
            .map(|price| price.normalize()),
        price_insights_high: known
            .and_then(|row| row.band_high)
            .map(|price| price.normalize()),
        verdict: known.and_then(|row| row.verdict),
        observed_at,
        age_seconds: observed_at.map(|observed_at| age_seconds(observed_at, now)),
        item_id: known.and_then(|row| row.item_id).map(Into::into),
        // A row may have a price and no sample: then the price is the last sample.
        looked_at: sampled_at.or(observed_at),
        search_status: status.or(observed_at.map(|_| SearchStatus::Ok)),
        reason: known.and_then(|row| row.sample_reason.clone()),
    }
}
