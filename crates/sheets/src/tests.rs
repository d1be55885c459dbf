//! Each field of a resource is shown by its sheet, or left out for a reason.

mod fare;
mod monitors;

use std::collections::BTreeSet;

use farescan_contract::Api;
use farescan_contract::quota::{LanePaused, LaneQuota, OwnBounds};
use farescan_contract::scans::{
    AvoidedRequests, BestPrice, ChangeCounts, ComparedCell, Comparison, FindProgress,
    ImplausiblePrice, Item, ItemCounts, KeyCustody, RequestCounts, RequestRange, Scan, ScanPreview,
    SeenPrice, Warning,
};
use farescan_contract::usage::{AttemptCounts, Usage, UsageMoney};
use farescan_contract::utoipa::PartialSchema;
use serde_json::{Value, json};

use crate::price_table::PriceTable;
use crate::scan::Cheapest;
use crate::{compare, item, plan, preview, scan, usage};

/// The names of the fields of a type, sorted.
fn fields<T: PartialSchema>() -> BTreeSet<String> {
    let schema = serde_json::to_value(T::schema()).unwrap();
    schema["properties"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect()
}

/// Asserts that an object has each field of its type, with a value.
fn assert_filled(value: &Value, pointer: &str, fields: &BTreeSet<String>) {
    let object = value.pointer(pointer).and_then(Value::as_object).unwrap();
    let filled = object.iter().filter(|(_, value)| !value.is_null());
    let filled: BTreeSet<_> = filled.map(|(name, _)| name.clone()).collect();
    assert_eq!(&filled, fields, "{pointer:?}");
}

/// The pointers to each value that is no object and no list.
fn leaves(value: &Value, pointer: &str, found: &mut Vec<String>) {
    let mut each = |name: &str, value: &Value| leaves(value, &format!("{pointer}/{name}"), found);
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| each(name, value)),
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                each(&index.to_string(), value);
            }
        }
        _ => found.push(pointer.to_owned()),
    }
}

/// A value with a few others in it.
fn with(value: &Value, others: &[(&str, Value)]) -> Value {
    let mut value = value.clone();
    for (pointer, other) in others {
        value.pointer_mut(pointer).unwrap().clone_from(other);
    }
    value
}

/// Asserts that a sheet changes with each value of the first of these resources, except of what is
/// left out. The resources are one that is filled and states of it; `other` differs in each value.
fn assert_shown(states: &[Value], other: &Value, left_out: &[&str], sheet: fn(&Value) -> String) {
    let mut pointers = Vec::new();
    leaves(&states[0], "", &mut pointers);
    let is_shown = |pointer: &str| {
        let other = other.pointer(pointer).unwrap();
        states.iter().any(|state| {
            let found = state.pointer(pointer);
            assert_ne!(found, Some(other), "{pointer} does not differ");
            found.is_some_and(|found| !found.is_null())
                && sheet(state) != sheet(&with(state, &[(pointer, other.clone())]))
        })
    };
    let pointers = pointers.iter().map(String::as_str);
    let hidden: BTreeSet<_> = pointers.filter(|pointer| !is_shown(pointer)).collect();
    assert_eq!(hidden, left_out.iter().copied().collect());
}

fn scan_sheet(value: &Value) -> String {
    let scan: Scan = serde_json::from_value(value.clone()).unwrap();
    format!("{:?}", scan::sheet(&scan, Cheapest::default()))
}

