//! The hotels of a city and their properties. Everything follows from the hotel's slug, so that its
//! name, its id and its row in a search mean the same hotel.

use std::fmt::Write as _;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::draws::{Draw, real};
use crate::world::airports::AIRPORTS;
use crate::world::filters::{FILTERS, SandboxFilter};
use crate::world::table;

/// Name parts of the hotels of a city.
const NAMES: &str = "Grand Royal Park Garden Harbour Riverside Central Station Plaza Metropole \
    Bellevue Astoria Continental Meridian Victoria Atlas Panorama Aurora Corner Mercer Lantern \
    Linden";

/// The price level of a city relative to the average; the others are between 0.72 and 1.1.
#[derive(Debug, Deserialize)]
struct CityLevel {
    slug: String,
    level: f64,
}

static CITY_LEVELS: LazyLock<Vec<CityLevel>> =
    LazyLock::new(|| table(include_str!("../world/city_levels.csv")));

/// A place with hotels.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct City {
    pub(crate) name: String,
    pub(crate) slug: String,
    /// ISO 3166, lower-case; `xx` for a place that the sandbox does not know.
    pub(crate) country: &'static str,
}

impl City {
    /// The known city whose name occurs in the text as whole words; the longest name wins.
    pub(crate) fn named_in(text: &str) -> Option<Self> {
        let padded = format!("-{}-", slug_of(text));
        AIRPORTS
            .iter()
            .map(|airport| Self {
                name: airport.city.clone(),
                slug: slug_of(&airport.city),
                country: &airport.country,
            })
            .filter(|city| padded.contains(&format!("-{}-", city.slug)))
            .max_by_key(|city| city.slug.len())
    }

    /// The city of a destination: a known one, or an invented one of that name.
    pub(crate) fn of_destination(text: &str) -> Self {
        Self::named_in(text).unwrap_or_else(|| {
            let name = text.split(',').next().unwrap_or(text).trim().to_owned();
            Self {
                slug: slug_of(&name),
                name,
                country: "xx",
            }
        })
    }

    fn level(&self, world: Draw) -> f64 {
        let known = CITY_LEVELS.iter().find(|city| city.slug == self.slug);
        known.map_or_else(
            || world.of("city level").of(&self.slug).between(0.72, 1.1),
            |city| city.level,
        )
    }

    /// Names of the 40 to 80 hotels of this city, each once, the most popular first.
    pub(crate) fn hotel_names(&self, world: Draw) -> Vec<String> {
        let draw = world.of("city hotels").of(&self.slug);
        let (count, city) = (40 + draw.of("count").below(41), &self.name);
        let forms: [fn(&str, &str) -> String; 5] = [
            |part, city| format!("The {part} {city}"),
            |part, city| format!("Hotel {part} {city}"),
            |part, city| format!("{part} Inn {city}"),
            |part, city| format!("{part} Suites {city}"),
            |part, city| format!("{part} Boutique Hotel {city}"),
        ];
        let names = NAMES
            .split(' ')
            .flat_map(|part| forms.map(|form| (part, form)));
        let names: Vec<_> = names.collect();
        let start = draw.of("start").below(110);
        // 37 is coprime to the number of names, 110, so no name occurs twice.
        let chosen = (0..count).filter_map(|number| {
            let index = usize::try_from((start + number * 37) % 110).ok()?;
            let (part, form) = names.get(index)?;
            Some(form(part, city))
        });
        chosen.collect()
    }
}

/// The meals included with a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Board {
    RoomOnly,
    Breakfast,
    BreakfastAndLunch,
    BreakfastAndDinner,
    AllMeals,
    AllInclusive,
}

impl Board {
    pub(crate) const ALL: [Self; 6] = [
        Self::RoomOnly,
        Self::Breakfast,
        Self::BreakfastAndLunch,
        Self::BreakfastAndDinner,
        Self::AllMeals,
        Self::AllInclusive,
    ];

    /// The text in a row, the price factor, and the share of hotels that sell it.
    pub(crate) fn terms(self) -> (&'static str, f64, f64) {
        match self {
            Self::RoomOnly => ("Room only", 1.0, 1.0),
            Self::Breakfast => ("Breakfast included", 1.09, 0.8),
            Self::BreakfastAndLunch => ("Breakfast & lunch included", 1.20, 0.12),
            Self::BreakfastAndDinner => ("Breakfast & dinner included", 1.24, 0.3),
            Self::AllMeals => ("All meals included", 1.34, 0.15),
            Self::AllInclusive => ("All-inclusive", 1.48, 0.10),
        }
    }
}

/// One hotel.
#[derive(Clone, Debug)]
pub(crate) struct Property {
    pub(crate) name: String,
    pub(crate) slug: String,
    pub(crate) country: &'static str,
    /// The known city in its name, if any.
    pub(crate) city: Option<City>,
    pub(crate) stars: i64,
    /// Score out of ten and number of reviews; `None` for a new hotel.
    pub(crate) review: Option<(f64, i64)>,
    pub(crate) amenities: Vec<&'static str>,
    pub(crate) boards: Vec<Board>,
    /// More expensive at weekends than on working days.
    pub(crate) leisure: bool,
    /// Dollars for an average night in the simplest double room.
    pub(crate) night_dollars: f64,
    pub(crate) draw: Draw,
}

