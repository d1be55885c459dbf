//! What a channel sends: notices, each about the alerts of one run.

use crate::ids::{AlertId, ChannelId, MonitorId};
use crate::string_enum::string_enum;
use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

string_enum! {
    /// How urgent an alert is.
    pub enum NoticePriority {
        /// Something is no longer as it was: `stale`, `sold_out`.
        Low = "low",
        /// A price has changed, or a run is reported: `drop_percent`, `new_low`, `percentile_at_most`,
        /// `parity_gap_percent`, `available`, `every_run`.
        Normal = "normal",
        /// What was waited for is there, or the plan ends: `price_below`, `verdict`,
        /// `back_in_stock`, `plan_ends_before_reset`.
        High = "high",
    }
}

/// The data of the events `channel.alerts`, `channel.test` and `channel.confirm`: one message to a
/// channel. The code of a confirmation is in the mail alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChannelAlerts {
    /// The channel.
    pub channel_id: ChannelId,
    /// How many times rules fired; 0 in a test or a confirmation.
    pub fired: u64,
    /// `notices` does not contain all of them: the others are at `GET /v1/alerts`.
    pub truncated: bool,
    /// What it says, the newest first: one notice, or several that were held and are sent together.
    pub notices: Vec<ChannelNotice>,
}

/// What a message says about the alerts of one run, in plain text without control characters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChannelNotice {
    /// The monitor; null in a test.
    pub monitor_id: Option<MonitorId>,
    /// The strongest alert; null in a test.
    pub alert_id: Option<AlertId>,
    /// The trip and its price, on one line.
    pub title: String,
    /// What else there is to know, each on one line.
    pub lines: Vec<String>,
    /// The price of the strongest alert.
    #[serde(serialize_with = "crate::money::price_if_any")]
    pub price: Option<Decimal>,
    /// Its currency.
    pub currency: Option<String>,
    /// When the price was found.
    pub observed_at: Option<Timestamp>,
    /// The provider's verdict on the price, in words.
    pub verdict: Option<String>,
    /// How urgent it is.
    pub priority: NoticePriority,
    /// Where to go from here, the best first.
    pub links: Vec<NoticeLink>,
    /// When the rules fired.
    pub fired_at: Timestamp,
}

/// A link of a notice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NoticeLink {
    /// What is there.
    pub text: String,
    /// An http or https URL.
    pub url: String,
}
