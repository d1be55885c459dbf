//! The hotels engine: a checked body in, an answer out. Keys and quota are not its business.

mod property;
mod rates;
#[cfg(test)]
mod tests;

use axum::http::StatusCode;
use axum::response::Response;
use jiff::civil::Date;
use serde_json::Value;

use self::property::{Board, City, Property, slug_of};
use self::rates::{Offer, admits, offers};
use super::answers;
use super::draws::{Draw, days_between};
use super::faults::Effect;
use super::wire::hotels::{
    ByName, ByNameAnswer, HotelSearch, PropertyRow, Resolve, ResolveAnswer, RoomRow, Rooms,
    RoomsAnswer, SearchAnswer, Stay, Unreadable,
};
use super::world::money::Currency;

/// Most properties in one answer (specification 8).
const MOST_PROPERTIES: usize = 50;

/// A body that the engine takes.
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

    /// Median seconds until the answer (contract 3).
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
            Effect::Failed => return answers::failed(),
            Effect::Garbage => return answers::garbage(),
            Effect::Degraded => return answers::search_incomplete("blocked_page"),
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
    let mut properties = match (Currency::find(&query.stay.currency), effect) {
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
        return answers::message(StatusCode::NOT_FOUND, &text);
    }
    let answer = SearchAnswer {
        destination: query.destination.clone(),
        checkin_date: query.stay.checkin_date,
        checkout_date: query.stay.checkout_date,
        applied_filters: query.filters.clone(),
        budget_per_night: query.budget_per_night,
        properties,
    };
    answers::json(StatusCode::OK, &answer)
}

/// The hotels of the destination that satisfy the query, each with its cheapest offer that does.
fn matching(
    world: Draw,
    today: Date,
    query: &HotelSearch,
    currency: &Currency,
) -> Vec<(Property, Offer)> {
    let nights = days_between(query.stay.checkin_date, query.stay.checkout_date);
    let in_budget = |offer: &Offer| {
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
    let found = Property::named(world, &query.hotel_name)
        .filter(|property| effect != Effect::Empty && stands_in(property, query.area.as_deref()));
    let (Some(property), Some(currency)) = (found, Currency::find(&query.stay.currency)) else {
        let text = format!("No hotel matched the name {:?}.", query.hotel_name);
        return answers::message(StatusCode::NOT_FOUND, &text);
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
    answers::json(StatusCode::OK, &answer)
}

/// A hotel whose name tells its city is not found in another city that the sandbox knows.
fn stands_in(property: &Property, area: Option<&str>) -> bool {
    match (&property.city, area.and_then(City::named_in)) {
        (Some(own), Some(asked)) => own.slug == asked.slug,
        _ => true,
    }
}

fn rooms(world: Draw, today: Date, query: &Rooms, effect: Effect) -> Response {
    let (Some(property), Some(currency)) = (
        Property::of_id(world, &query.hotel_booking_id),
        Currency::find(&query.stay.currency),
    ) else {
        return answers::message(StatusCode::NOT_FOUND, "No hotel has this hotel_booking_id.");
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
    answers::json(StatusCode::OK, &answer)
}

fn resolve(world: Draw, query: &Resolve, effect: Effect) -> Response {
    let found = Property::named(world, &query.hotel_name).filter(|_| effect != Effect::Empty);
    let Some(property) = found else {
        let text = format!("No hotel matched the name {:?}.", query.hotel_name);
        return answers::message(StatusCode::NOT_FOUND, &text);
    };
    let answer = ResolveAnswer {
        hotel_name: query.hotel_name.clone(),
        hotel_booking_id: property.id(),
        matched_name: property.name,
    };
    answers::json(StatusCode::OK, &answer)
}

fn property_row(
    property: &Property,
    offer: &Offer,
    stay: &Stay,
    currency: &Currency,
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

fn room_row(offer: &Offer, currency: &Currency) -> RoomRow {
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

/// Reserved hosts: nothing can be booked or seen in the sandbox.
fn image_url(property: &Property) -> Option<String> {
    let pictured = !property.draw.of("picture").chance(0.04);
    pictured.then(|| format!("https://images.sandbox.example/{}.jpg", property.slug))
}

fn link(id: &str, stay: &Stay, currency: &Currency) -> String {
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