fn filled_scan() -> Value {
    json!({
        "id": "scn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b", "endpoint": "flights/oneway",
        "request": {"from_airport": "TLV"}, "sweep": {"to_airport": ["LHR", "CDG"]},
        "label": "January", "tags": ["demo"], "status": "cancelled", "status_reason": "by_caller",
        "items": {"total": 90, "pending": 1, "running": 2, "ok": 3, "empty": 4, "partial": 5, "degraded": 6,
                  "failed": 7, "cancelled": 8},
        "requests": {"planned": 91, "spent": 9, "max": 92,
                     "avoided": {"reused": 10, "joined": 11, "not_needed": 12}},
        "max_age_seconds": 3600,
        "strategy": {
            "find": "below", "below": 150, "max_risk": 0.05,
            "best": {"item": "itm_01970a1b2c3d7e4f8a9b0c1d2e3f4a5c", "date": "2027-01-14", "price": 164, "currency": "USD"},
            "risk_of_cheaper": 0.25, "risk_of_miss": 0.5, "counted": {"questions": 40, "missed": 20},
            "stored_prices": 13, "searched": 14, "reused": 15, "unsearched": 16, "decisions": 17,
            "ended_by": "nothing_below"
        },
        "best": {"price": 164, "currency": "USD", "item": "itm_01970a1b2c3d7e4f8a9b0c1d2e3f4a5c"},
        "implausible": [{"price": 60, "currency": "USD", "item": "itm_01970a1b2c3d7e4f8a9b0c1d2e3f4a5d",
                         "usual": {"price": 200, "since": "2027-01-01"}}],
        "progress": 0.5, "eta_seconds": 18, "monitor_id": "mon_01970a1b2c3d7e4f8a9b0c1d2e3f4a5e",
        "key_custody": {"until": "2027-01-05T08:00:00Z"}, "created_at": "2026-12-01T08:00:00Z",
        "started_at": "2026-12-01T08:00:01Z", "finished_at": "2026-12-01T08:10:00Z",
    })
}

fn other_scan() -> Value {
    json!({
        "id": "scn_02970a1b2c3d7e4f8a9b0c1d2e3f4a5b", "endpoint": "flights/roundtrip",
        "request": {"from_airport": "HFA"}, "sweep": {"to_airport": ["LGW", "ORY"]},
        "label": "February", "tags": ["other"], "status": "queued", "status_reason": "moving",
        "items": {"total": 190, "pending": 101, "running": 102, "ok": 103, "empty": 104, "partial": 105,
                  "degraded": 106, "failed": 107, "cancelled": 108},
        "requests": {"planned": 191, "spent": 109, "max": 192,
                     "avoided": {"reused": 110, "joined": 111, "not_needed": 112}},
        "max_age_seconds": 7200,
        "strategy": {
            "find": "cheapest", "below": 151, "max_risk": 0.1,
            "best": {"item": "itm_02970a1b2c3d7e4f8a9b0c1d2e3f4a5c", "date": "2027-01-15", "price": 140, "currency": "EUR"},
            "risk_of_cheaper": 0.75, "risk_of_miss": 0.6, "counted": {"questions": 80, "missed": 30},
            "stored_prices": 113, "searched": 114, "reused": 115, "unsearched": 116, "decisions": 117,
            "ended_by": "limit_reached"
        },
        "best": {"price": 165, "currency": "EUR", "item": "itm_02970a1b2c3d7e4f8a9b0c1d2e3f4a5c"},
        "implausible": [{"price": 61, "currency": "EUR", "item": "itm_02970a1b2c3d7e4f8a9b0c1d2e3f4a5d",
                         "usual": {"price": 201, "since": "2027-01-02"}}],
        "progress": 0.6, "eta_seconds": 118, "monitor_id": "mon_02970a1b2c3d7e4f8a9b0c1d2e3f4a5e",
        "key_custody": {"until": "2027-02-05T08:00:00Z"}, "created_at": "2026-12-02T08:00:00Z",
        "started_at": "2026-12-01T07:00:01Z", "finished_at": "2026-12-02T08:10:00Z",
    })
}

