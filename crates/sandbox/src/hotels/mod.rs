//! The hotels engine: answers a valid body.

mod property;
mod rates;
#[cfg(test)]
mod tests;

use axum::http::StatusCode;
use axum::response::Response;
use jiff::civil::Date;
use serde_json::Value;

use self::property::{Board, City, Property, slug_of};
use self::rates::{RoomOffer, admits, offers};
use super::draws::{Draw, days_between};
use super::magic_values::Effect;
use super::responses;
use super::wire::hotels::{
    ByName, ByNameAnswer, HotelSearch, PropertyRow, Resolve, ResolveAnswer, RoomRow, Rooms,
    RoomsAnswer, SearchAnswer, Stay, Unreadable,
};
use super::world::money::SandboxCurrency;

/// Most properties in one answer (gateway.md, rule 14).
const MOST_PROPERTIES: usize = 50;

/// A valid body.
#[derive(Clone, Debug)]
pub(super) enum HotelQuery {
    Search(HotelSearch),
    ByName(ByName),
    Rooms(Rooms),
    Resolve(Resolve),
}

impl HotelQuery {
    pub(super) fn search(body: &Value) -> Result<Self, Unreadable> {
        HotelSearch::read(body).map(Self::Search)
    }

    pub(super) fn by_name(body: &Value) -> Result<Self, Unreadable> {
        ByName::read(body).map(Self::ByName)
    }

    pub(super) fn rooms(body: &Value) -> Result<Self, Unreadable> {
        Rooms::read(body).map(Self::Rooms)
    }

    pub(super) fn resolve(body: &Value) -> Result<Self, Unreadable> {
        Resolve::read(body).map(Self::Resolve)
    }

    /// Median seconds until the answer (gateway.md, rule 3).
    pub(super) fn median_seconds(&self) -> f64 {
        match self {
            Self::Search(_) => 9.5,
            Self::ByName(_) => 9.0,
            Self::Rooms(_) => 8.5,
            Self::Resolve(_) => 8.0,
        }
    }

    /// The answer as of `today`.
    pub(super) fn answer(&self, world: Draw, today: Date, effect: Effect) -> Response {
        match effect {
            Effect::Failed => return responses::failed(),
            Effect::Garbage => return responses::garbage(),
            Effect::Degraded => return responses::search_incomplete("blocked_page"),
            _ => {}
        }
        match self {
            Self::Search(query) => search(world, today, query, effect),
            Self::ByName(query) => by_name(world, today, query, effect),
            Self::Rooms(query) => rooms(world, today, query, effect),
            Self::Resolve(query) => resolve(world, query, effect),
        }
    }
}

fn search(world: Draw, today: Date, query: &HotelSearch, effect: Effect) -> Response {
    let mut properties = match (SandboxCurrency::find(&query.stay.currency), effect) {
        (None, _) | (_, Effect::Empty) => Vec::new(),
        (Some(currency), _) => matching(world, today, query, currency)
            .into_iter()
            .map(|(property, offer)| property_row(&property, &offer, &query.stay, currency))
            .collect(),
    };
    if effect == Effect::Partial {
        properties.truncate(properties.len().div_ceil(2));
    }
    if properties.is_empty() {
        let text = format!(
            "No properties matched {:?} for these dates and filters.",
            query.destination
        );
        return responses::message(StatusCode::NOT_FOUND, &text);
    }
    let answer = SearchAnswer {
        destination: query.destination.clone(),
        checkin_date: query.stay.checkin_date,
        checkout_date: query.stay.checkout_date,
        applied_filters: query.filters.clone(),
        budget_per_night: query.budget_per_night,
        properties,
    };
    responses::json(StatusCode::OK, &answer)
}

/// The hotels of the destination with an offer that satisfies the query, each with the cheapest.
fn matching(
    world: Draw,
    today: Date,
    query: &HotelSearch,
    currency: &SandboxCurrency,
) -> Vec<(Property, RoomOffer)> {
    let nights = days_between(query.stay.checkin_date, query.stay.checkout_date);
    let in_budget = |offer: &RoomOffer| {
        query.budget_per_night.is_none_or(|most| {
            #[expect(clippy::cast_precision_loss, reason = "prices and nights are small")]
            let (total, nights) = (currency.whole(offer.dollars) as f64, nights as f64);
            total <= most * nights
        })
    };
    City::of_destination(&query.destination)
        .hotel_names(world)
        .iter()
        .filter_map(|name| Property::named(world, name))
        .filter_map(|property| {
            offers(world, &property, &query.stay, today)
                .into_iter()
                .find(|offer| admits(&query.filters, &property, offer))
                .filter(in_budget)
                .map(|offer| (property, offer))
        })
        .take(MOST_PROPERTIES)
        .collect()
}

