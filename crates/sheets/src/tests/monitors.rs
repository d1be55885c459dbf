//! Monitors, their slots, alerts and deliveries.

use farescan_contract::monitors::{
    Alert, AlertBaseline, Backtest, BacktestAlert, BacktestCeiling, HeldAlerts, Monitor,
    MonitorForecast, MonitorRequests, MonitorSlot, NotReplayed, RuleStanding, RuleState,
    SearchedShare, SlotConfirmation, SlotJudgement, Webhook,
};
use farescan_contract::webhooks::{Delivery, DeliveryDetail, DeliveryTry};
use serde_json::{Value, json};

use super::{assert_filled, assert_shown, fields, with};
use crate::alert::Reported;
use crate::sheet::Value as SheetValue;
use crate::{alert, backtest, delivery, monitor};

fn monitor_sheet(value: &Value) -> String {
    let of: Monitor = serde_json::from_str(&value.to_string()).unwrap();
    let slots: Vec<_> = of.last_slot.clone().into_iter().collect();
    format!("{:?}", monitor::sheet(&of, &slots, None))
}

fn slot(hour: u32, kind: &str, outcome: &str) -> Value {
    let at = format!("2026-12-01T{hour:02}:00:00Z");
    json!({
        "slot": at, "kind": kind, "outcome": outcome, "reason": format!("reason {hour}"),
        "scan_id": format!("scn_{hour:02}970a1b2c3d7e4f8a9b0c1d2e3f4a5b"), "decided_at": at,
        "judged": {"at": at, "fired": hour, "alerts": hour, "not_comparable": hour, "implausible": hour, "unconfirmed": hour},
        "confirmation": {"began_at": at, "items": [format!("itm_{hour:02}970a1b2c3d7e4f8a9b0c1d2e3f4a5b")]},
    })
}

/// A monitor in which each number and time is of this hour.
fn some_monitor(hour: u32, words: [&str; 8], slot: &Value) -> Value {
    let at = format!("2026-12-01T{hour:02}:30:00Z");
    let [name, airport, rule, scope, zone, reason, off, key] = words;
    let range = json!({"least": hour, "expected": hour, "most": hour + 20});
    json!({
        "id": format!("mon_{hour:02}970a1b2c3d7e4f8a9b0c1d2e3f4a5b"), "name": name,
        "schedule": {"cron": format!("0 {hour} * * *"), "timezone": zone},
        "schedule_warnings": [format!("warning {hour}")],
        "scan": {"endpoint": if hour == 1 { "flights/oneway" } else { "flights/roundtrip" }, "request": {"from_airport": airport}},
        "alerts": [{"type": rule}],
        "rule_standings": [{
            "type": rule, "scope": scope, "armed": hour == 1, "cells": hour + 2, "armed_cells": hour + 1,
            "currency": airport, "lowest": {"price": hour, "at": at}, "last_fired": {"price": hour, "at": at},
        }],
        "webhook_url": format!("https://{airport}.example/"),
        "webhook": {"url": format!("https://{airport}.example/"), "off_at": at, "off_reason": off,
                    "delivered_at": at, "failing_since": at},
        "webhook_secret": format!("whsec_{airport}"),
        "notify": {"quiet_hours": {"from": format!("{hour:02}:00"), "until": format!("{hour:02}:30")},
                   "digest_at": format!("{hour:02}:00")},
        "next_digest_at": at, "held": {"fired": hour, "notify_at": at},
        "status": if hour == 1 { "paused" } else { "active" }, "status_reason": reason, "next_slot": at,
        "last_slot": slot, "requests": {"this_month": hour, "max_per_month": hour + 10},
        "key_custody": {"until": at},
        "forecast": {"slots": hour + 30, "requests_per_run": range, "requests_per_month": range,
                     "plans": [{"plan": key, "current": hour == 1, "usd_per_month": hour, "requests_left": hour, "fit": if hour == 1 { "included" } else { "overage" },
                                "overage_requests": {"least": hour, "most": hour}, "overage_usd": {"least": hour, "most": hour}}]},
        "channels": [format!("chn_{hour:02}970a1b2c3d7e4f8a9b0c1d2e3f4a5b")], "created_at": at, "updated_at": at,
    })
}

