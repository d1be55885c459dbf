//! What receivers get, described as OpenAPI's `webhooks`: nothing here is served by this service.

use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;

use crate::contract::webhooks::WebhookEvent;

#[derive(utoipa::OpenApi)]
#[openapi(paths(monitor_alerts, monitor_test), components(schemas(WebhookEvent)))]
struct Sent;

/// The headers of every try (Standard Webhooks 1.0).
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "described, and read by nobody here")]
struct Signed {
    /// The delivery's id: the same at every try, so that a receiver can tell what it has had.
    #[param(rename = "webhook-id", value_type = String, example = "dlv_01970a1b2c3d7e4f8a9b0c1d2e3f4a5e")]
    id: String,
    /// When this try was made, in seconds since 1970: refuse what is older than a few minutes.
    #[param(rename = "webhook-timestamp", value_type = i64, example = 1_796_112_003)]
    timestamp: i64,
    /// `v1,` and the base64 of the HMAC-SHA256 over `webhook-id.webhook-timestamp.body`, keyed with the secret's bytes: what is behind
    /// `whsec_`, from base64. For a day after a rotation there are several, apart by spaces, and one of them fits.
    #[param(rename = "webhook-signature", value_type = String, example = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")]
    signature: String,
}

/// What a receiver may answer.
#[derive(utoipa::IntoResponses)]
#[expect(dead_code, reason = "described, and answered by nobody here")]
enum Said {
    /// It is taken. The body is not read, but for what `GET /v1/deliveries/{id}` shows of it.
    #[response(status = "2XX")]
    Taken,
    /// The receiver wants no more: the webhook is switched off at once.
    #[response(status = 410)]
    Gone,
    /// Anything else, a redirect too, or no answer within 10 seconds: it is tried again after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 10 h.
    #[response(status = "default")]
    Refused,
}

/// Rules have fired
///
/// One event for each run of a monitor whose rules fired; the strongest alerts first.
#[utoipa::path(post, path = "monitor.alerts", tag = "Webhook events", operation_id = "receive_monitor_alerts", security(()), params(Signed),
    request_body(content = ref("#/components/schemas/MonitorAlertsEvent")), responses(Said))]
#[expect(dead_code, reason = "described, and called by nobody here")]
fn monitor_alerts() {}

/// A test
///
/// What `POST /v1/monitors/{id}/test` sends, in one try.
#[utoipa::path(post, path = "monitor.test", tag = "Webhook events", operation_id = "receive_monitor_test", security(()), params(Signed),
    request_body(content = ref("#/components/schemas/MonitorTestEvent")), responses(Said))]
#[expect(dead_code, reason = "described, and called by nobody here")]
fn monitor_test() {}

/// Adds them to the description of what is served.
pub(super) fn describe(openapi: &mut OpenApi) {
    let sent = Sent::openapi();
    openapi.webhooks = Some(sent.paths);
    let schemas = sent
        .components
        .map(|components| components.schemas)
        .unwrap_or_default();
    openapi
        .components
        .get_or_insert_default()
        .schemas
        .extend(schemas);
}
