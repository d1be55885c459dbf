//! A resource as data: its head, its figures, what is to be said about it, and what can be done.
//!
//! The values are typed, so that a renderer chooses their form: a time is a `<time>` on a page and a
//! local clock on a terminal.

use farescan_contract::history_verdict::HistoryVerdict;
use farescan_contract::ids::{AnyId, ItemId, Kind, ScanId};
use jiff::Timestamp;
use rust_decimal::Decimal;

/// A resource, for a renderer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sheet {
    pub title: String,
    /// What it is, beside the title.
    pub facts: Vec<Value>,
    pub figures: Vec<Figure>,
    /// What it says of itself.
    pub sentence: Option<String>,
    pub notices: Vec<Notice>,
    pub sections: Vec<Section>,
    /// What can be done with its cost: the text of a button, or of a question without its mark.
    pub action: Option<String>,
}

/// A part of a sheet.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Section {
    pub title: &'static str,
    pub sentence: Option<String>,
    pub notices: Vec<Notice>,
    pub figures: Vec<Figure>,
    /// Without rows it is left out.
    pub table: Option<Table>,
}

impl Section {
    pub fn new(title: &'static str) -> Self {
        Self {
            title,
            ..Self::default()
        }
    }
}

/// Values in rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// What it lists.
    pub name: &'static str,
    pub columns: Vec<Column>,
    pub rows: Vec<TableRow>,
}

impl Table {
    pub fn new<const N: usize>(
        name: &'static str,
        columns: [Column; N],
        rows: impl Iterator<Item = (Option<Link>, [Cell; N])>,
    ) -> Self {
        let rows = rows.map(|(of, cells)| TableRow {
            of,
            cells: cells.into(),
        });
        Self {
            name,
            columns: columns.into(),
            rows: rows.collect(),
        }
    }
}

impl Table {
    /// Without some of its columns.
    #[must_use]
    pub fn without(mut self, is_left_out: impl Fn(&Column) -> bool) -> Self {
        for row in &mut self.rows {
            let mut columns = self.columns.iter();
            row.cells
                .retain(|_| columns.next().is_none_or(|column| !is_left_out(column)));
        }
        self.columns.retain(|column| !is_left_out(column));
        self
    }
}

/// A row, which may be of a resource.
#[derive(Debug, Clone, PartialEq)]
pub struct TableRow {
    pub of: Option<Link>,
    pub cells: Vec<Cell>,
}

/// Values side by side; none: there is nothing to say.
pub type Cell = Vec<Value>;

/// Those values that there are.
pub fn cell<const N: usize>(values: [Option<Value>; N]) -> Cell {
    values.into_iter().flatten().collect()
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub title: String,
    /// Numbers stand at the right.
    pub is_number: bool,
    /// 0: always shown; else the highest rank is left out first where it is narrow.
    pub rank: u8,
    /// A detail of the column before, which may stand beneath it.
    pub is_detail: bool,
}

impl Column {
    /// A column of texts.
    pub fn text(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            is_number: false,
            rank: 0,
            is_detail: false,
        }
    }

    /// A column of numbers.
    pub fn number(title: impl Into<String>) -> Self {
        Self {
            is_number: true,
            ..Self::text(title)
        }
    }

    /// A detail of the column before.
    pub fn detail(title: impl Into<String>) -> Self {
        Self {
            is_detail: true,
            ..Self::text(title)
        }
    }

    /// May be left out where it is narrow, the highest rank first.
    #[must_use]
    pub fn rank(self, rank: u8) -> Self {
        Self { rank, ..self }
    }
}

/// A figure with its name, and what it means.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    pub label: &'static str,
    pub value: Value,
    /// What it is counted in, or out of.
    pub unit: Option<String>,
    pub notes: Vec<Value>,
    /// What the colour of the value repeats.
    pub tone: Tone,
}

