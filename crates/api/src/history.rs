//! `/v1/history` (history.md, rules 12 to 17): the prices that scans observed, as pages of JSON, or
//! complete as CSV, NDJSON or Parquet.
//!
//! The tenant is looked up in the primary database; history is read from the replica if there is
//! one. Not here: prices over time (`series`), grids (`grid`).

pub(super) mod grid;
pub(super) mod series;

use axum::Json;
use futures::{Stream, StreamExt as _, TryStreamExt as _, stream};
use serde::Serialize;
use sqlx::pool::PoolConnection;
use sqlx::{PgPool, Postgres};
use utoipa::ToSchema;

use super::export::{CsvColumns, ExportFormat, RequestedFormat, export, vary_on_accept};
use super::openapi::{ListErrors, NotAcceptable};
use farescan_core::app::AppState;
use farescan_core::app::api_request::{ApiRequest, find_tenant};
use farescan_core::app::error::ApiResult;
use farescan_core::commands::RequestContext;
use farescan_core::contract::history::{
    FlightHistoryPage, FlightHistoryQuery, FlightObservation, HotelHistoryPage, HotelHistoryQuery,
    HotelObservation,
};
use farescan_core::contract::history_verdict::no_verdict_in_files;
use farescan_core::contract::latest::{
    FlightCalendar, FlightLatest, FlightLatestQuery, HotelCalendar, HotelLatest, HotelLatestQuery,
};
use farescan_core::contract::{Api, HistoryQuery};
use farescan_core::history::latest::LatestPrice;
use farescan_core::history::list::ListedObservation;
use farescan_core::history::{PriceQuery, judged_latest, latest, list, product_field_names};
use farescan_core::ids::TenantId;
use farescan_core::paging::PageError;
use farescan_core::tenants;

/// The tenant and a connection for history: the one that found the tenant, unless there is a
/// replica. `None`: the caller has no tenant, so no history.
async fn reader(
    app: &AppState,
    context: RequestContext<'_>,
) -> ApiResult<Option<(PoolConnection<Postgres>, TenantId)>> {
    let (mut conn, tenant) =
        tenants::store::find_with_connection(context.pool, context.ring, context.key, context.now)
            .await?;
    let Some(tenant) = tenant else {
        return Ok(None);
    };
    if let Some(replica) = app.replica() {
        // Not both at once: requests that hold one connection and wait for another could deadlock.
        drop(conn);
        conn = replica.acquire().await?;
    }
    Ok(Some((conn, tenant)))
}

/// A row of an answer or file.
trait Row: Serialize + ToSchema + Send + 'static {}

impl<T: Serialize + ToSchema + Send + 'static> Row for T {}

/// The complete result as a file, with a column for each field of its products; empty for a caller
/// without a tenant.
async fn file<R: Row, Rows>(
    request: &ApiRequest,
    format: ExportFormat,
    (api, suffix): (Api, &str),
    rows: impl FnOnce(PgPool, TenantId) -> Rows,
) -> ApiResult
where
    Rows: Stream<Item = Result<R, PageError>> + Send + 'static,
{
    let pool = request.app.history_pool()?;
    let tenant = find_tenant(request.context()?).await?;
    let rows = tenant.map(|tenant| rows(pool.clone(), tenant));
    let columns = CsvColumns::of::<R>()
        .flattened("product", &product_field_names(api))
        .ordered(&[], "product");
    let permits = request.app.concurrency.export(&request.caller.key).await?;
    let rows = stream::iter(rows).flatten();
    export(format, &format!("{api}{suffix}"), columns, rows, permits).await
}

async fn observations<Q: HistoryQuery, R: Row + From<ListedObservation>, P: Serialize>(
    request: &ApiRequest,
    requested: RequestedFormat,
    page: fn(Vec<R>, Option<String>) -> P,
) -> ApiResult {
    let context = request.context()?;
    let query = PriceQuery::read::<Q>(request.pairs.iter())?;
    requested.check(&request.pairs)?;
    if let Some(format) = requested.0 {
        return file(request, format, (query.api(), ""), |pool, tenant| {
            list::stream(pool, tenant, query).map_ok(R::from)
        })
        .await;
    }
    let (found, next) = match reader(&request.app, context).await? {
        Some((mut conn, tenant)) => list::page(&mut conn, tenant, &query).await?,
        None => (Vec::new(), None),
    };
    let link = request.next_page_link(next.as_deref());
    let rows = found.into_iter().map(R::from).collect();
    Ok(vary_on_accept((link, Json(page(rows, next)))))
}

