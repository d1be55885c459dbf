//! From a valid search to rows: filter, price, rate, sort, limit. [`super::rows`] formats them.

use std::cmp::Ordering;

use jiff::civil::{Date, DateTime};

use super::FoundRows;
use super::itinerary::Itinerary;
use super::rows::{flight_names, flight_row, hex};
use crate::draws::{Draw, day_number, days_between};
use crate::wire::flights::{FlightSearch, Insight, LegRules, Sort, Terms};
use crate::world::fares::FareDay;
use crate::world::money::SandboxCurrency;
use crate::world::timetable::{AirportPair, Leg};

/// How many days ahead airlines sell.
const HORIZON_DAYS: i64 = 361;
/// Legs of each direction that a round trip pairs.
const PAIRED_LEGS: usize = 24;
/// Price of one airline's return ticket relative to two single ones.
const ONE_AIRLINE_RETURN: f64 = 0.88;

/// One direction of a trip on its date: its flights and their prices for one adult in economy, in dollars.
struct Direction<'a> {
    date: Date,
    rules: &'a LegRules,
    legs: Vec<Leg>,
    fares: FareDay,
}

impl<'a> Direction<'a> {
    fn new(world: Draw, today: Date, pair: AirportPair, date: Date, rules: &'a LegRules) -> Self {
        let on_sale = (0..=HORIZON_DAYS).contains(&days_between(today, date));
        Self {
            date,
            rules,
            legs: if on_sale {
                pair.legs(world, date)
            } else {
                Vec::new()
            },
            fares: FareDay::new(world, pair, date, today),
        }
    }

    fn cheapest(&self) -> Option<f64> {
        let prices = self.legs.iter().map(|leg| self.fares.price(leg));
        prices.min_by(f64::total_cmp)
    }

    /// The legs that the rules admit, with their prices.
    fn admitted(&self) -> impl Iterator<Item = (&Leg, f64)> {
        let legs = self.legs.iter().filter(|leg| admits(self.rules, leg));
        legs.map(|leg| (leg, self.fares.price(leg)))
    }

    fn cheapest_admitted(&self) -> Vec<(&Leg, f64)> {
        let mut legs: Vec<_> = self.admitted().collect();
        legs.sort_by(|a, b| a.1.total_cmp(&b.1));
        legs.truncate(PAIRED_LEGS);
        legs
    }
}

/// Converts a dollar fare for one adult in economy into the price of the search.
struct Tariff {
    currency: &'static SandboxCurrency,
    factor: f64,
}

impl Tariff {
    fn new(world: Draw, terms: &Terms, kilometres: f64) -> Self {
        let cabin = match terms.seat_type {
            Some(3) => 2.1 + (kilometres / 9_000.0).min(1.0) * 1.6,
            _ => 1.0,
        };
        // Each point of sale has its own fares, a little off the exchange rate.
        let sale = match terms.currency.code.as_str() {
            "USD" => 1.0,
            code => world.of("point of sale").of(code).between(0.985, 1.02),
        };
        Self {
            currency: terms.currency,
            factor: cabin * party(terms) * sale,
        }
    }

    fn whole(&self, dollars: f64) -> i64 {
        self.currency.whole(dollars * self.factor)
    }
}

/// What the party pays, relative to one adult.
pub(super) fn party(terms: &Terms) -> f64 {
    let passengers = terms.passengers.as_deref().unwrap_or(&[1]);
    let shares = passengers.iter().map(|kind| match kind {
        1 => 1.0,
        3 => 0.10,
        _ => 0.75,
    });
    shares.sum()
}

/// All itineraries of a search, sorted and limited.
pub(super) fn find(world: Draw, today: Date, search: &FlightSearch) -> FoundRows {
    let terms = &search.terms;
    let Some(pair) = AirportPair::find(&terms.from_airport, &terms.to_airport) else {
        return FoundRows::default();
    };
    let out = Direction::new(world, today, pair, terms.departure_date, &search.outbound);
    let back = search
        .inbound
        .as_ref()
        .map(|(date, rules)| Direction::new(world, today, pair.back(), *date, rules));
    let tariff = Tariff::new(world, terms, pair.kilometres());
    let (mut found, combinations) = match &back {
        None => (singles(&out, &tariff), 1),
        Some(back) => returns(&out, back, &tariff),
    };
    found.retain(|itinerary| admits_price(terms, itinerary.price));
    sort_and_limit(&mut found, terms);
    let directions: Vec<_> = std::iter::once(&out).chain(&back).collect();
    let luck = world.of("insight").of(&pair.from.code).of(&pair.to.code);
    let luck = directions.iter().fold(luck, |luck, way| luck.day(way.date));
    let insight = (terms.sort_type != Sort::Price && terms.max_price.is_none())
        .then(|| insight(luck, today, &tariff, &directions).unwrap_or_default());
    let codes = (pair.from.code.as_str(), pair.to.code.as_str());
    let passengers = terms.passengers.as_deref().unwrap_or(&[1]);
    let party: String = passengers.iter().map(i64::to_string).collect();
    let cabin = terms.seat_type.unwrap_or(1);
    let rows = found.into_iter().map(|itinerary| {
        let named = flight_names(codes, itinerary);
        let tfs = hex(&format!("{cabin}.{party}.{named}"));
        flight_row(search, codes, itinerary, insight.clone(), &tfs)
    });
    FoundRows {
        rows: rows.collect(),
        combinations,
    }
}

