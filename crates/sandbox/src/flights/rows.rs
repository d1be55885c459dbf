//! Formats itineraries as rows: numbers, texts and the link.

use jiff::civil::DateTime;

use super::rank::Rank;
use crate::wire::flights::{Insight, OnewayRow, Roundtrip, RoundtripRow, RowStops, StopRow, Terms};
use crate::world::money::SandboxCurrency;
use crate::world::timetable::Leg;

pub(super) fn oneway_row(
    terms: &Terms,
    leg: &Leg,
    rank: Rank,
    insight: Option<&Insight>,
    currency: &SandboxCurrency,
) -> OnewayRow {
    let unreadable = leg
        .flight
        .of("unreadable")
        .day(terms.departure_date)
        .chance(0.01);
    OnewayRow {
        insight: insight.cloned(),
        from_airport: leg.from.display(),
        to_airport: leg.to.display(),
        departure_date: terms.departure_date,
        price: currency.show(rank.price),
        price_as_number: rank.price,
        duration: duration(leg.minutes),
        duration_seconds: leg.minutes * 60,
        buy_link: buy_link(&[leg], terms, currency),
        airline: leg.airline.name,
        stops: if unreadable {
            RowStops::Unreadable("Unknown")
        } else {
            RowStops::Count(leg.stops.len())
        },
        stops_info: leg
            .stops
            .iter()
            .map(|stop| StopRow {
                stop_airport: format!("{} ({})", stop.airport.name, stop.airport.code),
                stop_duration_seconds: stop.minutes * 60,
            })
            .collect(),
        departure_description: clock(leg.departs),
        arrival_description: clock(leg.arrives),
    }
}

pub(super) fn roundtrip_row(
    search: &Roundtrip,
    (out, back): (&Leg, &Leg),
    rank: Rank,
    insight: Option<&Insight>,
    currency: &SandboxCurrency,
) -> RoundtripRow {
    let terms = &search.terms;
    RoundtripRow {
        insight: insight.cloned(),
        from_airport: out.from.display(),
        to_airport: out.to.display(),
        departure_date: terms.departure_date,
        return_date: search.return_date,
        total_price: currency.show(rank.price),
        total_price_as_number: rank.price,
        total_duration_seconds: rank.minutes * 60,
        total_stops: rank.stops,
        buy_link: buy_link(&[out, back], terms, currency),
        departure_flight_departure_description: clock(out.departs),
        departure_flight_arrival_description: clock(out.arrives),
        departure_flight_airline: out.airline.name,
        departure_flight_duration: duration(out.minutes),
        departure_flight_stops: out.stops.len(),
        return_flight_departure_description: clock(back.departs),
        return_flight_arrival_description: clock(back.arrives),
        return_flight_airline: back.airline.name,
        return_flight_duration: duration(back.minutes),
        return_flight_stops: back.stops.len(),
    }
}

/// `5 hr 20 min`.
pub(super) fn duration(minutes: i64) -> String {
    format!("{} hr {} min", minutes / 60, minutes % 60)
}

/// `8:10 AM on Sat, Jan 9`.
pub(super) fn clock(at: DateTime) -> String {
    at.strftime("%-I:%M %p on %a, %b %-d").to_string()
}

/// A link that names these flights, at a reserved host: nothing can be bought in the sandbox.
fn buy_link(legs: &[&Leg], terms: &Terms, currency: &SandboxCurrency) -> String {
    let flights: Vec<String> = legs
        .iter()
        .map(|leg| {
            let (at, airline) = (leg.departs.strftime("%Y%m%d%H%M"), leg.airline.code);
            let changes: String = leg.stops.iter().map(|stop| stop.airport.code).collect();
            format!("{}{}{at}{airline}{changes}", leg.from.code, leg.to.code)
        })
        .collect();
    let party: String = terms.passengers.iter().map(i64::to_string).collect();
    let plain = format!("{}.{party}.{}", terms.seat_type, flights.join("."));
    let tfs: String = plain
        .bytes()
        .map(|byte| format!("{byte:02x}"))
        .collect::<Vec<_>>()
        .concat();
    format!(
        "https://flights.sandbox.example/booking?tfs={tfs}&curr={}",
        currency.code
    )
}
