//! `/v1/channels`: create, list, read, update, confirm, delete and test a channel (channels.md).

use axum::Json;
use axum::http::StatusCode;

use super::openapi::{
    ChannelCommandErrors, ChannelConfirmErrors, ChannelErrors, ChannelTestErrors,
    DeleteChannelErrors, IdempotencyHeader, ListErrors, ReadErrors,
};
use farescan_core::app::api_request::{
    ApiRequest, accepted_response, created_response, find_tenant,
};
use farescan_core::app::error::ApiResult;
use farescan_core::app::extract::{JsonObject, NoBody, SEARCH_BODY};
use farescan_core::channels::{self, read as query_channels};
use farescan_core::contract::channels::{
    Channel, ChannelConfirmation, ChannelPage, ChannelPatch, ChannelRequest, ChannelsQuery,
};
use farescan_core::contract::webhooks::Delivery;
use farescan_core::ids::{ChannelId, Kind};

/// Create a channel
///
/// Where a person hears of alerts: a phone by `ntfy`, a chat by an incoming webhook (`slack`), or a mail
/// address (`email`). It sends nothing until a monitor names it in `channels`, and an address gets nothing
/// but a code until `POST /v1/channels/{id}/confirm`. Target and token are stored sealed and never shown
/// again.
#[utoipa::path(
    post, path = "/v1/channels", operation_id = "create_channel", tag = "Channels", request_body = ChannelRequest,
    params(IdempotencyHeader),
    responses((status = 201, description = "The channel; `Location` names it", body = Channel), ChannelErrors)
)]
pub(super) async fn create(
    request: ApiRequest,
    JsonObject(body): JsonObject<SEARCH_BODY>,
) -> ApiResult {
    let context = request.submit_context().await?;
    let key = request.idempotency_key()?;
    let guard = request.app.webhook_guard();
    let answered = channels::create(context, guard, &body, key.as_ref()).await?;
    Ok(created_response(answered.response.id, &answered))
}

/// List channels
///
/// Newest first.
#[utoipa::path(
    get, path = "/v1/channels", operation_id = "list_channels", tag = "Channels", params(ChannelsQuery),
    responses((status = 200, description = "A page; `Link` names the next one", body = ChannelPage), ListErrors)
)]
pub(super) async fn list(request: ApiRequest) -> ApiResult {
    let context = request.context()?;
    let query = ChannelsQuery::from_query(request.pairs.iter())?;
    let page = match find_tenant(context).await? {
        Some(tenant) => query_channels::channels(context.pool, tenant, &query).await?,
        None => ChannelPage::default(),
    };
    Ok(request.page(&page, page.next_cursor.as_deref()))
}

/// Read a channel
///
/// With the time of its last success, and the alerts that it holds.
#[utoipa::path(
    get, path = "/v1/channels/{id}", operation_id = "get_channel", tag = "Channels", params(("id" = ChannelId, Path, description = "The channel")),
    responses((status = 200, description = "The channel", body = Channel), ReadErrors)
)]
pub(super) async fn read(request: ApiRequest) -> ApiResult<Json<Channel>> {
    let (tenant, id) = request.owned::<ChannelId>().await?;
    query_channels::channel(request.context()?.pool, tenant, id)
        .await?
        .map(Json)
        .ok_or_else(|| Kind::Channel.into())
}

/// Update a channel
///
/// Absent fields stay; `null` removes `token` and `notify`. A paused channel becomes active by
/// `status` or a new `url`; what failed meanwhile is sent again only on request. A new address gets a code
/// and has to be confirmed.
#[utoipa::path(
    patch, path = "/v1/channels/{id}", operation_id = "update_channel", tag = "Channels", request_body = ChannelPatch,
    params(("id" = ChannelId, Path, description = "The channel")),
    responses((status = 200, description = "The updated channel", body = Channel), ChannelCommandErrors)
)]
pub(super) async fn update(
    request: ApiRequest,
    JsonObject(body): JsonObject<SEARCH_BODY>,
) -> ApiResult<Json<Channel>> {
    let (context, guard) = (request.context()?, request.app.webhook_guard());
    Ok(Json(
        channels::update(context, guard, request.id()?, &body).await?,
    ))
}

/// Confirm the address of a channel
///
/// With the code that was mailed to it. Without `code` another one is mailed, at most once a minute, and the
/// earlier one ends. A code is valid for 24 hours; five wrong ones end it.
#[utoipa::path(
    post, path = "/v1/channels/{id}/confirm", operation_id = "confirm_channel", tag = "Channels", request_body = ChannelConfirmation,
    params(("id" = ChannelId, Path, description = "The channel")),
    responses((status = 200, description = "The channel", body = Channel), ChannelConfirmErrors)
)]
pub(super) async fn confirm(
    request: ApiRequest,
    JsonObject(body): JsonObject<SEARCH_BODY>,
) -> ApiResult<Json<Channel>> {
    let (context, guard) = (request.context()?, request.app.webhook_guard());
    Ok(Json(
        channels::confirm(context, guard, request.id()?, &body).await?,
    ))
}

/// Delete a channel
///
/// With its target, its token and its messages. Refused while monitors name it.
#[utoipa::path(
    delete, path = "/v1/channels/{id}", operation_id = "delete_channel", tag = "Channels", params(("id" = ChannelId, Path, description = "The channel")),
    responses((status = 204, description = "Deleted"), DeleteChannelErrors)
)]
pub(super) async fn delete(request: ApiRequest) -> ApiResult<StatusCode> {
    channels::delete(request.context()?, request.id()?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Send a test to a channel
///
/// A message that says that it is a test, sent once without retries, also in quiet hours; its
/// delivery shows the result.
#[utoipa::path(
    post, path = "/v1/channels/{id}/test", operation_id = "test_channel", tag = "Channels",
    params(
        ("id" = ChannelId, Path, description = "The channel"),
        IdempotencyHeader
    ),
    responses((status = 202, description = "The delivery; `Location` names it", body = Delivery), ChannelTestErrors)
)]
pub(super) async fn test(request: ApiRequest, _: NoBody) -> ApiResult {
    let context = request.context()?;
    let key = request.idempotency_key()?;
    let answered = channels::send_test(context, request.id()?, key.as_ref()).await?;
    Ok(accepted_response(answered.response.id, &answered))
}
