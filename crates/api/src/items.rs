//! `/v1/scans/{id}/items` and `/v1/items/{id}`: the searches of a scan, their answers and attempts.

use axum::Json;

use super::export::{CsvColumns, ExportFormat, RequestedFormat, export, vary_on_accept};
use super::openapi::{NotAcceptable, ReadErrors};
use farescan_core::app::api_request::ApiRequest;
use farescan_core::app::concurrency::Permit;
use farescan_core::app::error::ApiResult;
use farescan_core::contract::history_verdict::no_verdict_in_files;
use farescan_core::contract::scans::{AttemptPage, Expand, Item, ItemPage, ItemQuery, ItemsQuery};
use farescan_core::ids::{ItemId, Kind, ScanId, TenantId};
use farescan_core::scans::read::{self, ItemsForm};

/// List the items of a scan
///
/// Available while the scan runs. JSON in pages; with `expand=answer` a page has at most 50 items,
/// and fewer where their answers are large.
///
/// As CSV, NDJSON or Parquet (by `format` or `Accept`) all matching items are streamed, in the
/// order of `sort` at the start; `limit` and `cursor` are rejected. A line of NDJSON is an item as
/// in a page. The CSV columns are the item's fields, with one for each field of the endpoint
/// instead of `search` (`search.departure_date`). A list or an answer is JSON text, null is an
/// empty cell; a text that begins like a formula is prefixed with `'`. A truncated body is
/// incomplete. CSV and Parquet have no `confirming`, and no file has `history_verdict`.
#[utoipa::path(
    get, path = "/v1/scans/{id}/items", operation_id = "list_items", tag = "Scans", params(("id" = ScanId, Path, description = "The scan"), ItemsQuery),
    responses(
        (
            status = 200, description = "A page, `Link` names the next one; or a file",
            content(
                (ItemPage = "application/json"), (String = "text/csv"), (Item = "application/x-ndjson"),
                (String = "application/vnd.apache.parquet")
            )
        ),
        ReadErrors, NotAcceptable
    )
)]
pub(super) async fn list(request: ApiRequest, requested: RequestedFormat) -> ApiResult {
    let context = request.context()?;
    let query = ItemsQuery::from_query(request.pairs.iter())?;
    requested.check(&request.pairs)?;
    let (tenant, id) = request.owned::<ScanId>().await?;
    let is_judged = query.history_verdict_or_default();
    if let Some(format) = requested.0 {
        no_verdict_in_files(is_judged, format.media_type())?;
        return export_items(&request, (tenant, id), &query, format).await;
    }
    let _permits = heavy_permits(&request, query.expand, is_judged).await?;
    let mut page = read::items(context.pool, tenant, id, &query)
        .await?
        .ok_or(Kind::Scan)?;
    if is_judged {
        let history = request.app.history_pool()?;
        read::judge_items(context.pool, history, tenant, id, &mut page.data).await?;
    }
    let next = request.next_page_link(page.next_cursor.as_deref());
    Ok(vary_on_accept((next, Json(page))))
}

async fn export_items(
    request: &ApiRequest,
    (tenant, id): (TenantId, ScanId),
    query: &ItemsQuery,
    format: ExportFormat,
) -> ApiResult {
    let pool = request.context()?.pool;
    let permits = request.app.concurrency.export(&request.caller.key).await?;
    let (form, items) = read::all_items(pool, tenant, id, query)
        .await?
        .ok_or(Kind::Scan)?;
    let columns = columns(form, query);
    export(format, &id.to_string(), columns, items, permits).await
}

/// The permits of a read with whole answers, which may have megabytes each, or with verdicts, each
/// of which needs its product's history.
async fn heavy_permits(
    request: &ApiRequest,
    expand: Option<Expand>,
    is_judged: bool,
) -> ApiResult<Option<[Permit; 2]>> {
    if expand == Some(Expand::Answer) || is_judged {
        return request.heavy_permits().await.map(Some);
    }
    Ok(None)
}

/// The columns that follow the searched fields.
const RESULT_COLUMNS: [&str; 7] = [
    "best_price",
    "currency",
    "search_status",
    "reason",
    "state",
    "results",
    "observed_at",
];

/// The columns of scans whose items may take answers.
const REUSE_COLUMNS: [&str; 3] = ["reused_item", "reused_from", "age_seconds"];

/// Every field that a request of the endpoint can have, so that all its scans have the same
/// columns, but for [`REUSE_COLUMNS`]. The required fields and the result come first, optional fields last.
fn columns(form: ItemsForm, query: &ItemsQuery) -> CsvColumns {
    let endpoint = form.endpoint;
    let fields: Vec<_> = endpoint
        .fields()
        .iter()
        .filter(|field| field.alias_of.is_empty())
        .collect();
    let names: Vec<_> = fields.iter().map(|field| field.name).collect();
    let required: Vec<_> = fields
        .iter()
        .filter(|field| field.required)
        .map(|field| format!("search.{}", field.name))
        .collect();
    let first: Vec<_> = ["position"]
        .into_iter()
        .chain(required.iter().map(String::as_str))
        .chain(RESULT_COLUMNS)
        .collect();
    let columns = CsvColumns::of::<Item>()
        .flattened("search", &names)
        .ordered(&first, "search");
    let columns = if form.may_reuse {
        columns
    } else {
        REUSE_COLUMNS.into_iter().fold(columns, CsvColumns::without)
    };
    if query.expand == Some(Expand::Answer) {
        columns
    } else {
        columns.without("answer")
    }
}

/// Read an item
///
/// One search of a scan: the request and its result; with `expand=answer` the whole answer.
#[utoipa::path(
    get, path = "/v1/items/{id}", operation_id = "get_item", tag = "Scans", params(("id" = ItemId, Path, description = "The item"), ItemQuery),
    responses((status = 200, description = "The item", body = Item), ReadErrors)
)]
pub(super) async fn read(request: ApiRequest) -> ApiResult<Json<Item>> {
    let context = request.context()?;
    let query = ItemQuery::from_query(request.pairs.iter())?;
    let (tenant, id) = request.owned::<ItemId>().await?;
    let is_judged = query.history_verdict_or_default();
    let _permits = heavy_permits(&request, query.expand, is_judged).await?;
    let mut item = read::item(context.pool, tenant, id, query.expand)
        .await?
        .ok_or(Kind::Item)?;
    if is_judged {
        let (scan, items) = (item.scan_id, std::slice::from_mut(&mut item));
        let history = request.app.history_pool()?;
        read::judge_items(context.pool, history, tenant, scan, items).await?;
    }
    Ok(Json(item))
}

/// List the attempts of an item
///
/// Every call for this item, oldest first.
#[utoipa::path(
    get, path = "/v1/items/{id}/attempts", operation_id = "list_attempts", tag = "Scans", params(("id" = ItemId, Path, description = "The item")),
    responses((status = 200, description = "The attempts", body = AttemptPage), ReadErrors)
)]
pub(super) async fn attempts(request: ApiRequest) -> ApiResult<Json<AttemptPage>> {
    let (tenant, id) = request.owned::<ItemId>().await?;
    read::attempts(request.context()?.pool, tenant, id)
        .await?
        .map(Json)
        .ok_or_else(|| Kind::Item.into())
}
