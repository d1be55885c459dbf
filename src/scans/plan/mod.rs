//! From one request with swept fields to the searches that it stands for: pure.
//!
//! Here: counting, combining and checking. Every combination is checked by the code that checks a synchronous body, all of them before
//! any is stored, and every fault is told at once (jobs-api, "Scans"). Not here: reading the values of a sweep (`sweep`), storing
//! (`submit`).
//!
//! Items are in the order of the contract's fields, the last one fastest; markets (`proxy_country`) are innermost, so that a market
//! comparison is made within minutes, and samples outermost, so that two of one kind are as far apart as can be.

mod sweep;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::{Offset, offset};
use serde_json::{Map, Value};

use crate::contract::{Endpoint, Fault, FieldKind, Faults, Request};
use sweep::{Axis, Sets, Sweep};

/// The most items of a scan (security.md, "Limits").
pub const MAX_ITEMS: usize = 10_000;

/// The most bytes that the bodies of a scan's items take together, as JSON: so many items of the usual size take a tenth of it.
const MAX_BYTES: usize = 32 << 20;

/// Where a day ends last: a date is past when it is past everywhere.
const LAST_ZONE: Offset = offset(-12);

/// The earliest date that is still today somewhere.
#[must_use]
pub fn earliest_today(now: Timestamp) -> Date {
    LAST_ZONE.to_datetime(now).date()
}

/// The searches of a scan, each a body that its endpoint accepts, in the order of their positions.
///
/// # Errors
/// Every fault of `request`, of `sweep` and of their combinations, with its path from the top of the scan's body.
pub fn plan(endpoint: Endpoint, request: &Map<String, Value>, sweep: &Map<String, Value>, today: Date) -> Result<Vec<Request>, Faults> {
    if !Endpoint::SEARCHES.contains(&endpoint) {
        let searches: Vec<_> = Endpoint::SEARCHES.iter().map(|known| format!("`{known}`")).collect();
        let allowed = format!("one of {}", searches.join(", "));
        return Err(Fault::new("endpoint", &endpoint.as_str().into(), allowed).into());
    }
    let mut faults = Faults::default();
    let sweep = Sweep::read(endpoint, request, sweep, today, &mut faults);
    refuse_past_dates(endpoint, request, today, &mut faults);
    let items = combine(endpoint, request, &sweep, &mut faults);
    faults.or_else_build(|| Some(items))
}

/// A date of `request` itself that has passed everywhere.
fn refuse_past_dates(endpoint: Endpoint, request: &Map<String, Value>, today: Date, faults: &mut Faults) {
    for field in endpoint.fields().iter().filter(|field| field.kind == FieldKind::Date) {
        let Some(value) = request.get(field.name) else { continue };
        if value.as_str().and_then(|text| text.parse::<Date>().ok()).is_some_and(|date| date < today) {
            faults.push(Fault::new(format!("request.{}", field.name), value, sweep::not_past(today)));
        }
    }
}

/// All combinations, or what is wrong with them. Counted first: nothing is built for a sweep that is too large, but its first
/// combination is still looked at, for the faults of `request`.
fn combine(endpoint: Endpoint, request: &Map<String, Value>, sweep: &Sweep, faults: &mut Faults) -> Vec<Request> {
    let combinations = sweep.axes.iter().map(|axis| axis.values.len()).fold(1_usize, usize::saturating_mul);
    let total = combinations.saturating_mul(sweep.samples);
    let too_large = refuse_too_large(request, sweep, total, faults);
    // Unknown fields are told once, with the first combination.
    let known: Map<_, _> = request.iter().filter(|(name, _)| endpoint.field(name).is_some()).map(owned).collect();
    let mut told = HashSet::new();
    let mut checked = Vec::new();
    for index in 0..if too_large { 1 } else { combinations } {
        let request = if index == 0 { request } else { &known };
        let combination = Combination { endpoint, request, sweep, chosen: choose(&sweep.axes, index) };
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
    for _ in 1..sweep.samples {
        items.extend(checked.iter().cloned());
    }
    items.extend(checked);
    items
}

fn owned((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

/// Whether the scan is too large to look at every combination; tells why.
fn refuse_too_large(request: &Map<String, Value>, sweep: &Sweep, total: usize, faults: &mut Faults) -> bool {
    if total > MAX_ITEMS {
        let allowed = format!("at most {MAX_ITEMS} items; this makes {total}");
        faults.push(Fault { path: "sweep".to_owned(), held: Some(format!("{} swept fields", sweep.axes.len())), allowed });
        return true;
    }
    let length = |value: &Value| value.to_string().len();
    let swept: usize = sweep.axes.iter().map(|axis| axis.longest(length)).sum();
    let bytes = request.values().map(length).sum::<usize>().saturating_add(swept).saturating_mul(total);
    if bytes > MAX_BYTES {
        let allowed = format!("at most {MAX_BYTES} bytes over all items; this makes {bytes}");
        faults.push(Fault { path: "request".to_owned(), held: Some("long values".to_owned()), allowed });
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
    sweep: &'a Sweep,
    chosen: Vec<usize>,
}

impl Combination<'_> {
    fn check(&self) -> Result<Request, Vec<Fault>> {
        let mut body = self.request.clone();
        let mut faults = Vec::new();
        for (axis, &place) in self.sweep.axes.iter().zip(&self.chosen) {
            match &axis.values[place].sets {
                Sets::Value(value) => drop(body.insert(axis.field.to_owned(), value.clone())),
                Sets::Nights { start, nights } => match end_of_stay(&body, start, *nights) {
                    End::On(date) => drop(body.insert(axis.field.to_owned(), date.to_string().into())),
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
            Ok(checked) if faults.is_empty() => return Ok(checked.request),
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
        if self.sweep.unreadable.contains(field) {
            return None;
        }
        let swept = self.sweep.axes.iter().zip(&self.chosen).find(|(axis, _)| axis.field == field);
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

/// The day on which a stay ends.
enum End {
    On(Date),
    /// The start date is missing or cannot be read.
    Unknown,
    /// After the last day of the calendar.
    Never,
}

fn end_of_stay(body: &Map<String, Value>, start: &str, nights: i64) -> End {
    let start = body.get(start).and_then(Value::as_str).and_then(|text| text.parse::<Date>().ok());
    let Some(start) = start else { return End::Unknown };
    start.checked_add(jiff::Span::new().days(nights)).map_or(End::Never, End::On)
}
