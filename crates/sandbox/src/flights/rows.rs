//! Formats itineraries as rows: numbers, texts and the link.

use jiff::civil::DateTime;

use super::itinerary::Itinerary;
use crate::wire::flights::{
    FlightRow, FlightSearch, Insight, OnewayRow, RoundtripRow, RowStops, StopRow,
};
use crate::world::airports::SandboxAirport;
use crate::world::timetable::Leg;

/// The row of an itinerary between the airports of two codes; `tfs` names its flights in the link.
pub(super) fn flight_row(
    search: &FlightSearch,
    (from, to): (&str, &str),
    itinerary: Itinerary,
    insight: Option<Insight>,
    tfs: &str,
) -> FlightRow {
    let (terms, out) = (&search.terms, itinerary.out);
    let (from_airport, to_airport) = (airport(from), airport(to));
    let price = terms.currency.show(itinerary.price);
    // At a reserved host: nothing can be bought in the sandbox.
    let buy_link = format!(
        "https://flights.sandbox.example/booking?tfs={tfs}&curr={}",
        terms.currency.code
    );
    let (Some(back), Some((return_date, _))) = (itinerary.back, &search.inbound) else {
        return FlightRow::Oneway(OnewayRow {
            insight,
            from_airport,
            to_airport,
            departure_date: terms.departure_date,
            price,
            price_as_number: itinerary.price,
            duration: duration(out.minutes),
            duration_seconds: out.minutes * 60,
            buy_link,
            airline: &out.airline.name,
            stops: if out.unreadable {
                RowStops::Unreadable("Unknown")
            } else {
                RowStops::Count(out.stops.len())
            },
            stops_info: stops(out),
            departure_description: clock(out.departs),
            arrival_description: clock(out.arrives),
        });
    };
    FlightRow::Roundtrip(RoundtripRow {
        insight,
        from_airport,
        to_airport,
        departure_date: terms.departure_date,
        return_date: *return_date,
        total_price: price,
        total_price_as_number: itinerary.price,
        total_duration_seconds: itinerary.minutes() * 60,
        total_stops: itinerary.stops(),
        buy_link,
        departure_flight_departure_description: clock(out.departs),
        departure_flight_arrival_description: clock(out.arrives),
        departure_flight_airline: &out.airline.name,
        departure_flight_duration: duration(out.minutes),
        departure_flight_stops: out.stops.len(),
        return_flight_departure_description: clock(back.departs),
        return_flight_arrival_description: clock(back.arrives),
        return_flight_airline: &back.airline.name,
        return_flight_duration: duration(back.minutes),
        return_flight_stops: back.stops.len(),
    })
}

fn stops(leg: &Leg) -> Vec<StopRow> {
    let rows = leg.stops.iter().map(|stop| StopRow {
        stop_airport: format!("{} ({})", stop.airport.name, stop.airport.code),
        stop_duration_seconds: stop.minutes * 60,
    });
    rows.collect()
}

/// `City (IATA)`; an airport that the sandbox does not know has its code for a city.
fn airport(code: &str) -> String {
    SandboxAirport::find(code).map_or_else(|| format!("{code} ({code})"), SandboxAirport::display)
}

/// `5 hr 20 min`.
fn duration(minutes: i64) -> String {
    format!("{} hr {} min", minutes / 60, minutes % 60)
}

/// `8:10 AM on Sat, Jan 9`.
fn clock(at: DateTime) -> String {
    at.strftime("%-I:%M %p on %a, %b %-d").to_string()
}

/// Route, departure, airline and changes of each flight between two airports and back.
pub(super) fn flight_names((from, to): (&str, &str), itinerary: Itinerary) -> String {
    let routes = [(from, to), (to, from)].into_iter();
    let names = routes.zip(itinerary.legs()).map(|((from, to), leg)| {
        let (at, airline) = (leg.departs.strftime("%Y%m%d%H%M"), &leg.airline.code);
        let changes: String = leg
            .stops
            .iter()
            .map(|stop| stop.airport.code.as_str())
            .collect();
        format!("{from}{to}{at}{airline}{changes}")
    });
    names.collect::<Vec<_>>().join(".")
}

/// The bytes of a text as hexadecimal digits.
pub(super) fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}
