//! `/v1/history/flights/series` and `/v1/history/hotels/series`: prices over time.

use axum::Json;
use axum::extract::State;
use axum::response::Response;

use super::{file, reader};
use crate::contract::series::{
    FlightBucket, FlightSeries, FlightSeriesQuery, HotelBucket, HotelSeries, HotelSeriesQuery,
};
use crate::history::buckets::{self, BucketRange};
use crate::history::{fare_product_fields, rate_product_fields};
use crate::http::AppState;
use crate::http::auth::ApiKey;
use crate::http::error::ApiError;
use crate::http::export::{RequestedFormat, vary_on_accept};
use crate::http::extract::QueryPairs;
use crate::http::openapi::{ListErrors, NotAcceptable};
use crate::http::scans::{find_tenant, request_context};

/// Read the fares of a route over time
///
/// For each day or week: the lowest, median and highest price, the provider's price range, and how
/// many searches were empty or incomplete. Each product has its own rows: currencies, parties and
/// cabins never mix. At most twelve products; as CSV, NDJSON or Parquet (by `format` or `Accept`)
/// all of them, streamed. A truncated body is incomplete.
#[utoipa::path(
    get, path = "/v1/history/flights/series", operation_id = "get_flight_series", tag = "History", params(FlightSeriesQuery),
    responses(
        (
            status = 200, description = "The buckets, or a file of them",
            content(
                (FlightSeries = "application/json"), (String = "text/csv"), (FlightBucket = "application/x-ndjson"),
                (String = "application/vnd.apache.parquet")
            )
        ),
        ListErrors, NotAcceptable
    )
)]
pub(in crate::http) async fn flights(
    State(app): State<AppState>,
    caller: ApiKey,
    requested: RequestedFormat,
    pairs: QueryPairs,
) -> Result<Response, ApiError> {
    let context = request_context(&app, &caller)?;
    let params = FlightSeriesQuery::from_query(pairs.iter())?;
    let range = BucketRange::for_flights(&params, params.time_range(context.now)?);
    if let Some(format) = requested.0 {
        let pool = app.history_pool()?;
        let rows = find_tenant(context)
            .await?
            .map(|tenant| buckets::stream_flights(pool, tenant, &params, range));
        return file(
            &app,
            &caller,
            format,
            "flights-series",
            &fare_product_fields(),
            rows,
        )
        .await;
    }
    let _permits = app.concurrency.heavy(&caller.key).await?;
    let series = match reader(&app, context).await? {
        Some((conn, tenant)) => buckets::flights(conn, tenant, &params, range).await?,
        None => buckets::empty_flights(range),
    };
    Ok(vary_on_accept(Json(series)))
}

/// Read the rates of a hotel or place over time
///
/// For each day or week: the lowest, median and highest price of a stay, and how many searches were
/// empty or incomplete. Each product and market has its own rows. Exactly one of `hotel_name`,
/// `destination` and `hotel_booking_id`. At most twelve products; as CSV, NDJSON or Parquet (by
/// `format` or `Accept`) all of them, streamed. A truncated body is incomplete.
#[utoipa::path(
    get, path = "/v1/history/hotels/series", operation_id = "get_hotel_series", tag = "History", params(HotelSeriesQuery),
    responses(
        (
            status = 200, description = "The buckets, or a file of them",
            content(
                (HotelSeries = "application/json"), (String = "text/csv"), (HotelBucket = "application/x-ndjson"),
                (String = "application/vnd.apache.parquet")
            )
        ),
        ListErrors, NotAcceptable
    )
)]
pub(in crate::http) async fn hotels(
    State(app): State<AppState>,
    caller: ApiKey,
    requested: RequestedFormat,
    pairs: QueryPairs,
) -> Result<Response, ApiError> {
    let context = request_context(&app, &caller)?;
    let params = HotelSeriesQuery::from_query(pairs.iter())?;
    let range = BucketRange::for_hotels(&params, params.time_range(context.now)?);
    if let Some(format) = requested.0 {
        let pool = app.history_pool()?;
        let rows = find_tenant(context)
            .await?
            .map(|tenant| buckets::stream_hotels(pool, tenant, &params, range));
        return file(
            &app,
            &caller,
            format,
            "hotels-series",
            &rate_product_fields(),
            rows,
        )
        .await;
    }
    let _permits = app.concurrency.heavy(&caller.key).await?;
    let series = match reader(&app, context).await? {
        Some((conn, tenant)) => buckets::hotels(conn, tenant, &params, range).await?,
        None => buckets::empty_hotels(range),
    };
    Ok(vary_on_accept(Json(series)))
}
