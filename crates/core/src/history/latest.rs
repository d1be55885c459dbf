//! Price calendars from `latest_prices`: the last known price of each date, without upstream calls.

use futures::{Stream, TryStreamExt as _};
use jiff::Timestamp;
use jiff::civil::Date;
use sqlx::{PgConnection, PgPool};

use super::filter::Filter;
use super::presenter::ProductPresenter;
use super::product::Product;
use super::store::select::{self, LatestRow};
use crate::contract::Endpoint;
use crate::ids::TenantId;
use crate::paging::{self, PageError};

/// Rows of a calendar: twelve products over the longest range.
pub(super) const MAX_ROWS: usize = 5_000;

/// Rows that an export reads at a time: some hundred kilobytes.
const ROWS_PER_EXPORT_PAGE: usize = 500;

/// Last row of the previous page.
#[derive(Debug, Clone)]
pub(super) struct LatestCursor {
    pub(super) first_date: Date,
    pub(super) stay: Date,
    pub(super) endpoint: Endpoint,
    pub(super) series: Vec<u8>,
}

/// The last known lowest price of each date, at the time `now`.
pub async fn calendar<P: Product>(
    conn: &mut PgConnection,
    tenant: TenantId,
    query: &P::LatestQuery,
    now: Timestamp,
) -> sqlx::Result<P::Calendar> {
    let (rows, next) = rows(conn, tenant, &P::latest_filter(query), None, MAX_ROWS).await?;
    let mut presenter = ProductPresenter::<P>::default();
    let data = rows
        .into_iter()
        .map(|row| latest(row, &mut presenter, now))
        .collect();
    Ok(P::calendar(data, next.is_some()))
}

/// The last known lowest prices as a stream, without the row limit of a calendar.
pub fn stream<P: Product>(
    pool: &PgPool,
    tenant: TenantId,
    query: &P::LatestQuery,
    now: Timestamp,
) -> impl Stream<Item = Result<P::Latest, PageError>> + Send + use<P> {
    let mut presenter = ProductPresenter::<P>::default();
    stream_latest(pool.clone(), tenant, P::latest_filter(query))
        .map_ok(move |row| latest(row, &mut presenter, now))
}

fn latest<P: Product>(
    row: LatestRow,
    presenter: &mut ProductPresenter<P>,
    now: Timestamp,
) -> P::Latest {
    let product = presenter.product(row.endpoint, &row.product);
    P::latest(row, product, None, now)
}

fn stream_latest(
    pool: PgPool,
    tenant: TenantId,
    filter: Filter,
) -> impl Stream<Item = Result<LatestRow, PageError>> + Send {
    paging::stream_rows(None, move |after: Option<LatestCursor>| {
        let (pool, filter) = (pool.clone(), filter.clone());
        async move {
            let (rows, next) = rows(
                &mut *pool.acquire().await?,
                tenant,
                &filter,
                after.as_ref(),
                ROWS_PER_EXPORT_PAGE,
            )
            .await?;
            Ok((rows, next.map(Some)))
        }
    })
}

/// At most `limit` rows, and a cursor if there are more.
pub(super) async fn rows(
    conn: &mut PgConnection,
    tenant: TenantId,
    filter: &Filter,
    after: Option<&LatestCursor>,
    limit: usize,
) -> sqlx::Result<(Vec<LatestRow>, Option<LatestCursor>)> {
    let mut rows =
        select::latest(conn, tenant, filter, after, paging::limit_plus_one(limit)).await?;
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
