//! `/v1/usage` and `/v1/account`: billed requests (scans.md, rule 71), settings (scans.md, rule 89) and
//! key rotation (security.md, rule 10).

use axum::Json;
use axum::extract::Request;
use axum::response::IntoResponse as _;

use super::openapi::{AccountErrors, AccountSettingsErrors, ListErrors, RotationErrors};
use farescan_core::account::{settings, usage};
use farescan_core::app::api_request::{ApiRequest, find_tenant, replayed_header};
use farescan_core::app::error::ApiResult;
use farescan_core::app::extract::{JsonObject, SEARCH_BODY, read_bytes};
use farescan_core::contract::account_settings::{AccountSettings, AccountSettingsUpdate};
use farescan_core::contract::key_rotation::{KeyRotation, RotateKeyRequest};
use farescan_core::contract::usage::{Usage, UsageQuery};

/// Read what scans have cost
///
/// Billed requests of the recorded attempts, by UTC day, endpoint, scan or monitor. Deleted scans
/// count: their requests were billed.
#[utoipa::path(
    get, path = "/v1/usage", operation_id = "get_usage", tag = "Account", params(UsageQuery),
    responses((status = 200, description = "The usage; `Link` names the next page of scans", body = Usage), ListErrors)
)]
pub(super) async fn usage(request: ApiRequest) -> ApiResult {
    let context = request.context()?;
    let query = UsageQuery::from_query(request.pairs.iter())?;
    let tenant = find_tenant(context).await?;
    let usage = usage::usage(context.pool, tenant, &query, context.now).await?;
    Ok(request.page(&usage, usage.next_cursor.as_deref()))
}

/// Read the account's settings
///
/// What holds for all of your work.
#[utoipa::path(
    get, path = "/v1/account/settings", operation_id = "get_account_settings", tag = "Account",
    responses((status = 200, description = "The settings", body = AccountSettings), AccountErrors)
)]
pub(super) async fn settings(request: ApiRequest) -> ApiResult<Json<AccountSettings>> {
    Ok(Json(settings::read(request.context()?).await?))
}

/// Set the account's settings
///
/// All settings are replaced: an absent or null one gets its default. They hold from the next search
/// and submission on. Other processes of the service begin to store searches usually within a second,
/// at the latest after 30 seconds; none stores one because of a setting that was turned off.
#[utoipa::path(
    put, path = "/v1/account/settings", operation_id = "set_account_settings", tag = "Account", request_body = AccountSettingsUpdate,
    responses((status = 200, description = "The new settings", body = AccountSettings), AccountSettingsErrors)
)]
pub(super) async fn set_settings(
    request: ApiRequest,
    JsonObject(body): JsonObject<SEARCH_BODY>,
) -> ApiResult<Json<AccountSettings>> {
    let context = request.submit_context().await?;
    let update = AccountSettingsUpdate::from_body(&body)?;
    let (tenant, settings) = settings::replace(context, &update).await?;
    request.app.custody()?.recorder.refresh(tenant).await;
    Ok(Json(settings))
}

/// Move the account to a new key
///
/// Send the request with the old key. The new key then owns everything that the old key owned,
/// lanes included; the old key belongs to an unknown caller. The marketplace checks the new key
/// first; a key that it rejects gets nothing. Keys stored for live scans are encrypted anew, and
/// lanes that stopped because the old key was rejected resume. The same request within two days
/// gets the same response (`Idempotent-Replayed: true`).
#[utoipa::path(
    post, path = "/v1/account/rotate-key", operation_id = "rotate_key", tag = "Account", request_body = RotateKeyRequest,
    responses((status = 200, description = "The result of the rotation", body = KeyRotation), RotationErrors)
)]
pub(super) async fn rotate_key(request: ApiRequest, sent: Request) -> ApiResult {
    request.context()?;
    let body = read_bytes(sent.into_body(), SEARCH_BODY).await?;
    let new_key = RotateKeyRequest::from_bytes(&body)?.new_key;
    let rotation = request.app.rotate_key(&request.caller, &new_key).await?;
    Ok((
        replayed_header(rotation.repeated),
        Json(KeyRotation::from(rotation)),
    )
        .into_response())
}
