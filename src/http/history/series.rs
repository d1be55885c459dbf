//! `/v1/history/flights/series` and `/v1/history/hotels/series`: prices over time.

use axum::Json;
use axum::extract::State;
use axum::response::Response;

use super::{file, reader};
use crate::contract::HistoryQuery as _;
use crate::contract::history_verdict::no_verdict_in_files;
use crate::contract::series::{
    FlightBucket, FlightSeries, FlightSeriesQuery, HotelBucket, HotelSeries, HotelSeriesQuery,
};
use crate::history::{Flights, Hotels, Product, buckets};
use crate::http::AppState;
use crate::http::auth::ApiKey;
use crate::http::error::ApiError;
use crate::http::export::{RequestedFormat, vary_on_accept};
use crate::http::extract::QueryPairs;
use crate::http::openapi::{ListErrors, NotAcceptable};
use crate::http::scans::request_context;

pub(super) async fn series<P: Product>(
    app: &AppState,
    caller: &ApiKey,
    requested: RequestedFormat,
    pairs: &QueryPairs,
) -> Result<Response, ApiError> {
    let context = request_context(app, caller)?;
    let params = P::SeriesQuery::read(pairs.iter())?;
    let range = P::range(&params, context.now)?;
    if let Some(format) = requested.0 {
        no_verdict_in_files(P::is_series_judged(&params), format.media_type())?;
        return file::<P, _, _>(app, caller, context, format, "-series", |pool, tenant| {
            buckets::stream::<P>(pool, tenant, &params, range)
        })
        .await;
    }
    let _permits = app.concurrency.heavy(&caller.key).await?;
    let series = match reader(app, context).await? {
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
pub(in crate::http) async fn flights(
    State(app): State<AppState>,
    caller: ApiKey,
    requested: RequestedFormat,
    pairs: QueryPairs,
) -> Result<Response, ApiError> {
    series::<Flights>(&app, &caller, requested, &pairs).await
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
pub(in crate::http) async fn hotels(
    State(app): State<AppState>,
    caller: ApiKey,
    requested: RequestedFormat,
    pairs: QueryPairs,
) -> Result<Response, ApiError> {
    series::<Hotels>(&app, &caller, requested, &pairs).await
}
