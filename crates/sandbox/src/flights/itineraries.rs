//! From a valid search to rows: filter, price, rate, sort, limit. [`super::rows`] formats them.

use std::cmp::Ordering;

use jiff::civil::{Date, DateTime};

use super::FoundRows;
use super::rank::Rank;
use super::rows::{oneway_row, roundtrip_row};
use crate::draws::{Draw, day_number, days_between};
use crate::wire::flights::{
    Insight, LegRules, Oneway, OnewayRow, Roundtrip, RoundtripRow, Sort, Terms,
};
use crate::world::airports::SandboxAirport;
use crate::world::fares::FareDay;
use crate::world::money::SandboxCurrency;
use crate::world::timetable::{Leg, legs};

/// How many days ahead airlines sell.
const HORIZON_DAYS: i64 = 361;
/// Legs of each direction that a round trip pairs.
const PAIRED_LEGS: usize = 24;
/// Price of one airline's return ticket relative to two single ones.
const ONE_AIRLINE_RETURN: f64 = 0.88;

/// One direction of a trip on its date: its flights and their prices for one adult in economy, in dollars.
struct Direction {
    legs: Vec<Leg>,
    fares: FareDay,
}

impl Direction {
    fn new(
        world: Draw,
        today: Date,
        from: &'static SandboxAirport,
        to: &'static SandboxAirport,
        date: Date,
    ) -> Self {
        let on_sale = (0..=HORIZON_DAYS).contains(&days_between(today, date));
        let legs = if on_sale {
            legs(world, from, to, date)
        } else {
            Vec::new()
        };
        Self {
            legs,
            fares: FareDay::new(world, from, to, date, today),
        }
    }

    fn cheapest(&self) -> Option<f64> {
        self.legs
            .iter()
            .map(|leg| self.fares.price(leg))
            .min_by(f64::total_cmp)
    }

    fn admitted<'a>(&'a self, rules: &'a LegRules) -> impl Iterator<Item = &'a Leg> {
        self.legs.iter().filter(|leg| {
            let hours = (leg.departs, leg.arrives);
            admits(rules, leg.stops.len(), leg.airline.code, hours)
        })
    }
}

/// Converts a dollar fare for one adult in economy into the price of the search.
struct Tariff {
    currency: &'static SandboxCurrency,
    factor: f64,
}

impl Tariff {
    fn new(
        world: Draw,
        terms: &Terms,
        currency: &'static SandboxCurrency,
        kilometres: f64,
    ) -> Self {
        let cabin = match terms.seat_type {
            3 => 2.1 + (kilometres / 9_000.0).min(1.0) * 1.6,
            _ => 1.0,
        };
        let party = party(terms);
        // Each point of sale has its own fares, a little off the exchange rate.
        let sale = match currency.code {
            "USD" => 1.0,
            code => world.of("point of sale").of(code).between(0.985, 1.02),
        };
        Self {
            currency,
            factor: cabin * party * sale,
        }
    }

    fn whole(&self, dollars: f64) -> i64 {
        self.currency.whole(dollars * self.factor)
    }
}

/// What the party pays, relative to one adult.
pub(super) fn party(terms: &Terms) -> f64 {
    terms
        .passengers
        .iter()
        .map(|kind| match kind {
            1 => 1.0,
            3 => 0.10,
            _ => 0.75,
        })
        .sum()
}

/// All itineraries of a one-way search, sorted and limited.
pub(super) fn oneway(world: Draw, today: Date, search: &Oneway) -> FoundRows<OnewayRow> {
    let terms = &search.terms;
    let Some((from, to, currency)) = find_route(terms) else {
        return FoundRows {
            rows: Vec::new(),
            combinations: 1,
        };
    };
    let out = Direction::new(world, today, from, to, terms.departure_date);
    let tariff = Tariff::new(world, terms, currency, from.kilometres_to(to));
    let luck = world
        .of("insight")
        .of(from.code)
        .of(to.code)
        .day(terms.departure_date);
    let insight = insight(
        luck,
        terms,
        today,
        &tariff,
        out.cheapest(),
        out.fares.band(&out.legs),
    );
    let mut priced: Vec<(Rank, &Leg)> = out
        .admitted(&search.rules)
        .map(|leg| {
            (
                Rank::of(
                    tariff.whole(out.fares.price(leg)),
                    leg.minutes,
                    leg.stops.len(),
                ),
                leg,
            )
        })
        .filter(|(rank, _)| admits_price(terms, rank.price))
        .collect();
    sort_and_limit(&mut priced, terms);
    let rows = priced
        .into_iter()
        .map(|(rank, leg)| oneway_row(terms, leg, rank, insight.as_ref(), currency))
        .collect();
    FoundRows {
        rows,
        combinations: 1,
    }
}

