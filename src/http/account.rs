//! `/v1/usage` (jobs-api, "Account").

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};

use super::AppState;
use super::auth::Caller;
use super::docs::ListErrors;
use super::error::ApiError;
use super::extract::Pairs;
use super::scans::{desk, next_page, tenant};
use crate::account::usage;
use crate::contract::usage::{Usage, UsageQuery};

/// Read what scans have cost
///
/// Billed requests from the attempts on record, by UTC day, endpoint or scan. What a deleted scan had cost stays: it was billed.
#[utoipa::path(
    get, path = "/v1/usage", tag = "Account", params(UsageQuery),
    responses((status = 200, description = "The usage; `Link` names the next page of scans", body = Usage), ListErrors)
)]
pub(super) async fn usage(State(app): State<AppState>, caller: Caller, pairs: Pairs) -> Result<Response, ApiError> {
    let desk = desk(&app, &caller)?;
    let query = UsageQuery::from_query(pairs.iter())?;
    let usage = usage::usage(desk.pool, tenant(desk).await?, &query, desk.now).await?;
    Ok((next_page("/v1/usage", &pairs, usage.next_cursor.as_deref()), Json(usage)).into_response())
}
