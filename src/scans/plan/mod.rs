//! From one request with swept fields to the searches that it stands for: pure.
//!
//! Here: counting, combining and checking. Every combination is checked by the code that checks a synchronous body, all of them before
//! any is stored, and every fault is told at once (jobs-api, "Scans"). Not here: the values of a swept field (`axes`), storing
//! (`submit`).
//!
//! Items are in the order of the contract's fields, the last one fastest; markets (`proxy_country`) are innermost, so that a market
//! comparison is made within minutes, and samples outermost, so that two of one kind are as far apart as can be.

mod axes;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::ops::RangeInclusive;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::{Offset, offset};
use serde_json::{Map, Value};

use super::two_phase::TwoPhase;
use crate::contract::scans::{ScanEndpoint, ScanRequest, Strategy, Sweep};
use crate::contract::{Endpoint, Fault, Faults, FieldKind, FieldValue as _, Request};
use axes::{Axes, Axis, Context, Sets};

/// The most items of a scan (security.md, "Limits").
pub const MAX_ITEMS: usize = 10_000;

/// The most bytes that the bodies of a scan's items take together, as JSON: so many items of the usual size take 3 MB of it.
const MAX_BYTES: usize = 20 << 20;

/// What an element of a list takes in memory beside its text, which is mostly shorter.
const ELEMENT_BYTES: usize = 32;

/// Where a day ends last: a date is past when it is past everywhere.
const LAST_ZONE: Offset = offset(-12);

/// The earliest date that is still today somewhere.
#[must_use]
pub fn earliest_today(now: Timestamp) -> Date {
    LAST_ZONE.to_datetime(now).date()
}

/// A scan that can be: its order and its searches.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What the caller ordered.
    pub order: ScanRequest,
    /// The searches, each a body that its endpoint accepts, in the order of their positions.
    pub items: Vec<Request>,
    /// How it goes about them, where it was ordered in two phases.
    pub two_phase: Option<TwoPhase>,
    /// Its searches go upstream as their caller wrote them: a synchronous search that became a scan.
    pub as_written: bool,
}

impl Plan {
    /// The fewest and the most items that are searched: all of them, or what two phases may come to.
    #[must_use]
    pub fn searches(&self) -> RangeInclusive<usize> {
        searches(&self.items, self.two_phase.as_ref())
    }
}

fn searches(items: &[Request], two_phase: Option<&TwoPhase>) -> RangeInclusive<usize> {
    two_phase.map_or(items.len()..=items.len(), |phases| {
        phases.searches(items.len())
    })
}

/// Reads a scan's body and plans it. `today` is [`earliest_today`].
///
/// # Errors
/// Every fault of the body, of its request, its sweep and their combinations, with its path from the top of the body.
pub fn plan(body: &Map<String, Value>, today: Date) -> Result<Plan, Faults> {
    let mut faults = Faults::default();
    let order = ScanRequest::from_body(body)
        .map_err(|wrong| faults.merge(wrong))
        .ok();
    let endpoint = body
        .get("endpoint")
        .and_then(|value| ScanEndpoint::read(value).ok());
    // What can be read is looked at in any case, so that all faults are told at once.
    let (items, two_phase) = match (endpoint, body.get("request")) {
        (Some(endpoint), Some(Value::Object(request))) => {
            let (sweep, unreadable) = readable(endpoint.get(), request, body.get("sweep"));
            let context = Context {
                endpoint: endpoint.get(),
                request,
                sweep: &sweep,
                today,
            };
            items(&context, unreadable, body.get("strategy"), &mut faults)
        }
        _ => (Vec::new(), None),
    };
    let searches = *searches(&items, two_phase.as_ref()).end();
    if let Some(max) = order.as_ref().and_then(|order| order.max_requests)
        && usize::try_from(max.get()).is_ok_and(|max| max < searches)
    {
        let items = if two_phase.is_some() {
            "the items that both phases may search"
        } else {
            "the number of items"
        };
        faults.push(Fault::new(
            "max_requests",
            &max.to_value(),
            format!("at least {items}, {searches}: one request each"),
        ));
    }
    faults.or_else_build(|| {
        Some(Plan {
            order: order?,
            items,
            two_phase,
            as_written: false,
        })
    })
}