#[test]
fn each_field_of_a_monitor_is_shown_or_left_out() {
    let words = [
        "January",
        "TLV",
        "verdict",
        "cell",
        "Europe/London",
        "key_rejected",
        "gone",
        "basic",
    ];
    let filled = some_monitor(1, words, &slot(1, "manual", "ran"));
    let words = [
        "March",
        "HFA",
        "back_in_stock",
        "scan",
        "Asia/Tokyo",
        "not_subscribed",
        "failing",
        "pro",
    ];
    let other = some_monitor(2, words, &slot(2, "schedule", "late"));
    for (pointer, fields) in [
        ("", fields::<Monitor>()),
        ("/rule_standings/0", fields::<RuleStanding>()),
        ("/webhook", fields::<Webhook>()),
        ("/held", fields::<HeldAlerts>()),
        ("/last_slot", fields::<MonitorSlot>()),
        ("/last_slot/judged", fields::<SlotJudgement>()),
        ("/last_slot/confirmation", fields::<SlotConfirmation>()),
        ("/requests", fields::<MonitorRequests>()),
        ("/forecast", fields::<MonitorForecast>()),
    ] {
        assert_filled(&filled, pointer, &fields);
    }
    let states = [
        filled.clone(),
        with(
            &filled,
            &[("/webhook/off_at", Value::Null), ("/held", Value::Null)],
        ),
    ];
    let left_out = [
        // Their number is shown; the list of channels has the rest.
        "/channels/0",
        // The plans are a table of each face.
        "/forecast/plans/0/current",
        "/forecast/plans/0/overage_requests/least",
        "/forecast/plans/0/overage_requests/most",
        "/forecast/plans/0/overage_usd/least",
        "/forecast/plans/0/overage_usd/most",
        "/forecast/plans/0/plan",
        "/forecast/plans/0/requests_left",
        "/forecast/plans/0/usd_per_month",
        // Of monitors, none has it.
        "/forecast/requests_per_month/expected",
        "/forecast/requests_per_run/expected",
        // Each face has it where it is copied.
        "/id",
        // Null: until it is paused or deleted, which is said.
        "/key_custody/until",
        // A detail of what became of the slot.
        "/last_slot/confirmation/began_at",
        "/last_slot/decided_at",
        // As many as fired, of which a thousand are stored.
        "/last_slot/judged/alerts",
        "/last_slot/judged/at",
        // The rule is a sentence.
        "/rule_standings/0/type",
        // Shown once, where it is made.
        "/webhook_secret",
        // The webhook has it.
        "/webhook_url",
    ];
    assert_shown(&states, &other, &left_out, monitor_sheet);
}

fn alert_sheet(value: &Value) -> String {
    let of: Alert = serde_json::from_value(value.clone()).unwrap();
    format!("{:?}", alert::sheet(&of, Reported::default()))
}

