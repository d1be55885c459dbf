//! Tables of rows: scans, fares, hotels. They fit the terminal's width: less important columns are
//! left out, then the longest texts are cut.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Row, Table, TableStyle};
use comfy_table::{ContentLineStyle, LineStyle};

use farescan_sheets::sheet::Column;

use super::set_styling;
use super::tone::Text;
use crate::terminal::Screen;
use crate::wrap::wrap;

/// The blanks beside each column.
const PADDING: usize = 2;

/// Columns and rows.
#[derive(Debug, Clone)]
pub struct ListTable {
    columns: Vec<Column>,
    rows: Vec<Vec<Text>>,
    note: Option<String>,
    has_ids: bool,
}

impl ListTable {
    pub fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self {
            columns: columns.into(),
            rows: Vec::new(),
            note: None,
            has_ids: false,
        }
    }

    /// The first column has ids. They are never cut: a part of an id is no id.
    #[must_use]
    pub fn with_ids(self) -> Self {
        Self {
            has_ids: true,
            ..self
        }
    }

    /// Adds a sentence below the rows.
    #[must_use]
    pub fn note(self, note: Option<String>) -> Self {
        Self { note, ..self }
    }

    /// Adds a row with a text for each column.
    pub fn row(&mut self, row: impl Into<Vec<Text>>) {
        self.rows.push(row.into());
    }

    /// The table as text, at most as wide as the screen.
    pub fn render(&self, screen: Screen) -> String {
        let shown = self.shown_columns(usize::from(screen.width));
        let mut table = Table::new();
        table.load_style(STYLE).set_width(screen.width);
        set_styling(&mut table, screen.colour);
        let titles = shown.iter().map(|&column| {
            let column = &self.columns[column];
            Text::from(column.title.as_str()).cell(alignment(column))
        });
        table.set_header(titles.collect::<Vec<_>>());
        if self.width(&shown) > usize::from(screen.width) {
            table
                .set_content_arrangement(ContentArrangement::Dynamic)
                .set_truncation_indicator("…");
        }
        for row in &self.rows {
            let cells = shown
                .iter()
                .map(|&column| row[column].cell(alignment(&self.columns[column])));
            let mut row = Row::from(cells.collect::<Vec<_>>());
            row.max_height(1);
            table.add_row(row);
        }
        if let Some(ids) = table.column_mut(0).filter(|_| self.has_ids) {
            ids.set_constraint(ColumnConstraint::ContentWidth);
        }
        let text = table.trim_fmt();
        match &self.note {
            Some(note) => format!("{text}\n{}", wrap(note, usize::from(screen.width))),
            None => text,
        }
    }

    /// The columns that fit, and always those of rank 0.
    fn shown_columns(&self, width: usize) -> Vec<usize> {
        let has_text = |column: &usize| self.rows.iter().any(|row| !row[*column].text.is_empty());
        let mut shown: Vec<usize> = (0..self.columns.len())
            .filter(|column| self.columns[*column].rank == 0 || has_text(column))
            .collect();
        while self.width(&shown) > width {
            let last = shown
                .iter()
                .copied()
                .filter(|column| self.columns[*column].rank > 0)
                .max_by_key(|column| self.columns[*column].rank);
            let Some(last) = last else { break };
            shown.retain(|column| *column != last);
        }
        shown
    }

    fn width(&self, columns: &[usize]) -> usize {
        let widest = |column: usize| {
            let texts = self.rows.iter().map(|row| row[column].text.chars().count());
            texts
                .chain([self.columns[column].title.chars().count()])
                .max()
                .unwrap_or_default()
        };
        columns.iter().map(|&column| widest(column) + PADDING).sum()
    }
}

fn alignment(column: &Column) -> CellAlignment {
    if column.is_number {
        CellAlignment::Right
    } else {
        CellAlignment::Left
    }
}

/// A line beneath the titles and nothing else.
const STYLE: TableStyle = TableStyle::new()
    .header_lines(ContentLineStyle::none())
    .header_separator(LineStyle::none().fill('─'));
