//! Reading a sweep: what each swept field takes.
//!
//! Here: lists, date ranges, `nights` and `samples`, each with the faults of its own values. Not here: whether values go together
//! (`plan`).

use std::collections::HashSet;

use jiff::civil::{Date, Weekday};
use serde_json::{Map, Value};

use super::MAX_ITEMS;
use crate::contract::{Endpoint, Fault, FieldKind, FieldSpec, FieldValue as _, Faults};

/// The most samples (security.md, "Limits").
const MAX_SAMPLES: u64 = 10;
/// The longest stay or trip that `nights` can make.
const MAX_NIGHTS: u64 = 365;
/// The field that is swept innermost.
const MARKET: &str = "proxy_country";

const WEEKDAYS: [(&str, Weekday); 7] = [
    ("mon", Weekday::Monday),
    ("tue", Weekday::Tuesday),
    ("wed", Weekday::Wednesday),
    ("thu", Weekday::Thursday),
    ("fri", Weekday::Friday),
    ("sat", Weekday::Saturday),
    ("sun", Weekday::Sunday),
];

/// A sweep whose readable values are known.
pub(super) struct Sweep {
    /// Outermost first.
    pub(super) axes: Vec<Axis>,
    /// How often every combination is searched: 1 to 10.
    pub(super) samples: usize,
    /// Fields whose sweep had no readable value: faulted, so a combination says nothing of them.
    pub(super) unreadable: HashSet<&'static str>,
}

/// One swept field and its values, one at least.
pub(super) struct Axis {
    /// The field of the body that it sets.
    pub(super) field: &'static str,
    /// The word in the sweep: the field, or `nights`.
    word: &'static str,
    pub(super) values: Vec<AxisValue>,
}

/// One value of an axis.
pub(super) struct AxisValue {
    /// Its place in the caller's list; `None` for a date of a range.
    index: Option<usize>,
    pub(super) sets: Sets,
}

/// What a value does to the body.
pub(super) enum Sets {
    /// It stands in the axis's field.
    Value(Value),
    /// The axis's field is this many days after `start`.
    Nights {
        /// The field with the first day.
        start: &'static str,
        nights: i64,
    },
}

impl Axis {
    /// The length of its longest value.
    pub(super) fn longest(&self, length: impl Fn(&Value) -> usize) -> usize {
        let longest = self.values.iter().map(|value| match &value.sets {
            Sets::Value(value) => length(value),
            Sets::Nights { .. } => "\"2027-01-01\"".len(),
        });
        longest.max().unwrap_or_default()
    }

    /// The path of a value from the top of the scan's body.
    pub(super) fn path_of(&self, place: usize) -> String {
        match self.values[place].index {
            Some(index) => format!("sweep.{}[{index}]", self.word),
            None => format!("sweep.{}", self.word),
        }
    }
}

/// What is allowed where a date has passed.
pub(super) fn not_past(today: Date) -> String {
    format!("a date that has not passed: {today} or later")
}

impl Sweep {
    /// Reads what can be read; what cannot becomes faults under `sweep`.
    pub(super) fn read(
        endpoint: Endpoint,
        request: &Map<String, Value>,
        sweep: &Map<String, Value>,
        today: Date,
        faults: &mut Faults,
    ) -> Self {
        let mut reader = Reader { endpoint, request, sweep, today, faults: Faults::default() };
        let samples = reader.samples();
        let mut read = Self { axes: Vec::new(), samples, unreadable: HashSet::new() };
        let (market, others): (Vec<_>, Vec<_>) = endpoint.fields().iter().partition(|field| field.name == MARKET);
        for field in others.into_iter().chain(market) {
            let Some((word, values)) = reader.values(field) else { continue };
            if values.is_empty() {
                read.unreadable.insert(field.name);
            } else {
                read.axes.push(Axis { field: field.name, word, values });
            }
        }
        reader.unknown_words();
        faults.merge(reader.faults.prefix("sweep"));
        read
    }
}

/// The fields of the first and last day, of endpoints that have both.
fn stay(endpoint: Endpoint) -> Option<(&'static str, &'static str)> {
    let mut dates = endpoint.fields().iter().filter(|field| field.kind == FieldKind::Date).map(|field| field.name);
    dates.next().zip(dates.next())
}

struct Reader<'a> {
    endpoint: Endpoint,
    request: &'a Map<String, Value>,
    sweep: &'a Map<String, Value>,
    today: Date,
    faults: Faults,
}

