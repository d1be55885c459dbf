//! All items of a scan, one after the other, also while it runs.
//!
//! The order is settled first, as at most 10,000 positions; the items are then read by position, a page at a time. A place in the order
//! of prices would not do to go on from: prices come while a scan runs, and an item whose price comes behind that place would be told
//! never, one that is asked again twice. So each item comes once, as it is when its page is read, if it still fits what was asked for.

use std::sync::Arc;

use futures::{Stream, StreamExt as _};
use sqlx::PgPool;

use super::rows::FoundItem;
use super::store::{self, export as find};
use crate::contract::Endpoint;
use crate::contract::scans::{Expand, Item, ItemsQuery};
use crate::ids::{ScanId, TenantId};
use crate::paging::{self, Page, PageError};

/// How many items are read at a time: some hundred kilobytes.
const ROWS: usize = 250;
/// How many with their answers, which are unpacked one at a time.
const ROWS_WITH_ANSWERS: usize = 50;

/// What is the same for each page.
#[derive(Clone)]
struct Reader {
    pool: PgPool,
    tenant: TenantId,
    scan: ScanId,
    endpoint: Endpoint,
    query: ItemsQuery,
    order: Arc<[i32]>,
}

/// The endpoint of a scan, and every item that fits the query, in its order; cursor and limit do not count. `None`: there is no such
/// scan.
///
/// # Errors
/// When the database does not answer. The rows: the same, or [`PageError::Gone`] once the scan is deleted.
pub async fn all_items(
    pool: &PgPool,
    tenant: TenantId,
    scan: ScanId,
    query: &ItemsQuery,
) -> sqlx::Result<
    Option<(
        Endpoint,
        impl Stream<Item = Result<Item, PageError>> + Send + use<>,
    )>,
> {
    let Some(endpoint) = store::endpoint_of(pool, tenant, scan).await? else {
        return Ok(None);
    };
    let order = find::positions(pool, tenant, scan, query).await?.into();
    let reader = Reader {
        pool: pool.clone(),
        tenant,
        scan,
        endpoint,
        query: query.clone(),
        order,
    };
    let found = paging::walk(0, move |from| reader.clone().page(from));
    Ok(Some((endpoint, found.map(|found| Ok(found?.try_into()?)))))
}

impl Reader {
    async fn page(self, from: usize) -> Page<FoundItem, usize> {
        let rows = if self.query.expand == Some(Expand::Answer) {
            ROWS_WITH_ANSWERS
        } else {
            ROWS
        };
        let Some(asked) = self.order[from..].chunks(rows).next() else {
            return Ok((Vec::new(), None));
        };
        let found = find::items_at(
            &self.pool,
            self.tenant,
            self.scan,
            self.endpoint,
            &self.query,
            asked,
        )
        .await?;
        if found.is_empty() {
            return Err(PageError::Gone);
        }
        // Large answers make a page shorter than was asked.
        let next = from + found.len();
        let fitting = found.into_iter().filter(|found| found.fits).collect();
        Ok((fitting, (next < self.order.len()).then_some(next)))
    }
}
