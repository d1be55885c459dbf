//! A stored monitor as the fields of its form, and what a sent form changes of it.

use jiff::civil::Date;
use serde_json::{Map, Value, json};

use super::new_form;
use crate::form::FormFields;
use farescan_core::contract::monitors::{LookbackDays, Monitor, Rule};

/// The fields of a form that stand for exactly this monitor. What has no field of its own stands
/// there as JSON.
pub(super) fn fields_of(monitor: &Monitor) -> FormFields {
    let scan: Map<String, Value> = monitor.scan.read().unwrap_or_default();
    let mut pairs = vec![
        ("name".to_owned(), monitor.name.clone()),
        ("timezone".to_owned(), monitor.schedule.timezone.clone()),
    ];
    pairs.extend(schedule_fields(&monitor.schedule.cron));
    let mut add = |name: &str, text: String| pairs.push((name.to_owned(), text));
    if let Some(url) = &monitor.webhook_url {
        add("webhook_url", url.clone());
    }
    if let Some(most) = monitor.requests.max_per_month {
        add("max_requests_per_month", most.to_string());
    }
    let rules = serde_json::to_value(&monitor.alerts).unwrap_or_default();
    let plain = with(&pairs, &scan_fields(&scan));
    let plain = with(&plain, &rule_fields(&rules));
    let made = new_form::body(&FormFields::from_pairs(plain.clone())).unwrap_or_default();
    let is_scan = made.get("scan") == Some(&Value::Object(scan.clone()));
    let are_rules = made
        .get("alerts")
        .is_some_and(|made| is_equal(made, &monitor.alerts));
    let pairs = if is_scan {
        with(&pairs, &scan_fields(&scan))
    } else {
        let endpoint = scan.get("endpoint").map(text).unwrap_or_default();
        let json = serde_json::to_string_pretty(&scan).unwrap_or_default();
        with(&pairs, &[("endpoint", endpoint), ("scan", json)])
    };
    let pairs = if are_rules {
        with(&pairs, &rule_fields(&rules))
    } else {
        let json = serde_json::to_string_pretty(&rules).unwrap_or_default();
        with(&pairs, &[("rules", json)])
    };
    FormFields::from_pairs(pairs)
}

/// The fields of a new monitor that repeats a scan and tells of each new low, with `more` fields:
/// those of the form where they can say the scan, else the scan as JSON.
pub(super) fn of_scan(
    name: String,
    scan: &Map<String, Value>,
    more: Option<(String, String)>,
) -> FormFields {
    let days = LookbackDays::THIRTY.get().to_string();
    let new_low = ("new_low_days".to_owned(), days);
    let own: Vec<_> = [("name".to_owned(), name), new_low]
        .into_iter()
        .chain(more)
        .collect();
    let swept = with_swept_dates(scan);
    let plain = FormFields::from_pairs(with(&own, &scan_fields(&swept)));
    let made = new_form::body(&plain).unwrap_or_default();
    if made.get("scan") == Some(&Value::Object(swept)) {
        return plain;
    }
    let endpoint = scan.get("endpoint").map(text).unwrap_or_default();
    let json = serde_json::to_string_pretty(scan).unwrap_or_default();
    FormFields::from_pairs(with(&own, &[("endpoint", endpoint), ("scan", json)]))
}

/// The same searches with a fixed date as a sweep of one date, and a fixed stay as its nights: as
/// the form has them.
fn with_swept_dates(scan: &Map<String, Value>) -> Map<String, Value> {
    let part = |name: &str| scan.get(name).and_then(Value::as_object).cloned();
    let (mut request, mut sweep) = (
        part("request").unwrap_or_default(),
        part("sweep").unwrap_or_default(),
    );
    for (first, last) in [
        ("departure_date", "return_date"),
        ("checkin_date", "checkout_date"),
    ] {
        let Some(from) = request.shift_remove(first) else {
            continue;
        };
        let date = |value: &Value| value.as_str()?.parse::<Date>().ok();
        let until = request.get(last).and_then(date);
        if let Some((from, until)) = date(&from).zip(until) {
            request.shift_remove(last);
            let nights = (until - from).get_days();
            sweep.insert("nights".to_owned(), json!([nights]));
        }
        sweep.insert(first.to_owned(), json!({"from": from, "to": from}));
    }
    let mut swept = scan.clone();
    swept.insert("request".to_owned(), Value::Object(request));
    if !sweep.is_empty() {
        swept.insert("sweep".to_owned(), Value::Object(sweep));
    }
    swept
}

