//! Webhooks on the wire (jobs-api, "Monitors"): deliveries with their tries, and what a monitor shows of its webhook.
//!
//! Not here: where a webhook may be (`webhooks::Guard`), because that depends on a setting; what is sent (`monitors`).

use super::declare::request;
use super::field::Components;
use super::monitors::MonitorAlerts;
use super::primitives::{Cursor, PageLimit};
use super::query::query;
use super::words::words;
use crate::ids::{DeliveryId, MonitorId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, OneOfBuilder, SchemaFormat, Type};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

words! {
    /// What became of a delivery.
    pub enum DeliveryStatus {
        /// It will be tried, or is being tried.
        Pending = "pending",
        /// The receiver took it: a 2xx.
        Delivered = "delivered",
        /// It is not tried any more; `reason` says why. It can be sent again.
        Failed = "failed",
    }
}

words! {
    /// Why a delivery is not tried any more.
    pub enum DeliveryReason {
        /// Every try of the schedule failed.
        TriesSpent = "tries_spent",
        /// The one try of a test failed.
        TestFailed = "test_failed",
        /// The receiver answered 410: it wants no more.
        Gone = "gone",
        /// The webhook was switched off, before or after it was made.
        EndpointOff = "endpoint_off",
        /// The monitor has no webhook any more.
        EndpointClosed = "endpoint_closed",
        /// Its tries were lost with their processes, again and again.
        WorkerLost = "worker_lost",
    }
}

words! {
    /// Why a try failed.
    pub enum TryError {
        /// The receiver answered, and not 2xx. Redirects are not followed.
        HttpStatus = "http_status",
        /// No answer within 10 seconds.
        Timeout = "timeout",
        /// The host's name has no address, or one that is not public; nothing was sent. Which of the two is not told.
        Unresolved = "unresolved",
        /// The URL itself is not one that may be called any more; nothing was sent.
        AddressRefused = "address_refused",
        /// No connection, or no TLS.
        Unconnected = "unconnected",
        /// The connection broke before the answer.
        Broken = "broken",
        /// The secret that signs it cannot be read; nothing was sent.
        SecretUnreadable = "secret_unreadable",
        /// The process died: whether it arrived is not known.
        WorkerLost = "worker_lost",
    }
}

words! {
    /// Why a webhook was switched off.
    pub enum OffReason {
        /// The receiver answered 410.
        Gone = "gone",
        /// Nothing was delivered for five days.
        Failing = "failing",
    }
}

request! {
    /// The query of `GET /v1/deliveries`.
    pub struct DeliveriesQuery for "the query of deliveries" {
        required {}
        optional {
            /// Only deliveries of this monitor.
            monitor_id: MonitorId;
            /// Only deliveries in this status.
            status: DeliveryStatus;
            /// The most deliveries of a page.
            limit: PageLimit = PageLimit::FIFTY => limit_or_default;
            /// Where the page begins: the `next_cursor` of the page before.
            cursor: Cursor;
        }
        example { "status": "failed", "limit": 50 }
    }
}
query!(DeliveriesQuery);

/// One event that is sent to a webhook: at least once, each try with the same `webhook-id`, which is the delivery's id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "id": "dlv_01970a1b2c3d7e4f8a9b0c1d2e3f4a5e",
    "monitor_id": "mon_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b",
    "event_type": "monitor.alerts", "status": "pending", "reason": null,
    "try_count": 2, "next_try_at": "2026-12-01T08:05:09Z",
    "created_at": "2026-12-01T08:00:03Z", "ended_at": null
})))]
pub struct Delivery {
    /// Its id, and the `webhook-id` of each try.
    pub id: DeliveryId,
    /// The monitor whose event it is.
    pub monitor_id: MonitorId,
    /// The event's type, as the body has it.
    pub event_type: String,
    /// What became of it.
    pub status: DeliveryStatus,
    /// Why it is not tried any more, where it failed.
    pub reason: Option<DeliveryReason>,
    /// How many tries have begun.
    pub try_count: u32,
    /// When it is tried next, at the earliest; null once it has ended. In the past: it is being tried, or waits for its turn.
    pub next_try_at: Option<Timestamp>,
    /// When the event was.
    pub created_at: Timestamp,
    /// When it was delivered, or given up.
    pub ended_at: Option<Timestamp>,
}

/// A page of deliveries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeliveryPage {
    /// The deliveries, newest first.
    pub data: Vec<Delivery>,
    /// Where the next page begins; null on the last.
    pub next_cursor: Option<String>,
}