/// All pairs of a round-trip search, sorted and limited.
pub(super) fn roundtrip(world: Draw, today: Date, search: &Roundtrip) -> FoundRows<RoundtripRow> {
    let terms = &search.terms;
    let Some((from, to, currency)) = find_route(terms) else {
        return FoundRows {
            rows: Vec::new(),
            combinations: 1,
        };
    };
    let out = Direction::new(world, today, from, to, terms.departure_date);
    let back = Direction::new(world, today, to, from, search.return_date);
    let tariff = Tariff::new(world, terms, currency, from.kilometres_to(to));
    let both = |one: Option<f64>, other: Option<f64>| Some((one? + other?) * ONE_AIRLINE_RETURN);
    let bands = (out.fares.band(&out.legs), back.fares.band(&back.legs));
    let band = both(bands.0.map(|band| band.0), bands.1.map(|band| band.0))
        .zip(both(bands.0.map(|band| band.1), bands.1.map(|band| band.1)));
    let luck = world
        .of("insight")
        .of(from.code)
        .of(to.code)
        .day(terms.departure_date)
        .day(search.return_date);
    let insight = insight(
        luck,
        terms,
        today,
        &tariff,
        both(out.cheapest(), back.cheapest()),
        band,
    );
    let (outbound, inbound) = (
        cheapest_legs(&out, &search.outbound),
        cheapest_legs(&back, &search.inbound),
    );
    let mut priced = Vec::new();
    for (out_leg, out_dollars) in &outbound {
        for (back_leg, back_dollars) in &inbound {
            if back_leg.departs <= out_leg.arrives {
                continue;
            }
            let together = if out_leg.airline.code == back_leg.airline.code {
                ONE_AIRLINE_RETURN
            } else {
                1.0
            };
            let price = tariff.whole((out_dollars + back_dollars) * together);
            let stops = out_leg.stops.len() + back_leg.stops.len();
            let rank = Rank::of(price, out_leg.minutes + back_leg.minutes, stops);
            if admits_price(terms, rank.price) {
                priced.push((rank, (*out_leg, *back_leg)));
            }
        }
    }
    sort_and_limit(&mut priced, terms);
    let rows = priced
        .into_iter()
        .map(|(rank, legs)| roundtrip_row(search, legs, rank, insight.as_ref(), currency))
        .collect();
    FoundRows {
        rows,
        combinations: 1 + outbound.len().min(10),
    }
}

/// The cheapest legs of a direction that the rules admit.
fn cheapest_legs<'a>(direction: &'a Direction, rules: &'a LegRules) -> Vec<(&'a Leg, f64)> {
    let mut legs: Vec<_> = direction
        .admitted(rules)
        .map(|leg| (leg, direction.fares.price(leg)))
        .collect();
    legs.sort_by(|a, b| a.1.total_cmp(&b.1));
    legs.truncate(PAIRED_LEGS);
    legs
}

fn find_route(
    terms: &Terms,
) -> Option<(
    &'static SandboxAirport,
    &'static SandboxAirport,
    &'static SandboxCurrency,
)> {
    Some((
        SandboxAirport::find(&terms.from_airport)?,
        SandboxAirport::find(&terms.to_airport)?,
        SandboxCurrency::find(&terms.currency)?,
    ))
}

/// Whether the rules admit a flight with so many stops, of an airline's code, that departs and
/// arrives at these local times.
pub(super) fn admits(
    rules: &LegRules,
    stops: usize,
    airline: &str,
    (departs, arrives): (DateTime, DateTime),
) -> bool {
    let flies = |codes: &[String]| codes.iter().any(|code| code.eq_ignore_ascii_case(airline));
    let stops = i64::try_from(stops).unwrap_or(i64::MAX);
    rules.max_stops.is_none_or(|most| stops <= most)
        && (rules.only_airlines.is_empty() || flies(&rules.only_airlines))
        && !flies(&rules.without_airlines)
        && in_hours(rules.departs, departs)
        && in_hours(rules.arrives, arrives)
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

fn sort_and_limit<T>(rows: &mut Vec<(Rank, T)>, terms: &Terms) {
    rows.sort_by(|(a, _), (b, _)| {
        let first = match terms.sort_type {
            Sort::Overall => a.overall().total_cmp(&b.overall()),
            Sort::Price => Ordering::Equal,
            Sort::Duration => a.minutes.cmp(&b.minutes),
        };
        first
            .then(a.price.cmp(&b.price))
            .then(a.minutes.cmp(&b.minutes))
            .then(a.stops.cmp(&b.stops))
    });
    rows.truncate(usize::try_from(terms.limit).unwrap_or(usize::MAX));
}

/// Band and verdict of a search. `luck` selects the rare searches without a band or with an empty
/// verdict.
fn insight(
    luck: Draw,
    terms: &Terms,
    today: Date,
    tariff: &Tariff,
    cheapest: Option<f64>,
    band: Option<(f64, f64)>,
) -> Option<Insight> {
    if terms.sort_type == Sort::Price || terms.max_price.is_some() {
        return None;
    }
    let published = !luck.of("band").chance(0.04);
    let (Some(cheapest), Some((low, high)), true) = (cheapest, band, published) else {
        return Some(Insight {
            verdict: None,
            low: None,
            high: None,
        });
    };
    let (cheapest, low, high) = (
        tariff.whole(cheapest),
        tariff.whole(low),
        tariff.whole(high),
    );
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