/// The choice and time that make this cron text, or the text itself.
fn schedule_fields(cron: &str) -> Vec<(String, String)> {
    let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let mut parts = cron.split(' ').map(|part| part.parse::<u8>().ok());
    let minute = parts.next().flatten().unwrap_or_default();
    let hour = parts.next().flatten().unwrap_or_default();
    let time = format!("{hour:02}:{minute:02}");
    for (repeat, _) in new_form::REPEATS {
        let fields = vec![pair("repeat", repeat), pair("time", &time)];
        if new_form::cron(&FormFields::from_pairs(fields.clone())) == cron {
            return fields;
        }
    }
    vec![pair("repeat", "cron"), pair("cron", cron)]
}

/// The body of a `PATCH` that turns the monitor into what `wanted` describes: only what differs, so
/// that a change of another field by someone else stays.
pub(super) fn changes(monitor: &Monitor, wanted: &Map<String, Value>) -> Map<String, Value> {
    let mut patch = Map::new();
    let scan: Value = monitor.scan.read().unwrap_or_default();
    let schedule = json!({"cron": monitor.schedule.cron, "timezone": monitor.schedule.timezone});
    let stored = [
        ("name", json!(monitor.name)),
        ("schedule", schedule),
        ("scan", scan),
        ("webhook_url", json!(monitor.webhook_url)),
        (
            "max_requests_per_month",
            json!(monitor.requests.max_per_month),
        ),
    ];
    for (name, stored) in stored {
        let wanted = wanted.get(name).cloned().unwrap_or_default();
        if wanted != stored {
            patch.insert(name.to_owned(), wanted);
        }
    }
    if let Some(rules) = wanted
        .get("alerts")
        .filter(|rules| !is_equal(rules, &monitor.alerts))
    {
        patch.insert("alerts".to_owned(), rules.clone());
    }
    patch
}

fn is_equal(rules: &Value, stored: &[Rule]) -> bool {
    serde_json::from_value::<Vec<Rule>>(rules.clone()).is_ok_and(|rules| rules == stored)
}

fn with(pairs: &[(String, String)], more: &[(&str, String)]) -> Vec<(String, String)> {
    let more = more
        .iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(name, text)| ((*name).to_owned(), text.clone()));
    pairs.iter().cloned().chain(more).collect()
}

/// The fields of a scan as well as they can say it.
fn scan_fields(scan: &Map<String, Value>) -> Vec<(&'static str, String)> {
    const TEXTS: [&str; 6] = [
        "from_airport",
        "to_airport",
        "hotel_name",
        "destination",
        "hotel_booking_id",
        "currency",
    ];
    let part = |name: &str| {
        let part = scan.get(name).and_then(Value::as_object);
        part.cloned().unwrap_or_default()
    };
    let (mut request, sweep) = (part("request"), part("sweep"));
    let mut fields = vec![(
        "endpoint",
        scan.get("endpoint").map(text).unwrap_or_default(),
    )];
    for name in TEXTS {
        fields.extend(request.shift_remove(name).map(|value| (name, text(&value))));
    }
    let dates = ["departure_date", "checkin_date"]
        .iter()
        .find_map(|name| sweep.get(*name));
    for (field, end) in [("first", "from"), ("last", "to")] {
        fields.extend(dates.and_then(|dates| Some((field, text(dates.get(end)?)))));
    }
    fields.extend(sweep.get("nights").map(|nights| ("nights", text(nights))));
    let markets = request
        .shift_remove("proxy_country")
        .or_else(|| sweep.get("proxy_country").cloned());
    fields.extend(markets.map(|markets| ("proxy_country", text(&markets))));
    for name in ["watch", "below"] {
        let part = scan.get("strategy").and_then(|strategy| strategy.get(name));
        fields.extend(part.map(|part| (name, text(part))));
    }
    let most = scan.get("max_requests");
    fields.extend(most.map(|most| ("max_requests", text(most))));
    if !request.is_empty() {
        fields.push(("fields", Value::Object(request).to_string()));
    }
    fields
}

