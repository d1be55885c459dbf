//! When a monitor runs, as it is written.

use crate::contract::declare::request;
use crate::contract::primitives::{Zone, text};
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};

/// The longest cron text, in characters.
const MAX_CRON_CHARS: usize = 100;

request! {
    /// When a monitor runs: wall-clock times of a place.
    pub struct ScheduleRequest for "schedule" {
        required {
            /// Minute, hour, day of the month, month, day of the week. At least 15 minutes between two slots.
            cron: CronText;
            /// In whose wall-clock time. A time that daylight saving skips comes at the first moment after the gap, one that comes
            /// twice counts the first time; a schedule for every hour goes on through both, hour by hour.
            timezone: Zone;
        }
        optional {}
        example { "cron": "0 6 * * *", "timezone": "Europe/London" }
    }
}

text! {
    /// Five cron fields.
    pub struct CronText {
        allowed: "five cron fields, minute hour day-of-month month day-of-week, such as \"0 6 * * *\" or \"30 7 * * mon-fri\"",
        accepts: |text| parse(text).is_some(),
        complains: wrong_fields,
        forwards: str::to_owned,
        examples: ["0 6 * * *"],
        schema: { min_length: 9, max_length: MAX_CRON_CHARS },
    }
}

impl CronText {
    /// What it says; `None` cannot be where the text was read.
    #[must_use]
    pub fn parsed(&self) -> Option<Cron> {
        parse(self.as_str())
    }
}

/// The five fields in words, and what each may be.
const FIELDS: [(&str, &str); 5] = [
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day of the month", "1 to 31, L for the last"),
    ("month", "1 to 12, jan to dec"),
    ("day of the week", "0 to 7, sun to sat"),
];

/// Which of five fields cannot be read. Each is tried alone, because croner says neither which it means nor what a person calls it.
fn wrong_fields(text: &str) -> Option<String> {
    let written: Vec<_> = text.split_whitespace().collect();
    if written.len() != FIELDS.len() || !is_plain(text) {
        return None;
    }
    let mut wrong = Vec::new();
    for (place, (held, (name, range))) in written.iter().zip(FIELDS).enumerate() {
        let mut alone = ["*"; FIELDS.len()];
        alone[place] = held;
        if parse(&alone.join(" ")).is_none() {
            let steps = if held.contains('/') {
                ", in steps of 1 or more"
            } else {
                ""
            };
            wrong.push(format!("`{held}` is no {name} ({range}{steps})"));
        }
    }
    (!wrong.is_empty()).then(|| wrong.join(", "))
}

fn is_plain(text: &str) -> bool {
    text.len() <= MAX_CRON_CHARS
        && text.is_ascii()
        && !text.contains('@')
        && !text.bytes().any(|b| b.is_ascii_control())
}

/// No nicknames (`@daily`), no seconds, no years: five fields and nothing else.
fn parse(text: &str) -> Option<Cron> {
    if !is_plain(text) || text.split_whitespace().count() != FIELDS.len() {
        return None;
    }
    CronParser::builder()
        .seconds(Seconds::Disallowed)
        .year(Year::Disallowed)
        .build()
        .parse(text)
        .ok()
}
