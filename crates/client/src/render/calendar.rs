//! A calendar of fares: a table for each month, weeks from Monday; each cell has the day and below
//! it the price.

use std::collections::BTreeMap;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, ColumnConstraint, Table, Width};
use farescan_sheets::calendar::{Month, WEEKDAYS};
use farescan_sheets::cell::CellValue;
use jiff::civil::Date;
use rust_decimal::Decimal;

use super::{CellTone, cell_text, price_tone, set_styling, tone};
use crate::terminal::Screen;

/// Includes a blank on both sides.
const DAY_WIDTH: u16 = 8;
/// The same on a terminal below [`FULL_WIDTH`].
const NARROW_DAY_WIDTH: u16 = 7;
/// The width of a month: seven days and eight lines.
const FULL_WIDTH: u16 = 7 * DAY_WIDTH + 8;
/// Between two months side by side.
const GAP: &str = "  ";

/// One date of the calendar.
#[derive(Debug, Clone)]
pub struct CalendarDay {
    pub date: Date,
    pub value: CellValue,
    /// A few characters below the price: an airport, an age.
    pub note: Option<String>,
    /// Shown as less important; the note says why.
    pub is_old: bool,
}

/// The dates of a scan with their values.
#[derive(Debug, Default)]
pub struct Calendar {
    days: BTreeMap<Date, CalendarDay>,
}

impl FromIterator<CalendarDay> for Calendar {
    fn from_iter<I: IntoIterator<Item = CalendarDay>>(days: I) -> Self {
        Self {
            days: days.into_iter().map(|day| (day.date, day)).collect(),
        }
    }
}

impl Calendar {
    /// All months with their names, side by side where the screen is wide enough.
    pub fn render(&self, screen: Screen) -> String {
        let day_width = if screen.width < FULL_WIDTH {
            NARROW_DAY_WIDTH
        } else {
            DAY_WIDTH
        };
        let month_width = 7 * day_width + 8;
        let side_by_side = (screen.width + 2) / (month_width + 2);
        let months = self.months(screen.colour, day_width);
        let blocks: Vec<String> = months
            .chunks(side_by_side.max(1).into())
            .map(|months| join(months, usize::from(month_width)))
            .collect();
        blocks.join("\n")
    }

    /// A title and a table for each month with a date, in order.
    pub(super) fn months(&self, colour: bool, day_width: u16) -> Vec<(String, Table)> {
        let months = Month::of_dates(self.days.keys().copied());
        let table = |month: Month| {
            let table = self.month(&month, colour, day_width);
            (month.title, table)
        };
        months.into_iter().map(table).collect()
    }

    /// What the dates show.
    pub fn values(&self) -> impl Iterator<Item = CellValue> {
        self.days.values().map(|day| day.value)
    }

    /// The cheapest price and its earliest date.
    pub fn cheapest(&self) -> Option<(Date, Decimal)> {
        self.days
            .iter()
            .filter_map(|(date, day)| Some((*date, day.value.price()?)))
            .min_by_key(|(_, price)| *price)
    }

    fn month(&self, month: &Month, colour: bool, day_width: u16) -> Table {
        let mut table = Table::new();
        let weekdays = WEEKDAYS.map(|(short, _)| short);
        table.load_style(UTF8_FULL_CONDENSED).set_header(weekdays);
        set_styling(&mut table, colour);
        let width = usize::from(day_width) - 2;
        for week in &month.weeks {
            table.add_row(week.map(|date| match date {
                Some(date) => self.cell(date, width),
                None => Cell::new(""),
            }));
        }
        for column in table.column_iter_mut() {
            column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(day_width)));
        }
        table
    }

    fn cell(&self, date: Date, width: usize) -> Cell {
        let Some(day) = self.days.get(&date) else {
            return Cell::new(date.day());
        };
        let cheapest = self.cheapest().is_some_and(|(best, _)| best == date);
        let mark = if cheapest { "*" } else { "" };
        let shown = format!("{mark}{}", cell_text(day.value));
        let mut text = format!("{}\n{shown:>width$}", date.day());
        if self.days.values().any(|day| day.note.is_some()) {
            let note = day.note.as_deref().unwrap_or_default();
            text = format!("{text}\n{note:>width$.width$}");
        }
        let tone = match day.value {
            CellValue::Price(_) if cheapest => CellTone::Best,
            CellValue::Price(_) if day.is_old => CellTone::Quiet,
            CellValue::Price(price) => self.tone(price),
            other => tone(other),
        };
        tone.apply(Cell::new(text))
    }

    fn tone(&self, price: Decimal) -> CellTone {
        let prices = self.days.values().filter_map(|day| day.value.price());
        price_tone(&prices.collect(), price)
    }
}

/// Months side by side, each below its name.
fn join(months: &[(String, Table)], width: usize) -> String {
    let columns: Vec<Vec<String>> = months
        .iter()
        .map(|(name, table)| {
            let name = format!("{name:<width$}");
            std::iter::once(name).chain(table.lines()).collect()
        })
        .collect();
    let height = columns.iter().map(Vec::len).max().unwrap_or_default();
    let blank = " ".repeat(width);
    let lines = (0..height).map(|line| {
        let parts = columns
            .iter()
            .map(|column| column.get(line).unwrap_or(&blank).as_str());
        parts.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}
