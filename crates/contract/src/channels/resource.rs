//! Responses with a channel.

use super::notice::NoticePriority;
use crate::ids::ChannelId;
use crate::monitors::{HeldAlerts, NotifySettings};
use crate::string_enum::string_enum;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

string_enum! {
    /// What receives the messages of a channel.
    pub enum ChannelKind {
        /// A topic of ntfy: a phone or a browser that has subscribed to it.
        Ntfy = "ntfy",
        /// An incoming webhook of Slack, or of Mattermost, Rocket.Chat or Discord (its URL with
        /// `/slack`).
        Slack = "slack",
        /// An address, through the mail server of this service's operator. Until it is confirmed it gets
        /// nothing but a code.
        Email = "email",
        /// A service of Apprise, such as Telegram, through the relay of this service's operator.
        Apprise = "apprise",
    }
}

string_enum! {
    /// Whether a channel is active.
    pub enum ChannelStatus {
        /// Messages are sent.
        Active = "active",
        /// Messages are stored as failed; `status_reason` says why.
        Paused = "paused",
    }
}

string_enum! {
    /// Why a channel is paused.
    pub enum ChannelPause {
        /// Paused by the caller.
        ByCaller = "by_caller",
        /// Nothing was delivered for three days.
        Failing = "failing",
        /// The receiver responded 410, or the mail server says that there is no such mailbox.
        Gone = "gone",
        /// The address of this channel is not confirmed yet.
        Unconfirmed = "unconfirmed",
        /// Whoever reads its mails wants no more of them; the address has to be confirmed again.
        Unsubscribed = "unsubscribed",
    }
}

/// Where a person hears of alerts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "id": "chn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b", "name": "my phone", "kind": "ntfy",
    "url": "https://ntfy.sh/…71d0", "has_token": false, "least_priority": "low",
    "notify": {"quiet_hours": {"from": "22:00", "until": "07:00"}}, "timezone": "Europe/London", "held": null,
    "status": "active", "status_reason": null,
    "last_success_at": "2026-12-01T08:00:04Z", "failing_since": null,
    "created_at": "2026-11-30T08:00:00Z", "updated_at": "2026-11-30T08:00:00Z"
})))]
pub struct Channel {
    /// Its id.
    pub id: ChannelId,
    /// Its name.
    pub name: String,
    /// What receives its messages.
    pub kind: ChannelKind,
    /// Its target, masked: scheme, host and at most the last four characters; of an address the first
    /// character and the domain.
    pub url: String,
    /// Whether an access token is stored for it.
    pub has_token: bool,
    /// Alerts of a lower priority are not sent to it.
    pub least_priority: NoticePriority,
    /// Hours in which nothing is sent, and the time of a daily message; null: each message is sent at
    /// once.
    #[serde(default)]
    #[schema(required = true)]
    pub notify: Option<NotifySettings>,
    /// The IANA time zone of `notify` and of the times in messages.
    pub timezone: String,
    /// Alerts that wait for the end of the quiet hours, for the daily message, or for the hour after
    /// 30 messages; null if there are none.
    #[serde(default)]
    #[schema(required = true)]
    pub held: Option<HeldAlerts>,
    /// Whether it is active.
    pub status: ChannelStatus,
    /// Why it is paused.
    pub status_reason: Option<ChannelPause>,
    /// The time of the last message that its receiver accepted.
    pub last_success_at: Option<Timestamp>,
    /// The time since which all attempts have failed.
    pub failing_since: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its caller last changed it.
    pub updated_at: Timestamp,
}

/// A page of channels, newest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChannelPage {
    /// The channels.
    pub data: Vec<Channel>,
    /// Where the next page begins; null on the last.
    pub next_cursor: Option<String>,
}
