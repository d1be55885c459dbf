//! The schedule of a monitor in requests.

use crate::primitives::{TimeZoneName, text_type};
use crate::request_body::request_body;
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};

/// The longest cron text, in characters.
const MAX_CRON_CHARS: usize = 100;

request_body! {
    /// When a monitor runs, in local time.
    pub struct ScheduleRequest for "schedule" {
        required {
            /// Minute, hour, day of the month, month, day of the week. At least 15 minutes between
            /// two slots.
            cron: CronText;
            /// The IANA time zone of the cron fields. A time that daylight saving skips runs at the
            /// first moment after the gap; a time that occurs twice runs the first time. A schedule
            /// for every hour runs every hour through both.
            timezone: TimeZoneName;
        }
        optional {}
        example { "cron": "0 6 * * *", "timezone": "Europe/London" }
    }
}

text_type! {
    /// Five cron fields.
    pub struct CronText {
        expected: "five cron fields, minute hour day-of-month month day-of-week, such as \"0 6 * * *\" or \"30 7 * * mon-fri\"",
        accepts: |text| parse(text).is_some(),
        explain: describe_invalid_fields,
        normalize: str::to_owned,
        examples: ["0 6 * * *"],
        schema: { min_length: 9, max_length: MAX_CRON_CHARS },
    }
}

impl CronText {
    /// The parsed fields; never `None` for a value made by `read`.
    pub fn parsed(&self) -> Option<Cron> {
        parse(self.as_str())
    }
}

/// The names of the five fields and their values.
const FIELDS: [(&str, &str); 5] = [
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day of the month", "1 to 31, L for the last"),
    ("month", "1 to 12, jan to dec"),
    ("day of the week", "0 to 7, sun to sat"),
];

/// Names the invalid fields. Each is parsed alone, because croner's error does not name the field.
fn describe_invalid_fields(text: &str) -> Option<String> {
    let written: Vec<_> = text.split_whitespace().collect();
    if written.len() != FIELDS.len() || !is_plain_ascii(text) {
        return None;
    }
    let mut wrong = Vec::new();
    for (place, (found, (name, range))) in written.iter().zip(FIELDS).enumerate() {
        let mut alone = ["*"; FIELDS.len()];
        alone[place] = found;
        if parse(&alone.join(" ")).is_none() {
            let steps = if found.contains('/') {
                ", in steps of 1 or more"
            } else {
                ""
            };
            wrong.push(format!("`{found}` is not a valid {name} ({range}{steps})"));
        }
    }
    (!wrong.is_empty()).then(|| wrong.join(", "))
}

fn is_plain_ascii(text: &str) -> bool {
    text.len() <= MAX_CRON_CHARS
        && text.is_ascii()
        && !text.contains('@')
        && !text.bytes().any(|b| b.is_ascii_control())
}

/// Parses exactly five fields: no nicknames (`@daily`), no seconds, no years.
fn parse(text: &str) -> Option<Cron> {
    if !is_plain_ascii(text) || text.split_whitespace().count() != FIELDS.len() {
        return None;
    }
    CronParser::builder()
        .seconds(Seconds::Disallowed)
        .year(Year::Disallowed)
        .build()
        .parse(text)
        .ok()
}
