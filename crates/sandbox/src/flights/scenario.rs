//! Flights under a scenario: one nonstop a day and direction, at the scenario's price.
//!
//! Airports may be any: a recorded calendar has routes that the sandbox's timetable does not know.

use jiff::Span;
use jiff::civil::{Date, DateTime};

use super::FoundRows;
use super::itineraries::{admits, admits_price};
use super::rows::{clock, duration};
use crate::draws::Draw;
use crate::scenarios::{FareRoute, PriceProcess, ScenarioFare};
use crate::wire::flights::{LegRules, Oneway, OnewayRow, Roundtrip, RoundtripRow, RowStops, Terms};
use crate::world::airlines::{AIRLINES, Airline};
use crate::world::airports::SandboxAirport;
use crate::world::money::SandboxCurrency;

/// The one flight of a day.
struct DailyFlight {
    route: FareRoute,
    airline: &'static Airline,
    departs: DateTime,
    arrives: DateTime,
    minutes: i64,
}

impl DailyFlight {
    /// The same at every date of a route. It arrives on the same day, so that a return may be on it.
    fn new(world: Draw, route: FareRoute, date: Date) -> Self {
        let drawn = world
            .of("daily flight")
            .of(&route.origin)
            .of(&route.destination);
        let fives = |draw: Draw, low: usize, count: usize| {
            i64::try_from(low + draw.below(count)).unwrap_or_default() * 5
        };
        let minutes = fives(drawn.of("minutes"), 12, 48);
        let departs = date
            .at(0, 0, 0, 0)
            .saturating_add(Span::new().minutes(fives(drawn.of("departs"), 72, 120)));
        Self {
            airline: drawn.of("airline").pick(AIRLINES),
            departs,
            arrives: departs.saturating_add(Span::new().minutes(minutes)),
            minutes,
            route,
        }
    }

    fn is_admitted(&self, rules: &LegRules) -> bool {
        admits(rules, 0, self.airline.code, (self.departs, self.arrives))
    }
}

/// The price of a search: the party and the cabin pay multiples of one adult in economy.
fn price(
    prices: &PriceProcess,
    terms: &Terms,
    currency: &SandboxCurrency,
    fare: ScenarioFare,
) -> i64 {
    let cabin = if terms.seat_type == 3 { 2.5 } else { 1.0 };
    let party = super::itineraries::party(terms);
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "fares are far below 2^53 units"
    )]
    let units = (fare.shown as f64 * cabin * party).round() as i64;
    currency.exchange(units, prices.scenario().currency())
}

/// The rows of a one-way search at an instant.
pub(super) fn oneway(
    world: Draw,
    prices: &PriceProcess,
    at: DateTime,
    search: &Oneway,
) -> FoundRows<OnewayRow> {
    let terms = &search.terms;
    let route = FareRoute::new(&terms.from_airport, &terms.to_airport);
    let row = prices
        .oneway(&route, terms.departure_date, at)
        .and_then(|fare| {
            let flight = DailyFlight::new(world, route, terms.departure_date);
            let currency = SandboxCurrency::find(&terms.currency)?;
            let price = price(prices, terms, currency, fare);
            (flight.is_admitted(&search.rules) && admits_price(terms, price))
                .then(|| oneway_row(terms, &flight, price, currency))
        });
    FoundRows {
        rows: row.into_iter().collect(),
        combinations: 1,
    }
}

/// The rows of a round-trip search at an instant.
pub(super) fn roundtrip(
    world: Draw,
    prices: &PriceProcess,
    at: DateTime,
    search: &Roundtrip,
) -> FoundRows<RoundtripRow> {
    let terms = &search.terms;
    let route = FareRoute::new(&terms.from_airport, &terms.to_airport);
    let row = prices
        .roundtrip(&route, terms.departure_date, search.return_date, at)
        .and_then(|fare| {
            let back = DailyFlight::new(world, route.back(), search.return_date);
            let out = DailyFlight::new(world, route, terms.departure_date);
            let currency = SandboxCurrency::find(&terms.currency)?;
            let price = price(prices, terms, currency, fare);
            let admitted = out.is_admitted(&search.outbound)
                && back.is_admitted(&search.inbound)
                && back.departs > out.arrives;
            (admitted && admits_price(terms, price))
                .then(|| roundtrip_row(search, (&out, &back), price, currency))
        });
    FoundRows {
        rows: row.into_iter().collect(),
        combinations: 1,
    }
}

fn oneway_row(
    terms: &Terms,
    flight: &DailyFlight,
    price: i64,
    currency: &SandboxCurrency,
) -> OnewayRow {
    OnewayRow {
        insight: None,
        from_airport: airport(&flight.route.origin),
        to_airport: airport(&flight.route.destination),
        departure_date: terms.departure_date,
        price: currency.show(price),
        price_as_number: price,
        duration: duration(flight.minutes),
        duration_seconds: flight.minutes * 60,
        buy_link: buy_link(&[flight], currency),
        airline: flight.airline.name,
        stops: RowStops::Count(0),
        stops_info: Vec::new(),
        departure_description: clock(flight.departs),
        arrival_description: clock(flight.arrives),
    }
}

fn roundtrip_row(
    search: &Roundtrip,
    (out, back): (&DailyFlight, &DailyFlight),
    price: i64,
    currency: &SandboxCurrency,
) -> RoundtripRow {
    RoundtripRow {
        insight: None,
        from_airport: airport(&out.route.origin),
        to_airport: airport(&out.route.destination),
        departure_date: search.terms.departure_date,
        return_date: search.return_date,
        total_price: currency.show(price),
        total_price_as_number: price,
        total_duration_seconds: (out.minutes + back.minutes) * 60,
        total_stops: 0,
        buy_link: buy_link(&[out, back], currency),
        departure_flight_departure_description: clock(out.departs),
        departure_flight_arrival_description: clock(out.arrives),
        departure_flight_airline: out.airline.name,
        departure_flight_duration: duration(out.minutes),
        departure_flight_stops: 0,
        return_flight_departure_description: clock(back.departs),
        return_flight_arrival_description: clock(back.arrives),
        return_flight_airline: back.airline.name,
        return_flight_duration: duration(back.minutes),
        return_flight_stops: 0,
    }
}

/// `City (IATA)`; an airport that the sandbox does not know has its code for a city.
fn airport(code: &str) -> String {
    SandboxAirport::find(code).map_or_else(|| format!("{code} ({code})"), SandboxAirport::display)
}

/// A link that names these flights, at a reserved host.
fn buy_link(flights: &[&DailyFlight], currency: &SandboxCurrency) -> String {
    let named: Vec<_> = flights
        .iter()
        .map(|flight| {
            let (route, at) = (&flight.route, flight.departs.strftime("%Y%m%d%H%M"));
            format!(
                "{}{}{at}{}",
                route.origin, route.destination, flight.airline.code
            )
        })
        .collect();
    format!(
        "https://flights.sandbox.example/booking?tfs={}&curr={}",
        named.join("."),
        currency.code
    )
}
