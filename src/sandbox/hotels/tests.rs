//! The rules that every answer of the hotels engine keeps, tried on generated stays.

use std::collections::HashSet;

use jiff::civil::{Date, date};
use proptest::prelude::*;
use serde_json::json;

use super::property::{Board, City, Property};
use super::rates::{Offer, admits, market_factor, offers};
use super::{MOST_PROPERTIES, matching};
use crate::sandbox::draws::Draw;
use crate::sandbox::wire::hotels::{FILTERS, HotelSearch, Stay};
use crate::sandbox::world::money::Currency;

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
        currency: "USD".to_owned(),
        proxy_country: None,
        free_cancellation: false,
    }
}

fn houses(city: &str) -> Vec<Property> {
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
fn open_house() -> Property {
    houses("Lisbon")
        .into_iter()
        .find(|house| {
            !house.has("adults_only")
                && (1..=28).all(|day| {
                    !offers(world(), house, &stay(date(2027, 3, day), 1), TODAY).is_empty()
                })
                && offers(world(), house, &stay(date(2027, 3, 1), 1), TODAY)
                    .iter()
                    .any(|offer| offer.refundable)
                && !offers(world(), house, &stay(date(2027, 3, 1), 1), TODAY)[0].refundable
        })
        .expect("one of the hotels of Lisbon")
}

/// What a filter asks of an offer, written down a second time and one by one.
fn means(filter: &str, house: &Property, offer: &Offer) -> bool {
    let boards: &[Board] = match filter {
        "free_cancellation" => return offer.refundable,
        "stars_3" | "stars_4" | "stars_5" => return filter.ends_with(&house.stars.to_string()),
        "review_score_7" | "review_score_8" | "review_score_9" => {
            let least = f64::from(filter.as_bytes()[13] - b'0');
            return house.review.is_some_and(|(score, _)| score >= least);
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
        amenity => return house.amenities.contains(&amenity),
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
        filters in prop::sample::subsequence(FILTERS.to_vec(), 0..4),
        budget in 40_i64..600,
        currency in prop::sample::select(vec!["USD", "ILS", "JPY"]),
    ) {
        let checkin = TODAY.saturating_add(jiff::Span::new().days(days));
        let query = HotelSearch::read(&json!({
            "destination": city, "checkin_date": checkin,
            "checkout_date": checkin.saturating_add(jiff::Span::new().days(nights)),
            "filters": filters, "budget_per_night": budget, "currency": currency,
        })).expect("a good body");
        let currency = Currency::find(currency).expect("known");
        let found = matching(world(), TODAY, &query, currency);
        prop_assert!(found.len() <= MOST_PROPERTIES);
        let starred = filters.iter().filter(|filter| filter.starts_with("stars")).count();
        for (house, offer) in &found {
            for filter in filters.iter().filter(|filter| starred < 2 || !filter.starts_with("stars")) {
                prop_assert!(means(filter, house, offer), "{filter}: {house:?} {offer:?}");
            }
            prop_assert!(currency.whole(offer.dollars) <= budget * nights);
        }
    }
}

#[test]
fn every_filter_keeps_some_houses_and_drops_others() {
    let stay = stay(date(2027, 3, 3), 2);
    let all: Vec<(Property, Offer)> = ["London", "Lisbon", "Bangkok", "Rome"]
        .into_iter()
        .flat_map(houses)
        .flat_map(|house| {
            let offers = offers(world(), &house, &stay, TODAY);
            offers.into_iter().map(move |offer| (house.clone(), offer))
        })
        .collect();
    for filter in FILTERS {
        let kept = all
            .iter()
            .filter(|(house, offer)| admits(&[filter.to_owned()], house, offer))
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
            .all(|(house, offer)| admits(&stars, house, offer) == matches!(house.stars, 3 | 5)),
        "stars are alternatives"
    );
}

#[test]
fn a_stay_costs_about_the_sum_of_its_nights() {
    let house = open_house();
    let nights: f64 = (1..=3)
        .map(|day| total(&house, &stay(date(2027, 3, day), 1)))
        .sum();
    let together = total(&house, &stay(date(2027, 3, 1), 3));
    assert!(
        (together / nights - 1.0).abs() < 1e-9,
        "{together} against {nights}"
    );
}

#[test]
fn parties_terms_and_rooms_have_their_price() {
    let house = open_house();
    let two = stay(date(2027, 3, 1), 2);
    let price = |change: fn(&mut Stay)| {
        let mut stay = two.clone();
        change(&mut stay);
        total(&house, &stay)
    };
    assert!(price(|stay| stay.adults = 1) < price(|_| {}));
    assert!(price(|stay| stay.adults = 5) > 1.5 * price(|_| {}));
    assert!(price(|stay| stay.children = Some(2)) > price(|_| {}));
    assert!(price(|stay| stay.free_cancellation = true) > price(|_| {}));
    let mut refundable = two.clone();
    refundable.free_cancellation = true;
    assert!(
        offers(world(), &house, &refundable, TODAY)
            .iter()
            .all(|offer| offer.refundable)
    );
    let all = offers(world(), &house, &two, TODAY);
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
fn houses_for_adults_take_no_children() {
    let house = ["London", "Lisbon", "Rome", "Paris"]
        .into_iter()
        .flat_map(houses)
        .find(|house| house.has("adults_only"))
        .expect("one in four cities");
    let on = (1..=28).map(|day| date(2027, 3, day));
    let mut open = on
        .map(|day| stay(day, 1))
        .filter(|stay| !offers(world(), &house, stay, TODAY).is_empty());
    let mut family = open.next().expect("a day that is not sold out");
    family.children = Some(1);
    assert!(offers(world(), &house, &family, TODAY).is_empty());
}

#[test]
fn nights_beyond_the_horizon_are_not_sold() {
    let house = open_house();
    for (checkin, nights) in [
        (date(2026, 11, 19), 1),
        (date(2028, 6, 1), 1),
        (date(2027, 3, 1), 91),
    ] {
        assert!(
            offers(world(), &house, &stay(checkin, nights), TODAY).is_empty(),
            "{checkin} {nights}"
        );
    }
}

#[test]
fn markets_differ_by_a_few_percent_and_sometimes_by_a_real_gap() {
    let factors: Vec<f64> = ["London", "Lisbon", "Rome", "Paris", "Dubai"]
        .into_iter()
        .flat_map(houses)
        .flat_map(|house| {
            ["us", "de", "jp", "in", "gb"]
                .map(|market| market_factor(world(), &house, Some(market)))
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
    let house = open_house();
    let seen_from = |market: Option<&str>| {
        let mut stay = stay(date(2027, 3, 1), 2);
        stay.proxy_country = market.map(str::to_owned);
        total(&house, &stay)
    };
    assert_eq!(
        seen_from(Some("US")).to_bits(),
        seen_from(Some("us")).to_bits()
    );
    assert_ne!(
        seen_from(Some("de")).to_bits(),
        seen_from(Some("us")).to_bits()
    );
    let factor = market_factor(world(), &house, Some("de"));
    assert!((seen_from(Some("de")) / seen_from(None) / factor - 1.0).abs() < 1e-9);
}

#[test]
fn rates_are_of_the_size_that_travellers_know_and_move_with_the_day() {
    let mut houses = houses("London");
    houses.retain(|house| house.stars == 4);
    let nights: Vec<f64> = houses
        .iter()
        .filter_map(|house| {
            offers(world(), house, &stay(date(2027, 3, 2), 1), TODAY)
                .first()
                .map(|offer| offer.dollars)
        })
        .collect();
    assert!(
        nights.len() > 5 && nights.iter().all(|night| (90.0..600.0).contains(night)),
        "{nights:?}"
    );
    let house = open_house();
    let seen: HashSet<u64> = (0..40)
        .map(|days| TODAY.saturating_add(jiff::Span::new().days(days)))
        .filter_map(|today| {
            offers(world(), &house, &stay(date(2027, 3, 2), 1), today)
                .first()
                .map(|offer| offer.dollars.to_bits())
        })
        .collect();
    assert!(seen.len() > 20, "{}", seen.len());
}
