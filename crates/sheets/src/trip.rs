//! A scan, a search or a monitor's scan in words: a title and the facts beside it.

use farescan_contract::{Api, Endpoint, RawJson};
use jiff::civil::Date;
use serde_json::{Map, Value};

use crate::draft::{ScanDraft, plain};
use crate::numbers::{amount, counted};

/// The fields that a title shows.
const TITLE_FIELDS: [&str; 5] = [
    "from_airport",
    "to_airport",
    "destination",
    "hotel_name",
    "hotel_booking_id",
];

/// The dates of a search.
const DATE_FIELDS: [&str; 4] = [
    "departure_date",
    "return_date",
    "checkin_date",
    "checkout_date",
];

/// The title of a scan: `TLV → LHR, CDG`.
pub fn title(
    endpoint: Endpoint,
    request: &Map<String, Value>,
    sweep: &Map<String, Value>,
) -> String {
    let field = |name: &str| {
        let value = sweep.get(name).or_else(|| request.get(name));
        value.map_or_else(|| "?".to_owned(), value_text)
    };
    match endpoint {
        Endpoint::FlightsOneway => {
            format!("{} → {}", field("from_airport"), field("to_airport"))
        }
        Endpoint::FlightsRoundtrip => {
            format!("{} ⇄ {}", field("from_airport"), field("to_airport"))
        }
        Endpoint::HotelsSearch => format!("Hotels in {}", field("destination")),
        Endpoint::HotelsByName | Endpoint::HotelsResolve => field("hotel_name"),
        Endpoint::HotelsRooms => format!("Rooms of {}", field("hotel_booking_id")),
    }
}

impl ScanDraft {
    fn title(&self) -> String {
        title(self.endpoint, &self.request, &self.sweep)
    }

    /// The title, and the kind of a journey; a title of a hotel search says it already.
    fn title_and_kind(&self) -> impl Iterator<Item = String> {
        let kind = match self.endpoint {
            Endpoint::FlightsOneway => Some("one way".to_owned()),
            Endpoint::FlightsRoundtrip => Some("round trip".to_owned()),
            _ => None,
        };
        std::iter::once(self.title()).chain(kind)
    }

    /// The value of a field, swept or not.
    fn field(&self, name: &str) -> Option<&Value> {
        let value = self.sweep.get(name).or_else(|| self.request.get(name));
        value.filter(|value| !value.is_null())
    }
}

/// The title of a scan by its body.
pub fn body_title(scan: &Map<String, Value>) -> Option<String> {
    ScanDraft::of(scan).map(|body| body.title())
}

/// The facts beside that title.
pub fn body_facts(scan: &Map<String, Value>) -> Vec<String> {
    let body = ScanDraft::of(scan);
    body.map_or_else(Vec::new, |body| {
        facts(body.endpoint, &body.request, &body.sweep)
    })
}

/// The title of one search, with its dates: `TLV → LHR, 4 Feb 2027`.
pub fn search_title(endpoint: Endpoint, search: &Map<String, Value>) -> String {
    let dates = DATE_FIELDS.iter().filter_map(|name| search.get(*name));
    let dates: Vec<_> = dates.map(value_text).collect();
    let title = title(endpoint, search, &Map::new());
    if dates.is_empty() {
        title
    } else {
        format!("{title}, {}", dates.join(" – "))
    }
}

/// What one search of a scan is about, by its swept fields: `TLV → LHR`, `4 Feb 2027`. Of a stay or
/// round trip always both dates. Empty if nothing is swept.
pub fn swept_words(
    endpoint: Endpoint,
    search: &Map<String, Value>,
    swept: &Map<String, Value>,
) -> Vec<String> {
    let is_title = TITLE_FIELDS.iter().any(|name| swept.contains_key(*name));
    let has_stay = endpoint.api() == Api::Hotels || swept.contains_key("nights");
    let is_shown = |name: &str| {
        let is_date = DATE_FIELDS.contains(&name);
        !TITLE_FIELDS.contains(&name)
            && (swept.contains_key(name) || is_date && has_stay && !swept.is_empty())
    };
    let dates = DATE_FIELDS.into_iter();
    let others = swept.keys().map(String::as_str);
    let names = dates.chain(others.filter(|name| !DATE_FIELDS.contains(name)));
    let fields = names
        .filter(|name| is_shown(name))
        .filter_map(|name| Some(field_text(name, search.get(name)?)));
    let title = is_title.then(|| title(endpoint, search, &Map::new()));
    title.into_iter().chain(fields).collect()
}

