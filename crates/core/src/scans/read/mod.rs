//! Scans, items and attempts as their caller sees them.
//!
//! Here: finding and listing, by page or as a whole (`export`). Another caller's id is treated as
//! unknown: `None`. Not here: waiting for a scan (`watch`).

mod best;
mod changes;
mod export;
mod rows;
mod store;
mod verdicts;

use jiff::Timestamp;
use sqlx::{PgConnection, PgPool};

pub use self::best::{BestOfScan, find_plausible};
pub use self::changes::{Changes, MAX_EVENTS, changes};
pub use self::export::all_items;
pub(super) use self::rows::{decompress_bytes, decompress_json};
pub use self::store::searches;
pub use self::verdicts::{FoundPrice, judge_items, judge_prices};

use self::best::leave_out_implausible;
use self::rows::ItemWithAnswer;
use self::store::export as export_store;
use super::question;
use crate::contract::scans::{
    Attempt, AttemptPage, DecisionPage, DecisionsQuery, Expand, Item, ItemPage, ItemSort,
    ItemsQuery, Scan, ScanPage, ScansQuery,
};
use crate::contract::{Endpoint, RawJson, ValidationErrors};
use crate::ids::{ItemId, MonitorId, ScanId, TenantId};
use crate::paging::{self, PageError, limit_plus_one};

/// The most items of a page with answers; each answer may have megabytes.
const MAX_EXPANDED: i64 = 50;
/// A page ends once its answers exceed this many bytes.
const ANSWER_BYTES: usize = 8 << 20;

/// One scan.
pub async fn scan(pool: &PgPool, tenant: TenantId, id: ScanId) -> sqlx::Result<Option<Scan>> {
    let conn = &mut *pool.acquire().await?;
    let mut scan = scan_on(conn, tenant, id).await?;
    leave_out_implausible(conn, tenant, scan.as_mut_slice()).await?;
    Ok(scan)
}

/// One scan, as the transaction on `conn` sees it. Its best price may be implausible: a transaction
/// with locks must not wait for a price history.
pub(super) async fn scan_on(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: ScanId,
) -> sqlx::Result<Option<Scan>> {
    Ok(store::scan(conn, tenant, id).await?.map(Scan::from))
}

/// Conditions of a list of scans beyond those of the API's query. A scan has to fulfil all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScanConditions {
    /// It departs from this airport, in upper case, among others.
    pub from_airport: Option<String>,
    /// It goes to this airport, in upper case, among others.
    pub to_airport: Option<String>,
    /// The name, place or id of its hotel contains this text, in any case.
    pub hotel: Option<String>,
    /// Its label contains this text, in any case.
    pub label: Option<String>,
    /// It is about exactly this hotel or place, among others.
    pub place: Option<SearchedPlace>,
    /// The monitors whose runs fulfil the query's condition `text` as well.
    pub monitors: Vec<MonitorId>,
    /// It is a run of a monitor.
    pub is_run: bool,
    /// It was created at this time or later.
    pub created_from: Option<Timestamp>,
    /// It was created before this time.
    pub created_before: Option<Timestamp>,
    /// Some of its searches failed or did not complete.
    pub has_undone: bool,
    /// Its caller has not dismissed it since it ended.
    pub is_undismissed: bool,
}

/// A hotel or place as searches name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchedPlace {
    /// The field of the search: `hotel_name`, `destination` or `hotel_booking_id`.
    pub field: &'static str,
    /// Its value, compared in any case.
    pub text: String,
}

/// A page of a caller's scans, newest first.
///
/// # Errors
/// When the cursor is not from this list, or the database does not answer.
pub async fn scans(
    pool: &PgPool,
    tenant: TenantId,
    query: &ScansQuery,
) -> Result<ScanPage, PageError> {
    scans_where(pool, tenant, query, &ScanConditions::default()).await
}

/// As [`scans`], under more conditions.
///
/// # Errors
/// As [`scans`].
pub async fn scans_where(
    pool: &PgPool,
    tenant: TenantId,
    query: &ScansQuery,
    more: &ScanConditions,
) -> Result<ScanPage, PageError> {
    let limit = usize::from(query.limit_or_default().get());
    let before = paging::decode_id(query.cursor.as_ref())?;
    let mut rows = store::scans(pool, tenant, query, more, before, limit_plus_one(limit)).await?;
    let next_cursor = paging::truncate_page(&mut rows, limit)
        .map(|last| paging::encode_id(ScanId::from(last.scan_id)));
    let mut data: Vec<_> = rows.into_iter().map(Scan::from).collect();
    leave_out_implausible(&mut *pool.acquire().await?, tenant, &mut data).await?;
    Ok(ScanPage { data, next_cursor })
}