/// A delivery with what was sent and its tries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeliveryDetail {
    /// The delivery.
    #[serde(flatten)]
    pub delivery: Delivery,
    /// The body, as it was or will be sent but for its spaces.
    #[schema(value_type = WebhookEvent)]
    pub payload: Value,
    /// The tries, newest first; the last hundred.
    pub tries: Vec<DeliveryTry>,
}

/// One try of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "number": 1, "started_at": "2026-12-01T08:00:03Z", "ended_at": "2026-12-01T08:00:04Z", "latency_ms": 412,
    "http_status": 503, "error": "http_status", "response": "try again later"
})))]
pub struct DeliveryTry {
    /// Which one, from 1.
    pub number: u32,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended; null while it is under way.
    pub ended_at: Option<Timestamp>,
    /// From its beginning to the end of the answer.
    pub latency_ms: Option<u32>,
    /// What the receiver answered.
    pub http_status: Option<u16>,
    /// Why it failed; null where it did not, or is under way.
    pub error: Option<TryError>,
    /// The first 1,024 bytes of the answer's body, as text without control characters.
    pub response: Option<String>,
}

/// What a monitor shows of its webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "url": "https://hooks.example.com/fares", "off_at": null, "off_reason": null,
    "delivered_at": "2026-12-01T08:00:04Z", "failing_since": null
})))]
pub struct Webhook {
    /// Where it is.
    pub url: String,
    /// Since when it is switched off; null: it is on.
    pub off_at: Option<Timestamp>,
    /// Why it was switched off.
    pub off_reason: Option<OffReason>,
    /// When it last took a delivery.
    pub delivered_at: Option<Timestamp>,
    /// Since when every try has failed.
    pub failing_since: Option<Timestamp>,
}

/// A webhook's secret as it is shown, once: `whsec_` and base64. Not printed, wiped from memory when dropped.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = String, pattern = "^whsec_[A-Za-z0-9+/]+=*$")]
pub struct ShownSecret(pub zeroize::Zeroizing<String>);

impl fmt::Debug for ShownSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ShownSecret([not shown])")
    }
}

/// A webhook's new secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RotatedSecret {
    /// The new secret: here, and never again.
    pub webhook_secret: ShownSecret,
    /// Until when each try is signed with the old secret too.
    pub old_secret_until: Timestamp,
}

/// The data of the event that `POST /v1/monitors/{id}/test` sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MonitorTest {
    /// The monitor.
    pub monitor_id: MonitorId,
    /// That it is a test.
    pub message: String,
}

/// The form of every event: its type, when it was, and its data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event<T> {
    /// The event's type.
    #[serde(rename = "type")]
    pub event_type: String,
    /// When it was.
    pub timestamp: Timestamp,
    /// What it was.
    pub data: T,
}

/// What a receiver gets: one of the events, as their `type` says. For the description alone.
#[derive(Debug)]
pub struct WebhookEvent;

/// Each event's type, the component that describes it whole, and the one of its data.
pub const EVENTS: [(&str, &str, &str); 2] = [
    ("monitor.alerts", "MonitorAlertsEvent", "MonitorAlerts"),
    ("monitor.test", "MonitorTestEvent", "MonitorTest"),
];

impl PartialSchema for WebhookEvent {
    fn schema() -> RefOr<Schema> {
        let any = OneOfBuilder::new().description(Some(
            "What a receiver gets: one of the events, as `type` says.",
        ));
        EVENTS
            .iter()
            .fold(any, |any, (_, component, _)| {
                any.item(Ref::from_schema_name(*component))
            })
            .into()
    }
}

impl ToSchema for WebhookEvent {
    fn schemas(components: &mut Components) {
        components.extend(
            EVENTS
                .map(|(event, component, data)| (component.to_owned(), event_schema(event, data))),
        );
        components.push((MonitorAlerts::name().into_owned(), MonitorAlerts::schema()));
        components.push((MonitorTest::name().into_owned(), MonitorTest::schema()));
        MonitorAlerts::schemas(components);
        MonitorTest::schemas(components);
    }
}

fn event_schema(event: &str, data: &str) -> RefOr<Schema> {
    let text = || ObjectBuilder::new().schema_type(Type::String);
    let time = SchemaFormat::KnownFormat(KnownFormat::DateTime);
    ObjectBuilder::new()
        .description(Some(format!("The event `{event}`.")))
        .property(
            "type",
            text()
                .enum_values(Some([event]))
                .description(Some("The event's type.")),
        )
        .required("type")
        .property(
            "timestamp",
            text().format(Some(time)).description(Some("When it was.")),
        )
        .required("timestamp")
        .property("data", Ref::from_schema_name(data))
        .required("data")
        .into()
}
