//! Observations of a product, newest first, in pages or as a stream.

use futures::{Stream, TryStreamExt as _};
use sqlx::{PgConnection, PgPool};

use super::presenter::ProductPresenter;
use super::query::PriceQuery;
use super::store::select::{self, ObservationCursor, ObservationRow};
use crate::contract::history::ProductFields;
use crate::contract::primitives::Cursor;
use crate::ids::TenantId;
use crate::paging::{self, PageError};

/// Rows that an export reads at a time: some hundred kilobytes.
const ROWS_PER_EXPORT_PAGE: usize = 500;

/// An observation with the fields of its product.
pub struct ListedObservation {
    pub(super) row: ObservationRow,
    pub(super) product: ProductFields,
}

/// A page of observations, and the cursor of the next one.
///
/// # Errors
/// The cursor belongs to another list; database errors.
pub async fn page(
    conn: &mut PgConnection,
    tenant: TenantId,
    query: &PriceQuery,
) -> Result<(Vec<ListedObservation>, Option<String>), PageError> {
    let list = query.api().as_str();
    let before = parse_cursor(list, query.cursor.as_ref())?;
    let (rows, next) = rows(conn, tenant, query, before, query.limit).await?;
    let mut presenter = ProductPresenter::default();
    let data = rows
        .into_iter()
        .map(|row| listed(row, &mut presenter))
        .collect();
    Ok((data, next.map(|next| next.encode(list))))
}

/// All observations as a stream; ignores the query's cursor and limit. It runs from newest to oldest,
/// so it never meets observations that arrive meanwhile.
pub fn stream(
    pool: PgPool,
    tenant: TenantId,
    query: PriceQuery,
) -> impl Stream<Item = Result<ListedObservation, PageError>> + Send {
    let mut presenter = ProductPresenter::default();
    let rows = paging::stream_rows(None, move |before| {
        let (pool, query) = (pool.clone(), query.clone());
        async move {
            let mut conn = pool.acquire().await?;
            let (rows, next) =
                rows(&mut conn, tenant, &query, before, ROWS_PER_EXPORT_PAGE).await?;
            Ok((rows, next.map(Some)))
        }
    });
    rows.map_ok(move |row| listed(row, &mut presenter))
}

fn listed(row: ObservationRow, presenter: &mut ProductPresenter) -> ListedObservation {
    let product = presenter.product(row.endpoint, &row.product);
    ListedObservation { row, product }
}

/// At most `limit` observations, and a cursor if there are more.
async fn rows(
    conn: &mut PgConnection,
    tenant: TenantId,
    query: &PriceQuery,
    before: Option<ObservationCursor>,
    limit: usize,
) -> sqlx::Result<(Vec<ObservationRow>, Option<ObservationCursor>)> {
    let mut rows =
        select::observations(conn, tenant, query, before, paging::limit_plus_one(limit)).await?;
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
