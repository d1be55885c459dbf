//! What is told of a run: the strongest first, whatever the order of its cells, in bounds.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::evidence::{MOST_KEPT, Of, alerts, told};
use super::super::judge::Judged;
use super::super::sight::Run;
use super::super::state::{States, kept_under};
use super::super::store::{packed, unpacked};
use super::{Monitor, at, keyed, letter, rule, run};
use crate::contract::monitors::{Alert, SlotKind};
use crate::ids::{MonitorId, ScanId};
use crate::scans::cells::{Cell, Cells};

pub(super) fn of() -> Of {
    let (monitor, scan) = (MonitorId::new(), Some(ScanId::new()));
    Of {
        monitor,
        name: "January".to_owned(),
        slot: at(0),
        kind: SlotKind::Schedule,
        scan,
        fired_at: at(1),
    }
}

fn in_time() -> Instant {
    Instant::now() + Duration::from_secs(600)
}

fn told_of(rules: Vec<Value>, text: &str) -> (usize, Vec<Alert>) {
    let rules: Vec<_> = rules.into_iter().map(|value| keyed(rule(value))).collect();
    let judged = Judged::of(&of(), &rules, Vec::new(), Some(&run(text, 0)), in_time()).unwrap();
    (judged.marks.fired, judged.alerts)
}

#[test]
fn an_alert_holds_what_was_seen() {
    let mut monitor = Monitor::with(rule(json!({"type": "new_low"})));
    monitor.sees(&run("250 | 210", 0));
    let run = run("250 | 199.50 partial | degraded | empty", 1);
    let fired = monitor.sees(&run);
    let mut shown =
        serde_json::to_value(&alerts(&of(), &monitor.rules(), Some(&run), &fired)[0]).unwrap();
    for own in ["id", "monitor_id", "scan_id", "item_id"] {
        assert!(shown[own].is_string(), "{shown}");
        shown[own] = Value::Null;
    }
    insta::assert_json_snapshot!(shown);
}

#[test]
fn the_whole_scan_is_told_before_its_cells_and_the_strongest_before_the_weaker() {
    let rules = || {
        vec![
            json!({"type": "price_below", "amount": 200, "scope": "cell"}),
            json!({"type": "price_below", "amount": 190}),
        ]
    };
    let (all, alerts) = told_of(rules(), "150 | 190 | 100 | 199");
    let order: Vec<_> = alerts
        .iter()
        .map(|alert| (alert.scope.as_str(), alert.price.unwrap().to_string()))
        .collect();
    let of_cells = ["100", "150", "190", "199"].map(|price| ("cell", price.to_owned()));
    assert_eq!(
        (all, order),
        (
            5,
            [vec![("scan", "100".to_owned())], of_cells.to_vec()].concat()
        )
    );
    assert!(
        alerts.is_sorted_by(|one, other| one.id > other.id),
        "newest first begins with the strongest"
    );
}

#[test]
fn what_is_kept_and_told_of_one_run_is_bounded_and_says_so() {
    let many = (0..MOST_KEPT * 2 + 500)
        .map(|price| (price + 1).to_string())
        .collect::<Vec<_>>()
        .join(" | ");
    let (all, alerts) = told_of(
        vec![json!({"type": "price_below", "amount": 9_000_000, "scope": "cell"})],
        &many,
    );
    assert_eq!((all, alerts.len()), (MOST_KEPT * 2 + 500, MOST_KEPT));
    assert_eq!(alerts[0].price.unwrap().to_string(), "1");
    assert_eq!(
        alerts[MOST_KEPT - 1].price.unwrap().to_string(),
        MOST_KEPT.to_string()
    );
    let event = told(&of(), all, &alerts);
    assert_eq!(
        (event.alerts.len(), event.truncated, event.fired),
        (100, true, 2_500)
    );
    assert!(serde_json::to_string(&event).unwrap().len() < 201_000);

    let long: Vec<_> = alerts
        .into_iter()
        .map(|alert| Alert {
            buy_link: Some("x".repeat(30_000)),
            ..alert
        })
        .take(10)
        .collect();
    let event = told(&of(), 10, &long);
    assert_eq!(
        (event.alerts.len(), event.truncated),
        (6, true),
        "links may be long"
    );
    let event = told(&of(), 1, &long[..1]);
    assert_eq!((event.alerts.len(), event.truncated), (1, false));
}

#[test]
fn a_slot_without_a_run_is_told_by_the_cell_that_it_was_about() {
    let mut monitor = Monitor::with(rule(json!({"type": "stale", "runs": 2, "scope": "cell"})));
    monitor.sees(&run("250 | degraded", 0));
    let fired = monitor.has_no_run();
    let of = Of { scan: None, ..of() };
    let alerts = alerts(&of, &monitor.rules(), None, &fired);
    assert_eq!(alerts.len(), 1);
    assert_eq!(
        alerts[0].cell,
        json!({"departure_date": "2030-01-02"})
            .as_object()
            .unwrap()
            .clone()
    );
    assert_eq!(
        (alerts[0].scan_id, alerts[0].price, &alerts[0].searched),
        (None, None, &None)
    );
    assert_eq!(alerts[0].state_after.runs_without_answer, Some(2));
    assert_eq!(
        fired
            .iter()
            .map(|firing| letter(&firing.key))
            .collect::<Vec<_>>(),
        ["b"]
    );
}

