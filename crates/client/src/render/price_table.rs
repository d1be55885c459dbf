//! Tables of prices: months of fares as calendars, dates against nights, markets or airports.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, CellAlignment, ColumnConstraint, Table, Width};
use farescan_sheets::calendar::{Month, WEEKDAYS};
use farescan_sheets::cell::CellValue;
use farescan_sheets::price_table::{CalendarCells, PriceCell, PriceLayout, PriceTable, Shade};
use jiff::civil::Date;

use super::{CellTone, Text, cell_text, legend, set_styling, tone};
use crate::terminal::Screen;

/// Includes a blank on both sides.
const DAY_WIDTH: u16 = 8;
/// The same on a terminal below [`FULL_WIDTH`].
const NARROW_DAY_WIDTH: u16 = 7;
/// The width of a month: seven days and eight lines.
const FULL_WIDTH: u16 = 7 * DAY_WIDTH + 8;
/// Between two months side by side.
const GAP: &str = "  ";
/// The blanks and the line of a column.
const COLUMN_EXTRA: usize = 3;

type MatrixRow = (String, Vec<Option<PriceCell>>);

/// The table, and what its marks mean.
pub fn render(table: &PriceTable, screen: Screen) -> String {
    let mut parts = Vec::new();
    match &table.layout {
        PriceLayout::Calendars(calendars) => {
            for (name, days) in calendars {
                parts.extend(name.clone());
                parts.push(calendar(days, screen));
            }
        }
        PriceLayout::Markets(markets) => parts.push(super::sheet::table(markets, screen)),
        PriceLayout::Matrix { columns, rows, .. } => parts.push(matrix(columns, rows, screen)),
    }
    parts.push(legend(table, screen.colour));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// The text of a cell, the cheapest marked.
fn text(cell: &PriceCell) -> String {
    let mark = if cell.is_best { "*" } else { "" };
    format!("{mark}{}", cell_text(cell.value))
}

fn cell_tone(cell: &PriceCell) -> CellTone {
    match (cell.value, cell.shade) {
        (CellValue::Price(_), _) if cell.is_best => CellTone::Best,
        (CellValue::Price(_), _) if cell.is_old => CellTone::Quiet,
        (CellValue::Price(_), Shade::Fifth(1) | Shade::Difference(-3..=-1)) => CellTone::Good,
        (CellValue::Price(_), Shade::Fifth(5) | Shade::Difference(1..=3)) => CellTone::Bad,
        (value, _) => tone(value),
    }
}

/// All months with their names, side by side where the screen is wide enough.
fn calendar(days: &CalendarCells, screen: Screen) -> String {
    let day_width = if screen.width < FULL_WIDTH {
        NARROW_DAY_WIDTH
    } else {
        DAY_WIDTH
    };
    let month_width = 7 * day_width + 8;
    let side_by_side = (screen.width + 2) / (month_width + 2);
    let months: Vec<(String, Table)> = Month::of_dates(days.keys().copied())
        .into_iter()
        .map(|month| {
            let table = month_table(&month, days, screen.colour, day_width);
            (month.title, table)
        })
        .collect();
    let blocks: Vec<String> = months
        .chunks(side_by_side.max(1).into())
        .map(|months| join(months, usize::from(month_width)))
        .collect();
    blocks.join("\n")
}

fn month_table(month: &Month, days: &CalendarCells, colour: bool, day_width: u16) -> Table {
    let mut table = Table::new();
    let weekdays = WEEKDAYS.map(|(short, _)| short);
    table.load_style(UTF8_FULL_CONDENSED).set_header(weekdays);
    set_styling(&mut table, colour);
    let width = usize::from(day_width) - 2;
    let has_notes = days.values().any(|cell| !cell.note.is_empty());
    for week in &month.weeks {
        table.add_row(week.map(|date| match date {
            Some(date) => day(date, days.get(&date), width, has_notes),
            None => Cell::new(""),
        }));
    }
    for column in table.column_iter_mut() {
        column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(day_width)));
    }
    table
}

fn day(date: Date, cell: Option<&PriceCell>, width: usize, has_notes: bool) -> Cell {
    let Some(cell) = cell else {
        return Cell::new(date.day());
    };
    let mut shown = format!("{}\n{:>width$}", date.day(), text(cell));
    if has_notes {
        let mut note = cell.note.clone();
        if note.len() > width {
            note.retain(|letter| letter != ' ');
        }
        shown = format!("{shown}\n{note:>width$.width$}");
    }
    cell_tone(cell).apply(Cell::new(shown))
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

/// The table; several below each other if the columns do not fit.
fn matrix(columns: &[String], rows: &[MatrixRow], screen: Screen) -> String {
    let columns: Vec<_> = columns
        .iter()
        .map(|name| name.replace(" nights", " n"))
        .collect();
    let texts = texts(rows);
    let width = |column: usize| {
        let cells = texts.iter().map(|row| row[column].text.chars().count());
        let title = columns[column].chars().count();
        cells.max().unwrap_or_default().max(title) + COLUMN_EXTRA
    };
    let labels = rows.iter().map(|(label, _)| label.chars().count());
    let room = usize::from(screen.width)
        .saturating_sub(labels.max().unwrap_or_default() + COLUMN_EXTRA + 1);
    let (mut blocks, mut from) = (Vec::new(), 0);
    while from < columns.len() {
        let (mut to, mut used) = (from + 1, width(from));
        while to < columns.len() && used + width(to) <= room {
            used += width(to);
            to += 1;
        }
        let mut table = Table::new();
        table.load_style(UTF8_FULL_CONDENSED);
        set_styling(&mut table, screen.colour);
        let right = |title| Cell::new(title).set_alignment(CellAlignment::Right);
        let titles = columns[from..to].iter().map(right);
        table.set_header(std::iter::once(Cell::new("")).chain(titles));
        for ((label, _), texts) in rows.iter().zip(&texts) {
            let texts = texts[from..to].iter();
            let cells = texts.map(|text| text.cell(CellAlignment::Right));
            table.add_row(std::iter::once(Cell::new(label)).chain(cells));
        }
        blocks.push(table.to_string());
        from = to;
    }
    blocks.join("\n")
}

/// The text and tone of each cell, its note beside it.
fn texts(rows: &[MatrixRow]) -> Vec<Vec<Text>> {
    let cells = rows.iter().flat_map(|(_, cells)| cells).flatten();
    let width = cells.map(|cell| cell.note.chars().count()).max();
    let width = width.unwrap_or_default();
    let shown = |cell: &Option<PriceCell>| match cell {
        None => Text::default(),
        Some(cell) if width == 0 => Text::new(text(cell), cell_tone(cell)),
        Some(cell) => {
            let text = format!("{} {:>width$}", text(cell), cell.note);
            Text::new(text, cell_tone(cell))
        }
    };
    let rows = rows.iter();
    rows.map(|(_, cells)| cells.iter().map(shown).collect())
        .collect()
}
