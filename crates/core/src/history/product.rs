//! What differs between the history of flights and of hotels: the queries and the rows of answers.
//! Everything else is written once, for any [`Product`].

mod flights;
mod hotels;

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

pub use self::flights::Flights;
pub use self::hotels::Hotels;
use super::aggregate::BucketStats;
use super::buckets::BucketRange;
use super::filter::Filter;
use super::grid::HistoryLayout;
use super::store::products::ProductRow;
use super::store::select::{LatestRow, ObservationRow};
use crate::contract::history::ProductFields;
use crate::contract::history_verdict::HistoryVerdict;
use crate::contract::primitives::{Cursor, PageLimit};
use crate::contract::{Endpoint, HistoryQuery, ValidationErrors};

/// A row of an answer or file.
pub trait Row: Serialize + ToSchema + Send + 'static {}

impl<T: Serialize + ToSchema + Send + 'static> Row for T {}

/// Flights or hotels.
pub trait Product: 'static {
    /// Its name in paths, cursors and file names.
    const NAME: &'static str;
    /// The endpoints whose searches observe it.
    const ENDPOINTS: &'static [Endpoint];
    /// Product fields that a row shows in columns of their own.
    const COLUMNS: &'static [&'static str];

    /// The query of single observations.
    type ListQuery: HistoryQuery;
    /// An observation.
    type Observation: Row;
    /// A page of observations.
    type Page: Serialize + Send;
    /// Which observations a query selects.
    fn list_filter(query: &Self::ListQuery) -> Filter;
    /// Where the page of a query begins, and its size.
    fn paging(query: &Self::ListQuery) -> (Option<&Cursor>, PageLimit);
    /// An observation as a row.
    fn observation(row: ObservationRow, product: ProductFields) -> Self::Observation;
    /// A page of rows.
    fn page(data: Vec<Self::Observation>, next_cursor: Option<String>) -> Self::Page;

    /// The query of last prices.
    type LatestQuery: HistoryQuery;
    /// A last price.
    type Latest: Row;
    /// The last prices by date.
    type Calendar: Serialize + Send;
    /// Which prices a query selects.
    fn latest_filter(query: &Self::LatestQuery) -> Filter;
    /// Whether each price gets a verdict.
    fn is_latest_judged(query: &Self::LatestQuery) -> bool;
    /// A last price as a row, at the time `now`.
    fn latest(
        row: LatestRow,
        product: ProductFields,
        verdict: Option<HistoryVerdict>,
        now: Timestamp,
    ) -> Self::Latest;
    /// A calendar of rows.
    fn calendar(data: Vec<Self::Latest>, truncated: bool) -> Self::Calendar;

    /// The query of prices over time.
    type SeriesQuery: HistoryQuery;
    /// A bucket of one product.
    type Bucket: Row;
    /// Prices over time.
    type Series: Serialize + Send;
    /// Which observations a query selects, except for its time range.
    fn series_filter(query: &Self::SeriesQuery) -> Filter;
    /// The time range of a query and its buckets, at the time `now`.
    ///
    /// # Errors
    /// The range is too long, or ends before it begins.
    fn range(query: &Self::SeriesQuery, now: Timestamp) -> Result<BucketRange, ValidationErrors>;
    /// Whether the lowest price of each bucket gets a verdict.
    fn is_series_judged(query: &Self::SeriesQuery) -> bool;
    /// A bucket as a row.
    fn bucket(
        row: &ProductRow,
        product: ProductFields,
        stats: BucketStats,
        verdict: Option<HistoryVerdict>,
    ) -> Self::Bucket;
    /// A series of rows.
    fn series(range: BucketRange, data: Vec<Self::Bucket>, truncated: bool) -> Self::Series;

    /// The query of grids.
    type GridQuery: HistoryQuery;
    /// Which prices a query selects, except for its length of stay.
    fn grid_filter(query: &Self::GridQuery) -> Filter;
    /// The axes of the grids.
    fn layout(query: &Self::GridQuery) -> HistoryLayout;
}

fn count(number: Option<i32>) -> Option<u32> {
    number.and_then(|number| u32::try_from(number).ok())
}
