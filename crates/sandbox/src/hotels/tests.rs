//! Properties of every answer of the hotels engine, on generated stays.

use std::collections::HashSet;

use jiff::civil::{Date, date};
use proptest::prelude::*;
use serde_json::json;

use super::property::{Board, City, Property};
use super::rates::{RoomOffer, admits, market_factor, offers};
use super::{MOST_PROPERTIES, matching};
use crate::draws::Draw;
use crate::wire::hotels::{HotelSearch, Stay};
use crate::world::filters::filter_names;
use crate::world::money::SandboxCurrency;

const TODAY: Date = date(2026, 11, 20);

fn world() -> Draw {
    Draw::seeded(1)
}

fn stay(checkin: Date, nights: i64) -> Stay {
    Stay {
        checkin_date: checkin,
        checkout_date: checkin.saturating_add(jiff::Span::new().days(nights)),
        adults: 2,
        children: None,
        currency: SandboxCurrency::dollar(),
        proxy_country: None,
        free_cancellation: false,
    }
}

fn properties(city: &str) -> Vec<Property> {
    City::of_destination(city)
        .hotel_names(world())
        .iter()
        .map(|name| Property::named(world(), name).expect("a listed hotel"))
        .collect()
}

/// The price of the cheapest offer.
fn total(property: &Property, stay: &Stay) -> f64 {
    offers(world(), property, stay, TODAY)
        .first()
        .expect("not sold out")
        .dollars
}

/// A hotel with all kinds of terms that sells the dates of these tests.
fn bookable_property() -> Property {
    properties("Lisbon")
        .into_iter()
        .find(|property| {
            !property.has("adults_only")
                && (1..=28).all(|day| {
                    !offers(world(), property, &stay(date(2027, 3, day), 1), TODAY).is_empty()
                })
                && offers(world(), property, &stay(date(2027, 3, 1), 1), TODAY)
                    .iter()
                    .any(|offer| offer.refundable)
                && !offers(world(), property, &stay(date(2027, 3, 1), 1), TODAY)[0].refundable
        })
        .expect("one of the hotels of Lisbon")
}

/// An independent implementation of each filter.
fn satisfies(filter: &str, property: &Property, offer: &RoomOffer) -> bool {
    let boards: &[Board] = match filter {
        "free_cancellation" => return offer.refundable,
        "stars_3" | "stars_4" | "stars_5" => return filter.ends_with(&property.stars.to_string()),
        "review_score_7" | "review_score_8" | "review_score_9" => {
            let least = f64::from(filter.as_bytes()[13] - b'0');
            return property.review.is_some_and(|(score, _)| score >= least);
        }
        "breakfast_included" => &[
            Board::Breakfast,
            Board::BreakfastAndLunch,
            Board::BreakfastAndDinner,
            Board::AllMeals,
            Board::AllInclusive,
        ],
        "breakfast_and_lunch" => &[
            Board::BreakfastAndLunch,
            Board::AllMeals,
            Board::AllInclusive,
        ],
        "breakfast_and_dinner" => &[
            Board::BreakfastAndDinner,
            Board::AllMeals,
            Board::AllInclusive,
        ],
        "all_meals_included" => &[Board::AllMeals, Board::AllInclusive],
        "all_inclusive" => &[Board::AllInclusive],
        amenity => return property.amenities.contains(&amenity),
    };
    boards.contains(&offer.board)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_property_satisfies_filters_and_budget(
        city in prop::sample::select(vec!["London", "Lisbon", "Bangkok", "Bath"]),
        days in 1_i64..400,
        nights in 1_i64..8,
        filters in prop::sample::subsequence(filter_names(), 0..4),
        budget in 40_i64..600,
        currency in prop::sample::select(vec!["USD", "ILS", "JPY"]),
    ) {
        let checkin = TODAY.saturating_add(jiff::Span::new().days(days));
        let query = HotelSearch::read(&json!({
            "destination": city, "checkin_date": checkin,
            "checkout_date": checkin.saturating_add(jiff::Span::new().days(nights)),
            "filters": filters, "budget_per_night": budget, "currency": currency,
        })).expect("a good body");
        let currency = SandboxCurrency::find(currency).expect("known");
        let found = matching(world(), TODAY, &query);
        prop_assert!(found.len() <= MOST_PROPERTIES);
        let starred = filters.iter().filter(|filter| filter.starts_with("stars")).count();
        for (property, offer) in &found {
            for filter in filters.iter().filter(|filter| starred < 2 || !filter.starts_with("stars")) {
                prop_assert!(satisfies(filter, property, offer), "{filter}: {property:?} {offer:?}");
            }
            prop_assert!(currency.whole(offer.dollars) <= budget * nights);
        }
    }
}

#[test]
fn every_filter_selects_some_hotels_but_not_all() {
    let stay = stay(date(2027, 3, 3), 2);
    let all: Vec<(Property, RoomOffer)> = ["London", "Lisbon", "Bangkok", "Rome"]
        .into_iter()
        .flat_map(properties)
        .flat_map(|property| {
            let offers = offers(world(), &property, &stay, TODAY);
            offers
                .into_iter()
                .map(move |offer| (property.clone(), offer))
        })
        .collect();
    for filter in filter_names() {
        let kept = all
            .iter()
            .filter(|(property, offer)| admits(&[filter.to_owned()], property, offer))
            .count();
        assert!(
            0 < kept && kept < all.len(),
            "{filter}: {kept} of {}",
            all.len()
        );
    }
    let stars = ["stars_3".to_owned(), "stars_5".to_owned()];
    assert!(
        all.iter()
            .all(|(property, offer)| admits(&stars, property, offer)
                == matches!(property.stars, 3 | 5)),
        "stars are alternatives"
    );
}

