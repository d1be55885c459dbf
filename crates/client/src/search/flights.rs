//! Tables of fares.

use super::{OnewaySearch, RoundtripSearch, lowest, price_text, search};
use crate::Failure;
use crate::render::{Column, ListTable};
use farescan_contract::flights::{OnewayFlight, RoundtripItinerary, StopCount};
use farescan_contract::{Endpoint, Verdict};
use farescan_sheets::draft::ScanDraft;

/// `search oneway`.
pub(super) async fn oneway(args: OnewaySearch) -> Result<(), Failure> {
    let mut fields = ScanDraft::new(Endpoint::FlightsOneway);
    fields.set("from_airport", Some(args.from));
    fields.set("to_airport", Some(args.to));
    fields.set("departure_date", Some(args.date));
    args.options.apply(&mut fields);
    search(args.send, fields, |rows: &Vec<OnewayFlight>, currency| {
        (!rows.is_empty()).then(|| oneway_table(rows, currency))
    })
    .await
}

/// `search roundtrip`.
pub(super) async fn roundtrip(args: RoundtripSearch) -> Result<(), Failure> {
    let mut fields = ScanDraft::new(Endpoint::FlightsRoundtrip);
    fields.set("from_airport", Some(args.from));
    fields.set("to_airport", Some(args.to));
    fields.set("departure_date", Some(args.date));
    fields.set("return_date", Some(args.return_date));
    args.options.apply(&mut fields);
    search(
        args.send,
        fields,
        |rows: &Vec<RoundtripItinerary>, currency| {
            (!rows.is_empty()).then(|| roundtrip_table(rows, currency))
        },
    )
    .await
}

fn oneway_table(rows: &[OnewayFlight], currency: &str) -> ListTable {
    let mut table = ListTable::new([
        Column::number(currency),
        Column::text("Departs"),
        Column::text("Arrives"),
        Column::text("Duration").rank(2),
        Column::text("Stops"),
        Column::text("Airline"),
    ]);
    let best = lowest(rows.iter().filter_map(|row| row.price_as_number));
    for row in rows {
        let (departs, arrives) = times(
            row.departure_description.as_deref(),
            row.arrival_description.as_deref(),
            row.departure_date.as_deref(),
        );
        table.row([
            price_text(row.price_as_number, best),
            departs.into(),
            arrives.into(),
            row.duration.clone().unwrap_or_default().into(),
            stops(row.stops.as_ref()).into(),
            row.airline.clone().unwrap_or_default().into(),
        ]);
    }
    let cheapest = rows.iter().find(|row| row.price_as_number == best);
    table.note(cheapest.and_then(|row| {
        verdict(
            row.price_range_in_relation_to_other_periods,
            row.price_insights_low.zip(row.price_insights_high),
            currency,
        )
    }))
}

fn roundtrip_table(rows: &[RoundtripItinerary], currency: &str) -> ListTable {
    let mut table = ListTable::new([
        Column::number(currency),
        Column::text("Out"),
        Column::text("Stops"),
        Column::text("Airline"),
        Column::text("Back"),
        Column::text("Stops"),
        Column::text("Airline").rank(2),
    ]);
    let best = lowest(rows.iter().filter_map(|row| row.total_price_as_number));
    for row in rows {
        let leg = |departs: &Option<String>, arrives: &Option<String>, date: &Option<String>| {
            let (departs, arrives) = times(departs.as_deref(), arrives.as_deref(), date.as_deref());
            if departs.is_empty() && arrives.is_empty() {
                String::new()
            } else {
                format!("{departs} – {arrives}")
            }
        };
        table.row([
            price_text(row.total_price_as_number, best),
            leg(
                &row.departure_flight_departure_description,
                &row.departure_flight_arrival_description,
                &row.departure_date,
            )
            .into(),
            stops(row.departure_flight_stops.as_ref()).into(),
            row.departure_flight_airline
                .clone()
                .unwrap_or_default()
                .into(),
            leg(
                &row.return_flight_departure_description,
                &row.return_flight_arrival_description,
                &row.return_date,
            )
            .into(),
            stops(row.return_flight_stops.as_ref()).into(),
            row.return_flight_airline.clone().unwrap_or_default().into(),
        ]);
    }
    let cheapest = rows.iter().find(|row| row.total_price_as_number == best);
    table.note(cheapest.and_then(|row| {
        verdict(
            row.price_range_in_relation_to_other_periods,
            row.price_insights_low.zip(row.price_insights_high),
            currency,
        )
    }))
}

/// Departure and arrival as times of the day; an arrival on a later day has `+1`.
fn times(departs: Option<&str>, arrives: Option<&str>, date: Option<&str>) -> (String, String) {
    let split = |text: Option<&str>| {
        let text = text.unwrap_or_default();
        let (time, day) = text.split_once(" on ").unwrap_or((text, ""));
        (time.to_owned(), day.to_owned())
    };
    let ((departs, day), (arrives, arrival_day)) = (split(departs), split(arrives));
    if arrival_day == day || arrival_day.is_empty() {
        return (departs, arrives);
    }
    match days_later(date, &arrival_day) {
        Some(days) => (departs, format!("{arrives} +{days}")),
        None => (departs, format!("{arrives}, {arrival_day}")),
    }
}

/// How many days after `date` a day such as `Fri, Feb 5` is.
fn days_later(date: Option<&str>, day: &str) -> Option<i64> {
    let date: jiff::civil::Date = date?.parse().ok()?;
    (1..=3).find(|days| {
        let later = date.checked_add(jiff::Span::new().days(*days));
        later.is_ok_and(|later| later.strftime("%a, %b %-d").to_string() == day)
    })
}

fn stops(stops: Option<&StopCount>) -> String {
    match stops {
        None => String::new(),
        Some(StopCount::Known(0)) => "non-stop".to_owned(),
        Some(StopCount::Known(stops)) => stops.to_string(),
        Some(StopCount::Unreadable(_)) => "?".to_owned(),
    }
}

/// The marketplace's verdict on the lowest price of the search. It says nothing of the other fares.
fn verdict(verdict: Option<Verdict>, band: Option<(f64, f64)>, currency: &str) -> Option<String> {
    let usual = band.map(|(low, high)| format!("usual is {low} to {high} {currency}"));
    let called = verdict.map(|word| format!("The marketplace calls the lowest price {word}"));
    match (called, usual) {
        (Some(called), Some(usual)) => Some(format!("{called}; {usual}.")),
        (Some(called), None) => Some(format!("{called}.")),
        (None, Some(usual)) => Some(format!("By the marketplace {usual}.")),
        (None, None) => None,
    }
}
