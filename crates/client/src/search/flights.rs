//! Tables of fares.

use super::{OnewaySearch, RoundtripSearch, lowest, price_text, search};
use crate::Failure;
use crate::render::{Column, ListTable};
use farescan_contract::flights::{OnewayFlight, RoundtripItinerary, StopCount};
use farescan_contract::{Endpoint, Verdict};
use farescan_sheets::draft::ScanDraft;
use farescan_sheets::fare::{self, FlightLeg};
use serde::Serialize;

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
        let [leg] = legs(Endpoint::FlightsOneway, row);
        table.row([
            price_text(row.price_as_number, best),
            leg.departs.into(),
            leg.arrives.into(),
            leg.duration.into(),
            stops(leg.stops.as_ref()).into(),
            leg.airline.into(),
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
        let [out, back] = legs(Endpoint::FlightsRoundtrip, row);
        table.row([
            price_text(row.total_price_as_number, best),
            out.times().into(),
            stops(out.stops.as_ref()).into(),
            out.airline.into(),
            back.times().into(),
            stops(back.stops.as_ref()).into(),
            back.airline.into(),
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

/// The ways of a row.
fn legs<const N: usize>(endpoint: Endpoint, row: &impl Serialize) -> [FlightLeg; N] {
    let row = serde_json::to_value(row).unwrap_or_default();
    let legs = fare::legs(endpoint, &row).try_into();
    legs.unwrap_or_else(|_| std::array::from_fn(|_| FlightLeg::default()))
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