#[test]
fn a_stay_costs_about_the_sum_of_its_nights() {
    let property = bookable_property();
    let nights: f64 = (1..=3)
        .map(|day| total(&property, &stay(date(2027, 3, day), 1)))
        .sum();
    let together = total(&property, &stay(date(2027, 3, 1), 3));
    assert!(
        (together / nights - 1.0).abs() < 1e-9,
        "{together} against {nights}"
    );
}

#[test]
fn party_terms_and_room_affect_the_price() {
    let property = bookable_property();
    let two = stay(date(2027, 3, 1), 2);
    let price = |change: fn(&mut Stay)| {
        let mut stay = two.clone();
        change(&mut stay);
        total(&property, &stay)
    };
    assert!(price(|stay| stay.adults = 1) < price(|_| {}));
    assert!(price(|stay| stay.adults = 5) > 1.5 * price(|_| {}));
    assert!(price(|stay| stay.children = Some(2)) > price(|_| {}));
    assert!(price(|stay| stay.free_cancellation = true) > price(|_| {}));
    let mut refundable = two.clone();
    refundable.free_cancellation = true;
    assert!(
        offers(world(), &property, &refundable, TODAY)
            .iter()
            .all(|offer| offer.refundable)
    );
    let all = offers(world(), &property, &two, TODAY);
    assert!(all.is_sorted_by(|a, b| a.dollars <= b.dollars));
    assert!(
        all.iter()
            .map(|offer| offer.room)
            .collect::<HashSet<_>>()
            .len()
            > 1
    );
}

#[test]
fn hotels_for_adults_accept_no_children() {
    let property = ["London", "Lisbon", "Rome", "Paris"]
        .into_iter()
        .flat_map(properties)
        .find(|property| property.has("adults_only"))
        .expect("one in four cities");
    let on = (1..=28).map(|day| date(2027, 3, day));
    let mut open = on
        .map(|day| stay(day, 1))
        .filter(|stay| !offers(world(), &property, stay, TODAY).is_empty());
    let mut family = open.next().expect("a day that is not sold out");
    family.children = Some(1);
    assert!(offers(world(), &property, &family, TODAY).is_empty());
}

#[test]
fn nights_beyond_the_horizon_are_not_sold() {
    let property = bookable_property();
    for (checkin, nights) in [
        (date(2026, 11, 19), 1),
        (date(2028, 6, 1), 1),
        (date(2027, 3, 1), 91),
    ] {
        assert!(
            offers(world(), &property, &stay(checkin, nights), TODAY).is_empty(),
            "{checkin} {nights}"
        );
    }
}

#[test]
fn markets_differ_by_a_few_percent_and_rarely_by_a_gap() {
    let factors: Vec<f64> = ["London", "Lisbon", "Rome", "Paris", "Dubai"]
        .into_iter()
        .flat_map(properties)
        .flat_map(|property| {
            ["us", "de", "jp", "in", "gb"]
                .map(|market| market_factor(world(), &property, Some(market)))
        })
        .collect();
    let gaps = factors
        .iter()
        .filter(|factor| (*factor - 1.0).abs() > 0.06)
        .count();
    assert!(
        (5..=18).contains(&(gaps * 100 / factors.len())),
        "{gaps} of {}",
        factors.len()
    );
    assert!(factors.iter().all(|factor| (*factor - 1.0).abs() < 0.23));
    let property = bookable_property();
    let seen_from = |market: Option<&str>| {
        let mut stay = stay(date(2027, 3, 1), 2);
        stay.proxy_country = market.map(str::to_owned);
        total(&property, &stay)
    };
    assert_eq!(
        seen_from(Some("US")).to_bits(),
        seen_from(Some("us")).to_bits()
    );
    assert_ne!(
        seen_from(Some("de")).to_bits(),
        seen_from(Some("us")).to_bits()
    );
    let factor = market_factor(world(), &property, Some("de"));
    assert!((seen_from(Some("de")) / seen_from(None) / factor - 1.0).abs() < 1e-9);
}

#[test]
fn rates_are_realistic_and_change_with_the_day() {
    let mut properties = properties("London");
    properties.retain(|property| property.stars == 4);
    let nights: Vec<f64> = properties
        .iter()
        .filter_map(|property| {
            offers(world(), property, &stay(date(2027, 3, 2), 1), TODAY)
                .first()
                .map(|offer| offer.dollars)
        })
        .collect();
    assert!(
        nights.len() > 5 && nights.iter().all(|night| (90.0..600.0).contains(night)),
        "{nights:?}"
    );
    let property = bookable_property();
    let seen: HashSet<u64> = (0..40)
        .map(|days| TODAY.saturating_add(jiff::Span::new().days(days)))
        .filter_map(|today| {
            offers(world(), &property, &stay(date(2027, 3, 2), 1), today)
                .first()
                .map(|offer| offer.dollars.to_bits())
        })
        .collect();
    assert!(seen.len() > 20, "{}", seen.len());
}
