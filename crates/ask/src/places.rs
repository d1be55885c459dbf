//! Airports with scheduled service, and their cities.
//!
//! `data/airports.tsv` (118 kB) is code, country, size (L, M, S), city, name and, where two cities of a
//! country have one name, the region. `data/other_codes.txt` (22 kB) has the codes of all other airports.
//! Both are made by `script/airports`; `data/README.md` names sources, licences and dates.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use crate::countries::{country_name, folded_words};

const AIRPORTS: &str = include_str!("../data/airports.tsv");
const OTHER_CODES: &str = include_str!("../data/other_codes.txt");
const METROS: &str = include_str!("../data/metros.tsv");
/// Codes of scenarios of the sandbox and of tests begin so; no airport's does that has scheduled service.
const INVENTED: &str = "ZZ";
/// The most words of a name.
pub(crate) const MAX_WORDS: usize = 6;
/// The least likeness of a name that is suggested.
const MIN_LIKENESS: f64 = 0.72;
/// The most names that are suggested.
const MAX_SUGGESTED: usize = 3;

/// An airport.
#[derive(Debug, PartialEq, Eq)]
pub struct ListedAirport {
    pub code: &'static str,
    /// ISO 3166-1.
    pub country: &'static str,
    pub city: &'static str,
    pub name: &'static str,
    /// Only where another city of the country has the same name.
    pub region: Option<&'static str>,
    /// `L`, `M` or `S`.
    size: &'static str,
}

/// A city with airports, or one of its airports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// `London` or `London Heathrow`.
    pub name: String,
    pub country: &'static str,
    pub region: Option<&'static str>,
    /// Their codes, in order.
    pub airports: Vec<&'static str>,
    /// Whether its name means this one of several ([`METROS`]).
    is_main: bool,
    is_city: bool,
    size: &'static str,
}

impl Place {
    /// `Portland, Oregon`, `London, Canada`.
    pub fn full_name(&self) -> String {
        match self.region {
            Some(region) => format!("{}, {region}", self.name),
            None => format!("{}, {}", self.name, country_name(self.country)),
        }
    }

    /// Whether it is a city, and no airport.
    pub(crate) const fn is_city(&self) -> bool {
        self.is_city
    }

    /// A code that is known without a name.
    pub(crate) fn of_code(code: &str) -> Option<Self> {
        let known = OTHERS.get(code).copied();
        let code = known.or_else(|| invented(code))?;
        Some(Self {
            name: "Airport".to_owned(),
            country: "",
            region: None,
            airports: vec![code],
            is_main: false,
            is_city: false,
            size: "S",
        })
    }

    /// `London: LGW or LHR`, `Tel Aviv TLV`.
    pub(crate) fn text(&self) -> String {
        match self.airports.as_slice() {
            [code] => format!("{} {code}", self.name),
            codes => format!("{}: {}", self.name, listed(codes)),
        }
    }

    /// Words that mean this place alone.
    pub(crate) fn words(&self) -> String {
        self.airports.join(" or ")
    }
}

/// `LGW, LHR or STN`.
pub(crate) fn listed(codes: &[impl AsRef<str>]) -> String {
    let codes: Vec<_> = codes.iter().map(AsRef::as_ref).collect();
    match codes.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => codes.concat(),
    }
}

/// The city that these are all airports of; `None` of one airport.
pub(crate) fn city_of(codes: &[String]) -> Option<&'static str> {
    let is_all = |place: &&Place| codes.len() > 1 && place.airports == codes;
    let found = TABLE.metros.values().find(is_all);
    found.map(|place| place.name.as_str())
}

struct PlaceTable {
    airports: HashMap<&'static str, ListedAirport>,
    /// By the folded name.
    names: HashMap<String, Vec<Place>>,
    /// By the code of all airports of a city.
    metros: HashMap<&'static str, Place>,
}

static TABLE: LazyLock<PlaceTable> = LazyLock::new(PlaceTable::read);
static OTHERS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let metros = METROS.lines().filter_map(|line| line.split('\t').nth(2));
    OTHER_CODES.split_whitespace().chain(metros).collect()
});

