//! The hotels engine: answers a valid body.

mod property;
mod rates;
#[cfg(test)]
mod tests;

use axum::http::StatusCode;
use axum::response::Response;
use jiff::civil::Date;
use serde_json::json;

use self::property::{City, Property, slug_of};
use self::rates::{RoomOffer, admits, offers};
use super::draws::{Draw, real};
use super::magic_values::Effect;
use super::responses::{json, message};
use super::server::{EngineQuery, Moment};
use super::wire::hotels::{ByName, HotelRow, HotelSearch, Resolve, RoomRow, Rooms, Stay};

/// Most properties in one answer (gateway.md, rule 14).
const MOST_PROPERTIES: usize = 50;

impl EngineQuery for HotelSearch {
    fn median_seconds(&self) -> f64 {
        9.5
    }

    fn answer(&self, moment: &Moment, effect: Effect, _: Draw) -> Response {
        let found = match effect {
            Effect::Empty => Vec::new(),
            _ => matching(moment.world, moment.at.date(), self),
        };
        let rows = found.iter().map(|(property, offer)| {
            let city = property.city.as_ref();
            let city = city.map_or("the centre", |city| city.name.as_str());
            let kilometres = property.draw.of("distance").between(0.1, 6.0);
            HotelRow {
                location: Some(format!("{kilometres:.1} km from {city}")),
                ..hotel_row(property, Some(offer), &self.stay)
            }
        });
        let mut properties: Vec<_> = rows.collect();
        halve_if_partial(&mut properties, effect);
        if properties.is_empty() {
            let text = format!(
                "No properties matched {:?} for these dates and filters.",
                self.destination
            );
            return message(StatusCode::NOT_FOUND, &text);
        }
        let answer = json!({
            "destination": self.destination,
            "checkin_date": self.stay.checkin_date,
            "checkout_date": self.stay.checkout_date,
            "applied_filters": self.filters,
            "budget_per_night": self.budget_per_night,
            "properties": properties,
        });
        json(StatusCode::OK, &answer)
    }
}

impl EngineQuery for ByName {
    fn median_seconds(&self) -> f64 {
        9.0
    }

    fn answer(&self, moment: &Moment, effect: Effect, _: Draw) -> Response {
        let found = Property::named(moment.world, &self.hotel_name);
        let is_found = |property: &Property| matches_area(property, self.area.as_deref());
        let Some(property) = found.filter(|found| effect != Effect::Empty && is_found(found))
        else {
            return no_hotel(&self.hotel_name);
        };
        let offers = offers(moment.world, &property, &self.stay, moment.at.date());
        let offer = offers.first().filter(|_| effect != Effect::Partial);
        let row = HotelRow {
            available: Some(offer.is_some()),
            ..hotel_row(&property, offer, &self.stay)
        };
        json(StatusCode::OK, &row)
    }
}

impl EngineQuery for Rooms {
    fn median_seconds(&self) -> f64 {
        8.5
    }

    fn answer(&self, moment: &Moment, effect: Effect, _: Draw) -> Response {
        let Some(property) = Property::of_id(moment.world, &self.hotel_booking_id) else {
            return message(StatusCode::NOT_FOUND, "No hotel has this hotel_booking_id.");
        };
        let offers = match effect {
            Effect::Empty => Vec::new(),
            _ => offers(moment.world, &property, &self.stay, moment.at.date()),
        };
        let rows = offers.iter().map(|offer| room_row(offer, &self.stay));
        let mut rooms: Vec<_> = rows.collect();
        halve_if_partial(&mut rooms, effect);
        let answer = json!({
            "hotel_booking_id": self.hotel_booking_id,
            "checkin_date": self.stay.checkin_date,
            "checkout_date": self.stay.checkout_date,
            "booking_url": link(&self.hotel_booking_id, &self.stay),
            "rooms": rooms,
        });
        json(StatusCode::OK, &answer)
    }
}

impl EngineQuery for Resolve {
    fn median_seconds(&self) -> f64 {
        8.0
    }

    fn answer(&self, moment: &Moment, effect: Effect, _: Draw) -> Response {
        let found = Property::named(moment.world, &self.hotel_name);
        let Some(property) = found.filter(|_| effect != Effect::Empty) else {
            return no_hotel(&self.hotel_name);
        };
        let answer = json!({
            "hotel_name": self.hotel_name,
            "hotel_booking_id": property.id(),
            "matched_name": property.name,
        });
        json(StatusCode::OK, &answer)
    }
}

fn no_hotel(name: &str) -> Response {
    let text = format!("No hotel matched the name {name:?}.");
    message(StatusCode::NOT_FOUND, &text)
}

fn halve_if_partial<Row>(rows: &mut Vec<Row>, effect: Effect) {
    if effect == Effect::Partial {
        rows.truncate(rows.len().div_ceil(2));
    }
}

/// The hotels of the destination with an offer that satisfies the query, each with the cheapest.
fn matching(world: Draw, today: Date, query: &HotelSearch) -> Vec<(Property, RoomOffer)> {
    let nights = real(query.stay.nights());
    let in_budget = |offer: &RoomOffer| {
        let total = real(query.stay.currency.whole(offer.dollars));
        query
            .budget_per_night
            .is_none_or(|most| total <= most * nights)
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

/// Whether the hotel may be in `area`. A hotel with a known city in its name is not in another one.
fn matches_area(property: &Property, area: Option<&str>) -> bool {
    match (&property.city, area.and_then(City::named_in)) {
        (Some(own), Some(asked)) => own.slug == asked.slug,
        _ => true,
    }
}

fn hotel_row(property: &Property, offer: Option<&RoomOffer>, stay: &Stay) -> HotelRow {
    let price = offer.map(|offer| stay.currency.whole(offer.dollars));
    let (review_score, review_count) = property.review.unzip();
    let pictured = !property.draw.of("picture").chance(0.04);
    HotelRow {
        name: property.name.clone(),
        available: None,
        price_string: price.map(|price| stay.currency.show(price)),
        price,
        review_score,
        review_count,
        room_type: offer.map(|offer| offer.room),
        location: None,
        // At a reserved host: there are no images in the sandbox.
        image_url: pictured
            .then(|| format!("https://images.sandbox.example/{}.jpg", property.slug)),
        link: link(&property.id(), stay),
        nights: stay.nights(),
        adults: stay.adults,
        children: stay.children,
    }
}

fn room_row(offer: &RoomOffer, stay: &Stay) -> RoomRow {
    let (board, ..) = offer.board.terms();
    let terms = if offer.refundable {
        "Free cancellation"
    } else {
        "Non-refundable"
    };
    let price = stay.currency.whole(offer.dollars);
    RoomRow {
        room_type: offer.room,
        room_economy: format!("{board} • {terms}"),
        guests: offer.guests,
        price_as_number: price,
        price: stay.currency.show(price),
    }
}

fn link(id: &str, stay: &Stay) -> String {
    let (country, slug) = id.rsplit_once('/').unwrap_or(("xx", id));
    format!(
        "https://stays.sandbox.example/hotel/{}/{}.html?checkin={}&checkout={}&group_adults={}&group_children={}&selected_currency={}",
        slug_of(country),
        slug_of(slug),
        stay.checkin_date,
        stay.checkout_date,
        stay.adults,
        stay.children.unwrap_or(0),
        stay.currency.code,
    )
}
