//! What is told of a run: the strongest first, whatever the order of its cells, in bounds.

use serde_json::{Value, json};

use super::super::evidence::{MOST_KEPT, Of, alerts, told};
use super::super::state::States;
use super::super::verdicts::judged;
use super::{Monitor, at, letter, rule, run};
use crate::contract::monitors::{Alert, Rule, SlotKind};
use crate::ids::{MonitorId, ScanId};

pub(super) fn of() -> Of {
    let (monitor, scan) = (MonitorId::new(), Some(ScanId::new()));
    Of { monitor, name: "January".to_owned(), slot: at(0), kind: SlotKind::Schedule, scan, fired_at: at(1) }
}

fn told_of(rules: Vec<Value>, text: &str) -> (usize, Vec<Alert>) {
    let rules: Vec<Rule> = rules.into_iter().map(rule).collect();
    let run = run(text, 0);
    let fired = judged(&rules, vec![States::new(); rules.len()], &run).fired;
    let all = fired.all;
    (all, alerts(&of(), &rules, Some(&run), &fired.in_order()))
}

#[test]
fn an_alert_holds_what_was_seen() {
    let mut monitor = Monitor::with(rule(json!({"type": "new_low"})));
    monitor.sees(&run("250 | 210", 0));
    let run = run("250 | 199.50 partial | degraded | empty", 1);
    let fired = monitor.sees(&run);
    let mut shown = serde_json::to_value(&alerts(&of(), &monitor.rules, Some(&run), &fired)[0]).unwrap();
    for own in ["id", "monitor_id", "scan_id", "item_id"] {
        assert!(shown[own].is_string(), "{shown}");
        shown[own] = Value::Null;
    }
    insta::assert_json_snapshot!(shown);
}

#[test]
fn the_whole_scan_is_told_before_its_cells_and_the_strongest_before_the_weaker() {
    let rules =
        || vec![json!({"type": "price_below", "amount": 200, "scope": "cell"}), json!({"type": "price_below", "amount": 190})];
    let (all, alerts) = told_of(rules(), "150 | 190 | 100 | 199");
    let order: Vec<_> = alerts.iter().map(|alert| (alert.scope.as_str(), alert.price.unwrap().to_string())).collect();
    let of_cells = ["100", "150", "190", "199"].map(|price| ("cell", price.to_owned()));
    assert_eq!((all, order), (5, [vec![("scan", "100".to_owned())], of_cells.to_vec()].concat()));
    assert!(alerts.is_sorted_by(|one, other| one.id > other.id), "newest first begins with the strongest");
}

#[test]
fn what_is_kept_and_told_of_one_run_is_bounded_and_says_so() {
    let many = (0..MOST_KEPT * 2 + 500).map(|price| (price + 1).to_string()).collect::<Vec<_>>().join(" | ");
    let (all, alerts) = told_of(vec![json!({"type": "price_below", "amount": 9_000_000, "scope": "cell"})], &many);
    assert_eq!((all, alerts.len()), (MOST_KEPT * 2 + 500, MOST_KEPT));
    assert_eq!(alerts[0].price.unwrap().to_string(), "1");
    assert_eq!(alerts[MOST_KEPT - 1].price.unwrap().to_string(), MOST_KEPT.to_string());
    let event = told(&of(), all, &alerts);
    assert_eq!((event.alerts.len(), event.truncated, event.fired), (100, true, 2_500));
    assert!(serde_json::to_string(&event).unwrap().len() < 201_000);

    let long: Vec<_> = alerts.into_iter().map(|alert| Alert { buy_link: Some("x".repeat(30_000)), ..alert }).take(10).collect();
    let event = told(&of(), 10, &long);
    assert_eq!((event.alerts.len(), event.truncated), (6, true), "links may be long");
    let event = told(&of(), 1, &long[..1]);
    assert_eq!((event.alerts.len(), event.truncated), (1, false));
}

#[test]
fn a_slot_without_a_run_is_told_by_the_cell_that_it_was_about() {
    let mut monitor = Monitor::with(rule(json!({"type": "stale", "runs": 2, "scope": "cell"})));
    monitor.sees(&run("250 | degraded", 0));
    let fired = monitor.has_no_run();
    let of = Of { scan: None, ..of() };
    let alerts = alerts(&of, &monitor.rules, None, &fired);
    assert_eq!(alerts.len(), 1);
    assert_eq!(alerts[0].cell, json!({"departure_date": "2030-01-02"}).as_object().unwrap().clone());
    assert_eq!((alerts[0].scan_id, alerts[0].price, &alerts[0].searched), (None, None, &None));
    assert_eq!(alerts[0].state_after.runs_without_answer, Some(2));
    assert_eq!(fired.iter().map(|firing| letter(&firing.key)).collect::<Vec<_>>(), ["b"]);
}