impl Property {
    /// The hotel of a free-text name; none if the text has no letter or digit.
    pub(crate) fn named(world: Draw, name: &str) -> Option<Self> {
        let slug = slug_of(name);
        if slug.is_empty() {
            return None;
        }
        let city = City::named_in(name);
        let draw = world.of("hotel").of(&slug);
        let known = city.as_ref().map(|city| city.country);
        let country = known.unwrap_or_else(|| draw.of("country").pick(&AIRPORTS).country.as_str());
        let stars = *draw.of("stars").pick(&[2, 3, 3, 3, 4, 4, 4, 5]);
        let level = city.as_ref().map_or_else(
            || draw.of("level").between(0.75, 1.3),
            |city| city.level(world),
        );
        let by_stars = match stars {
            2 => 62.0,
            3 => 96.0,
            4 => 148.0,
            _ => 290.0,
        };
        let luxury = real(stars - 2) / 3.0;
        let has = |filter: &SandboxFilter| {
            let drawn = draw.of("amenity").of(&filter.name);
            filter
                .share(luxury)
                .is_some_and(|share| drawn.chance(share))
        };
        let amenities = FILTERS.iter().filter(|filter| has(filter));
        Some(Self {
            name: proper_name(world, city.as_ref(), &slug)
                .unwrap_or_else(|| name.trim().to_owned()),
            country,
            stars,
            review: review(draw, luxury),
            amenities: amenities.map(|filter| filter.name.as_str()).collect(),
            boards: boards(draw),
            leisure: draw.of("leisure").chance(0.6),
            night_dollars: by_stars * level * draw.of("quality").between(0.8, 1.28),
            city,
            slug,
            draw,
        })
    }

    /// The hotel of a path-style id such as `gb/the-grand-london`.
    pub(crate) fn of_id(world: Draw, id: &str) -> Option<Self> {
        let slug = id.rsplit('/').next().unwrap_or(id);
        Self::named(world, &slug.replace('-', " "))
    }

    /// `<country_code>/<hotel_slug>`.
    pub(crate) fn id(&self) -> String {
        format!("{}/{}", self.country, self.slug)
    }

    pub(crate) fn has(&self, amenity: &str) -> bool {
        self.amenities.contains(&amenity)
    }
}

/// The name of a listed hotel in its own spelling.
fn proper_name(world: Draw, city: Option<&City>, slug: &str) -> Option<String> {
    city?
        .hotel_names(world)
        .into_iter()
        .find(|name| slug_of(name) == slug)
}

fn review(draw: Draw, luxury: f64) -> Option<(f64, i64)> {
    if draw.of("new").chance(0.03) {
        return None;
    }
    let score = (draw.of("score").between(6.3, 8.9) + luxury * 0.9).min(9.8);
    let count = 20 + draw.of("reviews").below(6_000);
    Some(((score * 10.0).round() / 10.0, count))
}

fn boards(draw: Draw) -> Vec<Board> {
    let draw = draw.of("board");
    let sold = (0..).zip(Board::ALL).filter(|(number, board)| {
        let (_, _, share) = board.terms();
        draw.nth(*number).chance(share)
    });
    sold.map(|(_, board)| board).collect()
}

/// Lower-case ASCII letters and digits, words joined by `-`. An id is visible ASCII (gateway.md,
/// rule 9), so other letters become their code point.
pub(crate) fn slug_of(text: &str) -> String {
    let mut slug = String::with_capacity(text.len());
    for letter in text.chars().flat_map(char::to_lowercase) {
        if letter.is_ascii_alphanumeric() {
            slug.push(letter);
        } else if letter.is_alphanumeric() {
            // Writing to a string cannot fail.
            let _ = write!(slug, "{:x}", u32::from(letter));
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.truncate(slug.trim_end_matches('-').len());
    slug
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_city_is_found_in_free_text_as_whole_words() {
        for (text, slug) in [
            ("London", Some("london")),
            ("Soho, LONDON, UK", Some("london")),
            ("hotels in new york city", Some("new-york")),
            ("Mexico City", Some("mexico-city")),
            ("Londonderry", None),
            ("", None),
        ] {
            assert_eq!(
                City::named_in(text).map(|city| city.slug).as_deref(),
                slug,
                "{text}"
            );
        }
        assert_eq!(City::of_destination("Bath, Somerset").slug, "bath");
    }

    #[test]
    fn name_id_and_listing_mean_the_same_hotel() {
        let world = Draw::seeded(1);
        let city = City::of_destination("Lisbon");
        let names = city.hotel_names(world);
        assert!((40..=80).contains(&names.len()));
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        for name in &names {
            let listed = Property::named(world, name).expect("a hotel");
            assert_eq!(listed.country, "pt");
            for other in [
                Property::of_id(world, &listed.id()),
                Property::named(world, &name.to_uppercase()),
            ] {
                let other = other.expect("the same hotel");
                assert_eq!((&other.name, other.id()), (name, listed.id()));
                assert_eq!(
                    other.night_dollars.to_bits(),
                    listed.night_dollars.to_bits()
                );
            }
        }
    }

    #[test]
    fn any_name_is_a_hotel_but_one_without_letters() {
        let world = Draw::seeded(1);
        let hotel = Property::named(world, " Café de l'Étoile ").expect("a hotel");
        assert_eq!(
            (hotel.name.as_str(), hotel.slug.as_str()),
            ("Café de l'Étoile", "cafe9-de-l-e9toile")
        );
        assert!(Property::named(world, "--- ").is_none());
    }
}
