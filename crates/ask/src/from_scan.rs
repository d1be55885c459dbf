//! The question that a scan asks, in words: the way back from its body.

use farescan_contract::Endpoint;
use jiff::civil::Date;
use rust_decimal::Decimal;
use serde_json::{Map, Value, json};

use crate::question::{Question, nights_text, stops_text, travellers_text};
use crate::read::{MAX_CHARS, read};

/// The question whose scan has this request and this sweep, with the amount of a strategy `below`; `None`
/// where words cannot ask exactly that from `today` on, as of dates that have passed.
pub fn question_of(
    endpoint: Endpoint,
    request: &Map<String, Value>,
    sweep: &Map<String, Value>,
    below: Option<&Value>,
    today: Date,
) -> Option<Question> {
    let field = |name: &str| sweep.get(name).or_else(|| request.get(name));
    let mut words = vec![subject(endpoint, field)?];
    let date = match endpoint {
        Endpoint::FlightsOneway | Endpoint::FlightsRoundtrip => "departure_date",
        _ => "checkin_date",
    };
    words.push(dates(field(date)?)?);
    match field("nights") {
        Some(nights) => words.push(nights_text(&numbers(nights)?)),
        None => words.push("one way".to_owned()),
    }
    words.extend(travellers(field));
    let stops = field("max_stops").or_else(|| field("max_departure_stops"));
    let stops = stops.and_then(Value::as_u64);
    words.extend(stops.and_then(|stops| Some(stops_text(stops.try_into().ok()?))));
    words.extend(match field("seat_type").and_then(Value::as_u64) {
        Some(1) => Some("economy".to_owned()),
        Some(3) => Some("business".to_owned()),
        _ => None,
    });
    // In small letters some are words of the grammar, such as `in`.
    let markets = field("proxy_country").map(|markets| list(markets, " ").to_uppercase());
    words.extend(markets.map(|markets| format!("markets {markets}")));
    words.extend(field("currency").map(|currency| list(currency, " ")));
    words.extend(below.map(|below| format!("below {below}")));
    let question = read(&words.join(", "), today).result.ok()?;
    // Everything else that the scan has would be lost, but for what it says by default.
    let scan = question.scan();
    let mut request = request.clone();
    request.retain(|name, value| !is_default(name, value));
    let is_same = |name: &str, part: &Map<String, Value>| match scan.get(name) {
        Some(of) => of.as_object() == Some(part),
        None => part.is_empty(),
    };
    let amount = below.map(|below| below.to_string().parse::<Decimal>().ok());
    let asks_it = scan["endpoint"] == endpoint.as_str()
        && question.below == amount.flatten()
        && question.words().chars().count() <= MAX_CHARS
        && is_same("request", &request)
        && is_same("sweep", sweep);
    asks_it.then_some(question)
}

/// Whether it is the default of the field, so that a search without it is the same (gateway.md).
fn is_default(name: &str, value: &Value) -> bool {
    let default = match name {
        "currency" => json!("USD"),
        "passengers" => json!([1]),
        "adults" => json!(2),
        "children" => json!(0),
        _ => return false,
    };
    *value == default
}

fn subject<'a>(endpoint: Endpoint, field: impl Fn(&str) -> Option<&'a Value>) -> Option<String> {
    Some(match endpoint {
        Endpoint::FlightsOneway | Endpoint::FlightsRoundtrip => {
            let ends = ["from_airport", "to_airport"].map(|end| Some(list(field(end)?, " or ")));
            let [from, to] = ends;
            format!("{} → {}", from?, to?)
        }
        Endpoint::HotelsByName => {
            let area = field("area").map(|area| format!(" in \"{}\"", list(area, " ")));
            let name = list(field("hotel_name")?, " ");
            format!("hotel \"{name}\"{}", area.unwrap_or_default())
        }
        Endpoint::HotelsSearch => format!("hotels in \"{}\"", list(field("destination")?, " ")),
        Endpoint::HotelsRooms | Endpoint::HotelsResolve => return None,
    })
}

/// One text or several.
fn list(value: &Value, separator: &str) -> String {
    let texts = match value {
        Value::Array(texts) => texts.as_slice(),
        one => std::slice::from_ref(one),
    };
    let texts: Vec<_> = texts.iter().filter_map(Value::as_str).collect();
    texts.join(separator)
}

fn numbers(value: &Value) -> Option<Vec<u16>> {
    let number = |number: &Value| u16::try_from(number.as_u64()?).ok();
    value.as_array()?.iter().map(number).collect()
}

/// A date, or a range with its days of the week.
fn dates(value: &Value) -> Option<String> {
    let Value::Object(range) = value else {
        return value.as_str().map(str::to_owned);
    };
    let day = |end: &str| range.get(end)?.as_str();
    let weekdays = range.get("weekdays");
    let weekdays = weekdays.map(|days| format!(", {}", list(days, " ")));
    let (from, to) = (day("from")?, day("to")?);
    Some(format!("{from} to {to}{}", weekdays.unwrap_or_default()))
}

fn travellers<'a>(field: impl Fn(&str) -> Option<&'a Value>) -> Option<String> {
    if let Some(kinds) = field("passengers") {
        let kinds = numbers(kinds)?;
        let of = |kind| kinds.iter().filter(|of| **of == kind).count();
        let [adults, children] = [of(1), of(2)].map(|people| u32::try_from(people).ok());
        return Some(travellers_text(adults?, children?));
    }
    let people = |kind: &str| field(kind).and_then(|people| people.as_u64()?.try_into().ok());
    let (adults, children) = (people("adults"), people("children"));
    let is_given = adults.or(children).is_some();
    is_given.then(|| travellers_text(adults.unwrap_or(2), children.unwrap_or_default()))
}
