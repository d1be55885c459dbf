//! `/v1/account/settings` (scans.md, rules 89 and 90; gateway.md, rule 59): what holds for all work of a
//! caller.

use super::request_body::request_body;
use super::scans::MaxAgeSeconds;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

request_body! {
    /// Body of `PUT /v1/account/settings`: all settings. An absent or null field has its default.
    pub struct AccountSettingsUpdate for "settings" {
        required {}
        optional {
            /// Store every complete answer of your synchronous searches, after its response.
            record_searches: bool = false => record_searches_or_default;
            /// The age for submitted scans that name none; 0 is no age.
            max_age_seconds: MaxAgeSeconds;
        }
        example { "record_searches": true, "max_age_seconds": 21600 }
    }
}

/// What holds for all work of a caller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({"record_searches": true, "max_age_seconds": 21600})))]
pub struct AccountSettings {
    /// Complete answers of synchronous searches are stored.
    pub record_searches: bool,
    /// The age for submitted scans that name none; null: they reuse nothing.
    pub max_age_seconds: Option<u32>,
}
