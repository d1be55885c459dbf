//! The alerts and the webhook event of a run.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::alert_builder::{MAX_STORED_ALERTS, RunInfo, build_alerts, webhook_event};
use super::super::report::RunReport;
use super::super::rules;
use super::super::run_firings::RunFirings;
use super::super::run_snapshot::RunSnapshot;
use super::super::state::ScopeStates;
use super::super::store::{decode_states, encode_states};
use super::{TestMonitor, at, cell_name, rule, run, snapshot, with_key};
use crate::contract::monitors::{Alert, SlotKind};
use crate::ids::{MonitorId, ScanId};
use crate::scans::cells::{ScanCell, ScanCells};

pub(super) fn run_info() -> RunInfo {
    let (monitor, scan) = (MonitorId::new(), Some(ScanId::new()));
    RunInfo {
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

fn alerts_of(rules: Vec<Value>, text: &str) -> (usize, Vec<Alert>) {
    let rules: Vec<_> = rules
        .into_iter()
        .map(|value| with_key(rule(value)))
        .collect();
    let judged = RunReport::build(
        &run_info(),
        &rules,
        Vec::new(),
        Some(&run(text, 0)),
        in_time(),
        RunFirings::default(),
    )
    .unwrap();
    (judged.record.fired, judged.alerts)
}

#[test]
fn an_alert_holds_what_the_run_saw() {
    let mut monitor = TestMonitor::with(rule(json!({"type": "new_low", "days": 30})));
    monitor.run(&run("250 | 210", 0));
    let run = run("250 | 199.50 partial | degraded | empty", 1);
    let fired = monitor.run(&run);
    let mut shown =
        serde_json::to_value(&build_alerts(&run_info(), &monitor.rules(), Some(&run), &fired)[0])
            .unwrap();
    for own in ["id", "monitor_id", "scan_id", "item_id"] {
        assert!(shown[own].is_string(), "{shown}");
        shown[own] = Value::Null;
    }
    insta::assert_json_snapshot!(shown);
}

#[test]
fn alerts_list_the_scan_before_cells_and_strong_before_weak() {
    let rules = || {
        vec![
            json!({"type": "price_below", "amount": 200, "scope": "cell"}),
            json!({"type": "price_below", "amount": 190}),
        ]
    };
    let (all, alerts) = alerts_of(rules(), "150 | 190 | 100 | 199");
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
fn the_alerts_of_a_run_and_its_event_are_bounded() {
    let many = (0..MAX_STORED_ALERTS * 2 + 500)
        .map(|price| (price + 1).to_string())
        .collect::<Vec<_>>()
        .join(" | ");
    let (all, alerts) = alerts_of(
        vec![json!({"type": "price_below", "amount": 9_000_000, "scope": "cell"})],
        &many,
    );
    assert_eq!(
        (all, alerts.len()),
        (MAX_STORED_ALERTS * 2 + 500, MAX_STORED_ALERTS)
    );
    assert_eq!(alerts[0].price.unwrap().to_string(), "1");
    assert_eq!(
        alerts[MAX_STORED_ALERTS - 1].price.unwrap().to_string(),
        MAX_STORED_ALERTS.to_string()
    );
    let event = webhook_event(&run_info(), all, &alerts);
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
    let event = webhook_event(&run_info(), 10, &long);
    assert_eq!(
        (event.alerts.len(), event.truncated),
        (6, true),
        "links may be long"
    );
    let event = webhook_event(&run_info(), 1, &long[..1]);
    assert_eq!((event.alerts.len(), event.truncated), (1, false));
}

#[test]
fn an_alert_of_a_slot_without_a_run_names_its_cell() {
    let mut monitor = TestMonitor::with(rule(json!({"type": "stale", "runs": 2, "scope": "cell"})));
    monitor.run(&run("250 | degraded", 0));
    let fired = monitor.run_missing();
    let of = RunInfo {
        scan: None,
        ..run_info()
    };
    let alerts = build_alerts(&of, &monitor.rules(), None, &fired);
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
            .map(|firing| cell_name(&firing.key))
            .collect::<Vec<_>>(),
        ["b"]
    );
}

/// Keys of kilobytes are stored as digests of 16 bytes.
#[test]
fn an_alert_shows_all_values_of_a_cell_with_a_long_key() {
    let mut sold_out = TestMonitor::with(rule(json!({"type": "sold_out", "scope": "cell"})));
    sold_out.run(&long(&run("300 | 310", 0)));
    let now = long(&run("300 | empty", 1));
    let fired = sold_out.run(&now);
    let alerts = build_alerts(&run_info(), &sold_out.rules(), Some(&now), &fired);
    assert_eq!(
        (alerts.len(), &alerts[0].cell),
        (1, &now.cells.all[1].values)
    );
    assert!(
        sold_out.states.keys().all(|key| key.len() == 33),
        "{:?}",
        sold_out.states.keys()
    );

    let mut stale = TestMonitor::with(rule(json!({"type": "stale", "runs": 1, "scope": "cell"})));
    stale.run(&long(&run("300", 0)));
    let fired = stale.run_missing();
    let alerts = build_alerts(
        &RunInfo {
            scan: None,
            ..run_info()
        },
        &stale.rules(),
        None,
        &fired,
    );
    assert_eq!(
        (alerts.len(), &alerts[0].cell),
        (1, &now.cells.all[0].values)
    );
}

#[test]
fn states_of_older_versions_with_long_keys_are_read() {
    for of in [
        json!({"type": "new_low", "days": 30, "scope": "cell"}),
        json!({"type": "new_low", "days": 30}),
        json!({"type": "stale", "runs": 2, "scope": "cell"}),
    ] {
        let mut monitor = TestMonitor::with(rule(of));
        let (first, second) = (
            long(&run("240 | 250 | degraded", 0)),
            long(&run("190 | degraded | degraded", 1)),
        );
        monitor.run(&first);
        let kept = monitor.states.clone();
        let whole = |key: &str| {
            let long = first
                .cells
                .all
                .iter()
                .find(|cell| *rules::of(&monitor.rule).state_key(&cell.key) == *key);
            long.map_or_else(|| key.to_owned(), |cell| cell.key.clone())
        };
        let mut before = kept
            .iter()
            .map(|(key, state)| (whole(key), state.clone()))
            .collect::<ScopeStates>();
        for anchor in before
            .values_mut()
            .filter_map(|state| state.anchor.as_mut())
        {
            anchor.cell = first.cells.all[0].key.clone();
        }
        assert_eq!(
            decode_states(&monitor.rule, &encode_states(&kept).unwrap()).unwrap(),
            kept
        );
        monitor.states = decode_states(&monitor.rule, &encode_states(&before).unwrap()).unwrap();
        assert_eq!(
            monitor.states.keys().collect::<Vec<_>>(),
            kept.keys().collect::<Vec<_>>()
        );
        assert_eq!(monitor.run(&second).len(), 1, "{:?}", monitor.rule);
        // The cell that had the lowest price was searched, so the rise is confirmed.
        if monitor.states.contains_key(super::WHOLE_SCAN) {
            monitor.run(&long(&run("400 | degraded | degraded", 2)));
            assert!(monitor.states[super::WHOLE_SCAN].armed);
        }
    }
}

/// The same run with a list of airlines in each cell.
fn long(run: &RunSnapshot) -> RunSnapshot {
    let airlines: Vec<_> = (10..90).map(|number| format!("A{number}")).collect();
    let cells = run.cells.all.iter().map(|cell| {
        let mut values = cell.values.clone();
        values.insert("airline_codes".to_owned(), json!(airlines));
        ScanCell {
            key: Value::Object(values.clone()).to_string(),
            values,
            items: cell.items.clone(),
        }
    });
    snapshot(ScanCells {
        searched_known_low: true,
        created_at: jiff::Timestamp::UNIX_EPOCH,
        endpoint: run.cells.endpoint,
        request: run.cells.request.clone(),
        all: cells.collect(),
    })
}

/// After the time limit, the remaining rules keep their states. An unreadable state is reset.
#[test]
fn the_record_names_rules_that_were_not_evaluated() {
    let rules: Vec<_> = [190, 195, 200]
        .map(|amount| with_key(rule(json!({"type": "price_below", "amount": amount}))))
        .into();
    let run = run("150", 0);
    let kept: Vec<_> = rules
        .iter()
        .skip(1)
        .map(|(key, _)| (*key, b"not packed".to_vec()))
        .collect();
    let late = RunReport::build(
        &run_info(),
        &rules,
        kept.clone(),
        Some(&run),
        Instant::now(),
        RunFirings::default(),
    )
    .unwrap();
    assert_eq!((late.record.fired, &late.states), (0, &kept));
    let why = late.record.failure.unwrap();
    assert!(
        why.starts_with("`alerts[0]` and the rules after it were not evaluated"),
        "{why}"
    );
    let judged = RunReport::build(
        &run_info(),
        &rules,
        kept,
        Some(&run),
        in_time(),
        RunFirings::default(),
    )
    .unwrap();
    assert_eq!((judged.record.fired, judged.states.len()), (3, 3));
    let why = judged.record.failure.unwrap();
    assert_eq!(why.matches("was unreadable").count(), 2, "{why}");
    let again = RunReport::build(
        &run_info(),
        &rules,
        judged.states,
        Some(&run),
        in_time(),
        RunFirings::default(),
    )
    .unwrap();
    assert_eq!((again.record.fired, again.record.failure), (0, None));
}
