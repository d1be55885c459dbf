//! From one request with swept fields to its searches: pure.
//!
//! Here: counting, combining and checking. The code that checks a synchronous body checks every
//! combination before any is stored, and all faults are reported at once (scans.md, rule 6). Not
//! here: the values of a swept field (`axes`), storing (`submit`). [`plan_blocking`] bounds how many
//! plans are made at a time.
//!
//! Items are in the order of the field table, the last one fastest. Markets (`proxy_country`) are
//! innermost, so that a market comparison takes minutes only. Samples are outermost, so that two
//! samples of one search are as far apart as possible.

mod axes;
mod blocking;
mod question;
#[cfg(test)]
mod tests;

pub use blocking::{plan_blocking, with_permit};
pub use question::{DateLines, QuestionEnd, QuestionPlan};

use std::collections::HashSet;
use std::ops::RangeInclusive;

use farescan_ask::places;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::{Offset, offset};
use serde_json::{Map, Value};

use crate::contract::codes;
use crate::contract::primitives::Airport;
use crate::contract::scans::{
    MaxAgeSeconds, MaxRequests, ScanEndpoint, ScanRequest, Strategy, Sweep,
};
use crate::contract::{
    Api, Endpoint, FieldKind, FieldValue as _, MAX_REPORTED_ERRORS, Request, ValidationError,
    ValidationErrors,
};
use axes::{Assignment, Axes, Axis, SweepContext};

/// The most items of a scan (security.md, rule 20).
pub const MAX_ITEMS: usize = 10_000;

/// The most bytes of all items' bodies, as JSON. 10,000 items of the usual size take 3 MB.
const MAX_BYTES: usize = 20 << 20;

/// The least `max_requests` of a watch.
pub(super) const MIN_WATCH_REQUESTS: u32 = 2;

/// The memory that an element of a list takes besides its text.
const ELEMENT_BYTES: usize = 32;

/// The last time zone in which a day ends: a date has passed when it has passed everywhere.
const LAST_ZONE: Offset = offset(-12);

/// The earliest date that is still today in some time zone.
pub fn earliest_today(now: Timestamp) -> Date {
    LAST_ZONE.to_datetime(now).date()
}

/// A valid scan: its request and its searches.
#[derive(Debug, Clone, PartialEq)]
pub struct ScanPlan {
    /// The request of its caller.
    pub scan_request: ScanRequest,
    /// The searches, each a body that its endpoint accepts, in the order of their positions.
    pub items: Vec<Request>,
    /// Which of them differ in their date alone.
    pub lines: DateLines,
    /// What its strategy asks; without one all are searched.
    pub question: Option<QuestionPlan>,
    /// Its searches go upstream as their caller wrote them (`respond_async`).
    pub verbatim: bool,
}

impl ScanPlan {
    /// The fewest and the most items that are searched; they differ with a question only.
    pub fn searches(&self) -> RangeInclusive<usize> {
        let all = self.items.len();
        let Some(question) = &self.question else {
            return all..=all;
        };
        let max = self.scan_request.max_requests;
        let limit = max.map_or(usize::MAX, |max| {
            usize::try_from(max.get()).unwrap_or(usize::MAX)
        });
        let most = all.min(limit);
        match question.ends {
            QuestionEnd::Answered { .. } => most.min(2)..=most,
            QuestionEnd::Spent { .. } => most..=most,
        }
    }

    /// Whether no two items are the same search.
    pub(super) fn has_distinct_items(&self) -> bool {
        let sweep = self.scan_request.sweep.as_ref();
        let samples = sweep.and_then(|sweep| sweep.samples);
        samples.is_none_or(|samples| samples.get() <= 1)
    }

    /// Whether an item waits for a decision when it is stored. The first items of a caller that is
    /// not accepted yet are searched one by one (docs/decisions/0029).
    pub(super) fn is_deferred(&self, accepted: bool) -> bool {
        self.question.is_some() && accepted
    }

    /// The rows that each search requests, where the scan sets them.
    pub(super) fn upstream_limit(&self) -> Option<i32> {
        let sets_limit = self.scan_request.endpoint.get().api() == Api::Flights && !self.verbatim;
        sets_limit
            .then(|| self.scan_request.upstream_limit_or_default().get())
            .and_then(|limit| i32::try_from(limit).ok())
    }
}

