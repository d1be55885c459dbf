//! `/v1/history/flights/series` and `/v1/history/hotels/series`: prices over time.

use axum::Json;

use super::{file, reader};
use crate::export::{RequestedFormat, vary_on_accept};
use crate::openapi::{ListErrors, NotAcceptable};
use farescan_core::app::api_request::ApiRequest;
use farescan_core::app::error::ApiResult;
use farescan_core::contract::HistoryQuery as _;
use farescan_core::contract::history_verdict::no_verdict_in_files;
use farescan_core::contract::series::{
    FlightBucket, FlightSeries, FlightSeriesQuery, HotelBucket, HotelSeries, HotelSeriesQuery,
};
use farescan_core::history::{Flights, Hotels, Product, buckets};

pub(super) async fn series<P: Product>(
    request: &ApiRequest,
    requested: RequestedFormat,
) -> ApiResult {
    let context = request.context()?;
    let params = P::SeriesQuery::read(request.pairs.iter())?;
    let range = P::range(&params, context.now)?;
    if let Some(format) = requested.0 {
        no_verdict_in_files(P::is_series_judged(&params), format.media_type())?;
        return file::<P, _, _>(request, format, "-series", |pool, tenant| {
            buckets::stream::<P>(pool, tenant, &params, range)
        })
        .await;
    }
    let _permits = request.heavy_permits().await?;
    let series = match reader(&request.app, context).await? {
        Some((conn, tenant)) => buckets::series::<P>(conn, tenant, &params, range).await?,
        None => P::series(range, Vec::new(), false),
    };
    Ok(vary_on_accept(Json(series)))
}

/// Read the fares of a route over time
///
/// For each day or week: the lowest, median and highest plausible price, the provider's price range,
/// and how many searches were empty or incomplete. Each product has its own rows: currencies, parties and
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
pub(crate) async fn flights(request: ApiRequest, requested: RequestedFormat) -> ApiResult {
    series::<Flights>(&request, requested).await
}

/// Read the rates of a hotel or place over time
///
/// For each day or week: the lowest, median and highest plausible price of a stay, and how many
/// searches were empty or incomplete. Each product and market has its own rows. Exactly one of `hotel_name`,
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
pub(crate) async fn hotels(request: ApiRequest, requested: RequestedFormat) -> ApiResult {
    series::<Hotels>(&request, requested).await
}