/// The newest 50 scans, for what they search: their best price may be implausible, which is not looked up.
///
/// # Errors
/// As [`scans`].
pub async fn newest_unjudged(pool: &PgPool, tenant: TenantId) -> Result<Vec<Scan>, PageError> {
    let (query, all) = (ScansQuery::from_query([])?, ScanConditions::default());
    let limit = i64::from(query.limit_or_default().get());
    let rows = store::scans(pool, tenant, &query, &all, None, limit).await?;
    Ok(rows.into_iter().map(Scan::from).collect())
}

/// The newest scans as in [`scans_where`], before one: for a list that has other rows as well.
pub async fn scans_before(
    pool: &PgPool,
    tenant: TenantId,
    query: &ScansQuery,
    more: &ScanConditions,
    before: Option<ScanId>,
    limit: i64,
) -> sqlx::Result<Vec<Scan>> {
    let rows = store::scans(pool, tenant, query, more, before, limit).await?;
    let mut data: Vec<_> = rows.into_iter().map(Scan::from).collect();
    leave_out_implausible(&mut *pool.acquire().await?, tenant, &mut data).await?;
    Ok(data)
}

/// Every scan of a caller that has not ended, newest first: at most as many as a caller may have at
/// a time.
pub async fn live(pool: &PgPool, tenant: TenantId) -> sqlx::Result<Vec<Scan>> {
    let rows = store::live_scans(pool, tenant).await?;
    Ok(rows.into_iter().map(Scan::from).collect())
}

const ITEMS_BY_POSITION: &str = "items";
const ITEMS_BY_PRICE: &str = "prices";
const DECISIONS: &str = "decisions";

/// What the form of a scan's items depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemsForm {
    /// The endpoint of the searches.
    pub endpoint: Endpoint,
    /// Items may have taken answers.
    pub may_reuse: bool,
}

/// A page of a scan's items, also while it runs; `None`: there is no such scan.
///
/// # Errors
/// When the cursor is not from this list, or the database does not answer.
pub async fn items(
    pool: &PgPool,
    tenant: TenantId,
    scan: ScanId,
    query: &ItemsQuery,
) -> Result<Option<ItemPage>, PageError> {
    let expand = query.expand == Some(Expand::Answer);
    let requested = i64::from(query.limit_or_default().get());
    let limit = usize::try_from(if expand {
        requested.min(MAX_EXPANDED)
    } else {
        requested
    })
    .unwrap_or(usize::MAX);
    let after = page_position(query)?;
    let Some(ItemsForm { endpoint, .. }) = store::items_form(pool, tenant, scan).await? else {
        return Ok(None);
    };
    let mut rows = match query.sort_or_default() {
        ItemSort::Position => {
            store::items_by_position(pool, tenant, scan, query, &after, limit_plus_one(limit))
                .await?
        }
        ItemSort::Price => {
            store::items_by_price(pool, tenant, scan, query, &after, limit_plus_one(limit)).await?
        }
    };
    let mut is_more = paging::truncate_page(&mut rows, limit).is_some();
    let after_last = |rows: &[rows::ItemRow], is_more| {
        let last = rows.last().filter(|_| is_more);
        last.map(|last| cursor(query.sort_or_default(), last))
    };
    if !expand {
        let next_cursor = after_last(&rows, is_more);
        return Ok(Some(ItemPage {
            data: rows.into_iter().map(Item::from).collect(),
            next_cursor,
        }));
    }
    let positions: Vec<_> = rows.iter().map(|row| row.position).collect();
    let found = export_store::items_at(pool, tenant, scan, endpoint, query, &positions).await?;
    let (data, taken) = with_answers(found)?;
    is_more |= taken < rows.len() && taken > 0;
    rows.truncate(taken);
    Ok(Some(ItemPage {
        data,
        next_cursor: after_last(&rows, is_more),
    }))
}

/// The matching items with their answers, and how many of `found` were read: all, unless their
/// answers exceed [`ANSWER_BYTES`].
fn with_answers(found: Vec<ItemWithAnswer>) -> sqlx::Result<(Vec<Item>, usize)> {
    let (mut data, mut taken, mut bytes) = (Vec::new(), 0, 0);
    for ItemWithAnswer {
        matches,
        item,
        answer,
    } in found
    {
        if bytes >= ANSWER_BYTES {
            break;
        }
        taken += 1;
        if matches {
            let answer: Option<RawJson> = answer.as_deref().map(decompress_json).transpose()?;
            bytes += answer.as_ref().map_or(0, |answer| answer.as_str().len());
            data.push(Item {
                answer,
                ..item.into()
            });
        }
    }
    Ok((data, taken))
}

