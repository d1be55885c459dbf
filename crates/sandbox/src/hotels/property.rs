//! The hotels of a city and their properties. Everything follows from the hotel's slug, so that its
//! name, its id and its row in a search mean the same hotel.

use std::fmt::Write as _;

use crate::draws::Draw;
use crate::world::airports::AIRPORTS;

/// Name parts of the hotels of a city.
const NAMES: [&str; 22] = [
    "Grand",
    "Royal",
    "Park",
    "Garden",
    "Harbour",
    "Riverside",
    "Central",
    "Station",
    "Plaza",
    "Metropole",
    "Bellevue",
    "Astoria",
    "Continental",
    "Meridian",
    "Victoria",
    "Atlas",
    "Panorama",
    "Aurora",
    "Corner",
    "Mercer",
    "Lantern",
    "Linden",
];
const FORMS: usize = 5;

/// Price levels of cities relative to the average; the others are between 0.72 and 1.1.
const CITY_LEVELS: [(&str, f64); 16] = [
    ("london", 1.45),
    ("new-york", 1.6),
    ("paris", 1.45),
    ("zurich", 1.5),
    ("geneva", 1.5),
    ("tokyo", 1.2),
    ("tel-aviv", 1.35),
    ("dubai", 1.2),
    ("rome", 1.2),
    ("amsterdam", 1.35),
    ("san-francisco", 1.5),
    ("singapore", 1.35),
    ("bangkok", 0.58),
    ("istanbul", 0.75),
    ("cairo", 0.6),
    ("lisbon", 1.0),
];

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
                name: airport.city.to_owned(),
                slug: slug_of(airport.city),
                country: airport.country,
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
        let known = CITY_LEVELS
            .iter()
            .find(|(slug, _)| *slug == self.slug)
            .map(|(_, level)| *level);
        known.unwrap_or_else(|| world.of("city level").of(&self.slug).between(0.72, 1.1))
    }

    /// Names of the 40 to 80 hotels of this city, each once, the most popular first.
    pub(crate) fn hotel_names(&self, world: Draw) -> Vec<String> {
        let draw = world.of("city hotels").of(&self.slug);
        let (count, start) = (
            40 + draw.of("count").below(41),
            draw.of("start").below(NAMES.len() * FORMS),
        );
        // 37 is coprime to the number of names, so no name occurs twice.
        (0..count)
            .map(|number| {
                let index = (start + number * 37) % (NAMES.len() * FORMS);
                let (part, city) = (NAMES[index / FORMS], &self.name);
                match index % FORMS {
                    0 => format!("The {part} {city}"),
                    1 => format!("Hotel {part} {city}"),
                    2 => format!("{part} Inn {city}"),
                    3 => format!("{part} Suites {city}"),
                    _ => format!("{part} Boutique Hotel {city}"),
                }
            })
            .collect()
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

/// Amenities: the filters other than stars, reviews, boards and cancellation.
const AMENITIES: [(&str, f64, f64); 12] = [
    // filter value, share of simple hotels, share of luxury hotels
    ("free_wifi", 0.92, 1.0),
    ("swimming_pool", 0.10, 0.75),
    ("gym", 0.12, 0.95),
    ("parking", 0.45, 0.85),
    ("front_desk_24h", 0.45, 1.0),
    ("private_bathroom", 0.85, 1.0),
    ("air_conditioning", 0.60, 1.0),
    ("pets_allowed", 0.30, 0.35),
    ("adults_only", 0.04, 0.08),
    ("sauna", 0.06, 0.70),
    ("very_good_breakfast", 0.25, 0.75),
    ("accepts_online_payment", 0.70, 0.95),
];

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
        let country = known.unwrap_or_else(|| draw.of("country").pick(AIRPORTS).country);
        let stars = *draw.of("stars").pick(&[2, 3, 3, 3, 4, 4, 4, 5]);
        let level = city.as_ref().map_or_else(
            || draw.of("level").between(0.75, 1.3),
            |city| city.level(world),
        );
        let by_stars = [62.0, 96.0, 148.0, 290.0][usize::try_from(stars - 2).unwrap_or(0).min(3)];
        let luxury = f64::from(i32::try_from(stars - 2).unwrap_or(0)) / 3.0;
        Some(Self {
            name: proper_name(world, city.as_ref(), &slug)
                .unwrap_or_else(|| name.trim().to_owned()),
            country,
            stars,
            review: review(draw, luxury),
            amenities: AMENITIES
                .iter()
                .filter(|(amenity, simple, grand)| {
                    draw.of("amenity")
                        .of(amenity)
                        .chance(simple + (grand - simple) * luxury)
                })
                .map(|(amenity, _, _)| *amenity)
                .collect(),
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
    let count = 20 + i64::try_from(draw.of("reviews").below(6_000)).unwrap_or(0);
    Some(((score * 10.0).round() / 10.0, count))
}

fn boards(draw: Draw) -> Vec<Board> {
    let mut boards = vec![Board::RoomOnly];
    for (board, share) in [
        (Board::Breakfast, 0.8),
        (Board::BreakfastAndLunch, 0.12),
        (Board::BreakfastAndDinner, 0.3),
        (Board::AllMeals, 0.15),
        (Board::AllInclusive, 0.10),
    ] {
        if draw.of("board").nth(board as i64).chance(share) {
            boards.push(board);
        }
    }
    boards
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