async fn latest_prices<Q: HistoryQuery, R: Row + From<LatestPrice>, C: Serialize>(
    request: &ApiRequest,
    requested: RequestedFormat,
    calendar: fn(Vec<R>, bool) -> C,
) -> ApiResult {
    let context = request.context()?;
    let query = PriceQuery::read::<Q>(request.pairs.iter())?;
    if let Some(format) = requested.0 {
        no_verdict_in_files(query.is_judged, format.media_type())?;
        return file(request, format, (query.api(), "-latest"), |pool, tenant| {
            latest::stream(pool, tenant, query, context.now).map_ok(R::from)
        })
        .await;
    }
    let _permits = if query.is_judged {
        Some(request.heavy_permits().await?)
    } else {
        None
    };
    let (found, truncated) = match reader(&request.app, context).await? {
        Some((conn, tenant)) if query.is_judged => {
            judged_latest::calendar(conn, tenant, &query, None, context.now).await?
        }
        Some((mut conn, tenant)) => {
            latest::calendar(&mut conn, tenant, &query, context.now).await?
        }
        None => (Vec::new(), false),
    };
    let rows = found.into_iter().map(R::from).collect();
    Ok(vary_on_accept(Json(calendar(rows, truncated))))
}

/// List the observations of a route
///
/// Newest first. A degraded search is an observation without a price, so gaps are visible.
///
/// As CSV, NDJSON or Parquet (by `format` or `Accept`) all observations are streamed; `limit` and
/// `cursor` are rejected. The CSV columns are the fields of an observation, then one for each field
/// of the product (`product.seat_type`). A truncated body is incomplete.
#[utoipa::path(
    get, path = "/v1/history/flights", operation_id = "list_flight_observations", tag = "History", params(FlightHistoryQuery),
    responses(
        (
            status = 200, description = "A page, `Link` names the next one; or a file",
            content(
                (FlightHistoryPage = "application/json"), (String = "text/csv"), (FlightObservation = "application/x-ndjson"),
                (String = "application/vnd.apache.parquet")
            )
        ),
        ListErrors, NotAcceptable
    )
)]
pub(super) async fn flights(request: ApiRequest, requested: RequestedFormat) -> ApiResult {
    observations::<FlightHistoryQuery, _, _>(&request, requested, |data, next_cursor| {
        FlightHistoryPage { data, next_cursor }
    })
    .await
}

/// List the observations of a hotel or of a place's hotels
///
/// Newest first; exactly one of `hotel_name`, `destination` and `hotel_booking_id`.
///
/// As CSV, NDJSON or Parquet (by `format` or `Accept`) all observations are streamed; `limit` and
/// `cursor` are rejected. The CSV columns are the fields of an observation, then one for each field
/// of the product (`product.adults`). A truncated body is incomplete.
#[utoipa::path(
    get, path = "/v1/history/hotels", operation_id = "list_hotel_observations", tag = "History", params(HotelHistoryQuery),
    responses(
        (
            status = 200, description = "A page, `Link` names the next one; or a file",
            content(
                (HotelHistoryPage = "application/json"), (String = "text/csv"), (HotelObservation = "application/x-ndjson"),
                (String = "application/vnd.apache.parquet")
            )
        ),
        ListErrors, NotAcceptable
    )
)]
pub(super) async fn hotels(request: ApiRequest, requested: RequestedFormat) -> ApiResult {
    observations::<HotelHistoryQuery, _, _>(&request, requested, |data, next_cursor| {
        HotelHistoryPage { data, next_cursor }
    })
    .await
}

/// Read the last known fares of a route by date
///
/// From stored observations, with the age of each: a calendar that costs no request.
///
/// As CSV, NDJSON or Parquet (by `format` or `Accept`) all rows are streamed, also those beyond the
/// limit of a JSON response. A truncated body is incomplete.
#[utoipa::path(
    get, path = "/v1/history/flights/latest", operation_id = "list_latest_flight_prices", tag = "History", params(FlightLatestQuery),
    responses(
        (
            status = 200, description = "The calendar, or a file of its rows",
            content(
                (FlightCalendar = "application/json"), (String = "text/csv"), (FlightLatest = "application/x-ndjson"),
                (String = "application/vnd.apache.parquet")
            )
        ),
        ListErrors, NotAcceptable
    )
)]
pub(super) async fn latest_flights(request: ApiRequest, requested: RequestedFormat) -> ApiResult {
    latest_prices::<FlightLatestQuery, _, _>(&request, requested, |data, truncated| {
        FlightCalendar { data, truncated }
    })
    .await
}

/// Read the last known rates of a hotel or place by date
///
/// From stored observations, with the age of each: a calendar that costs no request. Exactly one of
/// `hotel_name`, `destination` and `hotel_booking_id`.
///
/// As CSV, NDJSON or Parquet (by `format` or `Accept`) all rows are streamed, also those beyond the
/// limit of a JSON response. A truncated body is incomplete.
#[utoipa::path(
    get, path = "/v1/history/hotels/latest", operation_id = "list_latest_hotel_prices", tag = "History", params(HotelLatestQuery),
    responses(
        (
            status = 200, description = "The calendar, or a file of its rows",
            content(
                (HotelCalendar = "application/json"), (String = "text/csv"), (HotelLatest = "application/x-ndjson"),
                (String = "application/vnd.apache.parquet")
            )
        ),
        ListErrors, NotAcceptable
    )
)]
pub(super) async fn latest_hotels(request: ApiRequest, requested: RequestedFormat) -> ApiResult {
    latest_prices::<HotelLatestQuery, _, _>(&request, requested, |data, truncated| HotelCalendar {
        data,
        truncated,
    })
    .await
}
