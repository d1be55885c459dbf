//! A resource as data: its head, its figures, what is to be said about it, and what can be done.
//!
//! The values are typed, so that a renderer chooses their form: a time is a `<time>` on a page and a
//! local clock on a terminal.

use farescan_contract::history_verdict::HistoryVerdict;
use farescan_contract::ids::ItemId;
use jiff::Timestamp;

/// A resource, for a renderer.
#[derive(Debug, Clone, PartialEq)]
pub struct Sheet {
    pub title: String,
    /// What it is, beside the title.
    pub facts: Vec<Value>,
    pub figures: Vec<Figure>,
    /// What it says of itself.
    pub sentence: Option<String>,
    pub notices: Vec<Notice>,
    /// What can be done with its cost: the text of a button, or of a question without its mark.
    pub action: Option<String>,
}

/// A figure with its name, and what it means.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    pub label: &'static str,
    pub value: Value,
    /// What it is counted in, or out of.
    pub unit: Option<String>,
    pub notes: Vec<Value>,
}

impl Figure {
    pub fn new(label: &'static str, value: impl Into<Value>) -> Self {
        Self {
            label,
            value: value.into(),
            unit: None,
            notes: Vec::new(),
        }
    }

    #[must_use]
    pub fn note(mut self, note: impl Into<Value>) -> Self {
        self.notes.push(note.into());
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
    /// The word for what is not there.
    Absent(&'static str),
    /// What was or will be, and when.
    Time(&'static str, Timestamp),
    /// The price of an item.
    Price(ItemId, String),
    /// A price of an item that is far off its own history, and how far.
    Implausible(ItemId, String, String),
    Verdict(HistoryVerdict),
    Tag(String),
}

impl<T: Into<String>> From<T> for Value {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}