/// The fields of alert rules as well as they can say them.
fn rule_fields(rules: &Value) -> Vec<(&'static str, String)> {
    let rules = rules.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut fields = Vec::new();
    for rule in rules {
        let number = |name: &str| rule.get(name).map(text).unwrap_or_default();
        fields.push(match rule["type"].as_str() {
            Some("price_below") => ("price_below", number("amount")),
            Some("drop_percent") => ("drop_percent", number("percent")),
            Some("stale") => ("stale", number("runs")),
            Some("new_low") => ("new_low_days", number("days")),
            Some("percentile_at_most") => ("percentile_at_most", number("percentile")),
            Some("back_in_stock") => ("back_in_stock", "yes".to_owned()),
            Some("verdict") => ("verdict", "yes".to_owned()),
            Some("available") => ("available", "yes".to_owned()),
            Some("sold_out") => ("sold_out", "yes".to_owned()),
            _ => continue,
        });
    }
    if rules.iter().any(|rule| rule["scope"] == "cell") {
        fields.push(("scope", "cell".to_owned()));
    }
    fields
}

/// A value as the form takes it.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(", "),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn monitor(scan: &Value, alerts: &Value) -> Monitor {
        let monitor = json!({
            "id": "mon_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b", "name": "January fares",
            "schedule": {"cron": "0 6 * * *", "timezone": "Europe/London"}, "scan": scan, "alerts": alerts,
            "webhook_url": "https://example.com/", "webhook": null, "webhook_secret": null, "status": "active",
            "status_reason": null, "next_slot": null, "last_slot": null,
            "requests": {"this_month": 30, "max_per_month": 2000}, "key_custody": null, "forecast": null,
            "created_at": "2026-11-30T08:00:00Z", "updated_at": "2026-11-30T08:00:00Z"
        });
        serde_json::from_value(monitor).unwrap()
    }

    #[test]
    fn a_form_that_is_sent_back_changes_nothing() {
        for (scan, alerts, as_json) in [
            (
                json!({"endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR", "max_stops": 0},
                       "sweep": {"departure_date": {"from": "+7d", "to": "+36d"}}}),
                json!([{"type": "price_below", "amount": 200}, {"type": "verdict"}]),
                [false, false],
            ),
            (
                json!({"endpoint": "hotels/by-name", "request": {"hotel_name": "Arts"},
                       "sweep": {"checkin_date": {"from": "+7d", "to": "+7d"}, "nights": [3, 7], "proxy_country": ["us", "de"]}}),
                json!([{"type": "parity_gap_percent", "percent": 5, "baseline": "us"}]),
                [false, true],
            ),
            (
                json!({"endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR"},
                       "sweep": {"departure_date": {"from": "+7d", "to": "+36d"}}}),
                json!([{"type": "percentile_at_most", "percentile": 20, "scope": "cell"}, {"type": "new_low", "days": 30, "scope": "cell"},
                       {"type": "back_in_stock"}]),
                [false, false],
            ),
            (
                json!({"endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR"},
                       "sweep": {"departure_date": {"from": "+30d", "to": "+119d"}},
                       "strategy": {"watch": "below", "below": 149.5}, "max_requests": 18}),
                json!([]),
                [false, true],
            ),
            (
                json!({"endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR"},
                       "sweep": {"departure_date": {"from": "+30d", "to": "+119d"}},
                       "strategy": {"find": "cheapest"}, "max_requests": 18}),
                json!([]),
                [true, false],
            ),
            (
                json!({"endpoint": "flights/oneway", "request": {"from_airport": "TLV"},
                       "sweep": {"to_airport": ["LHR", "CDG"], "departure_date": ["2030-01-01"]}}),
                json!([]),
                [true, false],
            ),
        ] {
            let monitor = monitor(&scan, &alerts);
            let fields = fields_of(&monitor);
            assert_eq!(
                ["scan", "rules"].map(|name| fields.text(name).is_some()),
                as_json,
                "{fields:?}"
            );
            let body = new_form::body(&fields).unwrap();
            assert_eq!(changes(&monitor, &body), Map::new(), "{fields:?}");
        }
    }

    #[test]
    fn only_what_differs_is_changed_and_an_empty_field_removes() {
        let scan = json!({"endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR"}});
        let monitor = monitor(&scan, &json!([{"type": "new_low", "days": 30}]));
        let mut wanted = new_form::body(&fields_of(&monitor)).unwrap();
        wanted.insert("name".to_owned(), "March".into());
        wanted.shift_remove("webhook_url");
        assert_eq!(
            Value::Object(changes(&monitor, &wanted)),
            json!({"name": "March", "webhook_url": null})
        );
    }
}
