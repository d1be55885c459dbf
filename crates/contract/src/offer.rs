//! The prices in a response.
//!
//! Here: one row as [`Offer`], for the best price of an item and for tables. Not here: the
//! documented response types (`flights`, `hotels`), nor the status of the response (`upstream`).

use super::endpoint::Endpoint;
use super::fare_row::{FareRow, LooseValue, read_fare_rows};
use super::status::Verdict;
use rust_decimal::Decimal;
use serde_json::{Number, Value};

/// One bookable price of a response.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// Flights: the whole journey. Hotels: the whole stay. Above 0, in major units.
    pub price: Decimal,
    /// The currency of the row (`curr` in a fare's deep link), in upper case; `None`: the
    /// request's.
    pub currency: Option<String>,
    /// The airline, or the room type.
    pub carrier_or_room: Option<String>,
    /// The hotel of the row (hotels/search and by-name).
    pub hotel: Option<String>,
    /// The board of a room ("breakfast included"): rates of different boards are different
    /// products.
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

/// The offers of a response in its order, without rows that have no price (gateway.md, rule 14).
///
/// A price is a number above 0: engines send 0 for a fare without a price. Resolve and text that is
/// not JSON have no offers.
pub fn offers(endpoint: Endpoint, answer: &[u8]) -> Vec<Offer> {
    // Checked once, so that the reader need not check each string.
    let Ok(answer) = std::str::from_utf8(answer) else {
        return Vec::new();
    };
    match endpoint {
        Endpoint::FlightsOneway => read_fare_rows(answer, oneway_offer),
        Endpoint::FlightsRoundtrip => read_fare_rows(answer, roundtrip_offer),
        Endpoint::HotelsSearch | Endpoint::HotelsRooms | Endpoint::HotelsByName => {
            hotel_offers(endpoint, &serde_json::from_str(answer).unwrap_or_default())
        }
        Endpoint::HotelsResolve => Vec::new(),
    }
}

fn hotel_offers(endpoint: Endpoint, answer: &Value) -> Vec<Offer> {
    match endpoint {
        Endpoint::HotelsSearch => row_offers(&answer["properties"], hotel_offer),
        Endpoint::HotelsRooms => row_offers(&answer["rooms"], |row| {
            room_offer(row, &answer["booking_url"])
        }),
        Endpoint::HotelsByName if answer["available"] == false => Vec::new(),
        _ => hotel_offer(answer).into_iter().collect(),
    }
}

fn row_offers(list: &Value, read: impl Fn(&Value) -> Option<Offer>) -> Vec<Offer> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(read)
        .collect()
}

fn oneway_offer(row: &FareRow<'_>) -> Option<Offer> {
    Some(Offer {
        carrier_or_room: non_blank_text(&row.airline),
        stops: count_value(&row.stops),
        ..fare_offer(row, &row.price_as_number)?
    })
}

/// Names both carriers if the two legs have different ones.
fn roundtrip_offer(row: &FareRow<'_>) -> Option<Offer> {
    let (out, back) = (
        non_blank_text(&row.departure_flight_airline),
        non_blank_text(&row.return_flight_airline),
    );
    let carriers = match (out, back) {
        (Some(out), Some(back)) if out != back => Some(format!("{out} / {back}")),
        (out, back) => out.or(back),
    };
    Some(Offer {
        carrier_or_room: carriers,
        stops: count_value(&row.total_stops),
        ..fare_offer(row, &row.total_price_as_number)?
    })
}

fn fare_offer(row: &FareRow<'_>, price: &LooseValue<'_>) -> Option<Offer> {
    let link = non_blank_text(&row.buy_link);
    Some(Offer {
        currency: link.as_deref().and_then(currency_of_link),
        verdict: row
            .price_range_in_relation_to_other_periods
            .text()
            .and_then(Verdict::parse),
        band_low: row.price_insights_low.number().and_then(amount),
        band_high: row.price_insights_high.number().and_then(amount),
        ..offer_with_price(price.number(), link)?
    })
}

fn hotel_offer(row: &Value) -> Option<Offer> {
    let offer = offer_with_price(row["price"].as_number(), string_value(&row["link"]))?;
    Some(Offer {
        hotel: string_value(&row["name"]),
        carrier_or_room: string_value(&row["room_type"]),
        ..offer
    })
}

fn room_offer(row: &Value, booking_url: &Value) -> Option<Offer> {
    let offer = offer_with_price(
        row["price_as_number"].as_number(),
        string_value(booking_url),
    )?;
    Some(Offer {
        carrier_or_room: string_value(&row["room_type"]),
        board: string_value(&row["room_economy"]),
        ..offer
    })
}

fn offer_with_price(price: Option<&Number>, link: Option<String>) -> Option<Offer> {
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

/// The exact decimal of a JSON number: 123.45 stays 123.45.
fn amount(number: &Number) -> Option<Decimal> {
    if let Some(whole) = number.as_u64() {
        return Some(whole.into());
    }
    let written = number.to_string();
    written
        .parse()
        .ok()
        .or_else(|| Decimal::from_scientific(&written).ok())
}

/// A string that is not blank.
fn string_value(value: &Value) -> Option<String> {
    value.as_str().and_then(non_blank)
}

fn non_blank_text(leaf: &LooseValue<'_>) -> Option<String> {
    leaf.text().and_then(non_blank)
}

fn non_blank(text: &str) -> Option<String> {
    Some(text.trim())
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

fn count_value(leaf: &LooseValue<'_>) -> Option<u32> {
    leaf.number()?
        .as_u64()
        .and_then(|count| count.try_into().ok())
}

/// The `curr` parameter of a fare's deep link (gateway.md, rule 25).
fn currency_of_link(link: &str) -> Option<String> {
    let (_, query) = link.split_once('?')?;
    let currency = query
        .split(['&', '#'])
        .find_map(|pair| pair.strip_prefix("curr="))?;
    let is_code = currency.len() == 3 && currency.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_code.then(|| currency.to_ascii_uppercase())
}
