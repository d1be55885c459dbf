//! The OpenAPI 3.1 description at `/openapi.json` (gateway.md, rule 43) and its page at `/docs`
//! (`reference_page`; gateway.md, rule 21). Routes describe themselves; here is what they share.

mod error_responses;
mod examples;
mod headers;
mod params;
mod reference_page;
mod required_fields;
mod webhooks;

use std::sync::LazyLock;

use axum::http::HeaderMap;
use axum::response::Response;
use utoipa::openapi::OpenApi;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{self, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi as _};

pub(super) use self::error_responses::*;
pub(super) use self::params::{IdempotencyHeader, SearchAccepted, SearchHeaders};
pub(super) use self::reference_page::reference_page_routes;
use farescan_core::app::assets::Asset;
use farescan_core::contract::ErrorBody;
use farescan_core::contract::verify::{VerifyResponse, VerifyScope};

const DESCRIPTION: &str = "Live flight fares and hotel rates, and scans over dates and markets.\n\n\
    Every search costs one request of the plan of its marketplace key. An invalid request costs nothing: \
    it is answered 400, and the message names every invalid field. Flight searches report in \
    `X-Search-Status` whether they completed.\n\n\
    Results of scans are stored: in the history, in usage and, for monitors, in alerts. A synchronous \
    search is not stored, unless `Cache-Control: max-age` asks for that. With `Prefer: respond-async` it becomes a scan \
    of one item, which is stored.";

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
        (name = "Scans", description = "One request over many dates, markets or values, paced within the caller's plan"),
        (name = "Monitors", description = "Scans on a schedule, the result of each slot, and alerts"),
        (name = "History", description = "Prices that scans and stored searches observed"),
        (name = "Channels", description = "Where people hear of alerts: phones and chats"),
        (name = "Webhooks", description = "Webhooks of monitors and their deliveries"),
        (name = "Webhook events", description = "Requests that this service sends to webhook receivers"),
        (name = "Account", description = "The caller's key and plan"),
        (name = "Service", description = "This service itself")
    ),
    components(schemas(ErrorBody, VerifyResponse, VerifyScope)),
    security(("x-api-key" = []), ("x-marketplace-key" = []), ("x-marketplace-token" = []), ("authorization" = []), ("api_key" = [])),
    modifiers(&KeySecuritySchemes)
)]
struct Description;

/// The base that the routes' own descriptions are added to.
pub(super) fn base_description() -> OpenApi {
    Description::openapi()
}

/// Adds what applies to many routes: headers, webhooks, required fields.
pub(super) fn complete_description(mut openapi: OpenApi) -> OpenApi {
    headers::describe(&mut openapi);
    webhooks::describe(&mut openapi);
    required_fields::describe(&mut openapi);
    examples::describe(&mut openapi);
    openapi
}

/// The operations of a path.
fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem {
        get,
        post,
        put,
        patch,
        delete,
        ..
    } = item;
    [get, post, put, patch, delete].into_iter().flatten()
}

/// The carriers of the key.
struct KeySecuritySchemes;

impl Modify for KeySecuritySchemes {
    fn modify(&self, openapi: &mut OpenApi) {
        let components = openapi.components.get_or_insert_default();
        for name in ["x-api-key", "x-marketplace-key", "x-marketplace-token"] {
            let scheme = SecurityScheme::ApiKey(security::ApiKey::Header(
                ApiKeyValue::with_description(name, "Your marketplace key"),
            ));
            components.add_security_scheme(name, scheme);
        }
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("Your marketplace key (`Bearer`, `ApiKey` or `Token`)"));
        components.add_security_scheme("authorization", SecurityScheme::Http(bearer.build()));
        let query = ApiKeyValue::with_description(
            "api_key",
            "Discouraged: keys in URLs end up in logs and browser history",
        );
        components.add_security_scheme(
            "api_key",
            SecurityScheme::ApiKey(security::ApiKey::Query(query)),
        );
    }
}

/// This description
///
/// Needs no key.
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "get_description", tag = "Service", security(()),
    responses((status = 200, description = "OpenAPI 3.1", content_type = "application/json", body = Object), PublicErrors)
)]
pub(super) async fn openapi_json(headers: HeaderMap) -> Response {
    static DESCRIPTION: LazyLock<Asset> = LazyLock::new(|| {
        let description = serde_json::to_vec(&super::openapi_description())
            .expect("it has no map whose keys are not text");
        Asset::new("application/json", description)
    });
    DESCRIPTION.answer(&headers).await
}
