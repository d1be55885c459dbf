//! The ways of a fare: times of the day, duration, stops and airline.
//!
//! Answers are read loosely, as [`offers`] reads them: what has another type or is absent is left out.

use farescan_contract::flights::StopCount;
use farescan_contract::{Endpoint, offers};
use jiff::ToSpan as _;
use jiff::civil::Date;
use rust_decimal::Decimal;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::numbers::counted;

/// One way of a fare; what the answer does not say is empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FlightLeg {
    /// The time of the day, such as `7:15 AM`.
    pub departs: String,
    /// The same; on a later day with `+1`.
    pub arrives: String,
    pub duration: String,
    pub stops: Option<StopCount>,
    pub airline: String,
}

impl FlightLeg {
    /// `7:15 AM – 10:40 AM`; empty without either.
    pub fn times(&self) -> String {
        joined([&self.departs, &self.arrives], " – ")
    }

    /// Whether it has more than the airline of the way out.
    fn says_more_than(&self, out: &Self) -> bool {
        let airline = Self {
            airline: out.airline.clone(),
            ..Self::default()
        };
        *self != airline && !self.line().is_empty()
    }

    /// `Example Air, 7:15 AM – 10:40 AM, 5 hr 25 min, non-stop`.
    fn line(&self) -> String {
        let stops = match self.stops {
            Some(StopCount::Known(0)) => "non-stop".to_owned(),
            Some(StopCount::Known(stops)) => counted(stops, "stop"),
            Some(StopCount::Unreadable(_)) | None => String::new(),
        };
        joined([&self.airline, &self.times(), &self.duration, &stops], ", ")
    }
}

/// Those texts that are not empty.
fn joined<const N: usize>(texts: [&String; N], separator: &str) -> String {
    let texts: Vec<_> = texts
        .into_iter()
        .filter(|text| !text.is_empty())
        .map(String::as_str)
        .collect();
    texts.join(separator)
}

/// The ways of a row of an answer: one, or out and back; none of a hotel.
pub fn legs(endpoint: Endpoint, row: &Value) -> Vec<FlightLeg> {
    let ways: &[_] = match endpoint {
        Endpoint::FlightsOneway => &[("", "departure_date")],
        Endpoint::FlightsRoundtrip => &[
            ("departure_flight_", "departure_date"),
            ("return_flight_", "return_date"),
        ],
        _ => &[],
    };
    ways.iter()
        .map(|(prefix, date)| leg(row, prefix, date))
        .collect()
}

/// The way whose fields have a prefix, on the date of a field.
fn leg(row: &Value, prefix: &str, date: &str) -> FlightLeg {
    let text = |name: &str| {
        let text = row[format!("{prefix}{name}")].as_str();
        text.unwrap_or_default().trim()
    };
    let (departs, arrives) = times(
        text("departure_description"),
        text("arrival_description"),
        row[date].as_str(),
    );
    let stops = row[format!("{prefix}stops")].clone();
    FlightLeg {
        departs,
        arrives,
        duration: text("duration").to_owned(),
        stops: serde_json::from_value(stops).ok(),
        airline: text("airline").to_owned(),
    }
}

/// The fare of an answer that has this price, in a line: the one with the link, or else the first.
pub fn line(
    endpoint: Endpoint,
    answer: &str,
    price: Decimal,
    link: Option<&str>,
) -> Option<String> {
    // Each row alone: an answer may have megabytes.
    let rows: Vec<&RawValue> = serde_json::from_str(answer).ok()?;
    let offer = |row: &RawValue| offers(endpoint, format!("[{row}]").as_bytes()).pop();
    let mut with_price = rows.into_iter().filter_map(|row| {
        let offer = offer(row).filter(|offer| offer.price == price)?;
        Some((row, offer.link))
    });
    let (first, its_link) = with_price.next()?;
    let row = if link.is_none() || its_link.as_deref() == link {
        first
    } else {
        let with_link = with_price.find(|(_, other)| other.as_deref() == link);
        with_link.map_or(first, |(row, _)| row)
    };
    let row: Value = serde_json::from_str(row.get()).ok()?;
    let line = match legs(endpoint, &row).as_slice() {
        [out, back] if back.says_more_than(out) => {
            format!("{}; back {}", out.line(), back.line())
        }
        legs => legs.first()?.line(),
    };
    Some(line).filter(|line| !line.is_empty())
}

/// Departure and arrival as times of the day; an arrival on a later day has `+1`.
fn times(departs: &str, arrives: &str, date: Option<&str>) -> (String, String) {
    let split = |text: &str| {
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
    let date: Date = date?.parse().ok()?;
    (1..=3).find(|days| {
        let later = date.checked_add(days.days());
        later.is_ok_and(|later| later.strftime("%a, %b %-d").to_string() == day)
    })
}
