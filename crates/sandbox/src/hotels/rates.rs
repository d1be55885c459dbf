//! Prices of stays, by night, board, terms and market, in dollars.

use jiff::civil::Date;

use super::property::{Board, Property};
use crate::draws::{Draw, day_number, days_between, real};
use crate::wire::hotels::Stay;
use crate::world::seasons;

/// How many days ahead hotels sell.
const HORIZON_DAYS: i64 = 500;
/// The longest stay that can be booked.
const LONGEST_STAY_NIGHTS: i64 = 90;

/// A kind of room: name, guests, price relative to the simplest one.
type RoomKind = (&'static str, i64, f64);

const ROOM_KINDS: [RoomKind; 7] = [
    ("Standard Double Room", 2, 1.0),
    ("Standard Twin Room", 2, 1.03),
    ("Superior Double Room", 2, 1.18),
    ("Deluxe King Room", 2, 1.38),
    ("Family Room", 4, 1.62),
    ("Junior Suite", 3, 1.88),
    ("Suite with Terrace", 4, 2.55),
];

/// A room with board and terms for the whole stay.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RoomOffer {
    pub(crate) room: &'static str,
    pub(crate) board: Board,
    /// May be cancelled free of charge.
    pub(crate) refundable: bool,
    /// Guests that one such room takes.
    pub(crate) guests: i64,
    /// For all nights and the whole party.
    pub(crate) dollars: f64,
}

/// All offers of a hotel for a stay in its market today, cheapest first; none if the hotel is sold
/// out, the dates are not on sale, or children want to stay in a hotel for adults.
pub(crate) fn offers(world: Draw, property: &Property, stay: &Stay, today: Date) -> Vec<RoomOffer> {
    let children = stay.children.unwrap_or(0);
    let on_sale = (0..=HORIZON_DAYS).contains(&days_between(today, stay.checkin_date))
        && (1..=LONGEST_STAY_NIGHTS).contains(&stay.nights());
    if !on_sale
        || children > 0 && property.has("adults_only")
        || sold_out(property, stay.checkin_date)
    {
        return Vec::new();
    }
    let double = stay
        .checkin_date
        .series(jiff::Span::new().days(1))
        .take_while(|night| *night < stay.checkout_date)
        .map(|night| night_dollars(world, property, night, today))
        .sum::<f64>()
        * market_factor(world, property, stay.proxy_country.as_deref());
    let terms: Vec<(bool, f64)> = terms(property, stay.free_cancellation);
    let mut offers = Vec::new();
    for (room, guests, factor) in rooms(property) {
        let needed = (stay.adults + children + guests - 1) / guests;
        let alone = if stay.adults + children == 1 {
            0.93
        } else {
            1.0
        };
        for board in &property.boards {
            for (refundable, surcharge) in &terms {
                let (_, for_board, _) = board.terms();
                let dollars = double * factor * alone * surcharge * for_board;
                offers.push(RoomOffer {
                    room,
                    board: *board,
                    refundable: *refundable,
                    guests,
                    dollars: dollars * real(needed),
                });
            }
        }
    }
    offers.sort_by(|a, b| a.dollars.total_cmp(&b.dollars));
    offers
}

/// Whether an offer satisfies all of `filters`. Several star filters are alternatives.
pub(crate) fn admits(filters: &[String], property: &Property, offer: &RoomOffer) -> bool {
    let scored = |least: f64| property.review.is_some_and(|(score, _)| score >= least);
    let stars = |filter: &str| filter.strip_prefix("stars_")?.parse::<i64>().ok();
    let wanted: Vec<i64> = filters.iter().filter_map(|filter| stars(filter)).collect();
    let all_meals = matches!(offer.board, Board::AllMeals | Board::AllInclusive);
    let each = |filter: &String| match filter.as_str() {
        "free_cancellation" => offer.refundable,
        "breakfast_included" => offer.board != Board::RoomOnly,
        "breakfast_and_lunch" => offer.board == Board::BreakfastAndLunch || all_meals,
        "breakfast_and_dinner" => offer.board == Board::BreakfastAndDinner || all_meals,
        "all_meals_included" => all_meals,
        "all_inclusive" => offer.board == Board::AllInclusive,
        "review_score_7" => scored(7.0),
        "review_score_8" => scored(8.0),
        "review_score_9" => scored(9.0),
        amenity => stars(amenity).is_some() || property.has(amenity),
    };
    (wanted.is_empty() || wanted.contains(&property.stars)) && filters.iter().all(each)
}

/// One night in the simplest double room.
fn night_dollars(world: Draw, property: &Property, night: Date, today: Date) -> f64 {
    let city = property.city.as_ref();
    let city = city.map_or(&property.slug, |city| &city.slug);
    // Now and then an event fills a city for three nights.
    let block = day_number(night).div_euclid(3);
    let is_event = world.of("event").of(city).nth(block).chance(0.05);
    let event = if is_event { 1.55 } else { 1.0 };
    property.night_dollars
        * seasons::season(night, 40.0)
        * seasons::holiday(night).sqrt()
        * seasons::night_weekday(night, property.leisure)
        * seasons::stay_lead(days_between(today, night))
        * event
        * (1.0 + 0.06 * property.draw.of("drift").wave(today, 17))
        * (1.0 + 0.04 * property.draw.of("revision").day(night).wave(today, 7))
        * property.draw.of("night").day(night).between(0.96, 1.04)
}

/// A market's price factor: a few percent from 1, and for about one hotel in eight a gap of 10 to
/// 20 %. Without a market the factor is 1.
pub(crate) fn market_factor(world: Draw, property: &Property, market: Option<&str>) -> f64 {
    let Some(market) = market else { return 1.0 };
    let market = market.to_ascii_lowercase();
    let general = world.of("market").of(&market).between(-0.025, 0.025);
    let here = property.draw.of("market").of(&market);
    let own = here.of("own").between(-0.02, 0.02);
    let size = here.of("size").between(0.10, 0.18);
    let gap = if !here.of("gap").chance(0.12) {
        0.0
    } else if here.of("dearer").chance(0.5) {
        size
    } else {
        -size
    };
    1.0 + general + own + gap
}

fn sold_out(property: &Property, checkin: Date) -> bool {
    property.draw.of("sold out").day(checkin).chance(0.03)
}

/// Cancellable or not, with the price factor. Every hotel sells at least one of the two.
fn terms(property: &Property, only_refundable: bool) -> Vec<(bool, f64)> {
    let refundable = property.draw.of("refundable").chance(0.82);
    let fixed = !refundable || property.draw.of("fixed").chance(0.85);
    [
        (refundable, (true, 1.11)),
        (fixed && !only_refundable, (false, 1.0)),
    ]
    .into_iter()
    .filter_map(|(sold, terms)| sold.then_some(terms))
    .collect()
}

/// The simplest room and some others.
fn rooms(property: &Property) -> impl Iterator<Item = RoomKind> {
    let share = property.draw.of("rooms").between(0.35, 0.7);
    let draw = property.draw.of("room");
    ROOM_KINDS
        .into_iter()
        .enumerate()
        .filter(move |(index, (name, _, _))| *index == 0 || draw.of(name).chance(share))
        .map(|(_, kind)| kind)
}
