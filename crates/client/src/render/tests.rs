//! Snapshots of the printed tables.

use farescan_contract::ids::ItemId;
use farescan_contract::monitors::Backtest;
use farescan_contract::scans::Grid;
use farescan_sheets::price_table::SecondField;
use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::*;
use crate::terminal::Screen;

fn price(units: i64) -> CellValue {
    CellValue::Price(Decimal::new(units * 100, 2))
}

/// A cell of a scan on a day of February.
fn cell(day: i64, value: CellValue) -> Value {
    let (price, state, status) = match value {
        CellValue::Price(price) | CellValue::Implausible(price) => {
            (Some(price), "done", Some("ok"))
        }
        CellValue::Empty => (None, "done", Some("empty")),
        CellValue::Incomplete => (None, "done", Some("degraded")),
        CellValue::Failed => (None, "failed", None),
        CellValue::Running => (None, "running", None),
        CellValue::Waiting => (None, "pending", None),
        CellValue::NotSearched => (None, "skipped", None),
    };
    json!({
        "row": format!("2027-02-{day:02}"), "state": state, "search_status": status, "price": price,
        "currency": price.map(|_| "USD"), "implausible": matches!(value, CellValue::Implausible(_)),
        "item_id": ItemId::new()
    })
}

fn table(cells: impl Iterator<Item = (i64, CellValue)>) -> PriceTable {
    let cells: Vec<_> = cells.map(|(day, value)| cell(day, value)).collect();
    let days: Vec<_> = cells.iter().map(|cell| cell["row"].clone()).collect();
    let grid = json!({
        "scan_id": "scn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b", "endpoint": "flights/oneway",
        "rows": {"field": "departure_date", "values": days}, "cells": cells
    });
    let grid: Grid = serde_json::from_value(grid).unwrap();
    PriceTable::of_scan(&grid, SecondField::Cheapest)
}

fn february() -> PriceTable {
    let value = |day: i64| match day {
        13 => CellValue::Incomplete,
        14 => CellValue::Empty,
        27.. => CellValue::Waiting,
        day => price(200 + (day * 7 % 23) * 5),
    };
    table((3..=28).map(|day| (day, value(day))))
}

fn shown(table: &PriceTable, colour: bool) -> String {
    let screen = Screen {
        width: 80,
        height: 50,
        colour,
        live: false,
        interactive: false,
    };
    price_table::render(table, screen)
}

#[test]
fn a_month_reads_like_a_calendar() {
    insta::assert_snapshot!(shown(&february(), false));
}

#[test]
fn an_implausible_price_is_in_brackets_and_never_the_cheapest() {
    let days = [(4, price(60).marked(true)), (5, price(200))];
    let text = shown(&table(days.into_iter()), false);
    assert!(text.contains("(60)") && text.contains("*200"), "{text}");
    assert!(text.ends_with("   * cheapest   (60) implausible"), "{text}");
}

#[test]
fn the_cheapest_is_the_earliest_of_equal_prices() {
    let text = shown(&table([4, 5].map(|day| (day, price(9))).into_iter()), false);
    assert!(text.contains("*9 ┆      9"), "{text}");
    let text = shown(&table([(1, CellValue::Incomplete)].into_iter()), false);
    assert!(!text.contains('*'), "{text}");
}

#[test]
fn a_legend_has_the_marks_that_are_shown_and_fits_80_columns() {
    assert_eq!(
        legend(&february(), false),
        "   * cheapest   – nothing offered   ? did not complete   · not searched yet"
    );
    let all = CellValue::MARKS
        .into_iter()
        .chain([price(1), price(60).marked(true)]);
    let all = legend(&table((1..).zip(all)), true);
    assert!(all.lines().all(|line| line.chars().count() < 80), "{all}");
    for word in ["refused", "× not searched", "(60) implausible", "green"] {
        assert!(all.contains(word), "{all}");
    }
    assert_eq!(legend(&table(std::iter::empty()), false), "");
}

#[test]
fn tables_have_colour_only_on_request() {
    let [coloured, plain] = [true, false].map(|colour| shown(&february(), colour));
    assert!(coloured.contains("\u{1b}["), "{coloured}");
    assert!(!plain.contains('\u{1b}'), "{plain}");
}

#[test]
fn a_replay_shows_its_rules_at_80_columns() {
    let slot = "2026-11-20T13:00:00Z";
    let alert = |rule: Value, price: i64| {
        json!({
            "slot": slot, "type": rule["type"], "rule": rule, "scope": "scan", "cell": {"departure_date": "2027-01-27"},
            "first_date": "2027-01-27", "last_date": null, "price": price, "currency": "USD", "threshold": 210,
            "reference": {"price": 210, "at": "2026-11-19T13:00:00Z"}
        })
    };
    let found = json!({
        "since": "2026-10-22T00:00:00Z", "until": "2026-11-21T00:00:00Z", "slots": 30, "runs": 30, "failed": [],
        "monthly_ceiling": [], "days": 30, "days_with_prices": 5, "searches": 30, "searches_with_prices": 5,
        "requests": {"least": 30, "expected": null, "most": 60}, "billed_requests": 0, "fired": 2,
        "alerts": [
            alert(json!({"type": "new_low", "days": 30}), 199),
            alert(json!({"type": "percentile_at_most", "percentile": 20, "scope": "cell"}), 201)
        ],
        "not_replayed": []
    });
    let found: Backtest = serde_json::from_value(found).unwrap();
    let screen = Screen {
        width: 80,
        height: 50,
        colour: false,
        live: false,
        interactive: false,
    };
    let section = farescan_sheets::backtest::section(&found, "UTC", 2, false);
    let table = sheet::table(&section.table.unwrap(), screen);
    let slot = crate::format::time(slot.parse().unwrap());
    insta::assert_snapshot!(table.replace(&slot, "SLOT-OF-THIS-RUN"));
}