/// The words of a sweep whose shape is right, and the fields that the others were to set.
fn readable(
    endpoint: Endpoint,
    request: &Map<String, Value>,
    sweep: Option<&Value>,
) -> (Sweep, HashSet<String>) {
    let words = match sweep {
        None | Some(Value::Null) => return (Sweep::default(), HashSet::new()),
        Some(Value::Object(words)) => words,
        // What it was to sweep is not known: any field that the request lacks.
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
    let wrong: Vec<_> = words
        .iter()
        .filter(|(word, value)| sweep.read_word(word, value).is_err())
        .map(|(word, _)| word)
        .collect();
    let end = axes::stay(endpoint).map(|(_, end)| end.to_owned());
    let unreadable = wrong.into_iter().filter_map(|word| {
        if word == "nights" {
            end.clone()
        } else {
            Some(word.clone())
        }
    });
    (sweep, unreadable.collect())
}

fn items(
    context: &Context<'_>,
    unreadable: HashSet<String>,
    strategy: Option<&Value>,
    faults: &mut Faults,
) -> (Vec<Request>, Option<TwoPhase>) {
    let mut wrong = Faults::default();
    let axes = axes::axes(context, unreadable, &mut wrong);
    refuse_past_dates(context, &mut wrong);
    let items = combine(context, &axes, &mut wrong);
    let phases = strategy
        .filter(|strategy| !strategy.is_null())
        .and_then(|strategy| two_phase(strategy, &axes, &mut wrong));
    faults.merge(wrong);
    (items, phases)
}

/// Where the one date range of a two-phase scan stands in its positions. What the strategy itself lacks is told with the order.
fn two_phase(strategy: &Value, axes: &Axes, faults: &mut Faults) -> Option<TwoPhase> {
    let lengths = |axes: &[Axis]| {
        axes.iter()
            .map(|axis| axis.values.len())
            .fold(1_usize, usize::saturating_mul)
    };
    let mut ranges = axes
        .list
        .iter()
        .enumerate()
        .filter(|(_, axis)| axis.is_range());
    let (Some((place, axis)), None) = (ranges.next(), ranges.next()) else {
        faults.push(Fault::new(
            "strategy",
            strategy,
            "a sweep with exactly one date range {from, to}",
        ));
        return None;
    };
    let strategy = Strategy::read(strategy).ok()?;
    Some(TwoPhase::new(
        &strategy,
        axis.values.len(),
        lengths(&axes.list[place + 1..]),
        lengths(&axes.list),
    ))
}

/// A date of `request` itself that has passed everywhere.
fn refuse_past_dates(context: &Context<'_>, faults: &mut Faults) {
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
            faults.push(Fault::new(
                format!("request.{}", field.name),
                value,
                axes::not_past(context.today),
            ));
        }
    }
}