fn by_name(world: Draw, today: Date, query: &ByName, effect: Effect) -> Response {
    let found = Property::named(world, &query.hotel_name).filter(|property| {
        effect != Effect::Empty && matches_area(property, query.area.as_deref())
    });
    let (Some(property), Some(currency)) = (found, SandboxCurrency::find(&query.stay.currency))
    else {
        let text = format!("No hotel matched the name {:?}.", query.hotel_name);
        return responses::message(StatusCode::NOT_FOUND, &text);
    };
    let offer = offers(world, &property, &query.stay, today)
        .into_iter()
        .next()
        .filter(|_| effect != Effect::Partial);
    let price = offer.as_ref().map(|offer| currency.whole(offer.dollars));
    let answer = ByNameAnswer {
        available: offer.is_some(),
        price_string: price.map(|price| currency.show(price)),
        price,
        review_score: property.review.map(|(score, _)| score),
        review_count: property.review.map(|(_, count)| count),
        room_type: offer.map(|offer| offer.room),
        image_url: image_url(&property),
        link: link(&property.id(), &query.stay, currency),
        nights: days_between(query.stay.checkin_date, query.stay.checkout_date),
        adults: query.stay.adults,
        children: query.stay.children,
        name: property.name,
    };
    responses::json(StatusCode::OK, &answer)
}

/// Whether the hotel may be in `area`. A hotel with a known city in its name is not in another one.
fn matches_area(property: &Property, area: Option<&str>) -> bool {
    match (&property.city, area.and_then(City::named_in)) {
        (Some(own), Some(asked)) => own.slug == asked.slug,
        _ => true,
    }
}

fn rooms(world: Draw, today: Date, query: &Rooms, effect: Effect) -> Response {
    let (Some(property), Some(currency)) = (
        Property::of_id(world, &query.hotel_booking_id),
        SandboxCurrency::find(&query.stay.currency),
    ) else {
        return responses::message(StatusCode::NOT_FOUND, "No hotel has this hotel_booking_id.");
    };
    let mut rooms: Vec<RoomRow> = match effect {
        Effect::Empty => Vec::new(),
        _ => offers(world, &property, &query.stay, today)
            .iter()
            .map(|offer| room_row(offer, currency))
            .collect(),
    };
    if effect == Effect::Partial {
        rooms.truncate(rooms.len().div_ceil(2));
    }
    let answer = RoomsAnswer {
        hotel_booking_id: query.hotel_booking_id.clone(),
        checkin_date: query.stay.checkin_date,
        checkout_date: query.stay.checkout_date,
        booking_url: link(&query.hotel_booking_id, &query.stay, currency),
        rooms,
    };
    responses::json(StatusCode::OK, &answer)
}

fn resolve(world: Draw, query: &Resolve, effect: Effect) -> Response {
    let found = Property::named(world, &query.hotel_name).filter(|_| effect != Effect::Empty);
    let Some(property) = found else {
        let text = format!("No hotel matched the name {:?}.", query.hotel_name);
        return responses::message(StatusCode::NOT_FOUND, &text);
    };
    let answer = ResolveAnswer {
        hotel_name: query.hotel_name.clone(),
        hotel_booking_id: property.id(),
        matched_name: property.name,
    };
    responses::json(StatusCode::OK, &answer)
}

fn property_row(
    property: &Property,
    offer: &RoomOffer,
    stay: &Stay,
    currency: &SandboxCurrency,
) -> PropertyRow {
    let price = currency.whole(offer.dollars);
    let city = property
        .city
        .as_ref()
        .map_or("the centre", |city| city.name.as_str());
    PropertyRow {
        name: property.name.clone(),
        price_string: currency.show(price),
        price,
        review_score: property.review.map(|(score, _)| score),
        review_count: property.review.map(|(_, count)| count),
        room_type: offer.room,
        location: format!(
            "{:.1} km from {city}",
            property.draw.of("distance").between(0.1, 6.0)
        ),
        image_url: image_url(property),
        link: link(&property.id(), stay, currency),
        nights: days_between(stay.checkin_date, stay.checkout_date),
        adults: stay.adults,
        children: stay.children,
    }
}

fn room_row(offer: &RoomOffer, currency: &SandboxCurrency) -> RoomRow {
    let board = match offer.board {
        Board::RoomOnly => "Room only",
        Board::Breakfast => "Breakfast included",
        Board::BreakfastAndLunch => "Breakfast & lunch included",
        Board::BreakfastAndDinner => "Breakfast & dinner included",
        Board::AllMeals => "All meals included",
        Board::AllInclusive => "All-inclusive",
    };
    let terms = if offer.refundable {
        "Free cancellation"
    } else {
        "Non-refundable"
    };
    let price = currency.whole(offer.dollars);
    RoomRow {
        room_type: offer.room,
        room_economy: format!("{board} • {terms}"),
        guests: offer.guests,
        price_as_number: price,
        price: currency.show(price),
    }
}

/// At a reserved host: there are no images in the sandbox.
fn image_url(property: &Property) -> Option<String> {
    let pictured = !property.draw.of("picture").chance(0.04);
    pictured.then(|| format!("https://images.sandbox.example/{}.jpg", property.slug))
}

fn link(id: &str, stay: &Stay, currency: &SandboxCurrency) -> String {
    let (country, slug) = id.rsplit_once('/').unwrap_or(("xx", id));
    format!(
        "https://stays.sandbox.example/hotel/{}/{}.html?checkin={}&checkout={}&group_adults={}&group_children={}&selected_currency={}",
        slug_of(country),
        slug_of(slug),
        stay.checkin_date,
        stay.checkout_date,
        stay.adults,
        stay.children.unwrap_or(0),
        currency.code,
    )
}
