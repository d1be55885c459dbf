//! What a text was read as: chips for what was understood, refusals for what was not.

use crate::question::Question;

/// A text as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// What was understood, in the order of [`ChipKind`]; also beside refusals.
    pub chips: Vec<Chip>,
    /// The text with the first choice of every refusal, where there are several and that is a question.
    pub corrected: Option<String>,
    /// The question, or why there is none.
    pub result: Result<Question, Vec<RefusedWords>>,
}

/// A part of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chip {
    pub kind: ChipKind,
    /// What it means, such as `London: LCY, LGW, LHR, LTN, SEN or STN`.
    pub text: String,
    /// The words that it was read from; `None` for a default.
    pub words: Option<String>,
    /// What the same words could mean as well.
    pub choices: Vec<Suggestion>,
    /// Of a city with several airports, each one alone.
    pub alone: Vec<Suggestion>,
}

/// What a chip is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChipKind {
    From,
    To,
    Hotel,
    Area,
    Dates,
    Weekdays,
    Nights,
    Travellers,
    Stops,
    Cabin,
    Markets,
    Currency,
    Below,
    Checks,
    Via,
}

impl ChipKind {
    /// Its label.
    pub const fn label(self) -> &'static str {
        match self {
            Self::From => "From",
            Self::To => "To",
            Self::Hotel => "Hotel",
            Self::Area => "In",
            Self::Dates => "Dates",
            Self::Weekdays => "Days",
            Self::Nights => "Stay",
            Self::Travellers => "For",
            Self::Stops => "Stops",
            Self::Cabin => "Cabin",
            Self::Markets => "Markets",
            Self::Currency => "Currency",
            Self::Below => "Amount",
            Self::Checks => "Looks",
            Self::Via => "Alerts by",
        }
    }
}

/// Another reading of words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    /// What it is, such as `Portland, Oregon (PDX)`.
    pub text: String,
    /// The whole text with its words in place of the others.
    pub question: String,
}

/// Words that are not read, or a part that is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedWords {
    /// The words; empty where something is missing.
    pub words: String,
    /// What is wrong and what is expected, as a sentence.
    pub says: String,
    /// What they could mean.
    pub choices: Vec<Suggestion>,
}