#[test]
fn each_field_of_a_scan_is_shown_or_left_out() {
    let filled = filled_scan();
    for (pointer, fields) in [
        ("", fields::<Scan>()),
        ("/items", fields::<ItemCounts>()),
        ("/requests", fields::<RequestCounts>()),
        ("/requests/avoided", fields::<AvoidedRequests>()),
        ("/strategy", fields::<FindProgress>()),
        ("/best", fields::<BestPrice>()),
        ("/implausible/0", fields::<ImplausiblePrice>()),
        ("/key_custody", fields::<KeyCustody>()),
    ] {
        assert_filled(&filled, pointer, &fields);
    }
    let state = |others: &[(&str, Value)]| with(&filled, others);
    let states = [
        filled.clone(),
        state(&[("/status_reason", Value::Null)]),
        state(&[("/finished_at", Value::Null)]),
        state(&[("/finished_at", Value::Null), ("/started_at", Value::Null)]),
        state(&[("/strategy/risk_of_miss", Value::Null)]),
    ];
    let left_out = [
        // Each face has it where it is copied.
        "/id",
        // The item has all of its history.
        "/implausible/0/usual/since",
        // The rest of the total.
        "/items/pending",
        // What was reused is shown.
        "/max_age_seconds",
        // The monitor lists its runs.
        "/monitor_id",
        // The items that have ended are shown; a page draws it as a bar.
        "/progress",
        // The strategy says it: not searched.
        "/requests/avoided/not_needed",
        // The best price of the scan is shown.
        "/strategy/best/currency",
        "/strategy/best/date",
        "/strategy/best/item",
        // The API lists the decisions.
        "/strategy/decisions",
        // Its sentence says how it ended, and the decisions why.
        "/strategy/ended_by",
        // As requested; the risk that was counted is shown.
        "/strategy/max_risk",
        // What it began with: the decisions have it.
        "/strategy/stored_prices",
    ];
    assert_shown(&states, &other_scan(), &left_out, scan_sheet);
}

fn preview_sheet(value: &Value) -> String {
    let preview: ScanPreview = serde_json::from_value(value.clone()).unwrap();
    let body = json!({"endpoint": "flights/oneway", "request": {}, "sweep": {}});
    format!("{:?}", preview::sheet(&preview, body.as_object().unwrap()))
}

#[test]
fn each_field_of_a_preview_is_shown_or_left_out() {
    let plan = |plan: &str, usd: u32| {
        json!({"plan": plan, "current": usd == 0, "usd_per_month": usd, "requests_left": usd + 10,
               "fit": if usd == 0 { "not_possible" } else { "included" },
               "overage_requests": {"least": usd, "most": usd + 1}, "overage_usd": {"least": usd, "most": usd + 1}})
    };
    let filled = json!({
        "endpoint": "flights/oneway", "items": 18, "requests": {"least": 18, "expected": 20, "most": 36},
        "max_age_seconds": 3600, "reused": 4,
        "first": {"from_airport": "TLV", "departure_date": "2027-01-01"},
        "last": {"from_airport": "TLV", "departure_date": "2027-01-29"},
        "searches_per_minute": 60.0, "seconds": 19, "plan_requests_remaining": 2400, "plans": [plan("basic", 0)],
        "warnings": [{"kind": "over_quota", "message": "too many"}],
    });
    let other = json!({
        "endpoint": "flights/roundtrip", "items": 19, "requests": {"least": 17, "expected": 21, "most": 37},
        "max_age_seconds": 7200, "reused": 5,
        "first": {"from_airport": "HFA", "departure_date": "2027-01-02"},
        "last": {"from_airport": "HFA", "departure_date": "2027-01-30"},
        "searches_per_minute": 61.0, "seconds": 20, "plan_requests_remaining": 2401, "plans": [plan("pro", 10)],
        "warnings": [{"kind": "lane_paused", "message": "paused"}],
    });
    for (pointer, fields) in [
        ("", fields::<ScanPreview>()),
        ("/requests", fields::<RequestRange>()),
        ("/warnings/0", fields::<Warning>()),
    ] {
        assert_filled(&filled, pointer, &fields);
    }
    let mut plan = Vec::new();
    leaves(&filled["plans"], "/plans", &mut plan);
    // The title and the facts have the ranges of the searches, of which the first is shown.
    let last = ["/last/departure_date", "/last/from_airport"].map(str::to_owned);
    // What is reused is shown. The plans are a table of each face. The message says what a warning is.
    let [age, kind] = ["/max_age_seconds", "/warnings/0/kind"].map(str::to_owned);
    let left_out: Vec<_> = last
        .into_iter()
        .chain([age])
        .chain(plan)
        .chain([kind])
        .collect();
    let left_out: Vec<_> = left_out.iter().map(String::as_str).collect();
    assert_shown(&[filled], &other, &left_out, preview_sheet);
}