/// A search of a stored scan: its title, its dates, and what else `cell` says of it. The cell has
/// the values of the swept fields.
pub fn trip(scan: &Map<String, Value>, cell: &Map<String, Value>) -> Option<String> {
    let endpoint = Endpoint::parse(scan.get("endpoint")?.as_str()?)?;
    let part = |name: &str| scan.get(name).and_then(Value::as_object);
    let fields = [part("request"), part("sweep"), Some(cell)];
    let fields = fields.into_iter().flatten().flatten();
    let fields: Map<_, _> = fields
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let is_shown = |name: &str| {
        let is_date = DATE_FIELDS.contains(&name) || name == "nights";
        !TITLE_FIELDS.contains(&name) && (is_date || cell.contains_key(name))
    };
    let title = std::iter::once(title(endpoint, &fields, &Map::new()));
    let others = fields
        .iter()
        .filter(|(name, value)| is_shown(name) && !value.is_null());
    let others = others.map(|(name, value)| field_text(name, value));
    Some(title.chain(others).collect::<Vec<_>>().join(", "))
}

/// The same of the whole body of a search.
pub fn searched_trip(
    endpoint: Endpoint,
    search: &Map<String, Value>,
    cell: &Map<String, Value>,
) -> Option<String> {
    let scan = Map::from_iter([
        ("endpoint".to_owned(), Value::from(endpoint.as_str())),
        ("request".to_owned(), Value::from(search.clone())),
    ]);
    trip(&scan, cell)
}

/// The endpoint of the whole body of a search with a price: each has a required field that those after it
/// here do not know.
pub fn endpoint_of(search: &Map<String, Value>) -> Option<Endpoint> {
    let fields = [
        ("return_date", Endpoint::FlightsRoundtrip),
        ("departure_date", Endpoint::FlightsOneway),
        ("hotel_booking_id", Endpoint::HotelsRooms),
        ("hotel_name", Endpoint::HotelsByName),
        ("destination", Endpoint::HotelsSearch),
    ];
    let of = fields.iter().find(|(name, _)| search.contains_key(*name));
    of.map(|(_, endpoint)| *endpoint)
}

/// The product, then each field that the title does not show.
pub fn facts(
    endpoint: Endpoint,
    request: &Map<String, Value>,
    sweep: &Map<String, Value>,
) -> Vec<String> {
    let product = match endpoint {
        Endpoint::FlightsOneway => "One way",
        Endpoint::FlightsRoundtrip => "Round trip",
        Endpoint::HotelsSearch => "Hotels of a place",
        Endpoint::HotelsByName => "One hotel",
        Endpoint::HotelsRooms => "Rooms of a hotel",
        Endpoint::HotelsResolve => "Name of a hotel",
    };
    std::iter::once(product.to_owned())
        .chain(fields(request, sweep))
        .collect()
}

/// Each field that the title does not show.
fn fields<'a>(
    request: &'a Map<String, Value>,
    sweep: &'a Map<String, Value>,
) -> impl Iterator<Item = String> + 'a {
    sweep
        .iter()
        .chain(request)
        .filter(|(name, value)| !TITLE_FIELDS.contains(&name.as_str()) && !value.is_null())
        .map(|(name, value)| field_text(name, value))
}

/// The scan of a monitor: `TLV → LHR, one way, 7 to 36 days ahead`. Empty for a body that is none.
pub fn monitor_scan(scan: &RawJson) -> String {
    let scan = scan.read::<Map<String, Value>>();
    scan.ok()
        .and_then(|scan| scan_and_dates(&scan))
        .unwrap_or_default()
}

fn scan_and_dates(scan: &Map<String, Value>) -> Option<String> {
    let body = ScanDraft::of(scan)?;
    let fields = ["departure_date", "checkin_date", "nights", "proxy_country"];
    let fields = fields
        .into_iter()
        .filter_map(|name| Some(field_text(name, body.field(name)?)));
    let words = body.title_and_kind().chain(fields).chain(watch(scan));
    Some(words.collect::<Vec<_>>().join(", "))
}

/// The scan of a monitor with all of its fields. Empty for a body that is none.
pub fn whole_scan(scan: &RawJson) -> String {
    let scan = scan.read::<Map<String, Value>>();
    scan.ok()
        .and_then(|scan| scan_and_fields(&scan))
        .unwrap_or_default()
}

fn scan_and_fields(scan: &Map<String, Value>) -> Option<String> {
    let body = ScanDraft::of(scan)?;
    let watch = watch(scan);
    let is_other = |name: &str| !["strategy", "max_requests"].contains(&name) || watch.is_none();
    let others = body
        .options
        .iter()
        .filter(|(name, value)| is_other(name) && !value.is_null())
        .map(|(name, value)| field_text(name, value));
    let words = body
        .title_and_kind()
        .chain(fields(&body.request, &body.sweep))
        .chain(watch.clone())
        .chain(others);
    Some(words.collect::<Vec<_>>().join(", "))
}

