//! A stored monitor as the fields of its form, and what a sent form changes of it.

use farescan_sheets::draft::{ScanDraft, date_fields, entered};
use farescan_sheets::rule::main_field;
use serde_json::{Map, Value, json};

use super::channel_choice;
use super::new_form::{self, REPEATS, RULES, SEARCH_FIELDS};
use crate::form::FormFields;
use farescan_core::contract::monitors::{LookbackDays, Monitor, MonitorRequest};

type Pairs = Vec<(String, String)>;

/// The body that would create this monitor, as far as the form has it.
pub(super) fn body_of(monitor: &Monitor) -> Map<String, Value> {
    let mut body = monitor.backtest_body().unwrap_or_default();
    body.insert("channels".to_owned(), json!(monitor.channels));
    body.insert("webhook_url".to_owned(), json!(monitor.webhook_url));
    body
}

/// The fields of a form that stand for exactly this body. What has no field of its own stands there
/// as JSON.
pub(super) fn fields_of(body: &Map<String, Value>) -> FormFields {
    let of = |name: &str| body.get(name).unwrap_or(&Value::Null);
    let (scan, rules) = (of("scan"), of("alerts"));
    let mut pairs = schedule_pairs(&entered(&of("schedule")["cron"]));
    pairs.extend([
        pair("name", of("name")),
        pair("timezone", &of("schedule")["timezone"]),
        pair("webhook_url", of("webhook_url")),
        pair("max_requests_per_month", of("max_requests_per_month")),
        pair("endpoint", &scan["endpoint"]),
    ]);
    let channels = of("channels").as_array().into_iter().flatten();
    pairs.extend(channels.map(|id| pair(channel_choice::FIELD, id)));
    let draft = scan.as_object().and_then(ScanDraft::of);
    let scan_pairs = draft.map(scan_pairs).unwrap_or_default();
    let rule_pairs = rule_pairs(rules);
    let all = [&pairs[..], &scan_pairs, &rule_pairs].concat();
    let made = new_form::body(&FormFields::from_pairs(all)).unwrap_or_default();
    for (name, field, fields) in [
        ("scan", "scan", scan_pairs),
        ("alerts", "rules", rule_pairs),
    ] {
        if made.get(name) == Some(of(name)) {
            pairs.extend(fields);
        } else {
            let json = serde_json::to_string_pretty(of(name)).unwrap_or_default();
            pairs.push((field.to_owned(), json));
        }
    }
    pairs.retain(|(_, text)| !text.is_empty());
    FormFields::from_pairs(pairs)
}

fn pair(name: &str, value: &Value) -> (String, String) {
    (name.to_owned(), entered(value))
}

/// The body of a new monitor that asks what a scan has asked: a question becomes a watch of a few requests,
/// and "below" its alert. Of other scans all searches are repeated, and each new low is an alert. Its dates
/// are as the form has them.
pub(super) fn body_like(name: &str, mut scan: ScanDraft) -> Map<String, Value> {
    let strategy = scan.options.get("strategy").cloned().unwrap_or_default();
    scan.options.clear();
    scan.sweep_dates();
    if let Some(goal) = strategy.get("find") {
        let mut watch = json!({"watch": goal});
        if let Some(below) = strategy.get("below") {
            watch["below"] = below.clone();
        }
        scan.options.insert("strategy".to_owned(), watch);
        let most = farescan_ask::body::run_limit(u32::MAX);
        scan.options.insert("max_requests".to_owned(), most.into());
    }
    let alerts = match strategy.get("below") {
        Some(below) => json!([{"type": "price_below", "amount": below}]),
        None => json!([{"type": "new_low", "days": LookbackDays::THIRTY.get()}]),
    };
    MonitorRequest::draft(name, ["0 6 * * *", "UTC"], scan.into_body(), alerts)
}

/// The choice and time that make this cron text, or the text itself.
fn schedule_pairs(cron: &str) -> Pairs {
    let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let mut parts = cron.split(' ').map(|part| part.parse::<u8>().ok());
    let minute = parts.next().flatten().unwrap_or_default();
    let hour = parts.next().flatten().unwrap_or_default();
    let time = format!("{hour:02}:{minute:02}");
    let mut known = REPEATS
        .iter()
        .map(|(repeat, _)| vec![pair("repeat", repeat), pair("time", &time)]);
    let makes = |pairs: &Pairs| new_form::cron(&FormFields::from_pairs(pairs.clone())) == cron;
    known
        .find(makes)
        .unwrap_or_else(|| vec![pair("repeat", "cron"), pair("cron", cron)])
}

