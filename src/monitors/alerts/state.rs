//! What a rule remembers of one scope from run to run.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::kind::{Kind, Subject};
use crate::contract::monitors::Rule;

/// The states of one rule: of the whole scan under the empty key, or of each cell under its own (`scans::cells`), as it is [`kept_under`].
pub(super) type States = BTreeMap<String, State>;

/// The longest key of a cell that is kept as it is. A list that is swept makes keys of a kilobyte, and there may be 10,000 of them.
const LONGEST_KEY: usize = 64;

/// A cell's key, or in the place of a long one half of its SHA-256. What is short already stays as it is.
pub(super) fn short(key: &str) -> Cow<'_, str> {
    if key.len() <= LONGEST_KEY {
        return Cow::Borrowed(key);
    }
    let digest: [u8; 32] = Sha256::digest(key).into();
    Cow::Owned(
        digest[..16]
            .iter()
            .fold("#".to_owned(), |text, byte| format!("{text}{byte:02x}")),
    )
}

/// Under what a rule keeps what it remembers of a cell. `stale` alone keeps all of a long key: it tells of slots without a run, where the
/// key is all that says which cell it was.
pub(super) fn kept_under<'a>(rule: &Rule, key: &'a str) -> Cow<'a, str> {
    match Kind::of(rule).subject {
        Subject::Answers => Cow::Borrowed(key),
        Subject::Prices | Subject::Markets => short(key),
    }
}

/// What one rule remembers of one scope.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    /// It can fire.
    pub(super) armed: bool,
    /// Of the prices in here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) currency: Option<String>,
    /// The last price seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) last: Option<Mark>,
    /// The price at which it last fired. States that were kept before this was have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) told: Option<Mark>,
    /// Where the scan's lowest price was, as far as is known. Not for cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) anchor: Option<Anchor>,
    #[serde(default, skip_serializing_if = "Memory::is_nothing")]
    pub(super) memory: Memory,
}

/// A price and when it was seen, kept as its text (a number of JSON would round it) and its milliseconds: there may be many.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "(String, i64)", try_from = "(String, i64)")]
pub(super) struct Mark {
    pub(super) price: Decimal,
    pub(super) at: Timestamp,
}

impl From<Mark> for (String, i64) {
    fn from(mark: Mark) -> Self {
        (mark.price.to_string(), mark.at.as_millisecond())
    }
}

impl TryFrom<(String, i64)> for Mark {
    type Error = String;

    fn try_from((price, at): (String, i64)) -> Result<Self, String> {
        let price = price.parse().map_err(|error| format!("{price}: {error}"))?;
        Ok(Self {
            price,
            at: Timestamp::from_millisecond(at).map_err(|error| error.to_string())?,
        })
    }
}

/// The key of a cell, [`short`], with the price that it had. States from before have long ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Anchor {
    pub(super) cell: String,
    pub(super) mark: Mark,
}

/// What rules of some types remember beside that.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Memory {
    #[default]
    Nothing,
    /// `new_low`: the lowest price ever seen.
    Lowest(Option<Mark>),
    /// `drop_percent`: the prices of the last runs that had one, the oldest first.
    Window(Vec<Mark>),
    /// `available`, `sold_out`: whether there was a price when that was last known.
    Presence(Option<bool>),
    /// `stale`: runs in a row without an answer.
    Absent(u32),
}

impl State {
    /// Of a rule that has seen nothing. What waits for a change has to see the other side of it first.
    pub(super) fn new(rule: &Rule) -> Self {
        let (armed, memory) = match rule {
            Rule::PriceBelow(_) | Rule::Verdict(_) | Rule::ParityGapPercent(_) => {
                (true, Memory::Nothing)
            }
            Rule::NewLow(_) => (true, Memory::Lowest(None)),
            Rule::DropPercent(_) => (true, Memory::Window(Vec::new())),
            Rule::Available(_) | Rule::SoldOut(_) => (false, Memory::Presence(None)),
            Rule::Stale(_) => (true, Memory::Absent(0)),
        };
        Self {
            armed,
            currency: None,
            last: None,
            told: None,
            anchor: None,
            memory,
        }
    }
}

impl Memory {
    fn is_nothing(&self) -> bool {
        *self == Self::Nothing
    }

    pub(super) fn lowest(&self) -> Option<&Mark> {
        match self {
            Self::Lowest(lowest) => lowest.as_ref(),
            Self::Window(marks) => marks
                .iter()
                .min_by(|one, other| one.price.cmp(&other.price)),
            _ => None,
        }
    }

    pub(super) fn window(&self) -> &[Mark] {
        if let Self::Window(marks) = self {
            marks
        } else {
            &[]
        }
    }

    /// Adds the newest of at most so many.
    pub(super) fn push(&mut self, mark: Mark, most: usize) {
        if let Self::Window(marks) = self {
            marks.push(mark);
            let over = marks.len().saturating_sub(most);
            marks.drain(..over);
        }
    }

    pub(super) fn presence(&self) -> Option<bool> {
        if let Self::Presence(presence) = self {
            *presence
        } else {
            None
        }
    }

    pub(super) fn absent(&self) -> u32 {
        if let Self::Absent(absent) = self {
            *absent
        } else {
            0
        }
    }
}
