//! The flights between two airports on a date: the same every week, at the same hours.

use jiff::Span;
use jiff::civil::{Date, DateTime, Time};

use super::airlines::{AIRLINES, Airline};
use super::airports::SandboxAirport;
use crate::draws::Draw;

/// The longest nonstop flight, in kilometres.
const LONGEST_HOP_KM: f64 = 15_400.0;
/// The longest flight of a low-cost airline.
const LONGEST_LOW_COST_KM: f64 = 4_600.0;

/// A change of planes.
#[derive(Clone, Debug)]
pub(crate) struct Stop {
    pub(crate) airport: &'static SandboxAirport,
    pub(crate) minutes: i64,
}

/// A flight between two airports on a date, possibly with changes. Times are local.
#[derive(Clone, Debug)]
pub(crate) struct Leg {
    pub(crate) airline: &'static Airline,
    pub(crate) from: &'static SandboxAirport,
    pub(crate) to: &'static SandboxAirport,
    pub(crate) departs: DateTime,
    pub(crate) arrives: DateTime,
    /// Total duration, changes included.
    pub(crate) minutes: i64,
    pub(crate) stops: Vec<Stop>,
    /// Seed of this flight, the same on every date.
    pub(crate) flight: Draw,
}

/// All legs of a date, unsorted.
pub(crate) fn legs(
    world: Draw,
    from: &'static SandboxAirport,
    to: &'static SandboxAirport,
    date: Date,
) -> Vec<Leg> {
    let route = world.of("timetable").of(from.code).of(to.code);
    let mut legs = Vec::new();
    for airline in AIRLINES {
        for (way, stops) in ways(route.of(airline.code), airline, from, to)
            .into_iter()
            .enumerate()
        {
            let nonstop = stops.is_empty();
            let seats = if nonstop && from.kilometres_to(to) < 5_000.0 {
                3
            } else {
                2
            };
            let numbered = route
                .of(airline.code)
                .nth(i64::try_from(way).unwrap_or_default());
            let departures = 1 + numbered.of("departures").below(seats);
            for number in 0..departures {
                let flight = numbered
                    .of("flight")
                    .nth(i64::try_from(number).unwrap_or_default());
                let weekday = i64::from(date.weekday().to_monday_one_offset());
                if flight.of("operates").nth(weekday).chance(0.88) {
                    legs.push(scheduled(flight, airline, from, to, &stops, date));
                }
            }
        }
    }
    legs
}

/// One airline's connections between two airports, each a list of the airports of its changes.
fn ways(
    draw: Draw,
    airline: &'static Airline,
    from: &'static SandboxAirport,
    to: &'static SandboxAirport,
) -> Vec<Vec<&'static SandboxAirport>> {
    let direct_km = from.kilometres_to(to);
    if direct_km < 50.0 {
        return Vec::new();
    }
    let at_home = airline
        .hubs
        .iter()
        .any(|hub| *hub == from.code || *hub == to.code);
    if let Some(region) = airline.roams {
        let covered = from.region() == region && to.region() == region;
        let flown = at_home && draw.of("hub").chance(0.85) || draw.of("roams").chance(0.28);
        return if covered && flown && direct_km < LONGEST_LOW_COST_KM {
            vec![Vec::new()]
        } else {
            Vec::new()
        };
    }
    let mut ways = Vec::new();
    if at_home && direct_km < LONGEST_HOP_KM && draw.of("nonstop").chance(0.9) {
        ways.push(Vec::new());
    }
    for hub in airline
        .hubs
        .iter()
        .filter_map(|code| SandboxAirport::find(code))
    {
        if hub.code == from.code || hub.code == to.code {
            continue;
        }
        let path_km = from.kilometres_to(hub) + hub.kilometres_to(to);
        if direct_km < 600.0
            || path_km > direct_km * 1.35 + 900.0
            || longest_hop(from, hub, to) > LONGEST_HOP_KM
        {
            continue;
        }
        if draw.of("via").of(hub.code).chance(0.62) {
            ways.push(vec![hub]);
        }
        if direct_km > 4_000.0 && draw.of("feeder").of(hub.code).chance(0.30) {
            ways.extend(feeder(draw, from, hub, to, direct_km).map(|first| vec![first, hub]));
        }
    }
    ways
}

/// Another airline's hub on the way to `hub`, for a journey with two changes.
fn feeder(
    draw: Draw,
    from: &'static SandboxAirport,
    hub: &'static SandboxAirport,
    to: &'static SandboxAirport,
    direct_km: f64,
) -> Option<&'static SandboxAirport> {
    let airline = draw.of("feeder airline").of(hub.code).pick(AIRLINES);
    let first = SandboxAirport::find(airline.hubs[0])?;
    let distinct = [from.code, hub.code, to.code]
        .iter()
        .all(|code| *code != first.code);
    let path_km = from.kilometres_to(first) + first.kilometres_to(hub) + hub.kilometres_to(to);
    (distinct && path_km < direct_km * 1.6 + 900.0).then_some(first)
}