/// An alert in which each number and time is of this hour.
fn some_alert(hour: u32, words: [&str; 8]) -> Value {
    let at = format!("2026-12-{hour:02}T{hour:02}:30:00Z");
    let [rule, airport, scope, kind, search, verdict, parity, class] = words;
    let mark = json!({"price": hour + 100, "at": at});
    let id = |kind: &str| format!("{kind}_{hour:02}970a1b2c3d7e4f8a9b0c1d2e3f4a5b");
    let state = json!({"armed": hour == 1, "lowest": mark, "last_fired": mark, "had_price": hour == 1,
                       "runs_without_answer": hour});
    let markets = json!({"baseline": airport, "markets": [{
        "market": airport, "cheaper": hour, "dearer": hour, "same": hour, "unknown": hour, "same_percent": hour,
        "difference_percent": {"lowest": hour, "median": hour, "highest": hour}, "noise_percent": hour}]});
    json!({
        "id": id("alr"), "monitor_id": id("mon"), "slot": at, "slot_kind": kind, "scan_id": id("scn"),
        "type": rule, "rule": {"type": if hour == 1 { "verdict" } else { "back_in_stock" }}, "scope": scope,
        "cell": {"to_airport": airport}, "price": hour + 90, "currency": airport, "item_id": id("itm"),
        "observed_at": at, "search_status": search, "before": mark, "threshold": hour + 200, "reference": mark,
        "baseline": {"proxy_country": airport, "price": hour + 50, "item_id": id("itm"), "difference": hour,
                     "difference_percent": hour, "samples": hour, "baseline_samples": hour, "verdict": parity},
        "price_insights_low": hour, "price_insights_high": hour, "verdict": verdict, "room": airport,
        "buy_link": format!("https://{airport}.example/"), "link": format!("https://{airport}.example/stay"),
        "history_verdict": {"class": class, "percentile": hour, "n": hour, "lower": hour, "higher": hour,
                            "bin": {"from_days": hour + 30, "to_days": hour + 60}, "since": format!("2026-06-{hour:02}"), "sentence": airport},
        "was_empty_at": at, "confirmed_at": at, "found_first": mark,
        "plan": {"api": if hour == 1 { "flights" } else { "hotels" }, "requests_limit": hour, "requests_left": hour,
                 "requests_per_day": hour, "requests_expected": hour, "resets_at": at,
                 "ends_on": format!("2026-12-{:02}", hour + 20), "causes": []},
        "markets": markets,
        "searched": {"searches": hour + 9, "answered": hour, "partial": hour, "degraded": hour, "share": f64::from(hour)},
        "state_before": state, "state_after": state, "fired_at": at, "notify_at": at, "delivery_id": id("dlv"),
    })
}

#[test]
fn each_field_of_an_alert_is_shown_or_left_out() {
    let words = [
        "price_below",
        "TLV",
        "cell",
        "manual",
        "ok",
        "low",
        "gap",
        "low",
    ];
    let filled = some_alert(1, words);
    let words = [
        "stale", "HFA", "scan", "schedule", "partial", "high", "noise", "high",
    ];
    let other = some_alert(2, words);
    for (pointer, fields) in [
        ("", fields::<Alert>()),
        ("/baseline", fields::<AlertBaseline>()),
        ("/searched", fields::<SearchedShare>()),
        ("/state_before", fields::<RuleState>()),
    ] {
        assert_filled(&filled, pointer, &fields);
    }
    // The verdict and the plan are one value each.
    let whole = ["/history_verdict", "/plan"].map(|pointer| (pointer, Value::Null));
    let compared = ["/baseline", "/markets", "/was_empty_at"].map(|pointer| (pointer, Value::Null));
    let states = [
        with(&filled, &whole),
        with(&filled, &compared),
        filled.clone(),
        with(&filled, &[("/buy_link", Value::Null)]),
    ];
    let left_out = [
        // The price is compared with it, and its market named.
        "/baseline/difference",
        "/baseline/difference_percent",
        "/baseline/item_id",
        // Each face has it where it is copied.
        "/id",
        // The page of its markets has them; the median and the stays that differ are shown.
        "/markets/markets/0/difference_percent/highest",
        "/markets/markets/0/difference_percent/lowest",
        "/markets/markets/0/same_percent",
        "/markets/markets/0/unknown",
        // The counts are shown.
        "/searched/share",
    ];
    assert_shown(&states, &other, &left_out, alert_sheet);
}

fn delivery_sheet(value: &Value) -> String {
    let detail: DeliveryDetail = serde_json::from_value(value.clone()).unwrap();
    format!("{:?}", delivery::sheet(&detail, Reported::default()))
}

fn some_delivery(hour: u32, words: [&str; 4]) -> Value {
    let at = format!("2026-12-01T{hour:02}:30:00Z");
    let [event, status, reason, error] = words;
    json!({
        "id": format!("dlv_{hour:02}970a1b2c3d7e4f8a9b0c1d2e3f4a5b"),
        "monitor_id": format!("mon_{hour:02}970a1b2c3d7e4f8a9b0c1d2e3f4a5b"),
        "channel_id": format!("chn_{hour:02}970a1b2c3d7e4f8a9b0c1d2e3f4a5b"),
        "event_type": event, "status": status, "reason": reason, "try_count": hour, "last_error": error, "next_try_at": at,
        "created_at": at, "ended_at": at, "payload": {"type": event},
        "tries": [{"number": hour, "started_at": at, "ended_at": at, "latency_ms": hour,
                   "http_status": hour + 500, "error": error, "response": event}],
    })
}