/// Reads a scan's body and plans it. `today` is [`earliest_today`].
///
/// # Errors
/// Every fault of the body, of its request, its sweep and their combinations, with its path from
/// the top of the body.
pub fn plan(body: &Map<String, Value>, today: Date) -> Result<ScanPlan, ValidationErrors> {
    let mut faults = ValidationErrors::default();
    let mut scan_request = ScanRequest::from_body(body)
        .map_err(|wrong| faults.merge(wrong))
        .ok();
    if let Some(request) = &mut scan_request {
        request.max_age_seconds = request.max_age_seconds.and_then(MaxAgeSeconds::nonzero);
    }
    let endpoint = body
        .get("endpoint")
        .and_then(|value| ScanEndpoint::read(value).ok());
    // The readable parts are checked even if others are not, so that all faults are reported at
    // once.
    let max_requests = scan_request
        .as_ref()
        .and_then(|request| request.max_requests);
    let planned = match (endpoint, body.get("request")) {
        (Some(endpoint), Some(Value::Object(request))) => {
            let (sweep, unreadable) = readable_sweep(endpoint.get(), request, body.get("sweep"));
            let context = SweepContext {
                endpoint: endpoint.get(),
                request,
                sweep: &sweep,
                today,
            };
            let strategy = (body.get("strategy"), max_requests);
            items(&context, unreadable, strategy, &mut faults)
        }
        _ => PlannedItems::default(),
    };
    refuse_small_limit(scan_request.as_ref(), planned.items.len(), &mut faults);
    refuse_age_of_samples(scan_request.as_ref(), &mut faults);
    refuse_small_watch(scan_request.as_ref(), &mut faults);
    faults.ok_if_empty(|| {
        Some(ScanPlan {
            scan_request: scan_request?,
            items: planned.items,
            lines: planned.lines,
            question: planned.question,
            verbatim: false,
        })
    })
}

/// How many items planning a body checks: those of its swept values and samples; 1 of a scan that is
/// too large, which it refuses after the first. Takes far less time than planning.
pub fn count_items(body: &Map<String, Value>, today: Date) -> usize {
    let endpoint = body
        .get("endpoint")
        .and_then(|value| ScanEndpoint::read(value).ok());
    let (Some(endpoint), Some(Value::Object(request))) = (endpoint, body.get("request")) else {
        return 1;
    };
    let (sweep, unreadable) = readable_sweep(endpoint.get(), request, body.get("sweep"));
    let context = SweepContext {
        endpoint: endpoint.get(),
        request,
        sweep: &sweep,
        today,
    };
    let axes = axes::axes(&context, unreadable, &mut ValidationErrors::default());
    let total = axes.combinations().saturating_mul(context.samples());
    if total > MAX_ITEMS { 1 } else { total }
}

/// A limit that every search of a scan would exceed is a mistake. With a strategy or an age fewer are
/// searched.
fn refuse_small_limit(
    scan_request: Option<&ScanRequest>,
    items: usize,
    faults: &mut ValidationErrors,
) {
    let searches_all =
        |request: &&ScanRequest| request.max_age_seconds.is_none() && request.strategy.is_none();
    let max = scan_request
        .filter(searches_all)
        .and_then(|request| request.max_requests);
    if let Some(max) = max
        && usize::try_from(max.get()).is_ok_and(|max| max < items)
    {
        let expected = format!(
            "at least the number of items, {items}: one request each; leave it out for no limit, or add a `strategy` that searches fewer"
        );
        faults.push(ValidationError::new(
            "max_requests",
            &max.to_value(),
            expected,
        ));
    }
}

/// A watch is a budget: one request to explore, and one that verifies, at least.
fn refuse_small_watch(scan_request: Option<&ScanRequest>, faults: &mut ValidationErrors) {
    let Some(request) =
        scan_request.filter(|request| matches!(request.strategy, Some(Strategy::Watch(_))))
    else {
        return;
    };
    let expected = format!(
        "at least {MIN_WATCH_REQUESTS}: the requests that `strategy.watch` may spend on each run"
    );
    match request.max_requests {
        None => faults.push(ValidationError::missing("max_requests", expected)),
        Some(max) if max.get() < MIN_WATCH_REQUESTS => {
            faults.push(ValidationError::new(
                "max_requests",
                &max.to_value(),
                expected,
            ));
        }
        Some(_) => {}
    }
}