/// What a run that watches looks at: `watches the cheapest with at most 18 requests`.
fn watch(scan: &Map<String, Value>) -> Option<String> {
    let strategy = scan.get("strategy")?;
    let question = match strategy.get("watch")?.as_str()? {
        "below" => {
            let below = plain(strategy.get("below")?);
            let shown = below.parse().map_or(below, amount);
            format!("watches for a price below {shown}")
        }
        goal => format!("watches the {goal}"),
    };
    let most = scan.get("max_requests")?;
    Some(format!("{question} with at most {most} requests a run"))
}

/// The name of a swept field: `Check-in`.
pub fn axis_name(field: &str) -> String {
    match field {
        "departure_date" => "Departure".to_owned(),
        "return_date" => "Return".to_owned(),
        "checkin_date" => "Check-in".to_owned(),
        "checkout_date" => "Check-out".to_owned(),
        "proxy_country" => "Market".to_owned(),
        other => capitalised(&words(other)),
    }
}

/// The text with a capital.
pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next();
    let first = first.into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

/// `Fri 4 Dec 2026` for a date, `DE` for a market, `7 nights`.
pub fn axis_value(field: &str, value: &Value) -> String {
    let text = value_text(value);
    let date = value.as_str().and_then(|text| text.parse::<Date>().ok());
    match (field, date) {
        (_, Some(date)) => date.strftime("%a %-d %b %Y").to_string(),
        ("proxy_country", _) => text.to_uppercase(),
        ("nights" | "seat_type" | "passengers" | "adults" | "children", _) => {
            field_text(field, value)
        }
        _ => text,
    }
}

/// A reason or a word of the API for people: `blocked page`.
pub fn words(word: &str) -> String {
    word.replace('_', " ")
}

/// One field: `4 Feb 2027 – 28 Feb 2027 (thu, fri)`, `2 adults and 1 child`, `non-stop`.
pub fn field_text(name: &str, value: &Value) -> String {
    let text = value_text(value);
    match (name, value.as_u64()) {
        ("departure_date" | "currency", _) => text,
        ("return_date", _) => format!("return {text}"),
        ("checkin_date", _) => format!("check-in {text}"),
        ("checkout_date", _) => format!("check-out {text}"),
        ("proxy_country", _) => format!("market {}", text.to_uppercase()),
        ("nights", _) => format!("{text} night{}", if text == "1" { "" } else { "s" }),
        ("samples", _) => format!("{text} sample{}", if text == "1" { "" } else { "s" }),
        ("passengers", _) => passengers(value).unwrap_or(text),
        ("seat_type", Some(1)) => "economy".to_owned(),
        ("seat_type", Some(3)) => "business".to_owned(),
        ("adults", Some(number)) => people(number, "adult", "adults"),
        ("children", Some(number)) => people(number, "child", "children"),
        ("max_stops" | "max_departure_stops", Some(0)) => "non-stop".to_owned(),
        ("max_return_stops", Some(0)) => "non-stop return".to_owned(),
        _ if *value == Value::Bool(true) => words(name),
        _ => match value {
            // Each of them has a word.
            Value::Array(values) if name == "seat_type" => {
                let seats = values.iter().map(|value| field_text(name, value));
                seats.collect::<Vec<_>>().join(", ")
            }
            _ => format!("{} {text}", words(name)),
        },
    }
}

/// `2 adults and 1 child`; `None` for no list of kinds.
fn passengers(kinds: &Value) -> Option<String> {
    let kinds: Vec<_> = kinds.as_array()?.iter().map(Value::as_u64).collect();
    let of = |kind: u64| kinds.iter().filter(|of| **of == Some(kind)).count() as u64;
    let groups = [
        (of(1), "adult", "adults"),
        (of(2), "child", "children"),
        (of(3), "infant on lap", "infants on lap"),
        (of(4), "infant in seat", "infants in seat"),
    ];
    let groups = groups.into_iter().filter(|(count, ..)| *count > 0);
    let words: Vec<_> = groups
        .map(|(count, one, more)| people(count, one, more))
        .collect();
    (!words.is_empty()).then(|| words.join(" and "))
}

fn people(count: u64, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

/// A value as a person writes it: dates in words, lists with commas, ranges with a dash. The dates of a
/// monitor are days ahead of each run.
pub fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => date_text(text)
            .or_else(|| days_ahead(text).map(|days| format!("{} ahead", counted(days, "day"))))
            .unwrap_or_else(|| text.clone()),
        Value::Array(values) => values.iter().map(value_text).collect::<Vec<_>>().join(", "),
        Value::Object(range) if range.contains_key("from") && range.contains_key("to") => {
            range_text(range)
        }
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| format!("{} {}", words(name), value_text(value)))
            .collect::<Vec<_>>()
            .join(", "),
        Value::Null => "none".to_owned(),
        other => other.to_string(),
    }
}

