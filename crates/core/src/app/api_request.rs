//! A request for stored work: the inputs that its handler reads, and the forms of its response.
//!
//! The handler reads them in the order in which their faults count: the context, the query, then the
//! id of the path. A body is read before all of them (`extract`).

use axum::Json;
use axum::extract::{FromRequestParts, Path};
use axum::http::header::{LINK, LOCATION};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::AppState;
use super::auth::{ApiKey, LongPollApiKey};
use super::concurrency::Permit;
use super::error::{ApiError, ApiResult};
use super::extract::QueryPairs;
use crate::commands::{IdempotencyKey, Replayable, RequestContext};
use crate::config::PaceConfig;
use crate::contract::shorten;
use crate::ids::{AnyId, ResourceId, TenantId};
use crate::tenants;

pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// A request with a key, which counts against its caller's rate and requests in flight.
pub struct ApiRequest {
    pub app: AppState,
    pub caller: ApiKey,
    pub pairs: QueryPairs,
    path: String,
    /// The parameters of the path, by name.
    parameters: Vec<(String, String)>,
    idempotency_key: Option<HeaderValue>,
}

/// A request that may wait for an event: it does not count against requests in flight.
pub struct LongPollRequest(pub ApiRequest);

impl ApiRequest {
    async fn read(parts: &mut Parts, app: &AppState, caller: ApiKey) -> ApiResult<Self> {
        let Path(parameters) = Path::from_request_parts(parts, app)
            .await
            .map_err(ApiError::internal)?;
        Ok(Self {
            app: app.clone(),
            caller,
            pairs: QueryPairs::of(&parts.uri),
            path: parts.uri.path().to_owned(),
            parameters,
            idempotency_key: parts.headers.get(IDEMPOTENCY_KEY).cloned(),
        })
    }

    /// The context of stored work.
    pub fn context(&self) -> ApiResult<RequestContext<'_>> {
        request_context(&self.app, &self.caller)
    }

    /// The context of a submission.
    pub async fn submit_context(&self) -> ApiResult<RequestContext<'_>> {
        submit_context(&self.app, &self.caller).await
    }

    /// The pace of the caller's lanes at first.
    pub fn pace(&self) -> ApiResult<&PaceConfig> {
        Ok(&self.app.custody()?.pace)
    }

    /// The permits of a read of many rows.
    pub async fn heavy_permits(&self) -> ApiResult<[Permit; 2]> {
        self.app.concurrency.heavy(&self.caller.key).await
    }

    /// A parameter of the path; empty if the route has none of this name.
    pub fn parameter(&self, name: &str) -> &str {
        let held = self.parameters.iter().find(|(held, _)| held == name);
        held.map_or("", |(_, value)| value)
    }

    /// The id in the path.
    pub fn id<Id: ResourceId>(&self) -> ApiResult<Id> {
        self.id_in("id")
    }

    /// The id in a parameter of the path. A malformed id is 404 like an unknown one; the message says
    /// that it is malformed, because no other caller can have it.
    pub fn id_in<Id: ResourceId>(&self, name: &str) -> ApiResult<Id> {
        let text = self.parameter(name);
        text.parse().map_err(|form| {
            let (noun, text) = (Id::KIND.noun(), shorten(text));
            ApiError::not_found(format!("there is no {noun} `{text}`; expected {form}"))
        })
    }

    /// The caller's tenant; 404 for `Id` if nothing was ever submitted with this key.
    pub async fn tenant<Id: ResourceId>(&self) -> ApiResult<TenantId> {
        find_tenant(self.context()?)
            .await?
            .ok_or_else(|| Id::KIND.into())
    }

    /// The caller's tenant and the id in the path.
    pub async fn owned<Id: ResourceId>(&self) -> ApiResult<(TenantId, Id)> {
        self.context()?;
        let id = self.id()?;
        Ok((self.tenant::<Id>().await?, id))
    }

    /// The key of a command that may be repeated.
    pub fn idempotency_key(&self) -> ApiResult<Option<IdempotencyKey>> {
        idempotency_key(self.idempotency_key.as_ref())
    }

    /// A page, with a `Link` to the next one.
    pub fn page(&self, page: &impl Serialize, next: Option<&str>) -> Response {
        (self.next_page_link(next), Json(page)).into_response()
    }

    /// A `Link` to the next page: the same query with the new cursor.
    pub fn next_page_link(&self, cursor: Option<&str>) -> HeaderMap {
        let link = cursor.and_then(|cursor| {
            let kept = self.pairs.iter().filter(|(name, _)| *name != "cursor");
            let query = form_urlencoded::Serializer::new(String::new())
                .extend_pairs(kept)
                .append_pair("cursor", cursor)
                .finish();
            // A path and form-encoded text are a valid header value.
            let link = format!("<{}?{query}>; rel=\"next\"", self.path);
            HeaderValue::try_from(link).ok()
        });
        link.map(|link| (LINK, link)).into_iter().collect()
    }
}