/// Keys of kilobytes are kept as digests of 16 bytes; what is told of such cells is told whole.
#[test]
fn cells_with_long_keys_are_told_by_their_values() {
    let mut sold_out = Monitor::with(rule(json!({"type": "sold_out", "scope": "cell"})));
    sold_out.sees(&long(&run("300 | 310", 0)));
    let now = long(&run("300 | empty", 1));
    let fired = sold_out.sees(&now);
    let told = alerts(&of(), &sold_out.rules(), Some(&now), &fired);
    assert_eq!((told.len(), &told[0].cell), (1, &now.cells.all[1].values));
    assert!(
        sold_out.states.keys().all(|key| key.len() == 33),
        "{:?}",
        sold_out.states.keys()
    );

    let mut stale = Monitor::with(rule(json!({"type": "stale", "runs": 1, "scope": "cell"})));
    stale.sees(&long(&run("300", 0)));
    let fired = stale.has_no_run();
    let told = alerts(&Of { scan: None, ..of() }, &stale.rules(), None, &fired);
    assert_eq!((told.len(), &told[0].cell), (1, &now.cells.all[0].values));
}

/// What was kept under the whole of a long key before is found again.
#[test]
fn states_under_long_keys_are_read() {
    for of in [
        json!({"type": "new_low", "scope": "cell"}),
        json!({"type": "new_low"}),
        json!({"type": "stale", "runs": 2, "scope": "cell"}),
    ] {
        let mut monitor = Monitor::with(rule(of));
        let (first, second) = (
            long(&run("300 | 310 | degraded", 0)),
            long(&run("290 | degraded | degraded", 1)),
        );
        monitor.sees(&first);
        let kept = monitor.states.clone();
        let whole = |key: &str| {
            let long = first
                .cells
                .all
                .iter()
                .find(|cell| *kept_under(&monitor.rule, &cell.key) == *key);
            long.map_or_else(|| key.to_owned(), |cell| cell.key.clone())
        };
        let mut before = kept
            .iter()
            .map(|(key, state)| (whole(key), state.clone()))
            .collect::<States>();
        for anchor in before
            .values_mut()
            .filter_map(|state| state.anchor.as_mut())
        {
            anchor.cell = first.cells.all[0].key.clone();
        }
        assert_eq!(
            unpacked(&monitor.rule, &packed(&kept).unwrap()).unwrap(),
            kept
        );
        monitor.states = unpacked(&monitor.rule, &packed(&before).unwrap()).unwrap();
        assert_eq!(
            monitor.states.keys().collect::<Vec<_>>(),
            kept.keys().collect::<Vec<_>>()
        );
        assert_eq!(monitor.sees(&second).len(), 1, "{:?}", monitor.rule);
        // The cell that had the lowest price was looked at, so a rise is one.
        if monitor.states.contains_key(super::WHOLE_SCAN) {
            monitor.sees(&long(&run("400 | degraded | degraded", 2)));
            assert!(monitor.states[super::WHOLE_SCAN].armed);
        }
    }
}

/// The same run with a list of airlines in each cell.
fn long(run: &Run) -> Run {
    let airlines: Vec<_> = (10..90).map(|number| format!("A{number}")).collect();
    let cells = run.cells.all.iter().map(|cell| {
        let mut values = cell.values.clone();
        values.insert("airline_codes".to_owned(), json!(airlines));
        Cell {
            key: Value::Object(values.clone()).to_string(),
            values,
            items: cell.items.clone(),
        }
    });
    Run::new(Cells {
        endpoint: run.cells.endpoint,
        request: run.cells.request.clone(),
        all: cells.collect(),
    })
}

/// When the time is up, what is left remembers what it did, and the slot says so. What cannot be read begins anew.
#[test]
fn what_cannot_be_judged_is_told() {
    let rules: Vec<_> = [190, 195, 200]
        .map(|amount| keyed(rule(json!({"type": "price_below", "amount": amount}))))
        .into();
    let run = run("150", 0);
    let kept: Vec<_> = rules
        .iter()
        .skip(1)
        .map(|(key, _)| (*key, b"not packed".to_vec()))
        .collect();
    let late = Judged::of(&of(), &rules, kept.clone(), Some(&run), Instant::now()).unwrap();
    assert_eq!((late.marks.fired, &late.states), (0, &kept));
    let why = late.marks.failure.unwrap();
    assert!(
        why.starts_with("`alerts[0]` and what follows were not judged"),
        "{why}"
    );
    let judged = Judged::of(&of(), &rules, kept, Some(&run), in_time()).unwrap();
    assert_eq!((judged.marks.fired, judged.states.len()), (3, 3));
    let why = judged.marks.failure.unwrap();
    assert_eq!(why.matches("began anew").count(), 2, "{why}");
    let again = Judged::of(&of(), &rules, judged.states, Some(&run), in_time()).unwrap();
    assert_eq!((again.marks.fired, again.marks.failure), (0, None));
}