impl Figure {
    pub fn new(label: &'static str, value: impl Into<Value>) -> Self {
        Self {
            label,
            value: value.into(),
            unit: None,
            notes: Vec::new(),
            tone: Tone::Plain,
        }
    }

    #[must_use]
    pub fn tone(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    /// The figure of a value that there may be.
    pub fn of(label: &'static str, value: Option<impl Into<Value>>) -> Option<Self> {
        value.map(|value| Self::new(label, value))
    }

    #[must_use]
    pub fn unit(self, unit: Option<String>) -> Self {
        Self { unit, ..self }
    }

    #[must_use]
    pub fn note(mut self, note: impl Into<Value>) -> Self {
        self.notes.push(note.into());
        self
    }

    #[must_use]
    pub fn notes(mut self, notes: impl IntoIterator<Item = Value>) -> Self {
        self.notes.extend(notes);
        self
    }
}

/// What stops or limits the resource, and what can be done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub tone: Tone,
    /// What is the case.
    pub lead: String,
    /// What that means.
    pub text: String,
    pub next: &'static [NextStep],
}

impl Notice {
    /// Something to know that nothing can be done about here.
    pub fn warning(lead: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            tone: Tone::Warn,
            lead: lead.into(),
            text: text.into(),
            next: &[],
        }
    }
}

/// What a caller can do about a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    Resume,
    RaiseLimit,
    CheckKey,
    ReadQuota,
    ReadReasons,
    AskAgain,
}

/// What a colour repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Info,
    Good,
    Warn,
    Bad,
}

/// A part of a sheet.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Text(String),
    Strong(String),
    /// Less important than what stands beside it.
    Muted(String),
    /// The word for what is not there.
    Absent(&'static str),
    /// A state.
    Word(Tone, String),
    Count(u64),
    /// In major units, with its currency if that is known.
    Money(Decimal, Option<String>),
    /// What was or will be, and when.
    Time(&'static str, Timestamp),
    /// A time of a schedule, with its zone.
    Zoned(Timestamp, String),
    /// What was read or will be sent as it is.
    Code(String),
    /// What prices are of, the prices in their order, and their currency.
    Series(String, Vec<Option<Decimal>>, String),
    /// The share that has ended, and its words.
    Progress(f64, String),
    /// A resource by its name; without one by its kind or its id.
    Link(Link, Option<String>),
    /// A price of an item that is far off its own history, and how far.
    Implausible(ItemId, String, String),
    Verdict(HistoryVerdict),
    Tag(String),
}

impl Value {
    pub fn word(tone: Tone, word: impl Into<String>) -> Self {
        Self::Word(tone, word.into())
    }

    pub fn muted(text: impl Into<String>) -> Self {
        Self::Muted(text.into())
    }

    pub const fn at(at: Timestamp) -> Self {
        Self::Time("", at)
    }
}

impl<T: Into<String>> From<T> for Value {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

impl From<Value> for Cell {
    fn from(value: Value) -> Self {
        vec![value]
    }
}

/// What can be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    Of(AnyId),
    /// Of an earlier and a later scan.
    Comparison(ScanId, ScanId),
    /// A page of a marketplace or a hotel.
    Offer(String),
}

impl Link {
    /// The link to a resource.
    pub fn of(id: impl Into<AnyId>) -> Self {
        Self::Of(id.into())
    }

    /// It leads to one of these.
    pub fn is_of(&self, kind: Kind) -> bool {
        matches!(self, Self::Of(id) if id.kind == kind)
    }

    /// What it leads to.
    pub const fn title(&self) -> &'static str {
        match self {
            Self::Of(id) => id.kind.title(),
            Self::Comparison(..) => "Comparison",
            Self::Offer(_) => "Offer",
        }
    }

    /// What it is named by without a name.
    pub fn id(&self) -> String {
        match self {
            Self::Of(id) => id.to_string(),
            Self::Comparison(_, id) => id.to_string(),
            Self::Offer(url) => url.clone(),
        }
    }
}
