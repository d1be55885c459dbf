//! Webhooks (monitors.md, rules 53 to 72): deliveries with their attempts, and events. Messages to
//! channels are deliveries too.
//!
//! Not here: which addresses are allowed (`webhooks::Guard`, because that depends on a setting);
//! the payloads (`monitors`).

use super::channels::ChannelAlerts;
use super::field::Components;
use super::monitors::{MonitorAlerts, MonitorDigest, ShownSecret};
use super::primitives::{Cursor, PageLimit};
use super::query_string::query_string;
use super::request_body::request_body;
use super::string_enum::string_enum;
use crate::ids::{ChannelId, DeliveryId, Kind, MonitorId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, OneOfBuilder, SchemaFormat, Type};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

string_enum! {
    /// The status of a delivery.
    pub enum DeliveryStatus {
        /// An attempt is scheduled or in progress.
        Pending = "pending",
        /// The receiver accepted it with a 2xx.
        Delivered = "delivered",
        /// There are no more attempts; `reason` says why. It can be sent again.
        Failed = "failed",
    }
}

string_enum! {
    /// Why a delivery failed.
    pub enum DeliveryReason {
        /// All scheduled attempts failed.
        TriesSpent = "tries_spent",
        /// The only attempt of a test failed.
        TestFailed = "test_failed",
        /// The receiver responded 410 and wants no more deliveries, or there is no such mailbox.
        Gone = "gone",
        /// The webhook was disabled or the channel paused, before or after the delivery was created.
        EndpointOff = "endpoint_off",
        /// The webhook was removed from the monitor.
        EndpointClosed = "endpoint_closed",
        /// The processes of its attempts died repeatedly.
        WorkerLost = "worker_lost",
        /// The mail server refused the recipient or the message for good.
        Refused = "refused",
    }
}

string_enum! {
    /// Why an attempt failed.
    pub enum TryError {
        /// The receiver did not respond with 2xx. Redirects are not followed.
        HttpStatus = "http_status",
        /// No response within 10 seconds, of a mail server within 20.
        Timeout = "timeout",
        /// The host name has no address or a non-public one; nothing was sent. The service does not
        /// distinguish the two.
        Unresolved = "unresolved",
        /// The URL is no longer allowed; nothing was sent.
        AddressRefused = "address_refused",
        /// The connection or TLS failed.
        Unconnected = "unconnected",
        /// The connection closed before the response.
        Broken = "broken",
        /// The signing secret cannot be read; nothing was sent.
        SecretUnreadable = "secret_unreadable",
        /// The process died: it is unknown whether the delivery arrived.
        WorkerLost = "worker_lost",
        /// The mail server did not take the message now, for a reason that may pass or is its operator's to mend.
        MailDeferred = "mail_deferred",
        /// The mail server refused the recipient or the message for good.
        MailRefused = "mail_refused",
        /// The operator of this service has not set up this kind of channel any more; nothing was sent.
        NotSetUp = "not_set_up",
    }
}

request_body! {
    /// The query of `GET /v1/deliveries`.
    pub struct DeliveriesQuery for "the query of deliveries" {
        required {}
        optional {
            /// Only deliveries of this monitor.
            monitor_id: MonitorId;
            /// Only messages to this channel.
            channel_id: ChannelId;
            /// Only deliveries in this status.
            status: DeliveryStatus;
            /// The maximum deliveries of a page.
            limit: PageLimit = PageLimit::FIFTY => limit_or_default;
            /// Where the page begins: the `next_cursor` of the previous page.
            cursor: Cursor;
        }
        example { "status": "failed", "limit": 50 }
    }
}
query_string!(DeliveriesQuery);

impl DeliveriesQuery {
    /// What the query names the owner of: a monitor or a channel.
    pub const fn owner_kind(&self) -> Kind {
        if self.monitor_id.is_some() {
            Kind::Monitor
        } else {
            Kind::Channel
        }
    }
}

/// One event that is sent to a webhook, or one message to a channel, at least once. Each attempt has
/// the delivery's id: `webhook-id` of a webhook, `farescan-delivery` of a channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "id": "dlv_01970a1b2c3d7e4f8a9b0c1d2e3f4a5e",
    "monitor_id": "mon_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b", "channel_id": null,
    "event_type": "monitor.alerts", "status": "pending", "reason": null,
    "try_count": 2, "last_error": "timeout", "next_try_at": "2026-12-01T08:05:09Z",
    "created_at": "2026-12-01T08:00:03Z", "ended_at": null
})))]
pub struct Delivery {
    /// Its id, and that of each attempt.
    pub id: DeliveryId,
    /// The monitor of the event; null for a message of several monitors, and for a channel's test or
    /// confirmation.
    pub monitor_id: Option<MonitorId>,
    /// The channel; null for a webhook's event.
    #[serde(default)]
    #[schema(required = true)]
    pub channel_id: Option<ChannelId>,
    /// The event's type, as in the payload.
    pub event_type: String,
    /// Its status.
    pub status: DeliveryStatus,
    /// Why it failed.
    pub reason: Option<DeliveryReason>,
    /// Number of attempts, running ones included.
    pub try_count: u32,
    /// Why its newest attempt that has ended failed; null if that one succeeded, or none has ended.
    #[serde(default)]
    #[schema(required = true)]
    pub last_error: Option<TryError>,
    /// The earliest time of the next attempt; null once it has ended. If in the past: an attempt
    /// runs or waits.
    pub next_try_at: Option<Timestamp>,
    /// When the event occurred.
    pub created_at: Timestamp,
    /// When it was delivered or failed.
    pub ended_at: Option<Timestamp>,
}

