//! From a sweep to axes: the values of each swept field, in the order of positions, outermost
//! first.
//!
//! Here: the values of lists, date ranges and `nights`, each checked by itself. Not here: the
//! sweep's shape (`contract::scans`), and whether values are valid together (`plan`).

use std::collections::HashSet;

use jiff::Span;
use jiff::civil::{Date, Weekday};
use serde_json::{Map, Value};

use super::MAX_ITEMS;
use crate::contract::scans::{DateRange, Sweep, SweepValue};
use crate::contract::{
    Endpoint, FieldKind, FieldSpec, FieldValue as _, ValidationError, ValidationErrors,
};

/// The field that is swept innermost.
const MARKET: &str = "proxy_country";

/// The readable values of a sweep.
pub(super) struct Axes {
    /// Outermost first, each with one value at least.
    pub(super) list: Vec<Axis>,
    /// Fields whose sweep has no readable value. They have a fault already, so faults of
    /// combinations leave them out.
    pub(super) unreadable: HashSet<String>,
}

impl Axes {
    /// The number of combinations; at most `usize::MAX`.
    pub(super) fn combinations(&self) -> usize {
        let lengths = self.list.iter().map(|axis| axis.values.len());
        lengths.fold(1, usize::saturating_mul)
    }
}

/// One swept field and its values.
pub(super) struct Axis {
    /// The field of the body that it sets.
    pub(super) field: &'static str,
    /// The key in the sweep: the field's name, or `nights`.
    key: &'static str,
    pub(super) values: Vec<AxisValue>,
}

/// One value of an axis.
pub(super) struct AxisValue {
    /// Its index in the caller's list; `None` for a date of a range.
    index: Option<usize>,
    pub(super) assignment: Assignment,
}

/// How a value changes the body.
pub(super) enum Assignment {
    /// Sets the axis's field.
    Value(Value),
    /// Sets the axis's field to the date `nights` days after the date in the field `start`.
    Nights { start: &'static str, nights: u16 },
}

impl Axis {
    /// The path of a value from the top of the scan's body.
    pub(super) fn path_of(&self, value: usize) -> String {
        match self.values[value].index {
            Some(index) => format!("sweep.{}[{index}]", self.key),
            None => format!("sweep.{}", self.key),
        }
    }

    /// The number of its values, for an error message.
    pub(super) fn count_text(&self) -> String {
        let more = if self.is_truncated() { "at least " } else { "" };
        format!("`{}` ({more}{})", self.key, self.values.len())
    }

    /// Whether it is a range with more dates than were enumerated.
    pub(super) fn is_truncated(&self) -> bool {
        self.is_range() && self.values.len() > MAX_ITEMS
    }

    /// Whether its values are the dates of a range.
    pub(super) fn is_range(&self) -> bool {
        self.values.iter().all(|value| value.index.is_none())
    }

    /// The length of its longest value.
    pub(super) fn max_length(&self, length: impl Fn(&Value) -> usize) -> usize {
        let longest = self.values.iter().map(|value| match &value.assignment {
            Assignment::Value(value) => length(value),
            Assignment::Nights { .. } => "\"2027-01-01\"".len(),
        });
        longest.max().unwrap_or_default()
    }
}

/// The `expected` text of a fault for a date that has passed.
pub(super) fn not_past(today: Date) -> String {
    format!("a date that has not passed: {today} or later")
}

/// The fields of the start and end date, for endpoints that have both.
pub(super) fn stay_dates(endpoint: Endpoint) -> Option<(&'static str, &'static str)> {
    let mut dates = endpoint
        .fields()
        .iter()
        .filter(|field| field.kind == FieldKind::Date)
        .map(|field| field.name);
    dates.next().zip(dates.next())
}

/// Reads a sweep's values; adds faults under `sweep`. `unreadable` are fields whose entries already
/// have a fault.
pub(super) fn axes(
    context: &SweepContext<'_>,
    unreadable: HashSet<String>,
    faults: &mut ValidationErrors,
) -> Axes {
    let mut axes = Axes {
        list: Vec::new(),
        unreadable,
    };
    let mut wrong = ValidationErrors::default();
    let (market, others): (Vec<_>, Vec<_>) = context
        .endpoint
        .fields()
        .iter()
        .partition(|field| field.name == MARKET);
    for field in others.into_iter().chain(market) {
        let Some((key, values)) = context.values(field, &mut wrong) else {
            continue;
        };
        if values.is_empty() {
            axes.unreadable.insert(field.name.to_owned());
        } else {
            axes.list.push(Axis {
                field: field.name,
                key,
                values,
            });
        }
    }
    context.refuse_unknown(&mut wrong);
    faults.merge(wrong.prefix("sweep"));
    axes
}

/// A sweep with the request that it varies.
pub(super) struct SweepContext<'a> {
    pub(super) endpoint: Endpoint,
    pub(super) request: &'a Map<String, Value>,
    pub(super) sweep: &'a Sweep,
    pub(super) today: Date,
}

const DUPLICATE: &str = "distinct values: an equal value precedes this one";

