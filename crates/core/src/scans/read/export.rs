//! A stream of all items of a scan, also while it runs.
//!
//! It reads the order first, as at most 10,000 positions, and then the items by position, a page at
//! a time. Paging by price would not work while the scan runs: an item whose price appears behind
//! the cursor would be missing, and a retried one would come twice. So each item comes once, in its
//! state at the time of its page, if it still matches the query.

use std::sync::Arc;

use futures::{Stream, StreamExt as _};
use sqlx::PgPool;

use super::ItemsForm;
use super::rows::ItemWithAnswer;
use super::store::{self, export as export_store};
use crate::contract::Endpoint;
use crate::contract::scans::{Expand, Item, ItemsQuery};
use crate::ids::{ScanId, TenantId};
use crate::paging::{self, Page, PageError};

/// The items of a page: some hundred kilobytes.
const PAGE_ITEMS: usize = 250;
/// The items of a page with answers, which are decompressed one at a time.
const PAGE_ITEMS_WITH_ANSWERS: usize = 50;

/// Reads the pages of one export.
#[derive(Clone)]
struct ExportReader {
    pool: PgPool,
    tenant: TenantId,
    scan: ScanId,
    endpoint: Endpoint,
    query: ItemsQuery,
    order: Arc<[i32]>,
}

/// The form of a scan's items, and every item that matches the query, in its order; ignores cursor and
/// limit. `None`: there is no such scan.
///
/// # Errors
/// When the database does not answer. An item of the stream: the same, or [`PageError::Gone`] once
/// the scan is deleted.
pub async fn all_items(
    pool: &PgPool,
    tenant: TenantId,
    scan: ScanId,
    query: &ItemsQuery,
) -> sqlx::Result<
    Option<(
        ItemsForm,
        impl Stream<Item = Result<Item, PageError>> + Send + use<>,
    )>,
> {
    let Some(form) = store::items_form(pool, tenant, scan).await? else {
        return Ok(None);
    };
    let order = export_store::positions(pool, tenant, scan, query)
        .await?
        .into();
    let reader = ExportReader {
        pool: pool.clone(),
        tenant,
        scan,
        endpoint: form.endpoint,
        query: query.clone(),
        order,
    };
    let found = paging::stream_rows(0, move |from| reader.clone().page(from));
    Ok(Some((form, found.map(|found| Ok(found?.try_into()?)))))
}

impl ExportReader {
    async fn page(self, from: usize) -> Page<ItemWithAnswer, usize> {
        let rows = if self.query.expand == Some(Expand::Answer) {
            PAGE_ITEMS_WITH_ANSWERS
        } else {
            PAGE_ITEMS
        };
        let Some(positions) = self.order[from..].chunks(rows).next() else {
            return Ok((Vec::new(), None));
        };
        let found = export_store::items_at(
            &self.pool,
            self.tenant,
            self.scan,
            self.endpoint,
            &self.query,
            positions,
        )
        .await?;
        if found.is_empty() {
            return Err(PageError::Gone);
        }
        // Large answers make a page shorter.
        let next = from + found.len();
        let matching = found.into_iter().filter(|found| found.matches).collect();
        Ok((matching, (next < self.order.len()).then_some(next)))
    }
}