/// A page of deliveries.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeliveryPage {
    /// The deliveries, newest first.
    pub data: Vec<Delivery>,
    /// Where the next page begins; null on the last.
    pub next_cursor: Option<String>,
}

/// A delivery with its payload and attempts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeliveryDetail {
    /// The delivery.
    #[serde(flatten)]
    pub delivery: Delivery,
    /// A webhook's payload, equal to the sent one except for white space; what a message to a channel
    /// says.
    #[schema(value_type = DeliveryPayload)]
    pub payload: Value,
    /// The last hundred attempts, newest first.
    pub tries: Vec<DeliveryTry>,
}

/// One attempt of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "number": 1, "started_at": "2026-12-01T08:00:03Z", "ended_at": "2026-12-01T08:00:04Z", "latency_ms": 412,
    "http_status": 503, "error": "http_status", "response": "try again later"
})))]
pub struct DeliveryTry {
    /// Its number, from 1.
    pub number: u32,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended; null while it runs.
    pub ended_at: Option<Timestamp>,
    /// Time from its begin to the end of the response.
    pub latency_ms: Option<u32>,
    /// The receiver's HTTP status.
    pub http_status: Option<u16>,
    /// Why it failed; null if it succeeded or runs.
    pub error: Option<TryError>,
    /// The first 1,024 bytes of the response body, as text without control characters; null of a
    /// channel, but for a mail server's reply that does not repeat the address.
    pub response: Option<String>,
}

/// A webhook's new secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RotatedSecret {
    /// The new secret, shown only in this response.
    pub webhook_secret: ShownSecret,
    /// Until this time each attempt is also signed with the old secret.
    pub old_secret_until: Timestamp,
}

/// The data of the event that `POST /v1/monitors/{id}/test` sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MonitorTest {
    /// The monitor.
    pub monitor_id: MonitorId,
    /// States that it is a test.
    pub message: String,
}

/// The format of every event: type, time and data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event<T> {
    /// The event's type.
    #[serde(rename = "type")]
    pub event_type: String,
    /// When it occurred.
    pub timestamp: Timestamp,
    /// Its data.
    pub data: T,
}

/// The payload of a webhook's delivery: one of the events, by `type`. Only for the OpenAPI document.
#[derive(Debug)]
pub struct WebhookEvent;

/// The payload of a delivery to a webhook or a channel. Only for the OpenAPI document.
#[derive(Debug)]
pub struct DeliveryPayload;

/// Each event's type, its component, and the component of its data.
pub const EVENTS: [(&str, &str, &str); 3] = [
    ("monitor.alerts", "MonitorAlertsEvent", "MonitorAlerts"),
    ("monitor.digest", "MonitorDigestEvent", "MonitorDigest"),
    ("monitor.test", "MonitorTestEvent", "MonitorTest"),
];

/// As [`EVENTS`], of channels.
const CHANNEL_EVENTS: [(&str, &str, &str); 3] = [
    ("channel.alerts", "ChannelAlertsEvent", "ChannelAlerts"),
    ("channel.confirm", "ChannelConfirmEvent", "ChannelAlerts"),
    ("channel.test", "ChannelTestEvent", "ChannelAlerts"),
];

/// One of several components.
fn one_of<'a>(doc: &str, components: impl IntoIterator<Item = &'a str>) -> RefOr<Schema> {
    let any = OneOfBuilder::new().description(Some(doc));
    components
        .into_iter()
        .fold(any, |any, component| {
            any.item(Ref::from_schema_name(component))
        })
        .into()
}

impl PartialSchema for WebhookEvent {
    fn schema() -> RefOr<Schema> {
        one_of(
            "The payload of a delivery: one of the events, by `type`.",
            EVENTS.map(|(_, component, _)| component),
        )
    }
}

impl ToSchema for WebhookEvent {
    fn schemas(components: &mut Components) {
        components.extend(
            EVENTS
                .map(|(event, component, data)| (component.to_owned(), event_schema(event, data))),
        );
        components.push((MonitorAlerts::name().into_owned(), MonitorAlerts::schema()));
        components.push((MonitorDigest::name().into_owned(), MonitorDigest::schema()));
        components.push((MonitorTest::name().into_owned(), MonitorTest::schema()));
        MonitorAlerts::schemas(components);
        MonitorDigest::schemas(components);
        MonitorTest::schemas(components);
    }
}

impl PartialSchema for DeliveryPayload {
    fn schema() -> RefOr<Schema> {
        let events = EVENTS.iter().chain(&CHANNEL_EVENTS);
        one_of(
            "The payload of a delivery to a webhook or a channel, by `type`.",
            events.map(|(_, component, _)| *component),
        )
    }
}

impl ToSchema for DeliveryPayload {
    fn schemas(components: &mut Components) {
        components.extend(
            CHANNEL_EVENTS
                .map(|(event, component, data)| (component.to_owned(), event_schema(event, data))),
        );
        components.push((ChannelAlerts::name().into_owned(), ChannelAlerts::schema()));
        ChannelAlerts::schemas(components);
        WebhookEvent::schemas(components);
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
            text()
                .format(Some(time))
                .description(Some("When the event occurred.")),
        )
        .required("timestamp")
        .property("data", Ref::from_schema_name(data))
        .required("data")
        .into()
}
