//! `/v1/history` (history.md, rules 12 to 17): the prices that scans observed, as pages of JSON, or
//! complete as CSV, NDJSON or Parquet.
//!
//! The tenant is looked up in the primary database; history is read from the replica if there is
//! one. Not here: prices over time (`series`), grids (`grid`).

pub(super) mod grid;
pub(super) mod series;

use axum::Json;
use futures::{Stream, StreamExt as _, stream};
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
use farescan_core::contract::HistoryQuery as _;
use farescan_core::contract::history::{
    FlightHistoryPage, FlightHistoryQuery, FlightObservation, HotelHistoryPage, HotelHistoryQuery,
    HotelObservation,
};
use farescan_core::contract::history_verdict::no_verdict_in_files;
use farescan_core::contract::latest::{
    FlightCalendar, FlightLatest, FlightLatestQuery, HotelCalendar, HotelLatest, HotelLatestQuery,
};
use farescan_core::history::{
    Flights, Hotels, Product, judged_latest, latest, product_field_names, query,
};
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

/// The complete result as a file, with a column for each field of its products; empty for a caller
/// without a tenant.
async fn file<P: Product, Row: ToSchema + Serialize + Send + 'static, Rows>(
    request: &ApiRequest,
    format: ExportFormat,
    suffix: &str,
    rows: impl FnOnce(&PgPool, TenantId) -> Rows,
) -> ApiResult
where
    Rows: Stream<Item = Result<Row, PageError>> + Send + 'static,
{
    let pool = request.app.history_pool()?;
    let tenant = find_tenant(request.context()?).await?;
    let rows = tenant.map(|tenant| rows(pool, tenant));
    let columns = CsvColumns::of::<Row>()
        .flattened("product", &product_field_names::<P>())
        .ordered(&[], "product");
    let name = format!("{}{suffix}", P::NAME);
    let permits = request.app.concurrency.export(&request.caller.key).await?;
    let rows = stream::iter(rows).flatten();
    export(format, &name, columns, rows, permits).await
}

async fn list<P: Product>(request: &ApiRequest, requested: RequestedFormat) -> ApiResult {
    let context = request.context()?;
    let params = P::ListQuery::read(request.pairs.iter())?;
    requested.check(&request.pairs)?;
    if let Some(format) = requested.0 {
        return file::<P, _, _>(request, format, "", |pool, tenant| {
            query::stream::<P>(pool, tenant, &params)
        })
        .await;
    }
    let (data, next) = match reader(&request.app, context).await? {
        Some((mut conn, tenant)) => query::page::<P>(&mut conn, tenant, &params).await?,
        None => (Vec::new(), None),
    };
    let link = request.next_page_link(next.as_deref());
    Ok(vary_on_accept((link, Json(P::page(data, next)))))
}

async fn latest_prices<P: Product>(request: &ApiRequest, requested: RequestedFormat) -> ApiResult {
    let context = request.context()?;
    let params = P::LatestQuery::read(request.pairs.iter())?;
    if let Some(format) = requested.0 {
        no_verdict_in_files(P::is_latest_judged(&params), format.media_type())?;
        return file::<P, _, _>(request, format, "-latest", |pool, tenant| {
            latest::stream::<P>(pool, tenant, &params, context.now)
        })
        .await;
    }
    let _permits = if P::is_latest_judged(&params) {
        Some(request.heavy_permits().await?)
    } else {
        None
    };
    let calendar = match reader(&request.app, context).await? {
        Some((conn, tenant)) if P::is_latest_judged(&params) => {
            judged_latest::calendar::<P>(conn, tenant, &params, None, context.now).await?
        }
        Some((mut conn, tenant)) => {
            latest::calendar::<P>(&mut conn, tenant, &params, context.now).await?
        }
        None => P::calendar(Vec::new(), false),
    };
    Ok(vary_on_accept(Json(calendar)))
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
    list::<Flights>(&request, requested).await
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
    list::<Hotels>(&request, requested).await
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
    latest_prices::<Flights>(&request, requested).await
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
    latest_prices::<Hotels>(&request, requested).await
}
