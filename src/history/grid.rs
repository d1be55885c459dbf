//! The last known prices as grids: a grid for each product, every cell with its price's age and what the last look came to.
//!
//! Here: reading what is known, and laying it out, which is pure. Not here: the grid of a scan (`scans::grid`).

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::Value;
use sqlx::PgConnection;

use super::filter::Filter;
use super::latest::age_seconds;
use super::shown;
use super::store::grid::{self, KnownRow};
use crate::contract::grids::{
    FlightGridQuery, FlightSide, HistoryCell, HistoryGrid, HistoryGrids, HotelGridQuery, HotelSide,
};
use crate::contract::scans::{GridAxis, Nights};
use crate::contract::{Endpoint, SearchStatus, Verdict};
use crate::ids::TenantId;
use crate::paging;

/// The most known dates that an answer is made of.
const MAX_KNOWN: usize = 20_000;
/// The most cells of an answer, and of a grid: as many as a scan can have items.
const MAX_CELLS: usize = 10_000;

/// What a side of a grid counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    First,
    Nights,
    Market,
}

/// The sides, and the days that a side of dates has whether or not one was looked at.
#[derive(Debug, Clone, Copy)]
struct Layout {
    rows: (Side, &'static str),
    columns: Option<(Side, &'static str)>,
    from: Date,
    to: Date,
}

/// A place on a side, in the order in which sides are shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    Day(Date),
    Nights(i32),
    Market(Option<String>),
}

/// The last known fares of a route as grids.
///
/// # Errors
/// When the database does not answer.
pub async fn flights(
    conn: &mut PgConnection,
    tenant: TenantId,
    query: &FlightGridQuery,
    now: Timestamp,
) -> sqlx::Result<HistoryGrids> {
    let side = |side: FlightSide| match side {
        FlightSide::DepartureDate => (Side::First, side.as_str()),
        FlightSide::Nights => (Side::Nights, side.as_str()),
    };
    let layout = Layout {
        rows: side(query.rows),
        columns: query.columns.map(side),
        from: query.departure_from,
        to: query.departure_to,
    };
    read(conn, tenant, &query.into(), query.nights, &layout, now).await
}

/// The last known rates of a hotel or place as grids.
///
/// # Errors
/// When the database does not answer.
pub async fn hotels(
    conn: &mut PgConnection,
    tenant: TenantId,
    query: &HotelGridQuery,
    now: Timestamp,
) -> sqlx::Result<HistoryGrids> {
    let side = |side: HotelSide| match side {
        HotelSide::CheckinDate => (Side::First, side.as_str()),
        HotelSide::Nights => (Side::Nights, side.as_str()),
        HotelSide::ProxyCountry => (Side::Market, side.as_str()),
    };
    let layout = Layout {
        rows: side(query.rows),
        columns: query.columns.map(side),
        from: query.checkin_from,
        to: query.checkin_to,
    };
    read(conn, tenant, &query.into(), query.nights, &layout, now).await
}

async fn read(
    conn: &mut PgConnection,
    tenant: TenantId,
    filter: &Filter,
    nights: Option<Nights>,
    layout: &Layout,
    now: Timestamp,
) -> sqlx::Result<HistoryGrids> {
    let nights = nights.map(|nights| i32::from(nights.get()));
    let mut known = grid::known(
        conn,
        tenant,
        filter,
        nights,
        paging::one_more_than(MAX_KNOWN),
    )
    .await?;
    let mut truncated = known.len() > MAX_KNOWN;
    if truncated {
        // The product that was cut off would read as never looked at.
        let cut = known.last().map(|row| row.series.clone());
        known.retain(|row| Some(&row.series) != cut.as_ref());
    }
    let (mut data, mut cells) = (Vec::new(), 0);
    for rows in products(known, layout).into_values() {
        let Some(grid) = laid_out(&rows, layout, now, MAX_CELLS - cells) else {
            truncated = true;
            continue;
        };
        cells += grid.cells.len();
        data.push(grid);
    }
    Ok(HistoryGrids { data, truncated })
}

/// What is known by product. A market that is a side is none of the product.
fn products(known: Vec<KnownRow>, layout: &Layout) -> BTreeMap<(String, String), Vec<KnownRow>> {
    let markets = layout.sides().any(|side| side == Side::Market);
    let mut products = BTreeMap::<_, Vec<_>>::new();
    for row in known {
        let mut product = row.product.clone();
        if let Some(product) = product.as_object_mut().filter(|_| markets) {
            product.shift_remove("proxy_country");
        }
        products
            .entry((row.endpoint.clone(), product.to_string()))
            .or_default()
            .push(row);
    }
    products
}

impl Layout {
    fn sides(&self) -> impl Iterator<Item = Side> {
        [Some(self.rows.0), self.columns.map(|columns| columns.0)]
            .into_iter()
            .flatten()
    }

