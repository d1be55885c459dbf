//! From a sweep to axes: what each swept field takes, in the order in which positions count.
//!
//! Here: the values of lists, date ranges and `nights`, each checked by itself. Not here: the sweep's shape (`contract::scans`),
//! whether values go together (`plan`).

use std::collections::HashSet;

use jiff::Span;
use jiff::civil::{Date, Weekday};
use serde_json::{Map, Value};

use super::MAX_ITEMS;
use crate::contract::scans::{DateRange, Sweep, SweepValue};
use crate::contract::{
    Endpoint, Fault, Faults, FieldKind, FieldSpec, FieldValue as _, unknown_field,
};

/// The field that is swept innermost.
const MARKET: &str = "proxy_country";

/// The readable values of a sweep.
pub(super) struct Axes {
    /// Outermost first, each with one value at least.
    pub(super) list: Vec<Axis>,
    /// Fields whose sweep has no readable value: faulted already, so a combination says nothing of them.
    pub(super) unreadable: HashSet<String>,
}

/// One swept field and its values.
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
    /// The axis's field is this many days after the day in `start`.
    Nights { start: &'static str, nights: u16 },
}

impl Axis {
    /// The path of a value from the top of the scan's body.
    pub(super) fn path_of(&self, place: usize) -> String {
        match self.values[place].index {
            Some(index) => format!("sweep.{}[{index}]", self.word),
            None => format!("sweep.{}", self.word),
        }
    }

    /// How many values it takes, in words.
    pub(super) fn counted(&self) -> String {
        let more = if self.is_cut_off() { "at least " } else { "" };
        format!("`{}` ({more}{})", self.word, self.values.len())
    }

    /// Whether it is a range with more dates than were listed.
    pub(super) fn is_cut_off(&self) -> bool {
        self.is_range() && self.values.len() > MAX_ITEMS
    }

    /// Whether its values are the dates of a range.
    pub(super) fn is_range(&self) -> bool {
        self.values.iter().all(|value| value.index.is_none())
    }

    /// The length of its longest value.
    pub(super) fn longest(&self, length: impl Fn(&Value) -> usize) -> usize {
        let longest = self.values.iter().map(|value| match &value.sets {
            Sets::Value(value) => length(value),
            Sets::Nights { .. } => "\"2027-01-01\"".len(),
        });
        longest.max().unwrap_or_default()
    }
}

/// What is allowed where a date has passed.
pub(super) fn not_past(today: Date) -> String {
    format!("a date that has not passed: {today} or later")
}

/// The fields of the first and last day, of endpoints that have both.
pub(super) fn stay(endpoint: Endpoint) -> Option<(&'static str, &'static str)> {
    let mut dates = endpoint
        .fields()
        .iter()
        .filter(|field| field.kind == FieldKind::Date)
        .map(|field| field.name);
    dates.next().zip(dates.next())
}

/// Reads a sweep's values; what is wrong becomes faults under `sweep`. `unreadable` are words whose shape was faulted before.
pub(super) fn axes(
    context: &Context<'_>,
    unreadable: HashSet<String>,
    faults: &mut Faults,
) -> Axes {
    let mut axes = Axes {
        list: Vec::new(),
        unreadable,
    };
    let mut wrong = Faults::default();
    let (market, others): (Vec<_>, Vec<_>) = context
        .endpoint
        .fields()
        .iter()
        .partition(|field| field.name == MARKET);
    for field in others.into_iter().chain(market) {
        let Some((word, values)) = context.values(field, &mut wrong) else {
            continue;
        };
        if values.is_empty() {
            axes.unreadable.insert(field.name.to_owned());
        } else {
            axes.list.push(Axis {
                field: field.name,
                word,
                values,
            });
        }
    }
    context.refuse_unknown(&mut wrong);
    faults.merge(wrong.prefix("sweep"));
    axes
}

/// What a sweep is read beside.
pub(super) struct Context<'a> {
    pub(super) endpoint: Endpoint,
    pub(super) request: &'a Map<String, Value>,
    pub(super) sweep: &'a Sweep,
    pub(super) today: Date,
}

const TWICE: &str = "values that differ: an equal one stands before it";

