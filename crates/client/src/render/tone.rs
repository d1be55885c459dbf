//! Colours as a second signal: each repeats what a text says. Only the 16 colours of every terminal.

use clap::builder::styling::{AnsiColor, Style};
use comfy_table::{Attribute, Cell, CellAlignment, Color};

use farescan_contract::visible_text::VisibleText;

/// What a cell's colour repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CellTone {
    #[default]
    Plain,
    Good,
    Warning,
    Bad,
    /// Less important.
    Quiet,
    /// The cheapest.
    Best,
}

impl CellTone {
    /// The cell in this tone.
    pub fn apply(self, cell: Cell) -> Cell {
        match self {
            Self::Plain => cell,
            Self::Good => cell.fg(Color::DarkGreen),
            Self::Warning => cell.fg(Color::DarkYellow),
            Self::Bad => cell.fg(Color::DarkRed),
            Self::Quiet => cell.add_attribute(Attribute::Dim),
            Self::Best => cell.fg(Color::DarkGreen).add_attribute(Attribute::Bold),
        }
    }

    /// A text of a line in this tone; the stream that it is written to removes colours where none
    /// are shown.
    pub(super) fn line(self, text: &str) -> String {
        let style = match self {
            Self::Plain => return text.to_owned(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Warning => AnsiColor::Yellow.on_default(),
            Self::Bad => AnsiColor::Red.on_default(),
            Self::Quiet => Style::new().dimmed(),
            Self::Best => AnsiColor::Green.on_default().bold(),
        };
        format!("{style}{text}{style:#}")
    }
}

/// A text with its tone.
#[derive(Debug, Clone, Default)]
pub struct Text {
    pub text: VisibleText,
    pub tone: CellTone,
}

impl Text {
    pub fn new(text: impl Into<VisibleText>, tone: CellTone) -> Self {
        Self {
            text: text.into(),
            tone,
        }
    }

    pub(super) fn cell(&self, alignment: CellAlignment) -> Cell {
        self.tone
            .apply(Cell::new(&self.text).set_alignment(alignment))
    }
}

impl<T: Into<VisibleText>> From<T> for Text {
    fn from(text: T) -> Self {
        Self::new(text, CellTone::Plain)
    }
}