fn item_sheet(value: &Value) -> String {
    let item: Item = serde_json::from_value(value.clone()).unwrap();
    format!("{:?} {:?}", item::notice(&item), item::figures(&item))
}

#[test]
fn each_field_of_an_item_is_shown_or_left_out() {
    let verdict = |class: &str, sentence: &str| {
        json!({"class": class, "percentile": 18.3, "n": 214, "lower": 34, "higher": 178,
               "bin": {"from_days": 31, "to_days": 60}, "since": "2026-06-01", "sentence": sentence})
    };
    let filled = json!({
        "id": "itm_01970a1b2c3d7e4f8a9b0c1d2e3f4a5c", "scan_id": "scn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b",
        "position": 1, "search": {"from_airport": "TLV"}, "state": "done", "search_status": "degraded",
        "reason": "blocked_page", "attempts": 2, "requests_spent": 3, "results": 4, "best_price": 164,
        "currency": "USD", "observed_at": "2026-12-01T08:00:03Z", "latency_ms": 1610, "error": "blocked",
        "reused_item": "itm_01970a1b2c3d7e4f8a9b0c1d2e3f4a5d", "reused_from": "att_01970a1b2c3d7e4f8a9b0c1d2e3f4a5d",
        "age_seconds": 600, "confirming": {"price": 150, "currency": "USD", "at": "2026-12-01T08:00:00Z"},
        "history_verdict": verdict("low", "cheap"), "answer": "[]",
    });
    let other = json!({
        "id": "itm_02970a1b2c3d7e4f8a9b0c1d2e3f4a5c", "scan_id": "scn_02970a1b2c3d7e4f8a9b0c1d2e3f4a5b",
        "position": 11, "search": {"from_airport": "HFA"}, "state": "failed", "search_status": "partial",
        "reason": "sold_out", "attempts": 12, "requests_spent": 13, "results": 14, "best_price": 165,
        "currency": "EUR", "observed_at": "2026-12-02T08:00:03Z", "latency_ms": 1620, "error": "other",
        "reused_item": "itm_02970a1b2c3d7e4f8a9b0c1d2e3f4a5d", "reused_from": "att_02970a1b2c3d7e4f8a9b0c1d2e3f4a5d",
        "age_seconds": 1200, "confirming": {"price": 151, "currency": "EUR", "at": "2026-12-02T08:00:00Z"},
        "history_verdict": verdict("high", "dear"), "answer": "[1]",
    });
    assert_filled(&filled, "", &fields::<Item>());
    let verdicts = filled["history_verdict"].clone();
    // A verdict is one value: each face shows its class and its sentence.
    let filled = with(&filled, &[("/history_verdict", json!(null))]);
    let judged = with(
        &filled,
        &[("/history_verdict", verdicts), ("/confirming", json!(null))],
    );
    let left_out = [
        // Each face shows the offers of the answer, the id, the search and the way to the scan.
        "/answer",
        "/id",
        "/position",
        // The item of the answer that was reused is shown, and has its attempts.
        "/reused_from",
        "/scan_id",
        "/search/from_airport",
    ];
    assert_shown(&[filled, judged], &other, &left_out, item_sheet);
}

fn plan_sheet(value: &Value) -> String {
    let lane: LaneQuota = serde_json::from_value(value.clone()).unwrap();
    let now = "2026-12-01T08:00:00Z".parse().unwrap();
    format!("{:?}", plan::sheet(Api::Flights, &lane, now))
}

