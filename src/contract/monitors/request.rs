//! What makes and changes a monitor. Its scan is checked by the plan of its next slot (`monitors`), by the code that checks every scan.

use super::rule::Rule;
use super::scan::MonitorScan;
use super::schedule::ScheduleRequest;
use crate::contract::declare::request;
use crate::contract::primitives::{List, text, whole_number};

request! {
    /// Body of `POST /v1/monitors`: a scan on a schedule.
    pub struct MonitorRequest for "monitors" {
        required {
            /// What people call it.
            name: MonitorName;
            /// When it runs.
            schedule: ScheduleRequest;
            /// The body of `POST /v1/scans` for each run. Its dates may be relative: `+7d` is seven days after the slot's date in the
            /// schedule's time zone, in `request`, in lists and in ranges. Its priority is `scheduled` unless it says otherwise.
            scan: MonitorScan;
        }
        optional {
            /// When to tell.
            alerts: List<Rule, 0, 20>;
            /// Whom to tell: https, reachable from the internet.
            webhook_url: WebhookUrl;
            /// The most billed requests of a calendar month in the schedule's time zone. A slot whose run could go over it is skipped.
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

request! {
    /// Body of `PATCH /v1/monitors/{id}`. What is absent stays; what is there takes the place of what was, whole: `schedule`, `scan` and
    /// `alerts` are not merged with what they held. `null` takes `webhook_url` and `max_requests_per_month` away, and is the same as
    /// absent for the others.
    pub struct MonitorPatch for "monitors" {
        required {}
        optional {
            /// What people call it.
            name: MonitorName;
            /// When it runs, from its next slot on.
            schedule: ScheduleRequest;
            /// What it searches, from its next run on.
            scan: MonitorScan;
            /// When to tell.
            alerts: List<Rule, 0, 20>;
            /// Whom to tell.
            webhook_url: WebhookUrl;
            /// The most billed requests of a calendar month.
            max_requests_per_month: MonthlyCeiling;
        }
        example { "schedule": {"cron": "30 7 * * mon-fri", "timezone": "Europe/London"} }
    }
}

/// The longest name, in characters.
const MAX_NAME_CHARS: usize = 200;
/// The longest address of a webhook, in characters.
const MAX_URL_CHARS: usize = 2_000;

text! {
    /// What people call a monitor.
    pub struct MonitorName {
        allowed: "text of 1 to 200 characters without control characters, not spaces alone",
        accepts: |text| {
            (1..=MAX_NAME_CHARS).contains(&text.chars().count()) && !text.chars().any(char::is_control) && !text.trim().is_empty()
        },
        forwards: str::to_owned,
        examples: ["January fares"],
        schema: { min_length: 1, max_length: MAX_NAME_CHARS, pattern: r"^(?=.*\S)[^\u0000-\u001F\u007F-\u009F]*$" },
    }
}

text! {
    /// Where deliveries go. Here its form; where it may be, and that it is https, says `webhooks::Guard` (security.md, "Outgoing and pages").
    pub struct WebhookUrl {
        allowed: "an https URL of at most 2000 characters, without a user name, a password or a fragment",
        accepts: |text| is_webhook(text),
        forwards: str::to_owned,
        examples: ["https://hooks.example.com/fares"],
        schema: { min_length: 9, max_length: MAX_URL_CHARS, pattern: "^https?://" },
    }
}

fn is_webhook(text: &str) -> bool {
    let visible = text.len() <= MAX_URL_CHARS && text.bytes().all(|byte| byte.is_ascii_graphic());
    visible
        && (text.starts_with("https://") || text.starts_with("http://"))
        && reqwest::Url::parse(text).is_ok_and(|url| {
            url.has_host()
                && url.username().is_empty()
                && url.password().is_none()
                && url.fragment().is_none()
        })
}

whole_number! {
    /// A ceiling on a month's billed requests.
    pub struct MonthlyCeiling(u32): 1..=2_147_483_647;
}