/// Samples are equal searches that are all wanted, which an age would reduce to one.
fn refuse_age_of_samples(scan_request: Option<&ScanRequest>, faults: &mut ValidationErrors) {
    let Some(age) = scan_request.and_then(|request| request.max_age_seconds) else {
        return;
    };
    let samples = scan_request
        .and_then(|request| request.sweep.as_ref()?.samples)
        .filter(|samples| samples.get() > 1);
    if let Some(samples) = samples {
        faults.push(ValidationError::new(
            "max_age_seconds",
            &age.to_value(),
            format!(
                "no age, because `sweep.samples` asks for {} searches of each combination",
                samples.get()
            ),
        ));
    }
}

/// The entries of a sweep whose shape is valid, and the fields that the other entries would set.
fn readable_sweep(
    endpoint: Endpoint,
    request: &Map<String, Value>,
    sweep: Option<&Value>,
) -> (Sweep, HashSet<String>) {
    let entries = match sweep {
        None | Some(Value::Null) => return (Sweep::default(), HashSet::new()),
        Some(Value::Object(entries)) => entries,
        // It may sweep any field that the request lacks.
        Some(_) => {
            let lacking = endpoint
                .fields()
                .iter()
                .map(|field| field.name.to_owned())
                .filter(|name| !request.contains_key(name));
            return (Sweep::default(), lacking.collect());
        }
    };
    let mut sweep = Sweep::default();
    let wrong: Vec<_> = entries
        .iter()
        .filter(|(key, value)| sweep.read_entry(key, value).is_err())
        .map(|(key, _)| key)
        .collect();
    let end = axes::stay_dates(endpoint).map(|(_, end)| end.to_owned());
    let unreadable = wrong.into_iter().filter_map(|key| {
        if key == "nights" {
            end.clone()
        } else {
            Some(key.clone())
        }
    });
    (sweep, unreadable.collect())
}

/// Plans a scan that a caller asks for: its airports, countries and currencies must exist as well. One
/// that is stored keeps what it was accepted with.
///
/// # Errors
/// Every fault, as for [`plan`].
pub fn plan_new(body: &Map<String, Value>, today: Date) -> Result<ScanPlan, ValidationErrors> {
    let mut faults = ValidationErrors::default();
    let planned = plan(body, today).map_err(|wrong| faults.merge(wrong)).ok();
    let fields = |name: &str| {
        body.get(name)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
    };
    let named = fields("request").map(|(name, value)| (name, format!("request.{name}"), value));
    let swept = fields("sweep").flat_map(|(name, values)| {
        let values = values.as_array().into_iter().flatten().enumerate();
        values.map(move |(index, value)| (name, format!("sweep.{name}[{index}]"), value))
    });
    // A list may hold a hundred thousand codes, and what each could mean takes time.
    let unknown = named
        .chain(swept)
        .filter_map(|(name, path, value)| unknown_code(name, path, value));
    for fault in unknown.take(MAX_REPORTED_ERRORS) {
        faults.push(fault);
    }
    faults.ok_if_empty(|| planned)
}

/// The error of a field whose airport, country or currency does not exist. `None` also for a value of
/// the wrong form, which has an error of its own.
fn unknown_code(field: &str, path: String, value: &Value) -> Option<ValidationError> {
    if !matches!(field, "from_airport" | "to_airport") {
        return codes::unknown_code(field, path, value);
    }
    let code = value.as_str().filter(|_| Airport::read(value).is_ok())?;
    (!places::exists(code)).then(|| {
        let meant = places::nearest(code);
        let expected = format!("the IATA code of an airport, such as \"TLV\"{meant}");
        ValidationError::new(path, value, expected)
    })
}

/// What a sweep gives.
struct PlannedItems {
    items: Vec<Request>,
    lines: DateLines,
    question: Option<QuestionPlan>,
}

impl Default for PlannedItems {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            lines: DateLines::ALONE,
            question: None,
        }
    }
}