#[test]
fn each_field_of_a_plan_is_shown() {
    let filled = json!({
        "searches_per_minute": 100.0, "pace_source": "caller", "burst": 3, "max_in_flight": 12, "in_flight": 4,
        "plan_requests_limit": 2500, "plan_requests_remaining": 2412, "plan_resets_at": "2026-12-15T00:00:00Z",
        "plan_seen_at": "2026-12-01T08:00:03Z",
        "paused": {"reason": "rate_limited", "until": "2026-12-01T08:01:00Z"},
        "bounds": {"plan": "pro", "requests_per_minute": 101, "max_in_flight": 5, "keep_in_reserve": 200}
    });
    let other = json!({
        "searches_per_minute": 20.0, "pace_source": "start", "burst": 1, "max_in_flight": 8, "in_flight": 0,
        "plan_requests_limit": 500, "plan_requests_remaining": 12, "plan_resets_at": "2026-11-15T00:00:00Z",
        "plan_seen_at": "2026-12-02T08:00:03Z",
        "paused": {"reason": "reserve_reached", "until": "2026-12-02T08:01:00Z"},
        "bounds": {"plan": "ultra", "requests_per_minute": 102, "max_in_flight": 6, "keep_in_reserve": 0}
    });
    assert_filled(&filled, "", &fields::<LaneQuota>());
    assert_filled(&filled, "/bounds", &fields::<OwnBounds>());
    assert_filled(&filled, "/paused", &fields::<LanePaused>());
    assert_shown(&[filled], &other, &[], plan_sheet);
}

fn comparison_sheet(value: &Value) -> String {
    let comparison: Comparison = serde_json::from_value(value.clone()).unwrap();
    let table = PriceTable::of_comparison(&comparison, 1);
    format!("{:?} {table:?}", compare::figures(&comparison))
}

#[test]
fn each_field_of_a_comparison_is_shown_or_left_out() {
    let scan = |digit: u32| format!("scn_{digit}1970a1b2c3d7e4f8a9b0c1d2e3f4a5b");
    let item = |digit: u32| format!("itm_{digit}1970a1b2c3d7e4f8a9b0c1d2e3f4a5b");
    let seen = |price: u32, currency: &str, digit: u32| json!({"price": price, "currency": currency, "item_id": item(digit), "implausible": digit > 2});
    let comparison = |start: u32, endpoint: &str, date: &str, change: &str, cells: [Value; 2]| {
        let counts = [
            "cheaper",
            "dearer",
            "unchanged",
            "new",
            "gone",
            "not_comparable",
            "unknown",
            "no_price",
        ];
        let counts: serde_json::Map<_, _> = counts
            .into_iter()
            .zip(start..)
            .map(|(name, count)| (name.to_owned(), count.into()))
            .collect();
        let [before, after] = cells;
        json!({"endpoint": endpoint, "before": scan(start), "after": scan(start + 1), "counts": counts, "cells": [{
            "cell": {"departure_date": date}, "change": change, "before": before, "after": after,
            "difference": start, "difference_percent": start,
        }]})
    };
    let filled = comparison(
        1,
        "flights/oneway",
        "2027-02-04",
        "cheaper",
        [seen(200, "USD", 1), seen(180, "USD", 2)],
    );
    let other = comparison(
        5,
        "flights/roundtrip",
        "2027-02-05",
        "new",
        [seen(210, "EUR", 3), seen(190, "EUR", 4)],
    );
    assert_filled(&filled, "", &fields::<Comparison>());
    assert_filled(&filled, "/counts", &fields::<ChangeCounts>());
    assert_filled(&filled, "/cells/0", &fields::<ComparedCell>());
    assert_filled(&filled, "/cells/0/before", &fields::<SeenPrice>());
    let without_after = with(&filled, &[("/cells/0/after", Value::Null)]);
    let left_out = [
        // Each face has the scans beside it.
        "/after",
        "/before",
        // It is counted exactly, from the prices.
        "/cells/0/difference",
        "/cells/0/difference_percent",
        // The titles of the scans have it.
        "/endpoint",
    ];
    assert_shown(
        &[filled, without_after],
        &other,
        &left_out,
        comparison_sheet,
    );
}

