//! The webhook of a monitor (monitors.md, rules 53 to 72).

use crate::string_enum::string_enum;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

string_enum! {
    /// Why a webhook was disabled.
    pub enum OffReason {
        /// The receiver responded 410.
        Gone = "gone",
        /// All deliveries failed for five days.
        Failing = "failing",
    }
}

/// The webhook of a monitor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "url": "https://hooks.example.com/fares", "off_at": null, "off_reason": null,
    "delivered_at": "2026-12-01T08:00:04Z", "failing_since": null
})))]
pub struct Webhook {
    /// Its URL.
    pub url: String,
    /// When it was disabled; null: it is enabled.
    pub off_at: Option<Timestamp>,
    /// Why it was disabled.
    pub off_reason: Option<OffReason>,
    /// The time of its last successful delivery.
    pub delivered_at: Option<Timestamp>,
    /// The time since which all attempts have failed.
    pub failing_since: Option<Timestamp>,
}

/// A webhook's secret, shown once: `whsec_` and base64. `Debug` hides it; dropping it wipes the
/// memory.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = String, pattern = "^whsec_[A-Za-z0-9+/]+=*$")]
pub struct ShownSecret(pub zeroize::Zeroizing<String>);

impl fmt::Debug for ShownSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ShownSecret([not shown])")
    }
}