/// All combinations, or what is wrong with them. Counted first: nothing is built for a sweep that is too large, but its first
/// combination is still looked at, for the faults of `request`.
fn combine(context: &Context<'_>, axes: &Axes, faults: &mut Faults) -> Vec<Request> {
    let Context {
        endpoint, request, ..
    } = *context;
    let samples = context
        .sweep
        .samples
        .map_or(1, |samples| usize::from(samples.get()));
    let combinations = axes
        .list
        .iter()
        .map(|axis| axis.values.len())
        .fold(1_usize, usize::saturating_mul);
    let total = combinations.saturating_mul(samples);
    let too_large = refuse_too_large(context, axes, total, faults);
    // Unknown fields are told once, with the first combination.
    let known: Map<_, _> = request
        .iter()
        .filter(|(name, _)| endpoint.field(name).is_some())
        .map(owned)
        .collect();
    let mut told = HashSet::new();
    let mut checked = Vec::new();
    for index in 0..if too_large { 1 } else { combinations } {
        let request = if index == 0 { request } else { &known };
        let combination = Combination {
            endpoint,
            request,
            axes,
            chosen: choose(&axes.list, index),
        };
        match combination.check() {
            Ok(search) => checked.push(search),
            Err(wrong) => {
                for fault in wrong {
                    // The same words about the same place, said once for all the combinations that it spoils.
                    if told.insert(fault.to_string()) {
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

/// Whether the scan is too large to look at every combination; tells why.
fn refuse_too_large(context: &Context<'_>, axes: &Axes, total: usize, faults: &mut Faults) -> bool {
    if total > MAX_ITEMS {
        // A range was counted no further than was needed to know that it is too long.
        let at_least = if axes.list.iter().any(Axis::is_cut_off) || total == usize::MAX {
            "at least "
        } else {
            ""
        };
        let allowed = format!("at most {MAX_ITEMS} items; this makes {at_least}{total}");
        let samples = context
            .sweep
            .samples
            .map(|samples| format!("`samples` ({})", samples.get()));
        let counts: Vec<_> = axes.list.iter().map(Axis::counted).chain(samples).collect();
        faults.push(Fault {
            path: "sweep".to_owned(),
            held: Some(counts.join(", ")),
            allowed,
        });
        return true;
    }
    let length = |value: &Value| {
        value.to_string().len() + ELEMENT_BYTES * value.as_array().map_or(0, Vec::len)
    };
    let swept: usize = axes.list.iter().map(|axis| axis.longest(length)).sum();
    let bytes = context
        .request
        .values()
        .map(length)
        .sum::<usize>()
        .saturating_add(swept)
        .saturating_mul(total);
    if bytes > MAX_BYTES {
        let allowed = format!(
            "at most {MAX_BYTES} bytes over all items, and {ELEMENT_BYTES} for each element of a list; this makes {bytes}"
        );
        faults.push(Fault {
            path: "request".to_owned(),
            held: Some("long values".to_owned()),
            allowed,
        });
    }
    bytes > MAX_BYTES
}

/// The place in each axis that combination `index` takes: the digits of a number whose last digit runs fastest.
fn choose(axes: &[Axis], mut index: usize) -> Vec<usize> {
    let mut chosen = vec![0; axes.len()];
    for (place, axis) in chosen.iter_mut().zip(axes).rev() {
        *place = index % axis.values.len();
        index /= axis.values.len();
    }
    chosen
}

/// One value of each axis, beside the request.
struct Combination<'a> {
    endpoint: Endpoint,
    request: &'a Map<String, Value>,
    axes: &'a Axes,
    chosen: Vec<usize>,
}

impl Combination<'_> {
    fn check(&self) -> Result<Request, Vec<Fault>> {
        let mut body = self.request.clone();
        let mut faults = Vec::new();
        for (axis, &place) in self.axes.list.iter().zip(&self.chosen) {
            match &axis.values[place].sets {
                Sets::Value(value) => drop(body.insert(axis.field.to_owned(), value.clone())),
                Sets::Nights { start, nights } => match end_of_stay(&body, start, *nights) {
                    End::On(date) => {
                        drop(body.insert(axis.field.to_owned(), date.to_string().into()))
                    }
                    // The start date's own fault is told.
                    End::Unknown => {}
                    End::Never => {
                        let allowed = "nights that end before the year 10000";
                        faults.push(Fault::new(axis.path_of(place), &(*nights).into(), allowed));
                    }
                },
            }
        }
        match Request::check(self.endpoint, &body) {
            Ok(checked) if faults.is_empty() => {
                match nowhere(&checked.request).and_then(|fault| self.locate(fault)) {
                    None => return Ok(checked.request),
                    Some(fault) => faults.push(fault),
                }
            }
            Ok(_) => {}
            Err(wrong) => faults.extend(wrong.into_iter().filter_map(|fault| self.locate(fault))),
        }
        Err(faults)
    }

    /// A body's fault at its place in the scan's body: in the sweep where its field is swept, else in `request`. `None` when that
    /// place was faulted already, so that this fault is but an echo.
    fn locate(&self, mut fault: Fault) -> Option<Fault> {
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
            Some((axis, &place)) if matches!(axis.values[place].sets, Sets::Nights { .. }) => {
                // Without its start date a stay has no end: told there.
                fault.held.as_ref()?;
                axis.path_of(place)
            }
            Some((axis, &place)) => format!("{}{rest}", axis.path_of(place)),
            None => format!("request.{}", fault.path),
        };
        Some(fault)
    }
}

/// A flight back to where it began: nobody sells one, and the search for it would be paid for. The specification does not say what a
/// synchronous search for it is answered, so that one is passed on; a scan is refused, as for a date that has passed.
fn nowhere(request: &Request) -> Option<Fault> {
    let (from, to) = match request {
        Request::Oneway(request) => (&request.from_airport, &request.to_airport),
        Request::Roundtrip(request) => (&request.from_airport, &request.to_airport),
        _ => return None,
    };
    (from == to).then(|| {
        Fault::new(
            "to_airport",
            &to.to_value(),
            "another airport than `from_airport`",
        )
    })
}

/// The day on which a stay ends.
enum End {
    On(Date),
    /// The start date is missing or cannot be read.
    Unknown,
    /// After the last day of the calendar.
    Never,
}

fn end_of_stay(body: &Map<String, Value>, start: &str, nights: u16) -> End {
    let start = body
        .get(start)
        .and_then(Value::as_str)
        .and_then(|text| text.parse::<Date>().ok());
    let Some(start) = start else {
        return End::Unknown;
    };
    start
        .checked_add(jiff::Span::new().days(nights))
        .map_or(End::Never, End::On)
}
