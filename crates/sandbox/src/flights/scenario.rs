//! Flights under a scenario: one nonstop a day and direction, at the scenario's price.
//!
//! Airports may be any: a recorded calendar has routes that the sandbox's timetable does not know.

use jiff::ToSpan as _;
use jiff::civil::{Date, DateTime};

use super::itineraries::{admits, admits_price, party};
use super::itinerary::Itinerary;
use super::rows::{flight_names, flight_row};
use crate::draws::{Draw, real, whole};
use crate::scenarios::{FareRoute, PriceProcess};
use crate::wire::flights::{FlightRow, FlightSearch};
use crate::world::airlines::AIRLINES;
use crate::world::timetable::Leg;

/// The row of a search at an instant, if there is an offer.
pub(super) fn row(
    world: Draw,
    prices: &PriceProcess,
    at: DateTime,
    search: &FlightSearch,
) -> Option<FlightRow> {
    let terms = &search.terms;
    let route = FareRoute::new(&terms.from_airport, &terms.to_airport);
    let fare = match &search.inbound {
        None => prices.oneway(&route, terms.departure_date, at),
        Some((date, _)) => prices.roundtrip(&route, terms.departure_date, *date, at),
    }?;
    let out = daily_flight(world, &route, terms.departure_date);
    let back = search
        .inbound
        .as_ref()
        .map(|(date, rules)| (daily_flight(world, &route.back(), *date), rules));
    // The party and the cabin pay multiples of one adult in economy.
    let cabin = if terms.seat_type == Some(3) { 2.5 } else { 1.0 };
    let units = whole(real(fare.shown) * cabin * party(terms));
    let price = terms.currency.exchange(units, prices.scenario().currency());
    let admitted = admits_price(terms, price)
        && admits(&search.outbound, &out)
        && back
            .as_ref()
            .is_none_or(|(back, rules)| admits(rules, back) && back.departs > out.arrives);
    let itinerary = Itinerary {
        price,
        out: &out,
        back: back.as_ref().map(|(back, _)| back),
    };
    let codes = (route.origin.as_str(), route.destination.as_str());
    admitted.then(|| {
        flight_row(
            search,
            codes,
            itinerary,
            None,
            &flight_names(codes, itinerary),
        )
    })
}

/// The one flight of a day, the same at every date of a route. It arrives on the same day, so that
/// a return may be on it.
fn daily_flight(world: Draw, route: &FareRoute, date: Date) -> Leg {
    let drawn = world
        .of("daily flight")
        .of(&route.origin)
        .of(&route.destination);
    let minutes = (12 + drawn.of("minutes").below(48)) * 5;
    let departs = (72 + drawn.of("departs").below(120)) * 5;
    let departs = date.at(0, 0, 0, 0).saturating_add(departs.minutes());
    Leg {
        airline: drawn.of("airline").pick(&AIRLINES),
        departs,
        arrives: departs.saturating_add(minutes.minutes()),
        minutes,
        stops: Vec::new(),
        flight: drawn,
        unreadable: false,
    }
}