fn longest_hop(from: &SandboxAirport, via: &SandboxAirport, to: &SandboxAirport) -> f64 {
    from.kilometres_to(via).max(via.kilometres_to(to))
}

fn scheduled(
    flight: Draw,
    airline: &'static Airline,
    from: &'static SandboxAirport,
    to: &'static SandboxAirport,
    via: &[&'static SandboxAirport],
    date: Date,
) -> Leg {
    let stops: Vec<Stop> = via
        .iter()
        .map(|&airport| Stop {
            airport,
            minutes: 55
                + 5 * i64::try_from(flight.of("change").of(airport.code).below(52))
                    .unwrap_or_default(),
        })
        .collect();
    let mut minutes = 0;
    let mut here = from;
    for stop in &stops {
        minutes += airborne_minutes(here, stop.airport) + stop.minutes;
        here = stop.airport;
    }
    minutes += airborne_minutes(here, to);
    let departs = date.to_datetime(departure_time(flight));
    let arrives =
        departs.saturating_add(Span::new().minutes(minutes + to.utc_minutes - from.utc_minutes));
    Leg {
        airline,
        from,
        to,
        departs,
        arrives,
        minutes,
        stops,
        flight,
    }
}

/// About one flight in seven departs at night.
fn departure_time(flight: Draw) -> Time {
    let slot = if flight.of("night").chance(0.15) {
        // 22:00 to 01:55
        22 * 12 + flight.of("slot").below(4 * 12)
    } else {
        // 05:30 to 21:55
        5 * 12 + 6 + flight.of("slot").below(16 * 12 + 6)
    };
    let slot = i8::try_from(slot / 12 % 24).unwrap_or(0);
    let minute = i8::try_from(flight.of("minute").below(12)).unwrap_or(0) * 5;
    Time::constant(slot, minute, 0, 0)
}

/// Cruise at 850 km/h and 35 minutes for the rest, in steps of five minutes.
fn airborne_minutes(from: &SandboxAirport, to: &SandboxAirport) -> i64 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "half the globe is under a day away"
    )]
    let fives = ((from.kilometres_to(to) / 850.0 * 60.0 + 35.0) / 5.0).round() as i64;
    fives * 5
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;
    use crate::world::airports::AIRPORTS;

    fn of(from: &str, to: &str, on: Date) -> Vec<Leg> {
        legs(
            Draw::seeded(1),
            SandboxAirport::find(from).expect(from),
            SandboxAirport::find(to).expect(to),
            on,
        )
    }

    #[test]
    fn a_trunk_route_has_nonstop_and_connecting_flights_every_day() {
        for day in 1..=28 {
            let legs = of("TLV", "LHR", date(2027, 2, day));
            assert!(
                legs.iter().any(|leg| leg.stops.is_empty()),
                "nonstop on {day}"
            );
            assert!(
                legs.iter().any(|leg| leg.stops.len() == 1),
                "one change on {day}"
            );
            assert!((10..=120).contains(&legs.len()), "{}", legs.len());
        }
    }

    #[test]
    fn nearly_every_pair_of_airports_is_connected() {
        let world = Draw::seeded(1);
        let pairs: Vec<_> = AIRPORTS
            .iter()
            .step_by(5)
            .flat_map(|a| AIRPORTS.iter().step_by(7).map(move |b| (a, b)))
            .filter(|(a, b)| a.kilometres_to(b) > 700.0)
            .collect();
        let connected = pairs
            .iter()
            .filter(|(a, b)| !legs(world, a, b, date(2027, 3, 3)).is_empty())
            .count();
        assert!(
            connected * 100 > pairs.len() * 97,
            "{connected} of {}",
            pairs.len()
        );
    }

    #[test]
    fn clocks_and_durations_agree() {
        for leg in
            of("LHR", "SYD", date(2027, 5, 5))
                .into_iter()
                .chain(of("LAX", "HNL", date(2027, 5, 5)))
        {
            let local = leg.arrives.duration_since(leg.departs).as_mins();
            assert_eq!(
                local,
                leg.minutes + leg.to.utc_minutes - leg.from.utc_minutes
            );
            assert_eq!(leg.departs.date(), date(2027, 5, 5));
            assert!(leg.minutes > 0 && leg.minutes < 3_600, "{}", leg.minutes);
        }
    }
}