fn singles<'a>(out: &'a Direction, tariff: &Tariff) -> Vec<Itinerary<'a>> {
    let priced = out.admitted().map(|(out, dollars)| Itinerary {
        price: tariff.whole(dollars),
        out,
        back: None,
    });
    priced.collect()
}

/// All pairs of a round trip, and how many combinations the engine looked up.
fn returns<'a>(
    out: &'a Direction,
    back: &'a Direction,
    tariff: &Tariff,
) -> (Vec<Itinerary<'a>>, usize) {
    let (outbound, inbound) = (out.cheapest_admitted(), back.cheapest_admitted());
    let mut pairs = Vec::new();
    for &(out, out_dollars) in &outbound {
        for &(back, back_dollars) in &inbound {
            if back.departs <= out.arrives {
                continue;
            }
            let together = if out.airline.code == back.airline.code {
                ONE_AIRLINE_RETURN
            } else {
                1.0
            };
            pairs.push(Itinerary {
                price: tariff.whole((out_dollars + back_dollars) * together),
                out,
                back: Some(back),
            });
        }
    }
    (pairs, 1 + outbound.len().min(10))
}

/// Whether the rules admit a flight.
pub(super) fn admits(rules: &LegRules, leg: &Leg) -> bool {
    let flies = |codes: &[String]| {
        let mut codes = codes.iter();
        codes.any(|code| code.eq_ignore_ascii_case(&leg.airline.code))
    };
    let stops = i64::try_from(leg.stops.len()).unwrap_or(i64::MAX);
    rules.max_stops.is_none_or(|most| stops <= most)
        && (rules.only_airlines.is_empty() || flies(&rules.only_airlines))
        && !flies(&rules.without_airlines)
        && in_hours(rules.departs, leg.departs)
        && in_hours(rules.arrives, leg.arrives)
}

/// Whether the hour of `at` lies in the window; a window whose start is above its end runs over midnight.
fn in_hours((earliest, latest): (Option<i64>, Option<i64>), at: DateTime) -> bool {
    let (earliest, latest) = (earliest.unwrap_or(0), latest.unwrap_or(23));
    let hour = i64::from(at.hour());
    if earliest <= latest {
        (earliest..=latest).contains(&hour)
    } else {
        hour >= earliest || hour <= latest
    }
}

pub(super) fn admits_price(terms: &Terms, price: i64) -> bool {
    terms.max_price.is_none_or(|most| price <= most)
}

fn sort_and_limit(found: &mut Vec<Itinerary>, terms: &Terms) {
    found.sort_by(|a, b| {
        let first = match terms.sort_type {
            Sort::Overall => a.overall().total_cmp(&b.overall()),
            Sort::Price => Ordering::Equal,
            Sort::Duration => a.minutes().cmp(&b.minutes()),
        };
        let keys = |one: &Itinerary| (one.price, one.minutes(), one.stops());
        first.then_with(|| keys(a).cmp(&keys(b)))
    });
    found.truncate(terms.limit.unwrap_or(10));
}

/// Band and verdict of a search. `luck` selects the rare searches without a band or with an empty
/// verdict.
fn insight(luck: Draw, today: Date, tariff: &Tariff, ways: &[&Direction]) -> Option<Insight> {
    if luck.of("band").chance(0.04) {
        return None;
    }
    let discount = if ways.len() > 1 {
        ONE_AIRLINE_RETURN
    } else {
        1.0
    };
    let (mut cheapest, mut low, mut high) = (0.0, 0.0, 0.0);
    for way in ways {
        let band = way.fares.band(&way.legs)?;
        cheapest += way.cheapest()?;
        low += band.0;
        high += band.1;
    }
    let [cheapest, low, high] = [cheapest, low, high].map(|sum| tariff.whole(sum * discount));
    let verdict = match cheapest {
        _ if luck.of("verdict").nth(day_number(today)).chance(0.03) => "",
        price if price < low => "low",
        price if price > high => "high",
        _ => "typical",
    };
    Some(Insight {
        verdict: Some(verdict),
        low: Some(low),
        high: Some(high),
    })
}
