//! Observations of a product, newest first, in pages or as a stream.

use futures::{Stream, TryStreamExt as _};
use jiff::Timestamp;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::filter::Filter;
use super::presenter::ProductPresenter;
use super::product::Product;
use super::store::select::{self, ObservationRow};
use crate::contract::primitives::Cursor;
use crate::ids::TenantId;
use crate::paging::{self, PageError};

/// Rows that an export reads at a time: some hundred kilobytes.
const ROWS_PER_EXPORT_PAGE: usize = 500;

/// Last observation of the previous page.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObservationCursor {
    pub(super) observed_at: Timestamp,
    pub(super) item: Uuid,
    pub(super) number: i32,
}

/// A page of observations, and the cursor of the next one.
///
/// # Errors
/// The cursor belongs to another list; database errors.
pub async fn page<P: Product>(
    conn: &mut PgConnection,
    tenant: TenantId,
    query: &P::ListQuery,
) -> Result<(Vec<P::Observation>, Option<String>), PageError> {
    let (cursor, limit) = P::paging(query);
    let before = parse_cursor(P::NAME, cursor)?;
    let limit = usize::from(limit.get());
    let (rows, next) = rows(conn, tenant, &P::list_filter(query), before, limit).await?;
    let mut presenter = ProductPresenter::<P>::default();
    let data = rows
        .into_iter()
        .map(|row| observation(row, &mut presenter))
        .collect();
    Ok((data, next.map(|next| next.encode(P::NAME))))
}

/// All observations as a stream; ignores the query's cursor and limit.
pub fn stream<P: Product>(
    pool: &PgPool,
    tenant: TenantId,
    query: &P::ListQuery,
) -> impl Stream<Item = Result<P::Observation, PageError>> + Send + use<P> {
    let mut presenter = ProductPresenter::<P>::default();
    stream_observations(pool.clone(), tenant, P::list_filter(query))
        .map_ok(move |row| observation(row, &mut presenter))
}

fn observation<P: Product>(
    row: ObservationRow,
    presenter: &mut ProductPresenter<P>,
) -> P::Observation {
    let product = presenter.product(row.endpoint, &row.product);
    P::observation(row, product)
}

/// The stream runs from newest to oldest, so it never meets observations that arrive meanwhile.
fn stream_observations(
    pool: PgPool,
    tenant: TenantId,
    filter: Filter,
) -> impl Stream<Item = Result<ObservationRow, PageError>> + Send {
    paging::stream_rows(None, move |before| {
        let (pool, filter) = (pool.clone(), filter.clone());
        async move {
            let (rows, next) = rows(
                &mut *pool.acquire().await?,
                tenant,
                &filter,
                before,
                ROWS_PER_EXPORT_PAGE,
            )
            .await?;
            Ok((rows, next.map(Some)))
        }
    })
}

/// At most `limit` observations, and a cursor if there are more.
async fn rows(
    conn: &mut PgConnection,
    tenant: TenantId,
    filter: &Filter,
    before: Option<ObservationCursor>,
    limit: usize,
) -> sqlx::Result<(Vec<ObservationRow>, Option<ObservationCursor>)> {
    let mut rows =
        select::observations(conn, tenant, filter, before, paging::limit_plus_one(limit)).await?;
    let next = paging::truncate_page(&mut rows, limit).map(|last| ObservationCursor {
        observed_at: last.observed_at.to_jiff(),
        item: last.item_id,
        number: last.number,
    });
    Ok((rows, next))
}

fn parse_cursor(
    list: &str,
    cursor: Option<&Cursor>,
) -> Result<Option<ObservationCursor>, PageError> {
    let Some(cursor) = cursor else {
        return Ok(None);
    };
    let [observed_at, item, number] = paging::decode_cursor(list, cursor)?;
    let parse = || {
        Some(ObservationCursor {
            observed_at: paging::cursor_time(&observed_at)?,
            item: item.parse().ok()?,
            number: number.parse().ok()?,
        })
    };
    Ok(Some(parse().ok_or_else(|| paging::invalid_cursor(cursor))?))
}

impl ObservationCursor {
    fn encode(&self, list: &str) -> String {
        let key = [
            self.observed_at.as_microsecond().to_string(),
            self.item.simple().to_string(),
            self.number.to_string(),
        ];
        paging::encode_cursor(list, key)
    }
}
