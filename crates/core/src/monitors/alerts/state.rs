//! The state of a rule in one scope, kept between runs.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The states of one rule by the rule's `state_key`: the empty key for the whole scan, or one key per
/// cell.
pub(super) type ScopeStates = BTreeMap<String, ScopeState>;

/// The longest cell key stored in full. A swept list gives keys of a kilobyte, and a run may have
/// 10,000 of them.
const MAX_KEY_LENGTH: usize = 64;

/// A cell's key; a long one is replaced by half of its SHA-256.
pub(super) fn short_key(key: &str) -> Cow<'_, str> {
    if key.len() <= MAX_KEY_LENGTH {
        return Cow::Borrowed(key);
    }
    let digest: [u8; 32] = Sha256::digest(key).into();
    Cow::Owned(
        digest[..16]
            .iter()
            .fold("#".to_owned(), |text, byte| format!("{text}{byte:02x}")),
    )
}

/// The state of one rule in one scope.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ScopeState {
    /// Whether it can fire.
    pub(super) armed: bool,
    /// The currency of the prices here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) currency: Option<String>,
    /// The last price seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) last: Option<PricePoint>,
    /// The price at which it last fired; absent in states of older versions, or under another name.
    #[serde(default, alias = "told", skip_serializing_if = "Option::is_none")]
    pub(super) last_fired: Option<PricePoint>,
    /// The cell with the scan's lowest known price. Not in the states of cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) anchor: Option<Anchor>,
    #[serde(default, skip_serializing_if = "RuleMemory::is_stateless")]
    pub(super) memory: RuleMemory,
}

/// A price and when it was seen. Serialised compactly, as text (a JSON number would round it) and
/// milliseconds, because there may be many.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "(String, i64)", try_from = "(String, i64)")]
pub(super) struct PricePoint {
    pub(super) price: Decimal,
    pub(super) at: Timestamp,
}

impl From<PricePoint> for (String, i64) {
    fn from(mark: PricePoint) -> Self {
        (mark.price.to_string(), mark.at.as_millisecond())
    }
}

impl TryFrom<(String, i64)> for PricePoint {
    type Error = String;

    fn try_from((price, at): (String, i64)) -> Result<Self, String> {
        let price = price.parse().map_err(|error| format!("{price}: {error}"))?;
        Ok(Self {
            price,
            at: Timestamp::from_millisecond(at).map_err(|error| error.to_string())?,
        })
    }
}

/// The [`short_key`] of a cell, and its price. States of older versions have long keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Anchor {
    pub(super) cell: String,
    pub(super) mark: PricePoint,
}

/// The state that only some rule types have.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RuleMemory {
    #[default]
    Stateless,
    /// `new_low`: the lowest price of its days.
    Lowest(Option<PricePoint>),
    /// `drop_percent`: the prices of the last runs that had a price, oldest first.
    Window(Vec<PricePoint>),
    /// `available`, `sold_out`: whether there was a price when last known.
    Presence(Option<bool>),
    /// `stale`: consecutive runs without an answer.
    Absent(u32),
}

impl ScopeState {
    /// The state before any price.
    pub(super) fn new(armed: bool, memory: RuleMemory) -> Self {
        Self {
            armed,
            currency: None,
            last: None,
            last_fired: None,
            anchor: None,
            memory,
        }
    }
}

impl RuleMemory {
    fn is_stateless(&self) -> bool {
        *self == Self::Stateless
    }

    pub(super) fn lowest(&self) -> Option<&PricePoint> {
        match self {
            Self::Lowest(lowest) => lowest.as_ref(),
            Self::Window(marks) => marks
                .iter()
                .min_by(|one, other| one.price.cmp(&other.price)),
            _ => None,
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
