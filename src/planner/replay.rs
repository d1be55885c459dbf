//! A question that was answered by searching everything, played again with each setting: what the
//! counts of a caller are made of.

use rust_decimal::Decimal;

use super::{
    BoundSearch, Candidate, Ends, Known, MissCount, SETTINGS, SearchView, Setting, SettingChoice,
    Wanted, play,
};

/// A price within one percent of the cheapest counts as it.
const TOLERANCE: Decimal = Decimal::from_parts(101, 0, 0, false, 2);

/// What each setting would have answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replayed {
    /// What was known before.
    pub known: Known,
    /// Of each setting one question, missed or not.
    pub counts: Vec<(Setting, MissCount)>,
}

/// Plays the question again. `candidates` have what was stored before it, `found` what all searches
/// of it have found, plausible prices only. `None`: no offer was found, so there was nothing to miss.
#[must_use]
pub fn replay(
    candidates: &[Candidate],
    found: &[Option<Decimal>],
    batch: usize,
) -> Option<Replayed> {
    let cheapest = found.iter().flatten().min()?;
    let limit = cheapest.checked_mul(TOLERANCE)?;
    let missed = |setting| {
        let search = BoundSearch {
            wanted: Wanted::Cheapest,
            choice: SettingChoice {
                setting,
                counted: None,
            },
            most: usize::MAX,
            batch,
            ends: Ends::Answered,
        };
        let mut before = candidates.to_vec();
        let price = |at: usize| found.get(at).copied().flatten();
        let played = play(&search, &mut before, price);
        let named = played.best.position.and_then(price);
        named.is_none_or(|named| named > limit)
    };
    let count = |setting| MissCount {
        questions: 1,
        missed: u32::from(missed(setting)),
    };
    Some(Replayed {
        known: Known::of(&SearchView { candidates }),
        counts: SETTINGS.map(|setting| (setting, count(setting))).to_vec(),
    })
}