fn usage_sheet(value: &Value) -> String {
    let usage: Usage = serde_json::from_value(value.clone()).unwrap();
    let money = [Api::Flights, Api::Hotels].map(|api| usage::money(api, usage.totals.of(api)));
    format!("{:?} {money:?}", usage::table(&usage, &usage.data))
}

#[test]
fn a_forecast_says_what_is_used_and_what_will_be() {
    let forecast = |limit: Option<u64>, ends_on: Option<&str>, causes: Value| {
        let forecast = json!({
            "api": "flights", "requests_limit": limit, "requests_left": 2_188, "requests_per_day": 13.2,
            "requests_expected": 250, "resets_at": "2026-12-01T00:00:00Z", "ends_on": ends_on, "causes": causes,
        });
        usage::forecast(&serde_json::from_value(forecast).unwrap())
    };
    let used = "312 of 2,500 requests of flights used; at 13.2 a day";
    let causes = json!([
        {"key": "mon_1", "name": "London", "percent": 70}, {"key": "single", "name": null, "percent": 30},
    ]);
    assert_eq!(
        forecast(Some(2_500), None, causes),
        format!(
            "{used} about 562 by 1 December 2026, when the plan is renewed; runs of \u{201c}London\u{201d} and single searches cause 100 % of that."
        )
    );
    let scans = json!([{"key": "scans", "name": null, "percent": 90}]);
    assert_eq!(
        forecast(Some(2_500), Some("2026-11-28"), scans),
        format!(
            "{used} the plan ends on 28 November 2026; scans without a monitor cause 90 % of that."
        )
    );
    assert_eq!(
        forecast(None, None, json!([])),
        "At 13.2 requests of flights a day the plan lasts until it is renewed on 1 December 2026."
    );
}

#[test]
fn each_field_of_the_usage_is_shown_or_left_out() {
    let usage = |start: u64, group: &str, texts: [&str; 4]| {
        let [key, api, day, plan] = texts;
        let status = json!({"ok": start, "empty": start + 1, "partial": start + 2, "degraded": start + 3, "none": start + 4});
        let counts = json!({"asked": start + 5, "billed": start + 6, "reused": start + 7, "not_needed": start + 8,
                            "attempts": start + 9, "search_status": status});
        let with = |fields: Value| {
            let mut all = counts.clone();
            all.as_object_mut()
                .unwrap()
                .extend(fields.as_object().unwrap().clone());
            all
        };
        let money = json!({"plan": plan, "usd_per_request": start, "billed_usd": start + 1, "saved_usd": start + 2});
        json!({"since": day, "until": day, "group": group,
               "totals": {"flights": with(json!({"money": money})), "hotels": with(json!({"money": money}))},
               "data": [with(json!({"key": key, "api": api}))], "next_cursor": key, "forecast": {}})
    };
    let filled = usage(
        1,
        "endpoint",
        ["flights/oneway", "flights", "2026-11-01", "pro"],
    );
    let other = usage(101, "day", ["2026-11-02", "hotels", "2026-11-02", "ultra"]);
    assert_filled(&filled, "", &fields::<Usage>());
    assert_filled(&filled, "/totals/flights/money", &fields::<UsageMoney>());
    assert_filled(&filled, "/data/0/search_status", &fields::<AttemptCounts>());
    let left_out = [
        // Where the next page begins.
        "/next_cursor",
        // Each face says the range beside it. The forecast has a sentence of its own.
        "/since",
        "/until",
    ];
    assert_shown(&[filled], &other, &left_out, usage_sheet);
}
