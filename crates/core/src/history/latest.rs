//! Price calendars from `latest_prices`: the last known price of each date, without upstream calls.

use futures::{Stream, TryStreamExt as _};
use jiff::Timestamp;
use sqlx::{PgConnection, PgPool};

use super::presenter::ProductPresenter;
use super::query::PriceQuery;
use super::store::select::{self, LatestCursor, LatestRow};
use crate::contract::history::ProductFields;
use crate::contract::history_verdict::HistoryVerdict;
use crate::ids::{ItemId, TenantId};
use crate::paging::{self, PageError};

/// Rows of a calendar: twelve products over the longest range.
pub(super) const MAX_ROWS: usize = 5_000;

/// Rows that an export reads at a time: some hundred kilobytes.
const ROWS_PER_EXPORT_PAGE: usize = 500;

/// A last known price with the fields of its product.
pub struct LatestPrice {
    pub(super) row: LatestRow,
    pub(super) product: ProductFields,
    pub(super) age_seconds: u64,
    /// The verdict, if one was asked for.
    pub history_verdict: Option<HistoryVerdict>,
}

impl LatestPrice {
    pub(super) fn new(row: LatestRow, presenter: &mut ProductPresenter, now: Timestamp) -> Self {
        Self {
            product: presenter.product(row.endpoint, &row.product),
            age_seconds: age_seconds(row.observed_at.to_jiff(), now),
            row,
            history_verdict: None,
        }
    }

    /// The item that found it.
    pub fn item(&self) -> ItemId {
        self.row.item_id.into()
    }
}

/// The last known lowest price of each date, at the time `now`, and whether there are more.
pub async fn calendar(
    conn: &mut PgConnection,
    tenant: TenantId,
    query: &PriceQuery,
    now: Timestamp,
) -> sqlx::Result<(Vec<LatestPrice>, bool)> {
    let (rows, next) = rows(conn, tenant, query, None, MAX_ROWS).await?;
    let mut presenter = ProductPresenter::default();
    let prices = rows
        .into_iter()
        .map(|row| LatestPrice::new(row, &mut presenter, now))
        .collect();
    Ok((prices, next.is_some()))
}

/// The last known lowest prices as a stream, without the row limit of a calendar.
pub fn stream(
    pool: PgPool,
    tenant: TenantId,
    query: PriceQuery,
    now: Timestamp,
) -> impl Stream<Item = Result<LatestPrice, PageError>> + Send {
    let mut presenter = ProductPresenter::default();
    let rows = paging::stream_rows(None, move |after: Option<LatestCursor>| {
        let (pool, query) = (pool.clone(), query.clone());
        async move {
            let mut conn = pool.acquire().await?;
            let after = after.as_ref();
            let (rows, next) = rows(&mut conn, tenant, &query, after, ROWS_PER_EXPORT_PAGE).await?;
            Ok((rows, next.map(Some)))
        }
    });
    rows.map_ok(move |row| LatestPrice::new(row, &mut presenter, now))
}

/// At most `limit` rows, and a cursor if there are more.
pub(super) async fn rows(
    conn: &mut PgConnection,
    tenant: TenantId,
    query: &PriceQuery,
    after: Option<&LatestCursor>,
    limit: usize,
) -> sqlx::Result<(Vec<LatestRow>, Option<LatestCursor>)> {
    let mut rows =
        select::latest(conn, tenant, query, after, paging::limit_plus_one(limit)).await?;
    let next = paging::truncate_page(&mut rows, limit).map(|last| LatestCursor {
        first_date: last.first_date.to_jiff(),
        stay: last.stay.to_jiff(),
        endpoint: last.endpoint,
        series: last.series.clone(),
    });
    Ok((rows, next))
}

/// Whole seconds; 0 for a time in the future.
pub(super) fn age_seconds(observed_at: Timestamp, now: Timestamp) -> u64 {
    u64::try_from(now.duration_since(observed_at).as_secs()).unwrap_or_default()
}