fn items(
    context: &SweepContext<'_>,
    unreadable: HashSet<String>,
    (strategy, max_requests): (Option<&Value>, Option<MaxRequests>),
    faults: &mut ValidationErrors,
) -> PlannedItems {
    let mut wrong = ValidationErrors::default();
    let axes = axes::axes(context, unreadable, &mut wrong);
    refuse_past_dates(context, &mut wrong);
    let items = combine(context, &axes, &mut wrong);
    let question = strategy
        .filter(|strategy| !strategy.is_null())
        .and_then(|given| {
            question::planned(context, given, max_requests, &axes, &items, &mut wrong)
        });
    faults.merge(wrong);
    PlannedItems {
        items,
        lines: DateLines::of(&axes, context),
        question,
    }
}

/// Refuses dates of `request` that have passed everywhere.
fn refuse_past_dates(context: &SweepContext<'_>, faults: &mut ValidationErrors) {
    for field in context
        .endpoint
        .fields()
        .iter()
        .filter(|field| field.kind == FieldKind::Date)
    {
        if let Some(value) = context
            .request
            .get(field.name)
            .filter(|value| axes::has_passed(value, context.today))
        {
            faults.push(ValidationError::new(
                format!("request.{}", field.name),
                value,
                axes::not_past(context.today),
            ));
        }
    }
}

/// All combinations, or their faults. They are counted first: of a sweep that is too large only the
/// first combination is checked, for the faults of `request`.
fn combine(context: &SweepContext<'_>, axes: &Axes, faults: &mut ValidationErrors) -> Vec<Request> {
    let SweepContext {
        endpoint, request, ..
    } = *context;
    let samples = context.samples();
    let combinations = axes.combinations();
    let total = combinations.saturating_mul(samples);
    let too_large = refuse_too_large(context, axes, total, faults);
    // Unknown fields are reported once, with the first combination.
    let known: Map<_, _> = request
        .iter()
        .filter(|(name, _)| endpoint.field(name).is_some())
        .map(owned)
        .collect();
    let mut reported = HashSet::new();
    let mut checked = Vec::new();
    for index in 0..if too_large { 1 } else { combinations } {
        let request = if index == 0 { request } else { &known };
        let combination = Combination {
            endpoint,
            request,
            axes,
            chosen: combination_at(&axes.list, index),
        };
        match combination.check() {
            Ok(search) => checked.push(search),
            Err(wrong) => {
                for fault in wrong {
                    // The same fault of several combinations is reported once.
                    if reported.insert(fault.to_string()) {
                        faults.push(fault);
                    }
                }
            }
        }
    }
    if !faults.is_empty() {
        return Vec::new();
    }
    let mut items = Vec::with_capacity(total);
    for _ in 1..samples {
        items.extend(checked.iter().cloned());
    }
    items.extend(checked);
    items
}

