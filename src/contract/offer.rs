//! The prices in an answer, read from whatever the engine sent.
//!
//! Here: one row as [`Offer`], for the best price of an item and for tables. Not here: the answer's documented shape
//! (`flights`, `hotels`), nor any judgement of the answer as a whole (`upstream`).

use super::endpoint::Endpoint;
use super::fare::{Fare, Leaf, fares};
use super::status::Verdict;
use rust_decimal::Decimal;
use serde_json::{Number, Value};

/// One bookable price of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// Flights: the whole journey. Hotels: the whole stay. Above 0, in major units.
    pub price: Decimal,
    /// The currency that the row itself tells (`curr` in a fare's deep link), in upper case; else it is the request's.
    pub currency: Option<String>,
    /// The airline, or the room type.
    pub carrier_or_room: Option<String>,
    /// The hotel of the row (hotels/search and by-name).
    pub hotel: Option<String>,
    /// The board of a room ("breakfast included"): rates of different boards are different products.
    pub board: Option<String>,
    /// The deep link.
    pub link: Option<String>,
    /// The provider's verdict on the fare.
    pub verdict: Option<Verdict>,
    /// Bottom of the fare's historical band.
    pub band_low: Option<Decimal>,
    /// Top of the fare's historical band.
    pub band_high: Option<Decimal>,
    /// Stops of the journey; `None` also where the engine could not read them (`"Unknown"`).
    pub stops: Option<u32>,
}

/// The offers of an answer in its own order; rows without a readable price are left out (contract 14).
///
/// A price is a number above 0: engines send 0 where a fare is shown without a price. Resolve has no offers, and a text that is not JSON
/// has none.
pub fn offers(endpoint: Endpoint, answer: &[u8]) -> Vec<Offer> {
    match endpoint {
        Endpoint::FlightsOneway => fares(answer, oneway),
        Endpoint::FlightsRoundtrip => fares(answer, roundtrip),
        Endpoint::HotelsSearch | Endpoint::HotelsRooms | Endpoint::HotelsByName => of_hotels(
            endpoint,
            &serde_json::from_slice(answer).unwrap_or_default(),
        ),
        Endpoint::HotelsResolve => Vec::new(),
    }
}

fn of_hotels(endpoint: Endpoint, answer: &Value) -> Vec<Offer> {
    match endpoint {
        Endpoint::HotelsSearch => rows(&answer["properties"], hotel),
        Endpoint::HotelsRooms => rows(&answer["rooms"], |row| room(row, &answer["booking_url"])),
        Endpoint::HotelsByName if answer["available"] == false => Vec::new(),
        _ => hotel(answer).into_iter().collect(),
    }
}

fn rows(list: &Value, read: impl Fn(&Value) -> Option<Offer>) -> Vec<Offer> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(read)
        .collect()
}

fn oneway(row: &Fare<'_>) -> Option<Offer> {
    Some(Offer {
        carrier_or_room: said(&row.airline),
        stops: count(&row.stops),
        ..fare(row, &row.price_as_number)?
    })
}

/// Both carriers, when the two legs fly with different ones.
fn roundtrip(row: &Fare<'_>) -> Option<Offer> {
    let (out, back) = (
        said(&row.departure_flight_airline),
        said(&row.return_flight_airline),
    );
    let carriers = match (out, back) {
        (Some(out), Some(back)) if out != back => Some(format!("{out} / {back}")),
        (out, back) => out.or(back),
    };
    Some(Offer {
        carrier_or_room: carriers,
        stops: count(&row.total_stops),
        ..fare(row, &row.total_price_as_number)?
    })
}

fn fare(row: &Fare<'_>, price: &Leaf<'_>) -> Option<Offer> {
    let link = said(&row.buy_link);
    Some(Offer {
        currency: link.as_deref().and_then(currency_of_link),
        verdict: row
            .price_range_in_relation_to_other_periods
            .text()
            .and_then(Verdict::parse),
        band_low: row.price_insights_low.number().and_then(amount),
        band_high: row.price_insights_high.number().and_then(amount),
        ..priced(price.number(), link)?
    })
}

fn hotel(row: &Value) -> Option<Offer> {
    let offer = priced(row["price"].as_number(), text(&row["link"]))?;
    Some(Offer {
        hotel: text(&row["name"]),
        carrier_or_room: text(&row["room_type"]),
        ..offer
    })
}

fn room(row: &Value, booking_url: &Value) -> Option<Offer> {
    let offer = priced(row["price_as_number"].as_number(), text(booking_url))?;
    Some(Offer {
        carrier_or_room: text(&row["room_type"]),
        board: text(&row["room_economy"]),
        ..offer
    })
}

fn priced(price: Option<&Number>, link: Option<String>) -> Option<Offer> {
    let price = price
        .and_then(amount)
        .filter(|price| *price > Decimal::ZERO)?;
    Some(Offer {
        price,
        currency: None,
        carrier_or_room: None,
        hotel: None,
        board: None,
        link,
        verdict: None,
        band_low: None,
        band_high: None,
        stops: None,
    })
}

/// A JSON number as it was written, so that 123.45 stays 123.45.
fn amount(number: &Number) -> Option<Decimal> {
    let written = number.to_string();
    written
        .parse()
        .ok()
        .or_else(|| Decimal::from_scientific(&written).ok())
}

/// Text that says something.
fn text(value: &Value) -> Option<String> {
    value.as_str().and_then(trimmed)
}

fn said(leaf: &Leaf<'_>) -> Option<String> {
    leaf.text().and_then(trimmed)
}

fn trimmed(text: &str) -> Option<String> {
    Some(text.trim())
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

fn count(leaf: &Leaf<'_>) -> Option<u32> {
    leaf.number()?
        .as_u64()
        .and_then(|count| count.try_into().ok())
}

/// The `curr` parameter of a fare's deep link (specification 2.3).
fn currency_of_link(link: &str) -> Option<String> {
    let (_, query) = link.split_once('?')?;
    let currency = query
        .split(['&', '#'])
        .find_map(|pair| pair.strip_prefix("curr="))?;
    let is_code = currency.len() == 3 && currency.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_code.then(|| currency.to_ascii_uppercase())
}