impl<'a> Reader<'a> {
    fn swept(&self, word: &str) -> Option<&'a Value> {
        self.sweep.get(word).filter(|value| !value.is_null())
    }

    fn requested(&self, field: &str) -> bool {
        self.request.get(field).is_some_and(|value| !value.is_null())
    }

    fn samples(&mut self) -> usize {
        let Some(value) = self.swept("samples") else { return 1 };
        let samples = value.as_u64().filter(|samples| (1..=MAX_SAMPLES).contains(samples));
        if samples.is_none() {
            self.faults.push(Fault::new("samples", value, format!("an integer from 1 to {MAX_SAMPLES}")));
        }
        samples.and_then(|samples| usize::try_from(samples).ok()).unwrap_or(1)
    }

    /// The word that sweeps a field and its values; `None`: it is not swept.
    fn values(&mut self, field: &'static FieldSpec) -> Option<(&'static str, Vec<AxisValue>)> {
        if let Some((start, end)) = stay(self.endpoint)
            && end == field.name
            && let Some(value) = self.swept("nights")
        {
            if self.requested(end) || self.swept(end).is_some() {
                self.faults.push(Fault::new("nights", value, format!("either `nights` or `{end}`, not both")));
            }
            return Some(("nights", self.nights(start, value)));
        }
        let value = self.swept(field.name)?;
        if self.requested(field.name) {
            self.faults.push(Fault::new(field.name, value, "a field that `request` does not hold: it stands in one of the two"));
        }
        let given = |target: &&str| self.requested(target) || self.swept(target).is_some();
        if !field.alias_of.is_empty() && field.alias_of.iter().all(|target| given(&target)) {
            let allowed = format!("no value: {} are given, so that it would change nothing", field.alias_of.join(" and "));
            self.faults.push(Fault::new(field.name, value, allowed));
        }
        let values = match value {
            Value::Object(range) if field.kind == FieldKind::Date => self.range(field.name, range),
            _ => self.list(field, value),
        };
        Some((field.name, values))
    }

    fn list(&mut self, field: &'static FieldSpec, value: &Value) -> Vec<AxisValue> {
        let Some(elements) = value.as_array().filter(|elements| !elements.is_empty()) else {
            let range = if field.kind == FieldKind::Date { ", or a range {from, to, step_days?, weekdays?}" } else { "" };
            let allowed = format!("a list of values, one at least, each {}{range}", (field.allowed)());
            self.faults.push(Fault::new(field.name, value, allowed));
            return Vec::new();
        };
        let mut seen = HashSet::new();
        let mut values = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            let path = || format!("{}[{index}]", field.name);
            match (field.read)(element) {
                Err(wrong) => self.faults.merge(wrong.prefix(&path())),
                Ok(read) if field.kind == FieldKind::Date && self.has_passed(&read) => {
                    self.faults.push(Fault::new(path(), element, not_past(self.today)));
                }
                Ok(read) if !seen.insert(meaning(field, &read)) => self.faults.push(Fault::new(path(), element, TWICE)),
                Ok(read) => values.push(AxisValue { index: Some(index), sets: Sets::Value(read) }),
            }
        }
        values
    }

    fn nights(&mut self, start: &'static str, value: &Value) -> Vec<AxisValue> {
        // A trip may return on its first day, a stay has one night at least (contract 8).
        let least = u64::from(self.endpoint != Endpoint::FlightsRoundtrip);
        let allowed = format!("an integer from {least} to {MAX_NIGHTS}");
        let Some(elements) = value.as_array().filter(|elements| !elements.is_empty()) else {
            self.faults.push(Fault::new("nights", value, format!("a list of nights, one at least, each {allowed}")));
            return Vec::new();
        };
        let mut seen = HashSet::new();
        let mut values = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            let path = format!("nights[{index}]");
            match element.as_u64().filter(|nights| (least..=MAX_NIGHTS).contains(nights)).and_then(|nights| i64::try_from(nights).ok()) {
                None => self.faults.push(Fault::new(path, element, allowed.clone())),
                Some(nights) if !seen.insert(nights) => self.faults.push(Fault::new(path, element, TWICE)),
                Some(nights) => values.push(AxisValue { index: Some(index), sets: Sets::Nights { start, nights } }),
            }
        }
        values
    }

    /// The dates of `{from, to, step_days?, weekdays?}`, both ends included.
    fn range(&mut self, name: &str, range: &Map<String, Value>) -> Vec<AxisValue> {
        let mut wrong = Faults::default();
        let from = date(range, "from", &mut wrong);
        let to = date(range, "to", &mut wrong);
        let step = step_days(range, &mut wrong);
        let weekdays = weekdays(range, &mut wrong);
        for (word, value) in range.iter().filter(|(word, _)| !RANGE_WORDS.contains(&word.as_str())) {
            wrong.push_with(|| Fault::new(word.as_str(), value, "`from`, `to`, `step_days`, `weekdays`"));
        }
        if let Some(from) = from
            && from < self.today
        {
            wrong.push(Fault::new("from", &from.to_string().into(), not_past(self.today)));
        }
        if let (Some(from), Some(to)) = (from, to)
            && to < from
        {
            wrong.push(Fault::new("to", &to.to_string().into(), format!("a date on or after `from` ({from})")));
        }
        let mut dates = Vec::new();
        if let (Some(from), Some(to), Some(step), Some(weekdays), true) = (from, to, step, weekdays, wrong.is_empty()) {
            let every_step = from.series(jiff::Span::new().days(step)).take_while(|date| *date <= to);
            let wanted = every_step.filter(|date| weekdays.is_empty() || weekdays.contains(&date.weekday()));
            // One more than a scan may have is enough to know that it is too many.
            dates.extend(wanted.take(MAX_ITEMS + 1));
            if dates.is_empty() {
                wrong.push(Fault::new("weekdays", &range["weekdays"], "weekdays that come between `from` and `to` at this step"));
            }
        }
        self.faults.merge(wrong.prefix(name));
        dates.into_iter().map(|date| AxisValue { index: None, sets: Sets::Value(date.to_string().into()) }).collect()
    }

    fn has_passed(&self, date: &Value) -> bool {
        date.as_str().and_then(|text| text.parse::<Date>().ok()).is_some_and(|date| date < self.today)
    }

    fn unknown_words(&mut self) {
        let (endpoint, has_nights) = (self.endpoint, stay(self.endpoint).is_some());
        let known = |word: &str| word == "samples" || (word == "nights" && has_nights) || endpoint.field(word).is_some();
        for (word, value) in self.sweep.iter().filter(|(word, value)| !value.is_null() && !known(word)) {
            self.faults.push_with(|| match word.as_str() {
                "nights" => Fault::new("nights", value, format!("no `nights` in {endpoint}, which has no end date")),
                _ => crate::contract::unknown_field(endpoint, word, value),
            });
        }
    }
}

