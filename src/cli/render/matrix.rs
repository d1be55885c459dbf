//! Dates against nights, markets or airports: the lowest price of each combination.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, CellAlignment, Table};

use super::{CellValue, Tone, set_styling};
use crate::cli::terminal::Screen;

/// A table of cells. `None`: the scan has no such combination.
#[derive(Debug, Clone)]
pub struct Matrix {
    pub rows: Vec<String>,
    pub columns: Vec<String>,
    /// By row.
    pub cells: Vec<Vec<Option<CellValue>>>,
}

impl Matrix {
    /// The table; several below each other if the columns do not fit.
    pub fn render(&self, screen: &Screen) -> String {
        let label_width = widest(self.rows.iter());
        let width = usize::from(screen.width).saturating_sub(label_width + 4);
        let mut blocks = Vec::new();
        let mut from = 0;
        while from < self.columns.len() {
            let mut to = from + 1;
            while to < self.columns.len()
                && (from..=to)
                    .map(|column| self.column_width(column))
                    .sum::<usize>()
                    <= width
            {
                to += 1;
            }
            blocks.push(self.block(from, to, screen.colour));
            from = to;
        }
        blocks.join("\n")
    }

    /// With its blanks and its line.
    fn column_width(&self, column: usize) -> usize {
        let cells = self.cells.iter().map(|row| self.text(row[column]));
        let cells: Vec<_> = cells.chain([self.columns[column].clone()]).collect();
        widest(cells.iter()) + 3
    }

    fn block(&self, from: usize, to: usize, colour: bool) -> String {
        let mut table = Table::new();
        table.load_style(UTF8_FULL_CONDENSED);
        set_styling(&mut table, colour);
        let right = |text: &str| Cell::new(text).set_alignment(CellAlignment::Right);
        let titles = self.columns[from..to].iter().map(|title| right(title));
        table.set_header(
            std::iter::once(Cell::new(""))
                .chain(titles)
                .collect::<Vec<_>>(),
        );
        for (label, row) in self.rows.iter().zip(&self.cells) {
            let cells = row[from..to]
                .iter()
                .map(|value| self.tone(*value).apply(right(&self.text(*value))));
            table.add_row(
                std::iter::once(Cell::new(label))
                    .chain(cells)
                    .collect::<Vec<_>>(),
            );
        }
        table.to_string()
    }

    fn cheapest(&self) -> Option<rust_decimal::Decimal> {
        let cells = self.cells.iter().flatten().flatten();
        cells.filter_map(|value| value.price()).min()
    }

    fn text(&self, value: Option<CellValue>) -> String {
        let is_cheapest = value
            .and_then(CellValue::price)
            .is_some_and(|price| Some(price) == self.cheapest());
        let mark = if is_cheapest { "*" } else { "" };
        value.map_or_else(String::new, |value| format!("{mark}{}", value.text()))
    }

    fn tone(&self, value: Option<CellValue>) -> Tone {
        match value {
            Some(CellValue::Price(price)) if Some(price) == self.cheapest() => Tone::Best,
            Some(value) => value.tone(),
            None => Tone::Plain,
        }
    }
}

fn widest<'a>(texts: impl Iterator<Item = &'a String>) -> usize {
    texts
        .map(|text| text.chars().count())
        .max()
        .unwrap_or_default()
}
