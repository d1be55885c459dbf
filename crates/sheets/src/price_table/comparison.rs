//! The cells of two scans: the later price, and below it its change.

use std::collections::HashSet;

use farescan_contract::scans::{Change, ComparedCell, Comparison, GridAxis, SeenPrice};
use serde_json::Value;

use super::{PriceCell, PriceTable, SecondField, Shade, layout};
use crate::cell::CellValue;
use crate::compare::{change_words, exact_percent};
use crate::fifths::PriceFifths;
use crate::numbers::{price, signed_percent};

/// More cells than this are only in a list.
const MAX_CELLS: usize = 2_500;

impl PriceTable {
    /// `None` for cells of three fields or none, and for too many.
    pub fn of_comparison(comparison: &Comparison, most_calendars: usize) -> Option<Self> {
        let cells = &comparison.cells;
        let mut fields: Vec<&str> = cells.first()?.cell.keys().map(String::as_str).collect();
        // Dates are rows.
        fields.sort_by_key(|field| !field.ends_with("_date"));
        let (rows, columns) = match fields[..] {
            [rows] => (axis(cells, rows), None),
            [rows, columns] => (axis(cells, rows), Some(axis(cells, columns))),
            _ => return None,
        };
        // Few cells may lie far apart.
        let width = columns.as_ref().map_or(1, |columns| columns.values.len());
        if rows.values.len() * width > MAX_CELLS {
            return None;
        }
        let placed = cells.iter().filter_map(|cell| {
            let value = |axis: &GridAxis| cell.cell.get(&axis.field);
            let column = columns.as_ref().and_then(value);
            Some((value(&rows)?, column, shown(cell)))
        });
        Some(Self {
            markets: None,
            title: "the later price and its change".to_owned(),
            layout: layout(
                &rows,
                columns.as_ref(),
                SecondField::Calendars(most_calendars),
                placed,
            ),
            notes: "its change",
            prices: PriceFifths::default(),
        })
    }
}

/// The values of a field: dates and numbers in their order, others as they come.
fn axis(cells: &[ComparedCell], field: &str) -> GridAxis {
    let mut seen = HashSet::new();
    let values = cells.iter().filter_map(|cell| cell.cell.get(field));
    let mut values: Vec<Value> = values
        .filter(|value| seen.insert(value.to_string()))
        .cloned()
        .collect();
    if field.ends_with("_date") {
        values.sort_by(|one, other| one.as_str().cmp(&other.as_str()));
    } else if values.iter().all(Value::is_u64) {
        values.sort_by_key(Value::as_u64);
    }
    GridAxis {
        field: field.to_owned(),
        values,
    }
}

fn shown(cell: &ComparedCell) -> PriceCell {
    let after = cell.after.as_ref();
    let later = after.map_or(CellValue::Empty, |seen| {
        CellValue::Price(seen.price).marked(seen.implausible)
    });
    let percent = exact_percent(cell);
    let even = Shade::Difference(0);
    let (value, shade, note) = match cell.change {
        Change::Cheaper | Change::Dearer => {
            let note = percent.map(signed_percent);
            (later, Shade::of_percent(percent), note.unwrap_or_default())
        }
        Change::Unchanged => (later, even, "=".to_owned()),
        Change::New => (later, Shade::New, "new".to_owned()),
        Change::Gone => (CellValue::Empty, Shade::Plain, "gone".to_owned()),
        Change::NotComparable => (later, even, "other currency".to_owned()),
        Change::Unknown => (CellValue::Incomplete, Shade::Plain, String::new()),
        Change::NoPrice => (CellValue::Empty, Shade::Plain, String::new()),
    };
    let found = |side: Option<&SeenPrice>| {
        side.map_or_else(
            || "no price".to_owned(),
            |seen| price(seen.price, &seen.currency),
        )
    };
    let [before, then] = [cell.before.as_ref(), after].map(found);
    let words = format!("{before}, then {then}: {}", change_words(cell.change));
    let seen = after.or(cell.before.as_ref());
    PriceCell {
        shade,
        note,
        item: seen.map(|seen| seen.item_id),
        ..PriceCell::new(value, words)
    }
}