    /// Every mark of a side: all days of the range, or what there is.
    fn marks(&self, side: Side, known: &[KnownRow]) -> Vec<Mark> {
        match side {
            Side::First => self
                .from
                .series(jiff::Span::new().days(1))
                .take_while(|day| *day <= self.to)
                .map(Mark::Day)
                .collect(),
            _ => known
                .iter()
                .map(|row| mark(side, row))
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect(),
        }
    }
}

fn mark(side: Side, row: &KnownRow) -> Mark {
    let (first, last) = (row.first_date.to_jiff(), row.last_date.to_jiff());
    match side {
        Side::First => Mark::Day(first),
        Side::Nights => Mark::Nights(first.until(last).map_or(0, |span| span.get_days())),
        Side::Market => Mark::Market(row.market.clone()),
    }
}

impl Mark {
    fn shown(&self) -> Value {
        match self {
            Self::Day(day) => day.to_string().into(),
            Self::Nights(nights) => (*nights).into(),
            Self::Market(market) => market.clone().into(),
        }
    }
}

/// The grid of one product; `None` where it would have more cells than there is room for.
fn laid_out(
    known: &[KnownRow],
    layout: &Layout,
    now: Timestamp,
    room: usize,
) -> Option<HistoryGrid> {
    let first = known.first()?;
    let endpoint = Endpoint::parse(&first.endpoint)?;
    let rows = layout.marks(layout.rows.0, known);
    let columns = layout.columns.map(|(side, _)| layout.marks(side, known));
    if rows.len() * columns.as_ref().map_or(1, Vec::len) > room {
        return None;
    }
    let mut places = BTreeMap::<(Mark, Option<Mark>), Vec<&KnownRow>>::new();
    for row in known {
        let at = (
            mark(layout.rows.0, row),
            layout.columns.map(|(side, _)| mark(side, row)),
        );
        places.entry(at).or_default().push(row);
    }
    let of_row = |row: &Mark| match &columns {
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
            cell(
                &at,
                speaker(places.get(&at).map_or(&[], Vec::as_slice)),
                now,
            )
        })
        .collect();
    let axis = |(_, field): (Side, &str), marks: &[Mark]| GridAxis {
        field: field.to_owned(),
        values: marks.iter().map(Mark::shown).collect(),
    };
    let markets = layout.sides().any(|side| side == Side::Market);
    Some(HistoryGrid {
        endpoint,
        from_airport: first.origin.clone(),
        place: first.place.clone(),
        proxy_country: first.market.clone().filter(|_| !markets),
        product: shown::product(endpoint, &first.product),
        currency: first.currency.clone(),
        rows: axis(layout.rows, &rows),
        columns: layout
            .columns
            .zip(columns.as_deref())
            .map(|(side, marks)| axis(side, marks)),
        cells,
    })
}

/// What speaks for a cell: the lowest last known price, else the newest look.
fn speaker<'a>(known: &[&'a KnownRow]) -> Option<&'a KnownRow> {
    let cheapest = known
        .iter()
        .filter(|row| row.price.is_some())
        .min_by_key(|row| row.price);
    cheapest
        .or_else(|| {
            known
                .iter()
                .max_by_key(|row| row.looked_at.map(jiff_sqlx::Timestamp::to_jiff))
        })
        .copied()
}

fn cell(at: &(Mark, Option<Mark>), known: Option<&KnownRow>, now: Timestamp) -> HistoryCell {
    let observed_at = known
        .and_then(|row| row.observed_at)
        .map(jiff_sqlx::Timestamp::to_jiff);
    let looked_at = known
        .and_then(|row| row.looked_at)
        .map(jiff_sqlx::Timestamp::to_jiff);
    let status = known
        .and_then(|row| row.look_status.as_deref())
        .and_then(SearchStatus::parse);
    let is_trip = known.is_some_and(|row| row.endpoint != Endpoint::FlightsOneway.as_str());
    HistoryCell {
        row: at.0.shown(),
        column: at.1.as_ref().map(Mark::shown),
        price: known
            .and_then(|row| row.price)
            .map(|price| price.normalize()),
        first_date: known.map(|row| row.first_date.to_jiff()),
        last_date: known.filter(|_| is_trip).map(|row| row.last_date.to_jiff()),
        seller: known.and_then(|row| row.seller.clone()),
        price_insights_low: known
            .and_then(|row| row.band_low)
            .map(|price| price.normalize()),
        price_insights_high: known
            .and_then(|row| row.band_high)
            .map(|price| price.normalize()),
        verdict: known
            .and_then(|row| row.verdict.as_deref())
            .and_then(Verdict::parse),
        observed_at,
        age_seconds: observed_at.map(|observed_at| age_seconds(observed_at, now)),
        item_id: known.and_then(|row| row.item_id).map(Into::into),
        // A price that was kept before looks were: it is the last that is known.
        looked_at: looked_at.or(observed_at),
        search_status: status.or(observed_at.map(|_| SearchStatus::Ok)),
        reason: known.and_then(|row| row.look_reason.clone()),
    }
}
