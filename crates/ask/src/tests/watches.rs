//! The bodies of watches: their names and rules.

use serde_json::{Value, json};

use super::TODAY;
use crate::read;

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
