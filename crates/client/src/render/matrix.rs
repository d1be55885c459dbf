//! Dates against nights, markets or airports: the lowest price of each combination.

use std::collections::HashMap;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, CellAlignment, Table};
use farescan_sheets::cell::CellValue;
use farescan_sheets::fifths::PriceFifths;
use serde_json::Value;

use super::{CellTone, Text, cell_text, price_tone, set_styling, tone};
use crate::terminal::Screen;

/// The blanks and the line of a column.
const COLUMN_EXTRA: usize = 3;

/// A table of cells. `None`: there is no such combination.
#[derive(Debug, Clone)]
pub struct Matrix {
    rows: Vec<String>,
    columns: Vec<String>,
    /// By row.
    cells: Vec<Vec<Option<MatrixCell>>>,
}

/// One cell: its value, and a few characters beside it, such as its age.
#[derive(Debug, Clone)]
pub struct MatrixCell {
    pub value: CellValue,
    pub note: String,
    /// Shown as less important; the note says why.
    pub is_old: bool,
}

impl From<CellValue> for MatrixCell {
    fn from(value: CellValue) -> Self {
        Self {
            value,
            note: String::new(),
            is_old: false,
        }
    }
}

/// One axis: its values, and a label for each.
pub struct MatrixAxis<'a> {
    pub values: &'a [Value],
    pub labels: Vec<String>,
}

impl MatrixAxis<'_> {
    /// The position of each value.
    fn places(&self) -> HashMap<String, usize> {
        let values = self.values.iter().enumerate();
        values
            .map(|(place, value)| (value.to_string(), place))
            .collect()
    }
}

impl Matrix {
    /// Places each cell by the values of its row and column.
    pub fn new<'a>(
        rows: MatrixAxis<'_>,
        columns: MatrixAxis<'_>,
        cells: impl Iterator<Item = (&'a Value, &'a Value, impl Into<MatrixCell>)>,
    ) -> Self {
        let (row_places, column_places) = (rows.places(), columns.places());
        let mut placed = vec![vec![None; columns.labels.len()]; rows.labels.len()];
        for (row, column, value) in cells {
            let row = row_places.get(&row.to_string());
            let column = column_places.get(&column.to_string());
            if let Some((row, column)) = row.zip(column) {
                placed[*row][*column] = Some(value.into());
            }
        }
        Self {
            rows: rows.labels,
            columns: columns.labels,
            cells: placed,
        }
    }

    /// What the cells show.
    pub fn values(&self) -> impl Iterator<Item = CellValue> {
        self.cells.iter().flatten().flatten().map(|cell| cell.value)
    }

    /// The table; several below each other if the columns do not fit. Rows without a cell are left
    /// out.
    pub fn render(&self, screen: Screen) -> String {
        let texts = self.texts();
        let width = |column: usize| {
            let cells = texts.iter().map(|row| row[column].text.chars().count());
            let title = self.columns[column].chars().count();
            cells.max().unwrap_or_default().max(title) + COLUMN_EXTRA
        };
        let labels = self.rows.iter().map(|label| label.chars().count());
        let room = usize::from(screen.width)
            .saturating_sub(labels.max().unwrap_or_default() + COLUMN_EXTRA + 1);
        let (mut blocks, mut from) = (Vec::new(), 0);
        while from < self.columns.len() {
            let (mut to, mut used) = (from + 1, width(from));
            while to < self.columns.len() && used + width(to) <= room {
                used += width(to);
                to += 1;
            }
            blocks.push(self.block(&texts, from..to, screen.colour));
            from = to;
        }
        blocks.join("\n")
    }

    /// The text and tone of each cell, the cheapest marked.
    fn texts(&self) -> Vec<Vec<Text>> {
        let shown = || self.cells.iter().flatten().flatten();
        let fifths: PriceFifths = shown().filter_map(|cell| cell.value.price()).collect();
        let best = fifths.lowest();
        let width = shown()
            .map(|cell| cell.note.len())
            .max()
            .unwrap_or_default();
        let text = |cell: &Option<MatrixCell>| {
            let Some(cell) = cell else {
                return Text::default();
            };
            let is_best = best.is_some() && cell.value.price() == best;
            let mark = if is_best { "*" } else { "" };
            let tone = match cell.value {
                _ if is_best => CellTone::Best,
                _ if cell.is_old => CellTone::Quiet,
                CellValue::Price(price) => price_tone(&fifths, price),
                value => tone(value),
            };
            let mut text = format!("{mark}{}", cell_text(cell.value));
            if width > 0 {
                text = format!("{text} {:>width$}", cell.note);
            }
            Text::new(text, tone)
        };
        let rows = self.cells.iter();
        rows.map(|row| row.iter().map(text).collect()).collect()
    }

    fn block(&self, texts: &[Vec<Text>], columns: std::ops::Range<usize>, colour: bool) -> String {
        let mut table = Table::new();
        table.load_style(UTF8_FULL_CONDENSED);
        set_styling(&mut table, colour);
        let mut titles = vec![Cell::new("")];
        titles.extend(
            self.columns[columns.clone()]
                .iter()
                .map(|title| Cell::new(title).set_alignment(CellAlignment::Right)),
        );
        table.set_header(titles);
        for ((label, texts), cells) in self.rows.iter().zip(texts).zip(&self.cells) {
            if cells.iter().all(Option::is_none) {
                continue;
            }
            let mut row = vec![Cell::new(label)];
            let texts = texts[columns.clone()].iter();
            row.extend(texts.map(|text| text.cell(CellAlignment::Right)));
            table.add_row(row);
        }
        table.to_string()
    }
}