fn owned((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

/// Whether the scan is too large to check every combination; adds the fault if so.
fn refuse_too_large(
    context: &SweepContext<'_>,
    axes: &Axes,
    total: usize,
    faults: &mut ValidationErrors,
) -> bool {
    if total > MAX_ITEMS {
        // A range is enumerated only until it is known to be too long.
        let at_least = if axes.list.iter().any(Axis::is_truncated) || total == usize::MAX {
            "at least "
        } else {
            ""
        };
        let expected = format!("at most {MAX_ITEMS} items; this makes {at_least}{total}");
        let samples = context
            .sweep
            .samples
            .map(|samples| format!("`samples` ({})", samples.get()));
        let counts: Vec<_> = axes
            .list
            .iter()
            .map(Axis::count_text)
            .chain(samples)
            .collect();
        faults.push(ValidationError::with_found(
            "sweep",
            counts.join(", "),
            expected,
        ));
        return true;
    }
    let length = |value: &Value| {
        value.to_string().len() + ELEMENT_BYTES * value.as_array().map_or(0, Vec::len)
    };
    let swept: usize = axes.list.iter().map(|axis| axis.max_length(length)).sum();
    let bytes = context
        .request
        .values()
        .map(length)
        .sum::<usize>()
        .saturating_add(swept)
        .saturating_mul(total);
    if bytes > MAX_BYTES {
        let expected = format!(
            "at most {MAX_BYTES} bytes over all items, and {ELEMENT_BYTES} for each element of a list; this makes {bytes}"
        );
        faults.push(ValidationError::with_found(
            "request",
            "long values",
            expected,
        ));
    }
    bytes > MAX_BYTES
}

/// The index into each axis of combination `index`: the digits of a mixed-radix number, last digit
/// fastest.
fn combination_at(axes: &[Axis], mut index: usize) -> Vec<usize> {
    let mut chosen = vec![0; axes.len()];
    for (digit, axis) in chosen.iter_mut().zip(axes).rev() {
        *digit = index % axis.values.len();
        index /= axis.values.len();
    }
    chosen
}

/// The request with one value of each axis.
struct Combination<'a> {
    endpoint: Endpoint,
    request: &'a Map<String, Value>,
    axes: &'a Axes,
    /// The index into each axis.
    chosen: Vec<usize>,
}

impl Combination<'_> {
    fn check(&self) -> Result<Request, Vec<ValidationError>> {
        let mut body = self.request.clone();
        let mut faults = Vec::new();
        for (axis, &index) in self.axes.list.iter().zip(&self.chosen) {
            match &axis.values[index].assignment {
                Assignment::Value(value) => drop(body.insert(axis.field.to_owned(), value.clone())),
                Assignment::Nights { start, nights } => match end_of_stay(&body, start, *nights) {
                    StayEnd::Date(date) => {
                        drop(body.insert(axis.field.to_owned(), date.to_string().into()));
                    }
                    // The start date has a fault of its own.
                    StayEnd::Unknown => {}
                    StayEnd::OutOfRange => {
                        let expected = "nights that end before the year 10000";
                        faults.push(ValidationError::new(
                            axis.path_of(index),
                            &(*nights).into(),
                            expected,
                        ));
                    }
                },
            }
        }
        match Request::check(self.endpoint, &body) {
            Ok(checked) if faults.is_empty() => {
                match same_airports(&checked.request).and_then(|fault| self.locate(fault)) {
                    None => return Ok(checked.request),
                    Some(fault) => faults.push(fault),
                }
            }
            Ok(_) => {}
            Err(wrong) => faults.extend(wrong.into_iter().filter_map(|fault| self.locate(fault))),
        }
        Err(faults)
    }

    /// Maps a body's fault to its path in the scan's body: in the sweep if its field is swept, else
    /// in `request`. `None` if it only follows from a fault that is already reported.
    fn locate(&self, mut fault: ValidationError) -> Option<ValidationError> {
        let end = fault.path.find(['.', '[']).unwrap_or(fault.path.len());
        let (field, rest) = fault.path.split_at(end);
        if self.axes.unreadable.contains(field) {
            return None;
        }
        let swept = self
            .axes
            .list
            .iter()
            .zip(&self.chosen)
            .find(|(axis, _)| axis.field == field);
        fault.path = match swept {
            Some((axis, &index))
                if matches!(axis.values[index].assignment, Assignment::Nights { .. }) =>
            {
                // Without a start date there is no end date; the start date has the fault.
                fault.found.as_ref()?;
                axis.path_of(index)
            }
            Some((axis, &index)) => format!("{}{rest}", axis.path_of(index)),
            None => format!("request.{}", fault.path),
        };
        Some(fault)
    }
}

/// The fault of a flight to its own departure airport: nobody sells one, and the search would be
/// billed. A synchronous search for it is forwarded (gateway.md, rule 52); a scan is refused, as
/// for a date that has passed.
fn same_airports(request: &Request) -> Option<ValidationError> {
    let (from, to) = match request {
        Request::Oneway(request) => (&request.from_airport, &request.to_airport),
        Request::Roundtrip(request) => (&request.from_airport, &request.to_airport),
        _ => return None,
    };
    (from == to).then(|| {
        ValidationError::new(
            "to_airport",
            &to.to_value(),
            "an airport other than `from_airport`",
        )
    })
}

/// The end date of a stay.
enum StayEnd {
    Date(Date),
    /// The start date is missing or cannot be read.
    Unknown,
    /// After the last date of the calendar.
    OutOfRange,
}

fn end_of_stay(body: &Map<String, Value>, start: &str, nights: u16) -> StayEnd {
    let start = body
        .get(start)
        .and_then(Value::as_str)
        .and_then(|text| text.parse::<Date>().ok());
    let Some(start) = start else {
        return StayEnd::Unknown;
    };
    start
        .checked_add(jiff::Span::new().days(nights))
        .map_or(StayEnd::OutOfRange, StayEnd::Date)
}
