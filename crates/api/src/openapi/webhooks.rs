//! The requests to webhook receivers, described as OpenAPI's `webhooks`. This service does not
//! serve them.

use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;

use farescan_core::contract::webhooks::WebhookEvent;

#[derive(utoipa::OpenApi)]
#[openapi(
    paths(monitor_alerts, monitor_digest, monitor_test),
    components(schemas(WebhookEvent))
)]
struct WebhookRequests;

/// The headers of every attempt (Standard Webhooks 1.0).
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "only for the OpenAPI description")]
struct SignatureHeaders {
    /// The delivery's id. Every attempt has the same one, so that the receiver can detect
    /// duplicates.
    #[param(rename = "webhook-id", value_type = String, example = "dlv_01970a1b2c3d7e4f8a9b0c1d2e3f4a5e")]
    id: String,
    /// The time of this attempt, in seconds since 1970. Reject requests that are older than a few
    /// minutes.
    #[param(rename = "webhook-timestamp", value_type = i64, example = 1_796_112_003)]
    timestamp: i64,
    /// `v1,` and the base64 of the HMAC-SHA256 over `webhook-id.webhook-timestamp.body`. The HMAC
    /// key is the base64-decoded part of the secret after `whsec_`. For a day after a rotation
    /// there are several signatures, separated by spaces; accept if one matches.
    #[param(rename = "webhook-signature", value_type = String, example = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")]
    signature: String,
}

/// Possible responses of a receiver.
#[derive(utoipa::IntoResponses)]
#[expect(dead_code, reason = "only for the OpenAPI description")]
enum ReceiverResponses {
    /// Delivered. The body is not read, except for the part that `GET /v1/deliveries/{id}` shows.
    #[response(status = "2XX")]
    Taken,
    /// The receiver is gone: the webhook is disabled immediately.
    #[response(status = 410)]
    Gone,
    /// Anything else, including a redirect, or no response within 10 seconds: retried after 5 s, 5
    /// min, 30 min, 2 h, 5 h, 10 h and 10 h.
    #[response(status = "default")]
    Refused,
}

/// Alert rules fired
///
/// One event for each run of a monitor whose rules fired; strongest alerts first.
#[utoipa::path(post, path = "monitor.alerts", tag = "Webhook events", operation_id = "receive_monitor_alerts", security(()), params(SignatureHeaders),
    request_body(content = ref("#/components/schemas/MonitorAlertsEvent")), responses(ReceiverResponses))]
#[expect(dead_code, reason = "only for the OpenAPI description")]
fn monitor_alerts() {}

/// Alerts that were held
///
/// Of a monitor with `notify`: the alerts that fired in its quiet hours, when they end, or those of a
/// day, once a day; newest alerts first. Without any there is no event.
#[utoipa::path(post, path = "monitor.digest", tag = "Webhook events", operation_id = "receive_monitor_digest", security(()), params(SignatureHeaders),
    request_body(content = ref("#/components/schemas/MonitorDigestEvent")), responses(ReceiverResponses))]
#[expect(dead_code, reason = "only for the OpenAPI description")]
fn monitor_digest() {}

/// Webhook test
///
/// What `POST /v1/monitors/{id}/test` sends, once without retries.
#[utoipa::path(post, path = "monitor.test", tag = "Webhook events", operation_id = "receive_monitor_test", security(()), params(SignatureHeaders),
    request_body(content = ref("#/components/schemas/MonitorTestEvent")), responses(ReceiverResponses))]
#[expect(dead_code, reason = "only for the OpenAPI description")]
fn monitor_test() {}

/// Adds the webhooks to the description.
pub(super) fn describe(openapi: &mut OpenApi) {
    let sent = WebhookRequests::openapi();
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
