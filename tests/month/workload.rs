//! What a caller asks in a month: the same questions for both ways to ask them.

use jiff::ToSpan as _;
use jiff::civil::Date;
use serde_json::{Value, json};

use crate::support::Rng;

/// The watched routes; each has one monitor.
const ROUTES: [(&str, &str); 5] = [
    ("STN", "BGY"),
    ("STN", "DUB"),
    ("BGY", "BCN"),
    ("DUB", "FCO"),
    ("BCN", "BER"),
];
/// So many searches of ten ask for one of the caller's favourites again.
const FAVOURED: u64 = 7;
/// The caller's favourite searches.
const FAVOURITES: usize = 12;

/// How much is asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct WorkSize {
    pub(super) days: i32,
    pub(super) monitors: usize,
    /// The dates of a monitor's run and of a scan.
    pub(super) dates: i32,
    pub(super) scans: usize,
    pub(super) searches: usize,
}

/// One-way fares of a route on some dates.
#[derive(Debug, Clone, Copy)]
pub(super) struct DateRange {
    route: (&'static str, &'static str),
    first: Date,
    dates: i32,
}

impl DateRange {
    /// The body of a scan.
    pub(super) fn scan(self) -> Value {
        let (from, to) = self.route;
        json!({
            "endpoint": "flights/oneway", "request": {"from_airport": from, "to_airport": to, "currency": "EUR"},
            "sweep": {"departure_date": {"from": self.first, "to": after(self.first, self.dates - 1)}}
        })
    }

    /// The body of a search of its first date.
    pub(super) fn search(self) -> Value {
        let (from, to) = self.route;
        json!({"from_airport": from, "to_airport": to, "currency": "EUR", "departure_date": self.first})
    }
}

/// A scan of its caller.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScanWork {
    pub(super) range: DateRange,
    /// Its question is which date is the cheapest; else every date is wanted.
    pub(super) finds_cheapest: bool,
}

/// What is asked at one time of a day: first the scans, together, then the searches in their order.
#[derive(Debug, Clone, Default)]
pub(super) struct Session {
    pub(super) scans: Vec<ScanWork>,
    pub(super) searches: Vec<DateRange>,
}

/// A month of work. Its monitors run in the first session of each day.
#[derive(Debug, Clone)]
pub(super) struct Workload {
    pub(super) monitors: Vec<DateRange>,
    /// For each day its sessions.
    pub(super) days: Vec<[Session; SESSIONS]>,
}

/// Sessions of a day.
pub(super) const SESSIONS: usize = 3;

impl Workload {
    /// Draws the questions. The dates of monitors begin at `first`, those of scans and searches up to
    /// as many days later as a monitor has dates, so that they overlap.
    pub(super) fn draw(size: WorkSize, first: Date, seed: u64) -> Self {
        let mut rng = Rng(seed);
        let mut below =
            |bound: usize| usize::try_from(rng.below(u64::try_from(bound).unwrap())).unwrap();
        let range = |route: usize, offset: usize, dates: i32| DateRange {
            route: ROUTES[route],
            first: after(first, i32::try_from(offset).unwrap()),
            dates,
        };
        let width = usize::try_from(size.dates).unwrap();
        let mut days = vec![<[Session; SESSIONS]>::default(); usize::try_from(size.days).unwrap()];
        for number in 0..size.scans {
            let scan = ScanWork {
                range: range(below(size.monitors), below(width), size.dates),
                finds_cheapest: number % 2 == 0,
            };
            let (day, session) = (below(days.len()), below(SESSIONS));
            days[day][session].scans.push(scan);
        }
        let favourites: Vec<_> = (0..FAVOURITES)
            .map(|_| range(below(size.monitors), below(2 * width), 1))
            .collect();
        for number in 0..size.searches {
            let search = if below(10) < usize::try_from(FAVOURED).unwrap() {
                favourites[below(FAVOURITES)]
            } else {
                range(below(size.monitors), below(2 * width), 1)
            };
            // As many on each day.
            let (day, session) = (number * days.len() / size.searches, below(SESSIONS));
            days[day][session].searches.push(search);
        }
        Self {
            monitors: (0..size.monitors)
                .map(|route| range(route, 0, size.dates))
                .collect(),
            days,
        }
    }
}

fn after(date: Date, days: i32) -> Date {
    date.saturating_add(days.days())
}