/// The body of a `PATCH` that turns the `stored` monitor into what `wanted` describes: only what
/// differs, so that a change of another field by someone else stays.
pub(super) fn changes(
    stored: &Map<String, Value>,
    wanted: &Map<String, Value>,
) -> Map<String, Value> {
    let wanted = |name: &str| wanted.get(name).cloned().unwrap_or_default();
    let differs = stored
        .iter()
        .filter(|(name, value)| wanted(name) != **value);
    differs
        .map(|(name, _)| (name.clone(), wanted(name)))
        .collect()
}

/// The fields of a scan as well as they can say it.
fn scan_pairs(mut draft: ScanDraft) -> Pairs {
    let mut pairs: Vec<_> = draft.option_pairs().collect();
    let date = date_fields(draft.endpoint).next();
    if let Some(range) = date.and_then(|date| draft.sweep.get(date)?.as_object()) {
        for (field, end) in [("first", "from"), ("last", "to")] {
            pairs.extend(range.get(end).map(|day| pair(field, day)));
        }
    }
    for name in SEARCH_FIELDS.into_iter().chain(["nights", "samples"]) {
        pairs.extend(draft.take(name).map(|value| pair(name, &value)));
    }
    if !draft.request.is_empty() {
        pairs.push(pair("fields", &draft.request.into()));
    }
    pairs
}

/// The fields of alert rules as well as they can say them.
fn rule_pairs(rules: &Value) -> Pairs {
    let rules = rules.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut pairs = Vec::new();
    for rule in rules {
        let known = RULES.iter().find(|(_, of)| rule["type"] == of.as_str());
        if let Some((field, of)) = known {
            let number = main_field(*of).map(|number| &rule[number]);
            pairs.push(pair(field, number.unwrap_or(&json!("yes"))));
        }
    }
    if rules.iter().any(|rule| rule["scope"] == "cell") {
        pairs.push(("scope".to_owned(), "cell".to_owned()));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn monitor(scan: &Value, alerts: &Value) -> Monitor {
        let monitor = json!({
            "id": "mon_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b", "name": "January fares",
            "schedule": {"cron": "0 6 * * *", "timezone": "Europe/London"}, "scan": scan, "alerts": alerts,
            "channels": ["chn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b"], "webhook_url": "https://example.com/", "webhook": null, "webhook_secret": null, "status": "active",
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
                json!({"endpoint": "hotels/by-name", "request": {"hotel_name": "Arts"},
                       "sweep": {"checkin_date": {"from": "+7d", "to": "+7d"}, "nights": [3], "proxy_country": ["us", "de"], "samples": 3}}),
                json!([{"type": "every_run"}]),
                [false, false],
            ),
            (
                json!({"endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR"},
                       "sweep": {"departure_date": {"from": "+7d", "to": "+36d"}}}),
                json!([{"type": "percentile_at_most", "percentile": 20, "scope": "cell"}, {"type": "new_low", "days": 30, "scope": "cell"},
                       {"type": "back_in_stock"}, {"type": "every_run"}]),
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
            let stored = body_of(&monitor);
            let fields = fields_of(&stored);
            assert_eq!(
                ["scan", "rules"].map(|name| fields.text(name).is_some()),
                as_json,
                "{fields:?}"
            );
            let body = new_form::body(&fields).unwrap();
            assert_eq!(changes(&stored, &body), Map::new(), "{fields:?}");
        }
    }

    #[test]
    fn only_what_differs_is_changed_and_an_empty_field_removes() {
        let scan = json!({"endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR"}});
        let monitor = monitor(&scan, &json!([{"type": "new_low", "days": 30}]));
        let stored = body_of(&monitor);
        let mut wanted = new_form::body(&fields_of(&stored)).unwrap();
        wanted.insert("name".to_owned(), "March".into());
        wanted.shift_remove("webhook_url");
        wanted.insert("channels".to_owned(), json!([]));
        assert_eq!(
            Value::Object(changes(&stored, &wanted)),
            json!({"name": "March", "channels": [], "webhook_url": null})
        );
    }
}
