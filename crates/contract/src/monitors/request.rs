//! Requests that create and change a monitor. `monitors` checks its scan by planning the next slot,
//! with the code for all scans.

use super::notify::NotifySettings;
use super::rule::Rule;
use super::scan::MonitorScan;
use super::schedule::ScheduleRequest;
use crate::ids::ChannelId;
use crate::primitives::{
    BoundedList, MAX_URL_CHARS, bounded_integer, is_name, is_receiver, text_type,
};
use crate::request_body::request_body;
use serde_json::{Map, Value, json};

/// The most channels of a monitor.
pub const MAX_CHANNELS: usize = 10;

/// The channels of a monitor.
type ChannelList = BoundedList<ChannelId, 0, MAX_CHANNELS>;

request_body! {
    /// Body of `POST /v1/monitors`: a scan on a schedule.
    pub struct MonitorRequest for "monitors" {
        required {
            /// Its name.
            name: MonitorName;
            /// When it runs.
            schedule: ScheduleRequest;
            /// The body of `POST /v1/scans` for each run. Its dates may be relative: `+7d` is seven
            /// days after the slot's date in the schedule's time zone, in `request`, in lists and
            /// in ranges. The default priority is `scheduled`.
            scan: MonitorScan;
        }
        optional {
            /// When to send an alert.
            alerts: BoundedList<Rule, 0, 20>;
            /// The receiver of alerts: an https URL on the public internet.
            webhook_url: WebhookUrl;
            /// When alerts are sent to the webhook. Otherwise each run sends its alerts at once.
            notify: NotifySettings;
            /// The channels that hear of its alerts, each once.
            channels: ChannelList;
            /// The maximum billed requests per calendar month in the schedule's time zone. A slot
            /// whose run could exceed it is skipped.
            max_requests_per_month: MonthlyCeiling;
        }
        example {
            "name": "January fares",
            "schedule": {"cron": "0 6 * * *", "timezone": "Europe/London"},
            "scan": {
                "endpoint": "flights/oneway",
                "request": {"from_airport": "TLV", "to_airport": "LHR", "currency": "USD"},
                "sweep": {"departure_date": {"from": "+7d", "to": "+36d"}}
            },
            "alerts": [{"type": "price_below", "amount": 200}],
            "max_requests_per_month": 2000
        }
    }
}

impl MonitorRequest {
    /// A body that nothing has checked yet, with the fields that every monitor has. `schedule` is the cron
    /// text and the zone.
    pub fn draft(
        name: &str,
        schedule: [&str; 2],
        scan: impl Into<Value>,
        alerts: impl Into<Value>,
    ) -> Map<String, Value> {
        let [cron, timezone] = schedule;
        Map::from_iter([
            ("name".to_owned(), name.into()),
            (
                "schedule".to_owned(),
                json!({"cron": cron, "timezone": timezone}),
            ),
            ("scan".to_owned(), scan.into()),
            ("alerts".to_owned(), alerts.into()),
        ])
    }

    /// Its alert rules.
    pub fn rules(&self) -> &[Rule] {
        self.alerts.as_ref().map_or(&[], BoundedList::as_slice)
    }

    /// The channels that hear of its alerts.
    pub fn channels(&self) -> &[ChannelId] {
        self.channels.as_ref().map_or(&[], BoundedList::as_slice)
    }
}

request_body! {
    /// Body of `PATCH /v1/monitors/{id}`. An absent field stays unchanged; a given one replaces the
    /// whole old value: `schedule`, `scan`, `alerts`, `notify` and `channels` are not merged. `null` removes
    /// `webhook_url`, `notify` and `max_requests_per_month`; for the others it is the same as
    /// absent.
    pub struct MonitorPatch for "monitors" {
        required {}
        optional {
            /// Its name.
            name: MonitorName;
            /// When it runs, from its next slot on.
            schedule: ScheduleRequest;
            /// What it searches, from its next run on.
            scan: MonitorScan;
            /// When to send an alert.
            alerts: BoundedList<Rule, 0, 20>;
            /// The receiver of alerts.
            webhook_url: WebhookUrl;
            /// When alerts are sent to the webhook. Alerts that the new times do not hold are sent
            /// at once.
            notify: NotifySettings;
            /// The channels that hear of its alerts; an empty list removes all.
            channels: ChannelList;
            /// The maximum billed requests per calendar month.
            max_requests_per_month: MonthlyCeiling;
        }
        example { "schedule": {"cron": "30 7 * * mon-fri", "timezone": "Europe/London"} }
    }
}

/// The longest name, in characters.
const MAX_NAME_CHARS: usize = 200;

text_type! {
    /// The name of a monitor.
    pub struct MonitorName {
        expected: "text of 1 to 200 characters without control characters, not spaces alone",
        accepts: |text| is_name(text, MAX_NAME_CHARS),
        normalize: str::to_owned,
        examples: ["January fares"],
        schema: { min_length: 1, max_length: MAX_NAME_CHARS, pattern: r"^(?=.*\S)[^\u0000-\u001F\u007F-\u009F]*$" },
    }
}

text_type! {
    /// The receiver's URL. Only its format is checked here; `webhooks::Guard` checks its scheme and
    /// address (security.md, rule 25).
    pub struct WebhookUrl {
        expected: "an https URL of at most 2000 characters, without a user name, a password or a fragment",
        accepts: is_receiver,
        normalize: str::to_owned,
        examples: ["https://hooks.example.com/fares"],
        schema: { min_length: 9, max_length: MAX_URL_CHARS, pattern: "^https?://" },
    }
}

bounded_integer! {
    /// A monthly limit of billed requests.
    pub struct MonthlyCeiling(u32): 1..=2_147_483_647;
}
