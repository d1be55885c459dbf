//! `/v1/history/flights/series` and `/v1/history/hotels/series`: prices over time.

use axum::Json;
use axum::extract::State;
use axum::response::Response;

use super::{file, reader};
use crate::contract::series::{
    FlightBucket, FlightSeries, FlightSeriesQuery, HotelBucket, HotelSeries, HotelSeriesQuery,
};
use crate::history::buckets::{self, Over};
use crate::history::{fare_products, rate_products};
use crate::http::AppState;
use crate::http::auth::Caller;
use crate::http::docs::{ListErrors, NotAcceptable};
use crate::http::error::ApiError;
use crate::http::export::{Wanted, varied};
use crate::http::extract::Pairs;
use crate::http::scans::{desk, tenant};

/// Read the fares of a route over time
///
/// What was seen in each day or week: the lowest, middle and highest price, the provider's band, and how much of it was empty or did not
/// complete. Each product has rows of its own: currencies, parties and cabins never mix. At most twelve products; as CSV, NDJSON or Parquet
/// (by `format` or `Accept`) all of them, streamed. A body that breaks off is not whole.
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
    caller: Caller,
    wanted: Wanted,
    pairs: Pairs,
) -> Result<Response, ApiError> {
    let desk = desk(&app, &caller)?;
    let asked = FlightSeriesQuery::from_query(pairs.iter())?;
    let over = Over::of_flights(&asked, asked.times(desk.now)?);
    if let Some(form) = wanted.0 {
        let pool = app.history_pool()?;
        let rows = tenant(desk)
            .await?
            .map(|tenant| buckets::all_flights(pool, tenant, &asked, over));
        return file(
            &app,
            &caller,
            form,
            "flights-series",
            &fare_products(),
            rows,
        )
        .await;
    }
    let _permits = app.bounds.heavy(&caller.key).await?;
    let series = match reader(&app, desk).await? {
        Some((conn, tenant)) => buckets::flights(conn, tenant, &asked, over).await?,
        None => buckets::no_flights(over),
    };
    Ok(varied(Json(series)))
}

/// Read the rates of a hotel or place over time
///
/// What was seen in each day or week: the lowest, middle and highest price of a stay, and how much of it was empty or did not complete.
/// Each product and market has rows of its own. Exactly one of `hotel_name`, `destination` and `hotel_booking_id`. At most twelve
/// products; as CSV, NDJSON or Parquet (by `format` or `Accept`) all of them, streamed. A body that breaks off is not whole.
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
    caller: Caller,
    wanted: Wanted,
    pairs: Pairs,
) -> Result<Response, ApiError> {
    let desk = desk(&app, &caller)?;
    let asked = HotelSeriesQuery::from_query(pairs.iter())?;
    let over = Over::of_hotels(&asked, asked.times(desk.now)?);
    if let Some(form) = wanted.0 {
        let pool = app.history_pool()?;
        let rows = tenant(desk)
            .await?
            .map(|tenant| buckets::all_hotels(pool, tenant, &asked, over));
        return file(&app, &caller, form, "hotels-series", &rate_products(), rows).await;
    }
    let _permits = app.bounds.heavy(&caller.key).await?;
    let series = match reader(&app, desk).await? {
        Some((conn, tenant)) => buckets::hotels(conn, tenant, &asked, over).await?,
        None => buckets::no_hotels(over),
    };
    Ok(varied(Json(series)))
}
