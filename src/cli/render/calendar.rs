//! A calendar of fares: a table for each month, weeks from Monday; each cell has the day and below
//! it the price.

use std::collections::BTreeMap;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Attribute, Cell, Color, ColumnConstraint, Table, Width};
use jiff::civil::Date;
use rust_decimal::Decimal;

use super::{CellValue, set_styling};

const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
/// Includes a blank on both sides.
const DAY_WIDTH: u16 = 8;
const PRICE_WIDTH: usize = 6;

/// One date of the calendar.
#[derive(Debug, Clone, Copy)]
pub struct CalendarDay {
    pub date: Date,
    pub value: CellValue,
}

/// The dates of a scan with their values.
#[derive(Debug, Default)]
pub struct Calendar {
    days: BTreeMap<Date, CellValue>,
}

impl FromIterator<CalendarDay> for Calendar {
    fn from_iter<I: IntoIterator<Item = CalendarDay>>(days: I) -> Self {
        Self {
            days: days.into_iter().map(|day| (day.date, day.value)).collect(),
        }
    }
}

impl Calendar {
    /// A title and a table for each month with a date, in order.
    #[must_use]
    pub fn months(&self, colour: bool) -> Vec<(String, Table)> {
        let mut months: Vec<Date> = self.days.keys().map(|date| date.first_of_month()).collect();
        months.dedup();
        months
            .into_iter()
            .map(|month| {
                (
                    month.strftime("%B %Y").to_string(),
                    self.month(month, colour),
                )
            })
            .collect()
    }

    /// The cheapest price and its earliest date.
    #[must_use]
    pub fn cheapest(&self) -> Option<(Date, Decimal)> {
        self.days
            .iter()
            .filter_map(|(date, value)| Some((*date, value.price()?)))
            .min_by_key(|(_, price)| *price)
    }

    fn month(&self, month: Date, colour: bool) -> Table {
        let mut table = Table::new();
        table.load_style(UTF8_FULL_CONDENSED).set_header(WEEKDAYS);
        set_styling(&mut table, colour);
        let blanks = usize::try_from(month.weekday().to_monday_zero_offset()).unwrap_or_default();
        let days = month
            .series(jiff::Span::new().days(1))
            .take_while(|date| date.month() == month.month());
        let mut cells: Vec<Cell> = std::iter::repeat_n(Cell::new(""), blanks)
            .chain(days.map(|date| self.cell(date)))
            .collect();
        cells.resize(cells.len().next_multiple_of(WEEKDAYS.len()), Cell::new(""));
        for week in cells.chunks(WEEKDAYS.len()) {
            table.add_row(week.to_vec());
        }
        for column in table.column_iter_mut() {
            column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(DAY_WIDTH)));
        }
        table
    }

    fn cell(&self, date: Date) -> Cell {
        let Some(value) = self.days.get(&date) else {
            return Cell::new(date.day());
        };
        let cheapest = self.cheapest().is_some_and(|(best, _)| best == date);
        let mark = if cheapest { "*" } else { "" };
        let shown = format!("{mark}{}", value.text());
        let cell = Cell::new(format!("{}\n{shown:>PRICE_WIDTH$}", date.day()));
        match value {
            CellValue::Price(_) if cheapest => cell.fg(Color::Green).add_attribute(Attribute::Bold),
            CellValue::Price(price) => self.tint(cell, *price),
            CellValue::Unknown => cell.fg(Color::Yellow),
            CellValue::Nothing | CellValue::Waiting => cell.fg(Color::DarkGrey),
        }
    }

    /// Colours the cheapest fifth green, the dearest fifth red.
    fn tint(&self, cell: Cell, price: Decimal) -> Cell {
        let prices = self.days.values().filter_map(|value| value.price());
        let (cheaper, total) = prices.fold((0, 0), |(below, all), other| {
            (below + usize::from(other < price), all + 1)
        });
        match cheaper * 5 / total.max(1) {
            0 => cell.fg(Color::Green),
            4 => cell.fg(Color::Red),
            _ => cell,
        }
    }
}