impl PlaceTable {
    fn read() -> Self {
        let airports: Vec<ListedAirport> = AIRPORTS.lines().filter_map(airport).collect();
        let mut names: HashMap<String, Vec<Place>> = HashMap::new();
        let codes: HashSet<&str> = airports.iter().map(|airport| airport.code).collect();
        let mut metros = HashMap::new();
        for (code, metro) in METROS.lines().filter_map(|line| metro(line, &codes)) {
            metros.entry(code).or_insert_with(|| metro.clone());
            names
                .entry(folded_words(&metro.name))
                .or_default()
                .push(metro);
        }
        for airport in &airports {
            if !airport.city.is_empty() {
                add_city(
                    names.entry(folded_words(airport.city)).or_default(),
                    airport,
                );
            }
        }
        let cities: HashSet<String> = names.keys().cloned().collect();
        for airport in &airports {
            for name in names_of(airport) {
                if !cities.contains(&name) {
                    names.entry(name).or_default().push(airport.into());
                }
            }
        }
        for places in names.values_mut() {
            places.sort_by_key(|place| (!place.is_main, place.size));
        }
        let airports = airports.into_iter().map(|airport| (airport.code, airport));
        Self {
            airports: airports.collect(),
            names,
            metros,
        }
    }
}

impl From<&ListedAirport> for Place {
    fn from(airport: &ListedAirport) -> Self {
        Self {
            name: airport.name.to_owned(),
            country: airport.country,
            region: airport.region,
            airports: vec![airport.code],
            is_main: false,
            is_city: false,
            size: airport.size,
        }
    }
}

fn airport(line: &'static str) -> Option<ListedAirport> {
    let mut fields = line.split('\t');
    let mut field = || fields.next();
    let (code, country, size, city, name) = (field()?, field()?, field()?, field()?, field()?);
    let region = field();
    Some(ListedAirport {
        code,
        country,
        city,
        name,
        region,
        size,
    })
}

/// A city whose name means it and no other, with the airports that serve it.
fn metro(line: &'static str, known: &HashSet<&str>) -> Option<(&'static str, Place)> {
    let mut fields = line.split('\t');
    let (name, country, code) = (fields.next()?, fields.next()?, fields.next()?);
    let mut airports: Vec<_> = fields
        .next()?
        .split(' ')
        .filter(|code| known.contains(code))
        .collect();
    airports.sort_unstable();
    let place = Place {
        name: name.to_owned(),
        country,
        region: None,
        airports,
        is_main: true,
        is_city: true,
        size: "L",
    };
    Some((code, place))
}

fn add_city(places: &mut Vec<Place>, airport: &ListedAirport) {
    if places
        .iter()
        .any(|place| place.airports.contains(&airport.code))
    {
        return;
    }
    let is_metro = |place: &Place| place.is_main && place.country == airport.country;
    if airport.region.is_none() && places.iter().any(is_metro) {
        return;
    }
    let same = |place: &&mut Place| {
        !place.is_main && place.country == airport.country && place.region == airport.region
    };
    match places.iter_mut().find(same) {
        Some(place) => {
            place.airports.push(airport.code);
            place.size = place.size.min(airport.size);
        }
        None => places.push(Place {
            name: airport.city.to_owned(),
            is_city: true,
            ..airport.into()
        }),
    }
}

/// The folded names of an airport: all of it, and without its city.
fn names_of(airport: &ListedAirport) -> Vec<String> {
    let whole = folded_words(airport.name);
    let city = folded_words(airport.city);
    let rest = whole
        .strip_prefix(city.as_str())
        .map(|rest| rest.trim().to_owned());
    let rest = rest.filter(|rest| rest.len() >= 4 && *rest != "city" && *rest != "north");
    let names = [Some(whole).filter(|name| name.len() >= 4), rest];
    names.into_iter().flatten().collect()
}

/// The airport with a code.
pub fn airport_of(code: &str) -> Option<&'static ListedAirport> {
    TABLE.airports.get(code)
}

/// A code of the sandbox's scenarios, of which there are 26.
fn invented(code: &str) -> Option<&'static str> {
    const CODES: &str =
        "ZZAZZBZZCZZDZZEZZFZZGZZHZZIZZJZZKZZLZZMZZNZZOZZPZZQZZRZZSZZTZZUZZVZZWZZXZZYZZZ";
    let last = code.strip_prefix(INVENTED)?.bytes().next()?;
    let at = usize::from(last.checked_sub(b'A')?) * 3;
    CODES.get(at..at + 3)
}

