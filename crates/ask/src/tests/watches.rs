//! The bodies of watches: their names and rules.

use farescan_contract::Endpoint;
use serde_json::{Value, json};

use super::TODAY;
use crate::body::day_of_last_check;
use crate::{question_of, read};

fn watch(words: &str, rolls: bool) -> Value {
    let question = read(words, TODAY).result.unwrap();
    let searches = u32::try_from(question.searches()).unwrap();
    let body = question.parity_monitor(searches, TODAY, rolls);
    json!(body.or_else(|| question.monitor(searches, TODAY)).unwrap())
}

#[test]
fn a_watch_is_named_by_its_trip_and_dates() {
    let long = "x".repeat(200);
    for (words, rolls, name) in [
        (
            "tel aviv london march below 150",
            false,
            "TLV → London, 1 Mar to 31 Mar 2027",
        ),
        // A part of a city's airports.
        (
            "TLV to LHR or LGW 5 march below 150",
            false,
            "TLV → LHR, LGW, Fri 5 Mar 2027",
        ),
        (
            "TLV LHR 5 march 7 nights below 150",
            false,
            "TLV ⇄ LHR, Fri 5 Mar 2027",
        ),
        (
            "hotel \"Arts\" 5 march 3 nights us de",
            false,
            "Arts, Fri 5 Mar 2027: markets",
        ),
        (
            "hotel \"Arts\" 5 march 3 nights us de",
            true,
            "Arts: markets",
        ),
        (
            "hotels in Barcelona 5 march 3 nights below 400",
            false,
            "Hotels in Barcelona, Fri 5 Mar 2027",
        ),
    ] {
        assert_eq!(watch(words, rolls)["name"], name, "{words}");
    }
    let named = watch(&format!("hotel \"{long}\" 5 march 3 nights us de"), false);
    let name = named["name"].as_str().unwrap();
    assert_eq!(name.chars().count(), 200);
    assert!(name.ends_with("x…, Fri 5 Mar 2027: markets"), "{name}");
}

/// The days of check-in after a run. Today is a Tuesday, and has been looked at.
#[test]
fn dates_roll_from_the_first_run() {
    let arts = |dates: &str| format!("hotel \"Arts\" {dates} 3 nights us de");
    for (words, days) in [
        // On Monday 30 November.
        (arts("2026-12-07"), "+7d"),
        (arts("2026-11-30"), "+0d"),
        // Before it: as on Monday 23 November.
        (arts("tomorrow"), "+2d"),
        (arts("2026-11-29"), "+6d"),
        (arts("tomorrow") + " check daily", "+0d"),
        (arts("2026-12-07") + " check daily", "+12d"),
        (arts("today") + " check daily", "+0d"),
    ] {
        let watch = watch(&words, true);
        let dates = &watch["scan"]["sweep"]["checkin_date"];
        assert_eq!(dates, &json!({"from": days, "to": days}), "{words}");
    }
    let check = |time: &str| day_of_last_check(time.parse().unwrap()).to_string();
    assert_eq!(check("2026-11-30T05:59:59Z"), "2026-11-29");
    assert_eq!(check("2026-11-30T06:00:00Z"), "2026-11-30");
}

/// What a question cannot ask is not left out of it; what it asks by default is no difference.
#[test]
fn the_question_of_a_scan_is_exactly_it() {
    let flights = |request: &Value, sweep: &Value, below: Option<Value>| {
        let endpoint = Endpoint::FlightsOneway;
        let (request, sweep) = (request.as_object().unwrap(), sweep.as_object().unwrap());
        let question = question_of(endpoint, request, sweep, below.as_ref(), TODAY);
        question.map(|question| question.words())
    };
    let dates = json!({"departure_date": {"from": "2027-03-01", "to": "2027-03-05"}});
    let route = json!({"from_airport": "TLV", "to_airport": "LHR"});
    let words = "TLV → LHR, 2027-03-01 to 2027-03-05, one way, 1 adult, USD";
    let plain = flights(&route, &dates, None);
    assert_eq!(plain.as_deref(), Some(words));
    for (below, amount) in [
        (json!(150), Some("150")),
        (json!(149.5), Some("149.5")),
        (json!(150.125), None),
        (json!(0.125), None),
    ] {
        let found = flights(&route, &dates, Some(below));
        let expected = amount.map(|amount| format!("{words}, below {amount}"));
        assert_eq!(found, expected);
    }
    for (more, is_same) in [
        (json!({"currency": "USD", "passengers": [1]}), true),
        (json!({"passengers": [1, 3]}), false),
        (json!({"max_stops": 0, "limit": 50}), false),
        (json!({"from_airport": "tlv"}), false),
    ] {
        let mut request = route.clone();
        let fields = more.as_object().unwrap().clone();
        request.as_object_mut().unwrap().extend(fields);
        let found = flights(&request, &dates, None);
        assert_eq!(found.is_some(), is_same, "{more}: {found:?}");
    }
    for from in ["2027-03-01", "2026-03-01"] {
        let range = json!({"departure_date": {"from": from, "to": "2027-03-05", "step_days": 2}});
        assert_eq!(flights(&route, &range, None), None);
    }
    let passed = json!({"departure_date": {"from": "2026-03-01", "to": "2026-03-05"}});
    assert_eq!(flights(&route, &passed, None), None);
}

#[test]
fn a_weekly_watch_of_markets_reports_and_a_daily_one_alerts_of_differences() {
    let hotel = "hotel \"Arts\" 5 march 3 nights us de";
    let rules = |words: &str| watch(words, false)["alerts"].clone();
    assert_eq!(rules(hotel), json!([{"type": "every_run"}]));
    assert_eq!(
        rules(&format!("{hotel} check weekly")),
        json!([{"type": "every_run"}])
    );
    let gap = json!([{"type": "parity_gap_percent", "percent": 5, "baseline": "us"}]);
    assert_eq!(rules(&format!("{hotel} check daily")), gap);
}