#[test]
fn each_field_of_a_delivery_is_shown_or_left_out() {
    let filled = some_delivery(1, ["monitor.alerts", "failed", "gone", "timeout"]);
    let other = some_delivery(2, ["monitor.test", "pending", "tries_spent", "broken"]);
    let mut all = fields::<DeliveryTry>();
    assert_filled(&filled, "/tries/0", &all);
    all = fields::<Delivery>();
    all.extend(["payload", "tries"].map(str::to_owned));
    assert_filled(&filled, "", &all);
    let states = [
        filled.clone(),
        with(&filled, &[("/tries/0/error", Value::Null)]),
    ];
    let left_out = [
        // The event says whether it is a channel's.
        "/channel_id",
        // Each face has it where it is copied.
        "/id",
        // Each face shows what is sent as it is.
        "/payload/type",
        // Whether it has ended is a word.
        "/tries/0/ended_at",
        // The tries are shown.
        "/try_count",
    ];
    assert_shown(&states, &other, &left_out, delivery_sheet);
}

fn backtest_section(value: &Value) -> String {
    let of: Backtest = serde_json::from_value(value.clone()).unwrap();
    format!("{:?}", backtest::section(&of, "Europe/London", 1, true))
}

fn some_backtest(day: u32, words: [&str; 3]) -> Value {
    let at = format!("2026-12-{day:02}T06:00:00Z");
    let date = format!("2027-01-{day:02}");
    let [rule, airport, class] = words;
    let month = json!({"slot": at, "slots": day, "reason": airport});
    json!({
        "since": at, "until": at, "slots": day + 50, "runs": day + 40, "failed": [month], "monthly_ceiling": [month],
        "days": day + 30, "days_with_prices": day + 20, "searches": day + 60, "searches_with_prices": day + 10,
        "requests": {"least": day, "most": day + 70}, "billed_requests": day, "fired": day + 5,
        "alerts": [{
            "slot": at, "type": rule, "rule": {"type": if day == 1 { "verdict" } else { "back_in_stock" }}, "scope": if day == 1 { "cell" } else { "scan" },
            "cell": {"to_airport": airport}, "first_date": date, "last_date": date, "price": day + 90,
            "currency": airport, "threshold": day + 200, "reference": {"price": day + 100, "at": at}, "was_empty_at": at,
            "history_verdict": {"class": class, "percentile": day, "n": day, "lower": day, "higher": day,
                                "bin": {"from_days": day + 30, "to_days": day + 60}, "since": format!("2026-06-{day:02}"), "sentence": airport},
        }],
        "not_replayed": [{"index": day, "type": rule, "reason": airport}],
    })
}

#[test]
fn each_field_of_a_backtest_is_shown_or_left_out() {
    let filled = some_backtest(1, ["percentile_at_most", "TLV", "low"]);
    let other = some_backtest(2, ["new_low", "HFA", "high"]);
    for (pointer, fields) in [
        ("", fields::<Backtest>()),
        ("/alerts/0", fields::<BacktestAlert>()),
        ("/failed/0", fields::<BacktestCeiling>()),
        ("/not_replayed/0", fields::<NotReplayed>()),
    ] {
        assert_filled(&filled, pointer, &fields);
    }
    let of_price = ("/alerts/0/type", json!("new_low"));
    let empty_since = [of_price.clone(), ("/alerts/0/history_verdict", Value::Null)];
    let compared = [of_price, ("/alerts/0/was_empty_at", Value::Null)];
    let states = [
        filled.clone(),
        with(&filled, &empty_since),
        with(&filled, &compared),
    ];
    let left_out = [
        // The rule is a sentence.
        "/alerts/0/scope",
        // A replay costs none, which is said.
        "/billed_requests",
        // The rule is named.
        "/not_replayed/0/index",
    ];
    assert_shown(&states, &other, &left_out, backtest_section);
}