impl SweepContext<'_> {
    /// How many searches of each combination there are.
    pub(super) fn samples(&self) -> usize {
        self.sweep
            .samples
            .map_or(1, |samples| usize::from(samples.get()))
    }

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

    /// The sweep key of a field and its values; `None`: the field is not swept.
    fn values(
        &self,
        field: &'static FieldSpec,
        faults: &mut ValidationErrors,
    ) -> Option<(&'static str, Vec<AxisValue>)> {
        if let Some((start, end)) = stay_dates(self.endpoint)
            && end == field.name
            && let Some(nights) = &self.sweep.nights
        {
            if self.requested(end) || self.swept(end).is_some() {
                faults.push(ValidationError::new(
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
            faults.push(ValidationError::new(
                field.name,
                &swept.to_value(),
                format!("either `request.{0}` or `sweep.{0}`, not both", field.name),
            ));
        }
        let given = |target: &&str| self.requested(target) || self.swept(target).is_some();
        if !field.alias_of.is_empty() && field.alias_of.iter().all(given) {
            let expected = format!(
                "no value: {} are given, so it would have no effect",
                field.alias_of.join(" and ")
            );
            faults.push(ValidationError::new(
                field.name,
                &swept.to_value(),
                expected,
            ));
        }
        let values = match swept {
            SweepValue::Values(elements) => self.list(field, elements, faults),
            SweepValue::Range(range) if field.kind == FieldKind::Date => {
                self.range(field.name, range, faults)
            }
            SweepValue::Range(range) => {
                faults.push(ValidationError::new(
                    field.name,
                    &range.to_value(),
                    format!("a list of values, each {}", (field.expected)()),
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
        faults: &mut ValidationErrors,
    ) -> Vec<AxisValue> {
        let mut seen = HashSet::new();
        let mut values = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            let path = || format!("{}[{index}]", field.name);
            match (field.read)(element) {
                Err(wrong) => faults.merge(wrong.prefix(&path())),
                Ok(read) if field.kind == FieldKind::Date && has_passed(&read, self.today) => {
                    faults.push(ValidationError::new(path(), element, not_past(self.today)));
                }
                Ok(read) if !seen.insert(comparison_key(field, &read)) => {
                    faults.push(ValidationError::new(path(), element, DUPLICATE));
                }
                Ok(read) => values.push(AxisValue {
                    index: Some(index),
                    assignment: Assignment::Value(read),
                }),
            }
        }
        values
    }

    fn range(
        &self,
        name: &str,
        range: &DateRange,
        faults: &mut ValidationErrors,
    ) -> Vec<AxisValue> {
        if range.from < self.today {
            faults.push(ValidationError::new(
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
        // One more than the limit is enough to refuse the range.
        let dates = wanted.take(MAX_ITEMS + 1).map(|date| AxisValue {
            index: None,
            assignment: Assignment::Value(date.to_value()),
        });
        let dates: Vec<_> = dates.collect();
        if let (true, Some(days)) = (dates.is_empty(), &range.weekdays) {
            let expected = "weekdays that occur between `from` and `to` at this step";
            faults.push(ValidationError::new(
                format!("{name}.weekdays"),
                &days.to_value(),
                expected,
            ));
        }
        dates
    }

    fn refuse_unknown(&self, faults: &mut ValidationErrors) {
        for (name, values) in self
            .sweep
            .fields
            .iter()
            .filter(|(name, _)| self.endpoint.field(name).is_none())
        {
            faults.push_lazily(|| self.endpoint.unknown_field(name, &values.to_value()));
        }
        if let (Some(nights), None) = (&self.sweep.nights, stay_dates(self.endpoint)) {
            let expected = format!("no `nights` in {}, which has no end date", self.endpoint);
            faults.push(ValidationError::new("nights", &nights.to_value(), expected));
        }
    }
}

fn distinct_nights(
    start: &'static str,
    nights: impl Iterator<Item = u16>,
    faults: &mut ValidationErrors,
) -> Vec<AxisValue> {
    let mut seen = HashSet::new();
    let mut values = Vec::new();
    for (index, nights) in nights.enumerate() {
        if seen.insert(nights) {
            values.push(AxisValue {
                index: Some(index),
                assignment: Assignment::Nights { start, nights },
            });
        } else {
            faults.push(ValidationError::new(
                format!("nights[{index}]"),
                &nights.into(),
                DUPLICATE,
            ));
        }
    }
    values
}

/// Whether a checked date value has passed everywhere.
pub(super) fn has_passed(date: &Value, today: Date) -> bool {
    date.as_str()
        .and_then(|text| text.parse::<Date>().ok())
        .is_some_and(|date| date < today)
}

/// Equal for two values that give the same search: codes are case-insensitive.
fn comparison_key(field: &FieldSpec, value: &Value) -> String {
    let text = value.to_string();
    let code = matches!(field.name, "currency" | MARKET) || field.name.ends_with("airline_codes");
    if code {
        text.to_ascii_lowercase()
    } else {
        text
    }
}
