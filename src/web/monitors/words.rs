//! A monitor's scan and times in words.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use serde_json::{Map, Value};

use crate::contract::monitors::NotifySettings;
use crate::contract::{Endpoint, RawJson};

/// The scan of a monitor: `TLV → LHR, one way, +7d to +36d`.
pub(in crate::web) fn scan(scan: &RawJson) -> String {
    scan.read::<Map<String, Value>>()
        .map(|scan| describe(&scan))
        .unwrap_or_default()
}

/// When alerts are sent: `Alerts are sent once a day, at 08:00 Europe/London.`
pub(super) fn notify(notify: &NotifySettings, zone: &str) -> String {
    let quiet = notify.quiet_hours.as_ref().map(|quiet| {
        let (from, until) = (quiet.from.as_str(), quiet.until.as_str());
        format!("between {from} and {until} {zone}")
    });
    match (&notify.digest_at, quiet) {
        (Some(at), None) => format!("Alerts are sent once a day, at {} {zone}.", at.as_str()),
        (Some(at), Some(quiet)) => format!(
            "Alerts are sent once a day, at {}, never {quiet}.",
            at.as_str()
        ),
        (None, quiet) => format!(
            "Alerts {} are sent together when these hours end.",
            quiet.unwrap_or_default()
        ),
    }
}

fn describe(scan: &Map<String, Value>) -> String {
    let object = |name: &str| scan.get(name).and_then(Value::as_object);
    let field = |name: &str| {
        let value = object("sweep")
            .and_then(|sweep| sweep.get(name))
            .or_else(|| object("request").and_then(|request| request.get(name)));
        value.filter(|value| !value.is_null()).map(plain)
    };
    let endpoint = scan
        .get("endpoint")
        .and_then(Value::as_str)
        .and_then(Endpoint::parse);
    let route = || {
        let airport = |name| field(name).unwrap_or_else(|| "?".to_owned());
        format!("{} → {}", airport("from_airport"), airport("to_airport"))
    };
    let mut words = match endpoint {
        Some(Endpoint::FlightsOneway) => vec![route(), "one way".to_owned()],
        Some(Endpoint::FlightsRoundtrip) => vec![route(), "round trip".to_owned()],
        Some(Endpoint::HotelsSearch) => {
            vec![format!(
                "Hotels in {}",
                field("destination").unwrap_or_default()
            )]
        }
        Some(Endpoint::HotelsRooms) => {
            vec![format!(
                "Rooms of {}",
                field("hotel_booking_id").unwrap_or_default()
            )]
        }
        _ => vec![field("hotel_name").unwrap_or_default()],
    };
    words.extend(field("departure_date").or_else(|| field("checkin_date")));
    words.extend(field("nights").map(|nights| format!("{nights} nights")));
    words.extend(field("proxy_country").map(|market| format!("market {}", market.to_uppercase())));
    words.extend(watch(scan));
    words.join(", ")
}

/// What a run that watches looks at: `watches the cheapest with at most 18 requests`.
fn watch(scan: &Map<String, Value>) -> Option<String> {
    let strategy = scan.get("strategy")?;
    let question = match strategy.get("watch")?.as_str()? {
        "below" => format!("watches for a price below {}", strategy.get("below")?),
        goal => format!("watches the {goal}"),
    };
    let most = scan.get("max_requests")?;
    Some(format!("{question} with at most {most} requests a run"))
}

/// A value of a field: `LHR, CDG`, `+7d to +36d`.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => {
            let values: Vec<_> = values.iter().map(plain).collect();
            values.join(", ")
        }
        Value::Object(range) => {
            let end = |name: &str| range.get(name).map(plain).unwrap_or_default();
            format!("{} to {}", end("from"), end("to"))
        }
        other => other.to_string(),
    }
}

/// A time in the zone of its schedule, with the zone's name.
pub(in crate::web) fn zoned(at: Timestamp, zone: &str) -> Markup {
    let known = TimeZone::get(zone).unwrap_or(TimeZone::UTC);
    let local = at.to_zoned(known);
    html! {
        time datetime=(at.strftime("%Y-%m-%dT%H:%M:%SZ")) data-zone=(zone) {
            (local.strftime("%a %-d %b, %H:%M")) " " span class="muted" { (zone_name(zone)) }
        }
    }
}

/// A zone's city: `Europe/London` is long for a table, and its rule is the same.
fn zone_name(zone: &str) -> String {
    zone.rsplit('/').next().unwrap_or(zone).replace('_', " ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_scan_is_described_by_its_route_dates_and_markets() {
        for (scan, expected) in [
            (
                json!({"endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR"},
                       "sweep": {"departure_date": {"from": "+7d", "to": "+36d"}}}),
                "TLV → LHR, one way, +7d to +36d",
            ),
            (
                json!({"endpoint": "hotels/by-name", "request": {"hotel_name": "Hotel Arts", "checkin_date": "+30d"},
                       "sweep": {"proxy_country": ["us", "de"], "nights": [3, 7]}}),
                "Hotel Arts, +30d, 3, 7 nights, market US, DE",
            ),
            (
                json!({"endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR", "departure_date": "+7d"},
                       "strategy": {"watch": "below", "below": 150}, "max_requests": 18}),
                "TLV → LHR, one way, +7d, watches for a price below 150 with at most 18 requests a run",
            ),
            (json!({"endpoint": 1}), ""),
        ] {
            let Value::Object(scan) = scan else {
                panic!("an object")
            };
            assert_eq!(describe(&scan), expected);
        }
    }

    #[test]
    fn a_slot_is_shown_in_its_own_zone() {
        let page = zoned("2027-01-14T06:00:00Z".parse().unwrap(), "America/New_York").into_string();
        assert!(page.contains("Thu 14 Jan, 01:00"), "{page}");
        assert!(page.contains("New York"));
    }
}