impl Context<'_> {
    fn swept(&self, name: &str) -> Option<&SweepValue> {
        self.sweep
            .fields
            .iter()
            .find(|(field, _)| field == name)
            .map(|(_, values)| values)
    }

    fn requested(&self, name: &str) -> bool {
        self.request.get(name).is_some_and(|value| !value.is_null())
    }

    /// The word that sweeps a field and its values; `None`: it is not swept.
    fn values(
        &self,
        field: &'static FieldSpec,
        faults: &mut Faults,
    ) -> Option<(&'static str, Vec<AxisValue>)> {
        if let Some((start, end)) = stay(self.endpoint)
            && end == field.name
            && let Some(nights) = &self.sweep.nights
        {
            if self.requested(end) || self.swept(end).is_some() {
                faults.push(Fault::new(
                    "nights",
                    &nights.to_value(),
                    format!("either `nights` or `{end}`, not both"),
                ));
            }
            let nights = nights.as_slice().iter().map(|nights| nights.get());
            return Some(("nights", distinct_nights(start, nights, faults)));
        }
        let swept = self.swept(field.name)?;
        if self.requested(field.name) {
            faults.push(Fault::new(
                field.name,
                &swept.to_value(),
                format!("either `request.{0}` or `sweep.{0}`, not both", field.name),
            ));
        }
        let given = |target: &&str| self.requested(target) || self.swept(target).is_some();
        if !field.alias_of.is_empty() && field.alias_of.iter().all(given) {
            let allowed = format!(
                "no value: {} are given, so that it would change nothing",
                field.alias_of.join(" and ")
            );
            faults.push(Fault::new(field.name, &swept.to_value(), allowed));
        }
        let values = match swept {
            SweepValue::Values(elements) => self.list(field, elements, faults),
            SweepValue::Range(range) if field.kind == FieldKind::Date => {
                self.range(field.name, range, faults)
            }
            SweepValue::Range(range) => {
                faults.push(Fault::new(
                    field.name,
                    &range.to_value(),
                    format!("a list of values, each {}", (field.allowed)()),
                ));
                Vec::new()
            }
        };
        Some((field.name, values))
    }

    fn list(
        &self,
        field: &'static FieldSpec,
        elements: &[Value],
        faults: &mut Faults,
    ) -> Vec<AxisValue> {
        let mut seen = HashSet::new();
        let mut values = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            let path = || format!("{}[{index}]", field.name);
            match (field.read)(element) {
                Err(wrong) => faults.merge(wrong.prefix(&path())),
                Ok(read) if field.kind == FieldKind::Date && has_passed(&read, self.today) => {
                    faults.push(Fault::new(path(), element, not_past(self.today)));
                }
                Ok(read) if !seen.insert(meaning(field, &read)) => {
                    faults.push(Fault::new(path(), element, TWICE))
                }
                Ok(read) => values.push(AxisValue {
                    index: Some(index),
                    sets: Sets::Value(read),
                }),
            }
        }
        values
    }

    fn range(&self, name: &str, range: &DateRange, faults: &mut Faults) -> Vec<AxisValue> {
        if range.from < self.today {
            faults.push(Fault::new(
                format!("{name}.from"),
                &range.from.to_value(),
                not_past(self.today),
            ));
            return Vec::new();
        }
        let weekdays: Option<Vec<Weekday>> = range.weekdays.as_ref().map(|days| {
            days.as_slice()
                .iter()
                .map(|day| Weekday::from(*day))
                .collect()
        });
        let every_step = range
            .from
            .series(Span::new().days(range.step_days_or_default().get()))
            .take_while(|date| *date <= range.to);
        let wanted = every_step.filter(|date| {
            weekdays
                .as_ref()
                .is_none_or(|days| days.contains(&date.weekday()))
        });
        // One more than a scan may have is enough to know that it is too many.
        let dates = wanted.take(MAX_ITEMS + 1).map(|date| AxisValue {
            index: None,
            sets: Sets::Value(date.to_value()),
        });
        let dates: Vec<_> = dates.collect();
        if let (true, Some(days)) = (dates.is_empty(), &range.weekdays) {
            let allowed = "weekdays that come between `from` and `to` at this step";
            faults.push(Fault::new(
                format!("{name}.weekdays"),
                &days.to_value(),
                allowed,
            ));
        }
        dates
    }

    fn refuse_unknown(&self, faults: &mut Faults) {
        for (name, values) in self
            .sweep
            .fields
            .iter()
            .filter(|(name, _)| self.endpoint.field(name).is_none())
        {
            faults.push_with(|| unknown_field(self.endpoint, name, &values.to_value()));
        }
        if let (Some(nights), None) = (&self.sweep.nights, stay(self.endpoint)) {
            let allowed = format!("no `nights` in {}, which has no end date", self.endpoint);
            faults.push(Fault::new("nights", &nights.to_value(), allowed));
        }
    }
}

fn distinct_nights(
    start: &'static str,
    nights: impl Iterator<Item = u16>,
    faults: &mut Faults,
) -> Vec<AxisValue> {
    let mut seen = HashSet::new();
    let mut values = Vec::new();
    for (index, nights) in nights.enumerate() {
        if seen.insert(nights) {
            values.push(AxisValue {
                index: Some(index),
                sets: Sets::Nights { start, nights },
            });
        } else {
            faults.push(Fault::new(
                format!("nights[{index}]"),
                &nights.into(),
                TWICE,
            ));
        }
    }
    values
}

/// Whether the day of a checked date value has passed everywhere.
pub(super) fn has_passed(date: &Value, today: Date) -> bool {
    date.as_str()
        .and_then(|text| text.parse::<Date>().ok())
        .is_some_and(|date| date < today)
}

/// What two values share that would be searched alike: codes are the same in any case.
fn meaning(field: &FieldSpec, value: &Value) -> String {
    let text = value.to_string();
    let code = matches!(field.name, "currency" | MARKET) || field.name.ends_with("airline_codes");
    if code {
        text.to_ascii_lowercase()
    } else {
        text
    }
}
