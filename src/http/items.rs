//! `/v1/scans/{id}/items` and `/v1/items/{id}`: the searches of a scan, their answers and attempts.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::Response;

use super::AppState;
use super::auth::Caller;
use super::bounds::Permit;
use super::docs::{NotAcceptable, ReadErrors};
use super::error::ApiError;
use super::export::{Columns, Wanted, export, varied};
use super::extract::{self, Pairs};
use super::scans::{desk, next_page, no_such_scan, scan_id, tenant};
use crate::contract::Endpoint;
use crate::contract::scans::{AttemptPage, Expand, Item, ItemPage, ItemQuery, ItemsQuery};
use crate::ids::{ItemId, ScanId};
use crate::scans::read;

fn no_such_item() -> ApiError {
    ApiError::not_found("there is no such item")
}

/// List the items of a scan
///
/// Readable while it runs. As JSON by pages; with `expand=answer` a page has at most 50 items, and fewer where their answers are large.
///
/// As CSV, NDJSON or Parquet (by `format` or `Accept`) all items that fit, streamed, in the order of `sort` as it was at the beginning; `limit` and
/// `cursor` are refused. A line of NDJSON is the item of a page. The columns of CSV are the item's fields, with one for each field of the endpoint
/// instead of `search` (`search.departure_date`); a list or an answer is JSON text, null an empty cell; a text that begins like a formula
/// has a `'` before it. A body that breaks off is not whole.
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
pub(super) async fn list(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    wanted: Wanted,
    pairs: Pairs,
) -> Result<Response, ApiError> {
    let desk = desk(&app, &caller)?;
    let query = ItemsQuery::from_query(pairs.iter())?;
    wanted.check(&pairs)?;
    let id = scan_id(&id)?;
    let tenant = tenant(desk).await?.ok_or_else(no_such_scan)?;
    if let Some(form) = wanted.0 {
        let permits = app.bounds.export(&caller.key).await?;
        let (endpoint, items) = read::all_items(desk.pool, tenant, id, &query)
            .await?
            .ok_or_else(no_such_scan)?;
        return export(
            form,
            &id.to_string(),
            columns(endpoint, &query),
            items,
            permits,
        )
        .await;
    }
    let _permits = whole_answers(&app, &caller, query.expand).await?;
    let page = read::items(desk.pool, tenant, id, &query)
        .await?
        .ok_or_else(no_such_scan)?;
    let next = next_page(
        &format!("/v1/scans/{id}/items"),
        &pairs,
        page.next_cursor.as_deref(),
    );
    Ok(varied((next, Json(page))))
}

/// The permits of a read that shows whole answers, which may have megabytes each.
async fn whole_answers(
    app: &AppState,
    caller: &Caller,
    expand: Option<Expand>,
) -> Result<Option<[Permit; 2]>, ApiError> {
    match expand {
        Some(Expand::Answer) => app.bounds.heavy(&caller.key).await.map(Some),
        None => Ok(None),
    }
}

/// What a reader looks for first: which search it is and what came of it.
const RESULT: [&str; 7] = [
    "best_price",
    "currency",
    "search_status",
    "reason",
    "state",
    "results",
    "observed_at",
];

/// Every field that a body of the endpoint can have, so that the columns of all its scans are the same. What was searched and found comes
/// first, the fields that a search may leave out last.
fn columns(endpoint: Endpoint, query: &ItemsQuery) -> Columns {
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
        .chain(RESULT)
        .collect();
    let columns = Columns::of::<Item>()
        .flattened("search", &names)
        .ordered(&first, "search");
    if query.expand == Some(Expand::Answer) {
        columns
    } else {
        columns.without("answer")
    }
}

/// Read an item
///
/// One search of a scan: what was asked and what came of it; with `expand=answer` the whole answer.
#[utoipa::path(
    get, path = "/v1/items/{id}", operation_id = "get_item", tag = "Scans", params(("id" = ItemId, Path, description = "The item"), ItemQuery),
    responses((status = 200, description = "The item", body = Item), ReadErrors)
)]
pub(super) async fn read(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    pairs: Pairs,
) -> Result<Json<Item>, ApiError> {
    let desk = desk(&app, &caller)?;
    let query = ItemQuery::from_query(pairs.iter())?;
    let id = extract::id("item", &id)?;
    let tenant = tenant(desk).await?.ok_or_else(no_such_item)?;
    let _permits = whole_answers(&app, &caller, query.expand).await?;
    read::item(desk.pool, tenant, id, query.expand)
        .await?
        .map(Json)
        .ok_or_else(no_such_item)
}

/// List the attempts of an item
///
/// Every time that it went upstream, oldest first.
#[utoipa::path(
    get, path = "/v1/items/{id}/attempts", operation_id = "list_attempts", tag = "Scans", params(("id" = ItemId, Path, description = "The item")),
    responses((status = 200, description = "The attempts", body = AttemptPage), ReadErrors)
)]
pub(super) async fn attempts(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<AttemptPage>, ApiError> {
    let desk = desk(&app, &caller)?;
    let id = extract::id("item", &id)?;
    let tenant = tenant(desk).await?.ok_or_else(no_such_item)?;
    read::attempts(desk.pool, tenant, id)
        .await?
        .map(Json)
        .ok_or_else(no_such_item)
}
