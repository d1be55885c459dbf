//! `/v1/history/flights/series` and `/v1/history/hotels/series`: prices over time.

use axum::Json;
use futures::TryStreamExt as _;
use serde::Serialize;

use super::{Row, file, reader};
use crate::export::{RequestedFormat, vary_on_accept};
use crate::openapi::{ListErrors, NotAcceptable};
use farescan_core::app::api_request::ApiRequest;
use farescan_core::app::error::ApiResult;
use farescan_core::contract::HistoryQuery;
use farescan_core::contract::history_verdict::no_verdict_in_files;
use farescan_core::contract::series::{
    FlightBucket, FlightSeries, FlightSeriesQuery, HotelBucket, HotelSeries, HotelSeriesQuery,
};
use farescan_core::history::PriceQuery;
use farescan_core::history::buckets::{self, BucketRange, ProductBucket};

async fn series<Q: HistoryQuery, R: Row + From<ProductBucket>, S: Serialize>(
    request: &ApiRequest,
    requested: RequestedFormat,
    answer: fn(BucketRange, Vec<R>, bool) -> S,
) -> ApiResult {
    let context = request.context()?;
    let query = PriceQuery::read::<Q>(request.pairs.iter())?;
    let range = BucketRange::of(&query, context.now)?;
    if let Some(format) = requested.0 {
        no_verdict_in_files(query.is_judged, format.media_type())?;
        return file(request, format, (query.api(), "-series"), |pool, tenant| {
            buckets::stream(pool, tenant, query, &range).map_ok(R::from)
        })
        .await;
    }
    let _permits = request.heavy_permits().await?;
    let (found, truncated) = match reader(&request.app, context).await? {
        Some((conn, tenant)) => buckets::series(conn, tenant, &query, &range).await?,
        None => (Vec::new(), false),
    };
    let rows = found.into_iter().map(R::from).collect();
    Ok(vary_on_accept(Json(answer(range, rows, truncated))))
}

/// The series in `$name`.
macro_rules! in_range {
    ($name:ident) => {
        |range, data, truncated| $name {
            since: range.since,
            until: range.until,
            bucket: range.bucket,
            timezone: range.zone,
            data,
            truncated,
        }
    };
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
    series::<FlightSeriesQuery, _, _>(&request, requested, in_range!(FlightSeries)).await
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
    series::<HotelSeriesQuery, _, _>(&request, requested, in_range!(HotelSeries)).await
}
