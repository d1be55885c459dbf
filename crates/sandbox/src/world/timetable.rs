//! The flights between two airports on a date: the same every week, at the same hours.

use jiff::ToSpan as _;
use jiff::civil::{Date, DateTime, Time};

use super::airlines::{AIRLINES, Airline};
use super::airports::SandboxAirport;
use crate::draws::{Draw, whole};

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
    pub(crate) departs: DateTime,
    pub(crate) arrives: DateTime,
    /// Total duration, changes included.
    pub(crate) minutes: i64,
    pub(crate) stops: Vec<Stop>,
    /// Seed of this flight, the same on every date.
    pub(crate) flight: Draw,
    /// The engine cannot read the number of its stops on this date.
    pub(crate) unreadable: bool,
}

/// A pair of airports, in the direction of the flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AirportPair {
    pub(crate) from: &'static SandboxAirport,
    pub(crate) to: &'static SandboxAirport,
}

impl AirportPair {
    /// The airports of two IATA codes.
    pub(crate) fn find(from: &str, to: &str) -> Option<Self> {
        Some(Self {
            from: SandboxAirport::find(from)?,
            to: SandboxAirport::find(to)?,
        })
    }

    /// The other direction.
    pub(crate) fn back(self) -> Self {
        Self {
            from: self.to,
            to: self.from,
        }
    }

    pub(crate) fn kilometres(self) -> f64 {
        self.from.kilometres_to(self.to)
    }

    fn has(self, airport: &SandboxAirport) -> bool {
        airport.code == self.from.code || airport.code == self.to.code
    }

    /// All legs of a date, unsorted.
    pub(crate) fn legs(self, world: Draw, date: Date) -> Vec<Leg> {
        let route = world.of("timetable").of(&self.from.code).of(&self.to.code);
        let weekday = i64::from(date.weekday().to_monday_one_offset());
        let mut legs = Vec::new();
        for airline in AIRLINES.iter() {
            let own = route.of(&airline.code);
            for (number, stops) in (0..).zip(self.ways(own, airline)) {
                let most = if stops.is_empty() && self.kilometres() < 5_000.0 {
                    3
                } else {
                    2
                };
                let way = own.nth(number);
                let flights = (0..=way.of("departures").below(most))
                    .map(|departure| way.of("flight").nth(departure))
                    .filter(|flight| flight.of("operates").nth(weekday).chance(0.88));
                legs.extend(flights.map(|flight| self.leg(flight, airline, &stops, date)));
            }
        }
        legs
    }

    /// One airline's connections, each a list of the airports of its changes.
    fn ways(self, draw: Draw, airline: &Airline) -> Vec<Vec<&'static SandboxAirport>> {
        let direct_km = self.kilometres();
        if direct_km < 50.0 {
            return Vec::new();
        }
        let at_home = airline.hubs().any(|hub| self.has(hub));
        let nonstop = if let Some(region) = airline.roams {
            let covered = self.from.region() == region && self.to.region() == region;
            let flown = at_home && draw.of("hub").chance(0.85) || draw.of("roams").chance(0.28);
            covered && flown && direct_km < LONGEST_LOW_COST_KM
        } else {
            at_home && direct_km < LONGEST_HOP_KM && draw.of("nonstop").chance(0.9)
        };
        let mut ways: Vec<_> = nonstop.then(Vec::new).into_iter().collect();
        if airline.roams.is_some() || direct_km < 600.0 {
            return ways;
        }
        for hub in airline.hubs().filter(|hub| !self.has(hub)) {
            let (there, on) = (self.from.kilometres_to(hub), hub.kilometres_to(self.to));
            if there + on > direct_km * 1.35 + 900.0 || there.max(on) > LONGEST_HOP_KM {
                continue;
            }
            if draw.of("via").of(&hub.code).chance(0.62) {
                ways.push(vec![hub]);
            }
            if direct_km > 4_000.0 && draw.of("feeder").of(&hub.code).chance(0.30) {
                ways.extend(self.feeder(draw, hub).map(|first| vec![first, hub]));
            }
        }
        ways
    }

    /// Another airline's hub on the way to `hub`, for a journey with two changes.
    fn feeder(self, draw: Draw, hub: &SandboxAirport) -> Option<&'static SandboxAirport> {
        let airline = draw.of("feeder airline").of(&hub.code).pick(&AIRLINES);
        let first = airline.hubs().next()?;
        let path_km =
            self.from.kilometres_to(first) + first.kilometres_to(hub) + hub.kilometres_to(self.to);
        let is_detour = path_km >= self.kilometres() * 1.6 + 900.0;
        (!is_detour && !self.has(first) && first.code != hub.code).then_some(first)
    }

    /// A flight with changes at the airports of `via`.
    fn leg(
        self,
        flight: Draw,
        airline: &'static Airline,
        via: &[&'static SandboxAirport],
        date: Date,
    ) -> Leg {
        let change =
            |airport: &SandboxAirport| 55 + 5 * flight.of("change").of(&airport.code).below(52);
        let stops: Vec<Stop> = via
            .iter()
            .map(|&airport| Stop {
                airport,
                minutes: change(airport),
            })
            .collect();
        let (mut minutes, mut here) = (0, self.from);
        for stop in &stops {
            minutes += airborne_minutes(here, stop.airport) + stop.minutes;
            here = stop.airport;
        }
        minutes += airborne_minutes(here, self.to);
        let departs = date.to_datetime(departure_time(flight));
        let local_minutes = minutes + self.to.utc_minutes - self.from.utc_minutes;
        Leg {
            airline,
            departs,
            arrives: departs.saturating_add(local_minutes.minutes()),
            minutes,
            stops,
            flight,
            unreadable: flight.of("unreadable").day(date).chance(0.01),
        }
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
    let minute = flight.of("minute").below(12) * 5;
    Time::midnight().wrapping_add((slot / 12 * 60 + minute).minutes())
}

/// Cruise at 850 km/h and 35 minutes for the rest, in steps of five minutes.
fn airborne_minutes(from: &SandboxAirport, to: &SandboxAirport) -> i64 {
    whole((from.kilometres_to(to) / 850.0 * 60.0 + 35.0) / 5.0) * 5
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;
    use crate::world::airports::AIRPORTS;

    fn pair(from: &str, to: &str) -> AirportPair {
        AirportPair::find(from, to).expect("known airports")
    }

    fn of(from: &str, to: &str, on: Date) -> Vec<Leg> {
        pair(from, to).legs(Draw::seeded(1), on)
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
            .filter(|(a, b)| {
                !AirportPair { from: a, to: b }
                    .legs(world, date(2027, 3, 3))
                    .is_empty()
            })
            .count();
        assert!(
            connected * 100 > pairs.len() * 97,
            "{connected} of {}",
            pairs.len()
        );
    }

    #[test]
    fn clocks_and_durations_agree() {
        let on = date(2027, 5, 5);
        for (pair, leg) in [pair("LHR", "SYD"), pair("LAX", "HNL")]
            .into_iter()
            .flat_map(|pair| {
                pair.legs(Draw::seeded(1), on)
                    .into_iter()
                    .map(move |leg| (pair, leg))
            })
        {
            let local = leg.arrives.duration_since(leg.departs).as_mins();
            assert_eq!(
                local,
                leg.minutes + pair.to.utc_minutes - pair.from.utc_minutes
            );
            assert_eq!(leg.departs.date(), date(2027, 5, 5));
            assert!(leg.minutes > 0 && leg.minutes < 3_600, "{}", leg.minutes);
        }
    }
}