fn parity_alert() -> Alert {
    let words = [
        "parity_gap_percent",
        "EUR",
        "cell",
        "manual",
        "ok",
        "low",
        "gap",
        "low",
    ];
    let mut of = some_alert(1, words);
    of["cell"] = json!({"proxy_country": "de"});
    of["baseline"]["proxy_country"] = json!("us");
    (of["price"], of["baseline"]["price"]) = (json!(175), json!(200));
    of["markets"] = Value::Null;
    serde_json::from_value(of).unwrap()
}

#[test]
fn a_parity_alert_says_which_market_is_how_far_from_which() {
    let of = parity_alert();
    let gap = "DE is 12.5 % below US, 200 EUR";
    let shown = alert::sheet(&of, Reported::default());
    assert_eq!(shown.figures[1].value, gap.into());
    let list = alert::table(&[json!(of)], |_| Reported::default());
    assert_eq!(list.rows[0].cells[4], [gap.into()]);
}

/// The list and the sheet of an alert say the same price, that which the rule compared with.
#[test]
fn an_alert_is_compared_with_one_price() {
    let words = [
        "drop_percent",
        "USD",
        "cell",
        "manual",
        "ok",
        "low",
        "gap",
        "low",
    ];
    let mut of = some_alert(1, words);
    (of["baseline"], of["was_empty_at"], of["markets"]) = (Value::Null, Value::Null, Value::Null);
    (of["price"], of["threshold"]) = (json!(170), json!(171));
    (of["before"]["price"], of["reference"]["price"]) = (json!(194), json!(177));
    let shown: Alert = serde_json::from_value(of.clone()).unwrap();
    let shown = alert::sheet(&shown, Reported::default());
    let figure = &shown.figures[1];
    let compared: Vec<_> = [&figure.value]
        .into_iter()
        .chain(&figure.notes)
        .cloned()
        .collect();
    let list = alert::table(&[of], |_| Reported::default());
    assert_eq!(list.rows[0].cells[4], compared);
    assert_eq!(
        compared[0],
        SheetValue::Money(177.into(), Some("USD".to_owned()))
    );
}

#[test]
fn a_rule_of_another_version_keeps_its_fields() {
    let words = [
        "below_typical",
        "USD",
        "cell",
        "manual",
        "ok",
        "low",
        "gap",
        "low",
    ];
    let mut of = some_alert(1, words);
    of["rule"] = json!({"type": "below_typical", "percent": 10, "scope": "cell"});
    let of: Alert = serde_json::from_value(of).unwrap();
    let shown = alert::sheet(&of, Reported::default());
    assert_eq!(shown.title, "below typical, percent 10, scope cell");
}

fn stored_monitor() -> Monitor {
    let words = [
        "Home",
        "TLV",
        "verdict",
        "cell",
        "Europe/London",
        "key_rejected",
        "gone",
        "basic",
    ];
    let of = some_monitor(1, words, &slot(1, "manual", "ran"));
    serde_json::from_str(&of.to_string()).unwrap()
}

#[test]
fn a_second_monitor_of_the_same_searches_and_times_is_named() {
    let stored = [stored_monitor()];
    let body = json!({
        "name": "Another", "schedule": {"timezone": "Europe/London", "cron": "0 1 * * *"},
        "scan": {"request": {"from_airport": "TLV"}, "endpoint": "flights/oneway"},
    });
    let same = |body: &Value| monitor::same_as(&stored, body.as_object().unwrap());
    assert!(same(&body).unwrap().contains("\"Home\""));
    for (pointer, other) in [
        ("/schedule/cron", json!("0 2 * * *")),
        ("/scan/request/from_airport", json!("HFA")),
    ] {
        assert_eq!(same(&with(&body, &[(pointer, other)])), None);
    }
}

#[test]
fn a_month_that_the_plan_does_not_include_is_said() {
    let forecast = |fit: &str| {
        let mut of = stored_monitor().forecast.unwrap();
        of.plans[0].fit = fit.parse().unwrap();
        monitor::month(Some(&of), None).notices
    };
    assert_eq!(forecast("included"), []);
    let [notice] = &forecast("not_possible")[..] else {
        panic!("one notice")
    };
    assert_eq!(
        notice.lead,
        "Your plan basic does not suffice: stops before the end."
    );
    assert_eq!(
        notice.text,
        "A month needs 1 to 21 requests, and the plan has 1."
    );
}