fn range_text(range: &Map<String, Value>) -> String {
    let part = |name: &str| {
        range
            .get(name)
            .filter(|value| !value.is_null())
            .map(value_text)
    };
    let ahead = |name: &str| days_ahead(range.get(name)?.as_str()?);
    let days = [part("from"), part("to")].map(Option::unwrap_or_default);
    let details = [
        part("step_days")
            .filter(|step| step != "1")
            .map(|step| format!("every {step} days")),
        part("weekdays"),
    ];
    let details: Vec<_> = details.into_iter().flatten().collect();
    let days = match (ahead("from"), ahead("to")) {
        _ if days[0] == days[1] => days[0].clone(),
        (Some(from), Some(_)) => format!("{from} to {}", days[1]),
        _ => days.join(" – "),
    };
    if details.is_empty() {
        days
    } else {
        format!("{days} ({})", details.join(", "))
    }
}

/// `4 Feb 2027` for a date.
fn date_text(text: &str) -> Option<String> {
    let date: Date = (text.len() == 10).then(|| text.parse().ok())??;
    Some(date.strftime("%-d %b %Y").to_string())
}

/// 30 for `+30d`, a date of a monitor that is 30 days after each run.
fn days_ahead(text: &str) -> Option<u32> {
    text.strip_prefix('+')?.strip_suffix('d')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(object) => object,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn a_scan_is_described_by_its_route_and_its_other_fields() {
        let request = object(json!({"from_airport": "TLV", "max_stops": 0}));
        let sweep = object(json!({
            "to_airport": ["LHR", "CDG"],
            "departure_date": {"from": "2027-02-01", "to": "2027-02-28", "weekdays": ["thu", "fri"]}
        }));
        let endpoint = Endpoint::FlightsOneway;
        assert_eq!(title(endpoint, &request, &sweep), "TLV → LHR, CDG");
        assert_eq!(
            facts(endpoint, &request, &sweep),
            ["One way", "1 Feb 2027 – 28 Feb 2027 (thu, fri)", "non-stop"]
        );
    }

    #[test]
    fn passengers_and_seats_have_words() {
        for (name, value, words) in [
            ("passengers", json!([1, 1, 2]), "2 adults and 1 child"),
            ("seat_type", json!(3), "business"),
            ("seat_type", json!([1, 3]), "economy, business"),
            ("adults", json!(2), "2 adults"),
            ("max_stops", json!(0), "non-stop"),
            ("max_stops", json!(1), "max stops 1"),
            ("free_cancellation", json!(true), "free cancellation"),
        ] {
            assert_eq!(field_text(name, &value), words);
        }
    }

    #[test]
    fn a_search_is_described_with_its_dates() {
        let search = object(json!({"hotel_name": "Hotel Arts", "checkin_date": "2027-02-04"}));
        assert_eq!(
            search_title(Endpoint::HotelsByName, &search),
            "Hotel Arts, 4 Feb 2027"
        );
    }

    #[test]
    fn the_whole_body_of_a_search_says_its_endpoint() {
        for endpoint in Endpoint::SEARCHES {
            for with_optional in [false, true] {
                let fields = endpoint.fields().iter();
                let fields = fields.filter(|field| with_optional || field.required);
                let body = fields.map(|field| (field.name.to_owned(), json!("x")));
                assert_eq!(endpoint_of(&body.collect()).as_ref(), Some(endpoint));
            }
        }
    }

    #[test]
    fn the_scan_of_a_monitor_has_its_route_dates_and_markets() {
        for (scan, expected) in [
            (
                json!({"endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR"},
                       "sweep": {"departure_date": {"from": "+7d", "to": "+36d"}}}),
                "TLV → LHR, one way, 7 to 36 days ahead",
            ),
            (
                json!({"endpoint": "hotels/by-name", "request": {"hotel_name": "Hotel Arts", "checkin_date": "+30d"},
                       "sweep": {"proxy_country": ["us", "de"], "nights": [3, 7]}}),
                "Hotel Arts, check-in 30 days ahead, 3, 7 nights, market US, DE",
            ),
            (
                json!({"endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR", "departure_date": "+7d"},
                       "strategy": {"watch": "below", "below": 150}, "max_requests": 18}),
                "TLV → LHR, one way, 7 days ahead, watches for a price below 150 with at most 18 requests a run",
            ),
        ] {
            assert_eq!(scan_and_dates(&object(scan)).as_deref(), Some(expected));
        }
        assert_eq!(scan_and_dates(&object(json!({"endpoint": 1}))), None);
        let whole = json!({"endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR", "max_stops": 0},
            "sweep": {"departure_date": ["+7d"]}, "strategy": {"find": "cheapest"}, "max_age_seconds": 3600});
        assert_eq!(
            scan_and_fields(&object(whole)).as_deref(),
            Some(
                "TLV → LHR, one way, 7 days ahead, non-stop, strategy find cheapest, max age seconds 3600"
            )
        );
    }
}