/// The last item before a page: its position and, in the order of prices, its price.
#[derive(Default)]
struct PagePosition {
    /// -1: the page begins with the first item.
    position: i32,
    price: Option<rust_decimal::Decimal>,
}

fn page_position(query: &ItemsQuery) -> Result<PagePosition, ValidationErrors> {
    let first = PagePosition {
        position: -1,
        price: Some(rust_decimal::Decimal::MIN),
    };
    let Some(cursor) = &query.cursor else {
        return Ok(first);
    };
    let refused = || paging::invalid_cursor(cursor);
    match query.sort_or_default() {
        ItemSort::Position => {
            let [position] = paging::decode_cursor(ITEMS_BY_POSITION, cursor)?;
            Ok(PagePosition {
                position: position.parse().map_err(|_| refused())?,
                price: None,
            })
        }
        ItemSort::Price => {
            let [price, position] = paging::decode_cursor(ITEMS_BY_PRICE, cursor)?;
            let price = Some(price)
                .filter(|price| !price.is_empty())
                .map(|price| price.parse())
                .transpose()
                .map_err(|_| refused())?;
            Ok(PagePosition {
                position: position.parse().map_err(|_| refused())?,
                price,
            })
        }
    }
}

fn cursor(sort: ItemSort, last: &rows::ItemRow) -> String {
    let position = last.position.to_string();
    match sort {
        ItemSort::Position => paging::encode_cursor(ITEMS_BY_POSITION, [position]),
        ItemSort::Price => paging::encode_cursor(
            ITEMS_BY_PRICE,
            [
                last.best_price
                    .map(|price| price.to_string())
                    .unwrap_or_default(),
                position,
            ],
        ),
    }
}

/// One item of a scan.
pub async fn item(
    pool: &PgPool,
    tenant: TenantId,
    id: ItemId,
    expand: Option<Expand>,
) -> sqlx::Result<Option<Item>> {
    let mut found: Vec<_> = store::item(pool, tenant, id)
        .await?
        .into_iter()
        .map(Item::from)
        .collect();
    if expand == Some(Expand::Answer) {
        show_answers(pool, tenant, &mut found).await?;
    }
    Ok(found.pop())
}

/// Every attempt of an item, oldest first; `None`: there is no such item. One page: an item has at
/// most ten attempts for its submit and for each retry by its caller.
pub async fn attempts(
    pool: &PgPool,
    tenant: TenantId,
    id: ItemId,
) -> sqlx::Result<Option<AttemptPage>> {
    if store::item(pool, tenant, id).await?.is_none() {
        return Ok(None);
    }
    let data = store::attempts(pool, tenant, id)
        .await?
        .into_iter()
        .map(Attempt::from)
        .collect();
    Ok(Some(AttemptPage {
        data,
        next_cursor: None,
    }))
}

/// A page of the decisions of a scan's strategy, oldest first; `None`: there is no such scan.
///
/// # Errors
/// When the cursor is not from this list, or the database does not answer.
pub async fn decisions(
    pool: &PgPool,
    tenant: TenantId,
    id: ScanId,
    query: &DecisionsQuery,
) -> Result<Option<DecisionPage>, PageError> {
    let limit = usize::from(query.limit_or_default().get());
    let after = match &query.cursor {
        None => 0,
        Some(cursor) => {
            let [number] = paging::decode_cursor(DECISIONS, cursor)?;
            number.parse().map_err(|_| paging::invalid_cursor(cursor))?
        }
    };
    if store::items_form(pool, tenant, id).await?.is_none() {
        return Ok(None);
    }
    let mut data =
        question::store::decisions(pool, tenant, id, after, limit_plus_one(limit)).await?;
    let next_cursor = paging::truncate_page(&mut data, limit)
        .map(|last| paging::encode_cursor(DECISIONS, [last.number.to_string()]));
    Ok(Some(DecisionPage { data, next_cursor }))
}

/// The answer of an item, if it is stored.
pub async fn answer(
    conn: &mut PgConnection,
    tenant: TenantId,
    item: ItemId,
) -> sqlx::Result<Option<RawJson>> {
    Ok(store::answers(conn, tenant, &[item]).await?.remove(&item))
}

async fn show_answers(pool: &PgPool, tenant: TenantId, items: &mut [Item]) -> sqlx::Result<()> {
    let ids: Vec<_> = items.iter().map(|item| item.id).collect();
    let mut answers = store::answers(pool, tenant, &ids).await?;
    for item in items {
        item.answer = answers.remove(&item.id);
    }
    Ok(())
}