const TWICE: &str = "values that differ: an equal one stands before it";
const RANGE_WORDS: [&str; 4] = ["from", "to", "step_days", "weekdays"];
/// More days than any calendar has: a longer step is as good as this one.
const MAX_STEP_DAYS: i64 = 3_652_059;

fn date(range: &Map<String, Value>, word: &str, faults: &mut Faults) -> Option<Date> {
    let Some(value) = range.get(word).filter(|value| !value.is_null()) else {
        faults.push(Fault::missing(word, Date::allowed()));
        return None;
    };
    Date::read(value).map_err(|wrong| faults.merge(wrong.prefix(word))).ok()
}

fn step_days(range: &Map<String, Value>, faults: &mut Faults) -> Option<i64> {
    let Some(value) = range.get("step_days").filter(|value| !value.is_null()) else { return Some(1) };
    let step = value.as_u64().filter(|step| *step >= 1).map(|step| i64::try_from(step).unwrap_or(MAX_STEP_DAYS).min(MAX_STEP_DAYS));
    if step.is_none() {
        faults.push(Fault::new("step_days", value, "an integer of 1 or more"));
    }
    step
}

/// Empty: every day. `None`: faulted.
fn weekdays(range: &Map<String, Value>, faults: &mut Faults) -> Option<Vec<Weekday>> {
    let Some(value) = range.get("weekdays").filter(|value| !value.is_null()) else { return Some(Vec::new()) };
    let words = || WEEKDAYS.map(|(word, _)| format!("`{word}`")).join(", ");
    let Some(elements) = value.as_array().filter(|elements| !elements.is_empty()) else {
        faults.push(Fault::new("weekdays", value, format!("a list of {}, one at least", words())));
        return None;
    };
    let mut days = Vec::new();
    let before = faults.len();
    for (index, element) in elements.iter().enumerate() {
        let day = WEEKDAYS.iter().find(|(word, _)| element == *word).map(|(_, day)| *day);
        match day {
            None => faults.push(Fault::new(format!("weekdays[{index}]"), element, format!("one of {}", words()))),
            Some(day) if days.contains(&day) => faults.push(Fault::new(format!("weekdays[{index}]"), element, TWICE)),
            Some(day) => days.push(day),
        }
    }
    (faults.len() == before).then_some(days)
}

/// What two values share that would be searched alike: codes are the same in any case.
fn meaning(field: &FieldSpec, value: &Value) -> String {
    let text = value.to_string();
    let code = matches!(field.name, "currency" | MARKET) || field.name.ends_with("airline_codes");
    if code { text.to_ascii_lowercase() } else { text }
}
