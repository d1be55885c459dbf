//! The description of the whole service: `/openapi.json` (OpenAPI 3.1, specification 9) and `/docs`, which shows it (`page`,
//! contract 21). Routes describe themselves; here is what they share.

mod errors;
mod headers;
mod page;
mod params;
mod required;
mod webhooks;

use std::sync::LazyLock;

use axum::http::HeaderMap;
use axum::response::{Redirect, Response};
use utoipa::openapi::OpenApi;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi as _};

pub(super) use self::errors::*;
pub(super) use self::page::page;
pub(super) use self::params::{IdempotencyHeader, SearchAccepted, SearchHeaders};
use super::assets::Asset;
use crate::contract::ErrorBody;
use crate::contract::account::{VerifyResponse, VerifyScope};

const DESCRIPTION: &str = "Live flight fares and hotel rates, and scans over dates and markets.\n\n\
    Every search is one request against the plan of the marketplace key that it is sent with. A request that cannot be valid costs \
    nothing: it is answered 400 with every fault named. Flight searches say in `X-Search-Status` whether they completed.\n\n\
    What scans find is kept: it is in the history, in usage and, for monitors, in alerts. A synchronous search is answered and not kept; with \
    `Prefer: respond-async` it is a scan of one item, and is.";

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "farescan", version = "1.1.0", description = DESCRIPTION, contact(name = "The operator of this service"),
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    servers((url = "/", description = "this service")),
    tags(
        (name = "Flights", description = "Live flight fares"),
        (name = "Hotels", description = "Live hotel rates, from any market"),
        (name = "Scans", description = "One request over many dates, markets or values, paced inside the caller's plan"),
        (name = "Monitors", description = "A scan on a schedule, what became of each slot, and when to tell"),
        (name = "History", description = "What scans have seen. A synchronous search leaves nothing here"),
        (name = "Webhooks", description = "What monitors tell, and whether it arrived"),
        (name = "Webhook events", description = "What a receiver gets: sent by this service, not served by it"),
        (name = "Account", description = "The caller's key and plan"),
        (name = "Service", description = "This service itself")
    ),
    components(schemas(ErrorBody, VerifyResponse, VerifyScope)),
    security(("x-api-key" = []), ("x-marketplace-key" = []), ("x-marketplace-token" = []), ("authorization" = []), ("api_key" = [])),
    modifiers(&Carriers)
)]
struct Description;

/// What every route's own description is added to.
pub(super) fn shared() -> OpenApi {
    Description::openapi()
}

/// Completes what routes cannot say by themselves, and what all of them would have to repeat.
pub(super) fn completed(mut openapi: OpenApi) -> OpenApi {
    headers::describe(&mut openapi);
    webhooks::describe(&mut openapi);
    required::describe(&mut openapi);
    openapi
}

/// The key's carriers.
struct Carriers;

impl Modify for Carriers {
    fn modify(&self, openapi: &mut OpenApi) {
        let components = openapi.components.get_or_insert_default();
        for name in ["x-api-key", "x-marketplace-key", "x-marketplace-token"] {
            let scheme = SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::with_description(
                name,
                "Your marketplace key",
            )));
            components.add_security_scheme(name, scheme);
        }
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("Your marketplace key (`Bearer`, `ApiKey` or `Token`)"));
        components.add_security_scheme("authorization", SecurityScheme::Http(bearer.build()));
        let query = ApiKeyValue::with_description(
            "api_key",
            "Works, and is discouraged: keys in URLs end up in logs and history",
        );
        components.add_security_scheme("api_key", SecurityScheme::ApiKey(ApiKey::Query(query)));
    }
}

/// This description
///
/// Needs no key.
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "get_description", tag = "Service", security(()),
    responses((status = 200, description = "OpenAPI 3.1", content_type = "application/json", body = Object), OpenErrors)
)]
pub(super) async fn openapi(headers: HeaderMap) -> Response {
    static DESCRIPTION: LazyLock<Asset> = LazyLock::new(|| {
        let description = serde_json::to_vec(&super::description())
            .expect("it has no map whose keys are not text");
        Asset::new("application/json", description)
    });
    DESCRIPTION.answer(&headers).await
}

/// Whoever opens the address in a browser is shown what is here.
pub(super) async fn front() -> Redirect {
    Redirect::to("/docs")
}