impl FromRequestParts<AppState> for ApiRequest {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> ApiResult<Self> {
        let caller = ApiKey::from_request_parts(parts, app).await?;
        Self::read(parts, app, caller).await
    }
}

impl FromRequestParts<AppState> for LongPollRequest {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> ApiResult<Self> {
        let LongPollApiKey(caller) = LongPollApiKey::from_request_parts(parts, app).await?;
        ApiRequest::read(parts, app, caller).await.map(Self)
    }
}

/// The context of a request for stored work.
pub fn request_context<'a>(app: &'a AppState, caller: &'a ApiKey) -> ApiResult<RequestContext<'a>> {
    let custody = app.custody()?;
    let pools = app.pools()?;
    let pool = if caller.is_write {
        &pools.writes
    } else {
        &pools.reads
    };
    Ok(RequestContext {
        pool,
        ring: &custody.ring,
        key: &caller.key,
        now: app.now()?,
    })
}

/// The context of a submission. It first stores that the marketplace accepted the key, if this
/// process knows that.
pub async fn submit_context<'a>(
    app: &'a AppState,
    caller: &'a ApiKey,
) -> ApiResult<RequestContext<'a>> {
    let context = request_context(app, caller)?;
    app.record_acceptance(&caller.key).await;
    app.admit_order(&caller.key).await?;
    Ok(context)
}

/// The caller's tenant; `None` if nothing was ever submitted with this key.
pub async fn find_tenant(context: RequestContext<'_>) -> ApiResult<Option<TenantId>> {
    Ok(
        tenants::store::find_with_connection(context.pool, context.ring, context.key, context.now)
            .await?
            .1,
    )
}

/// The key in a header [`IDEMPOTENCY_KEY`].
pub fn idempotency_key(value: Option<&HeaderValue>) -> ApiResult<Option<IdempotencyKey>> {
    Ok(value
        .map(|value| IdempotencyKey::parse(value.as_bytes()))
        .transpose()?)
}

/// 201: the resource of this id is stored.
pub fn created_response<T: Serialize>(id: impl Into<AnyId>, answered: &Replayable<T>) -> Response {
    let response = (location(id), replayable_response(answered));
    (StatusCode::CREATED, response).into_response()
}

/// 202: what was asked for becomes of the resource of this id.
pub fn accepted_response<T: Serialize>(id: impl Into<AnyId>, answered: &Replayable<T>) -> Response {
    let response = (location(id), replayable_response(answered));
    (StatusCode::ACCEPTED, response).into_response()
}

/// The header `Location` with the path of a resource.
pub fn location(id: impl Into<AnyId>) -> [(HeaderName, String); 1] {
    let id = id.into();
    [(LOCATION, format!("/v1/{}/{id}", id.kind.plural()))]
}

/// The response, with `Idempotent-Replayed` if it was given before.
pub fn replayable_response<T: Serialize>(answered: &Replayable<T>) -> Response {
    (replayed_header(answered.replayed), Json(&answered.response)).into_response()
}

/// The header `Idempotent-Replayed`, if `replayed`.
pub fn replayed_header(replayed: bool) -> HeaderMap {
    replayed
        .then_some((REPLAYED, HeaderValue::from_static("true")))
        .into_iter()
        .collect()
}