/// Whether a code is that of an airport or a city, or one that a sandbox has invented.
pub fn exists(code: &str) -> bool {
    let code = code.to_ascii_uppercase();
    TABLE.airports.contains_key(code.as_str())
        || OTHERS.contains(code.as_str())
        || code.starts_with(INVENTED)
}

/// The places with a folded name, the largest first.
pub(crate) fn named(words: &str) -> &'static [Place] {
    TABLE.names.get(words).map_or(&[], Vec::as_slice)
}

/// The place of a code.
pub(crate) fn coded(code: &str) -> Option<Place> {
    let Some(airport) = TABLE.airports.get(code) else {
        return TABLE.metros.get(code).cloned();
    };
    let name = if airport.city.is_empty() {
        airport.name
    } else {
        airport.city
    };
    Some(Place {
        name: name.to_owned(),
        ..airport.into()
    })
}

/// Whether the first of several places is the one that their name means: the others are then only
/// said. Otherwise it has to be asked.
pub(crate) fn is_clear(places: &[Place]) -> bool {
    match places {
        [_] => true,
        [first, rest @ ..] => {
            first.is_main || (first.size == "L" && rest.iter().all(|place| place.size == "S"))
        }
        [] => false,
    }
}

/// The large airports of a country.
pub(crate) fn of_country(country: &str) -> Vec<Place> {
    let cities = TABLE.names.values().flatten();
    let large =
        cities.filter(|place| place.is_city && place.size == "L" && place.country == country);
    let mut large: Vec<_> = large.cloned().collect();
    large.sort_by(|one, other| {
        let rank = |place: &Place| (!place.is_main, std::cmp::Reverse(place.airports.len()));
        rank(one)
            .cmp(&rank(other))
            .then_with(|| one.name.cmp(&other.name))
    });
    // A city may have several names.
    let mut known = HashSet::new();
    large.retain(|place| known.insert(place.airports.clone()));
    large
}

/// Places whose names are most like these folded words; of a code also those that differ in one letter.
pub(crate) fn similar(words: &str) -> Vec<Place> {
    let length = words.len();
    let near = TABLE
        .names
        .iter()
        .filter(|(name, _)| name.len().abs_diff(length) <= 3);
    let mut found: Vec<(f64, &Place)> = near
        .filter_map(|(name, places)| {
            let likeness = strsim::normalized_damerau_levenshtein(name, words);
            (likeness >= MIN_LIKENESS).then(|| (likeness, &places[0]))
        })
        .collect();
    found.sort_by(|one, other| {
        let rank = |place: &Place| (!place.is_main, place.size);
        other
            .0
            .total_cmp(&one.0)
            .then_with(|| rank(one.1).cmp(&rank(other.1)))
            .then_with(|| one.1.airports.cmp(&other.1.airports))
    });
    found.dedup_by(|one, other| one.1.airports == other.1.airports);
    found
        .into_iter()
        .take(MAX_SUGGESTED)
        .map(|(_, place)| place.clone())
        .collect()
}

/// Large airports whose codes differ in one letter.
pub(crate) fn similar_codes(code: &str) -> Vec<Place> {
    near_codes(code)
        .into_iter()
        .filter_map(|airport| coded(airport.code))
        .collect()
}

fn near_codes(code: &str) -> Vec<&'static ListedAirport> {
    let upper = code.to_ascii_uppercase();
    let is_near = |airport: &&ListedAirport| {
        airport.size == "L" && strsim::osa_distance(airport.code, &upper) == 1
    };
    let mut near: Vec<&ListedAirport> = TABLE.airports.values().filter(is_near).collect();
    near.sort_by_key(|airport| airport.code);
    near.truncate(MAX_SUGGESTED);
    near
}

/// The error of a code that no airport has: what it could be, as a sentence.
pub fn nearest(code: &str) -> String {
    let near = near_codes(code).into_iter();
    let near: Vec<_> = near
        .map(|airport| format!("\"{}\" ({})", airport.code, airport.city))
        .collect();
    if near.is_empty() {
        return String::new();
    }
    format!("; did you mean {}?", near.join(" or "))
}
