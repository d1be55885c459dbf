//! When a monitor's alerts are sent to its webhook (monitors.md, rules 90 to 94).

use crate::field::FieldValue as _;
use crate::primitives::text_type;
use crate::request_body::request_body;
use crate::validation::{ValidationError, ValidationErrors};
use jiff::civil::Time;
use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

request_body! {
    /// When alerts are sent to the webhook. Both times are in the schedule's time zone. Alerts are
    /// stored and listed at once in any case.
    pub struct NotifySettings for "notify" {
        required {}
        optional {
            /// Alerts that fire in these hours are sent together when they end.
            quiet_hours: QuietHours;
            /// Alerts are sent together once a day, at this time.
            digest_at: WallTime;
        }
        example { "quiet_hours": {"from": "22:00", "until": "07:00"} }
    }
}

request_body! {
    /// Hours of each day, over midnight if they end before they begin.
    pub struct QuietHours for "quiet_hours" {
        required {
            /// When they begin.
            from: WallTime;
            /// When they end.
            until: WallTime;
        }
        optional {}
        example { "from": "22:00", "until": "07:00" }
    }
}

text_type! {
    /// A time of the day. A time that daylight saving skips comes at the first moment after the
    /// gap; a time that occurs twice counts the first time.
    pub struct WallTime {
        expected: "a time of the day from \"00:00\" to \"23:59\", as HH:MM",
        accepts: |text| parse(text).is_some(),
        normalize: str::to_owned,
        examples: ["08:00"],
        schema: { pattern: "^([01][0-9]|2[0-3]):[0-5][0-9]$" },
    }
}

impl WallTime {
    /// The time; midnight never stands for an unreadable one, because `read` accepts none.
    pub fn time(&self) -> Time {
        parse(self.as_str()).unwrap_or_default()
    }
}

fn parse(text: &str) -> Option<Time> {
    let (hour, minute) = text.split_once(':')?;
    let two_digits = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit());
    if !two_digits(hour) || !two_digits(minute) {
        return None;
    }
    Time::new(hour.parse().ok()?, minute.parse().ok()?, 0, 0).ok()
}

impl QuietHours {
    /// Whether a time of the day is in them. They include their begin and not their end.
    pub fn contain(&self, time: Time) -> bool {
        let (from, until) = (self.from.time(), self.until.time());
        if from < until {
            from <= time && time < until
        } else {
            from <= time || time < until
        }
    }
}

impl NotifySettings {
    /// Rules across fields.
    pub fn cross_field_errors(&self) -> ValidationErrors {
        let mut errors = ValidationErrors::default();
        if self.quiet_hours.is_none() && self.digest_at.is_none() {
            let expected = "at least one of `quiet_hours` and `digest_at`, or null";
            errors.push(ValidationError::new("", &self.to_value(), expected));
        }
        let Some(quiet) = &self.quiet_hours else {
            return errors;
        };
        if quiet.from == quiet.until {
            errors.push(ValidationError::new(
                "quiet_hours.until",
                &quiet.until.to_value(),
                "another time than `from`: hours without an end would send nothing",
            ));
        } else if let Some(digest_at) = &self.digest_at
            && quiet.contain(digest_at.time())
        {
            let (from, until) = (quiet.from.as_str(), quiet.until.as_str());
            errors.push(ValidationError::new(
                "digest_at",
                &digest_at.to_value(),
                format!("a time outside `quiet_hours`, which are from {from} until before {until}"),
            ));
        }
        errors
    }
}

impl<'de> Deserialize<'de> for NotifySettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(&Value::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}
