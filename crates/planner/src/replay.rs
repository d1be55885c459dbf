//! A question that was answered by searching everything, played again with each setting: what the
//! counts of a caller are made of.

use std::collections::BTreeMap;

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
    // Without stored prices settings do not differ by how much those may have fallen.
    let has_stored = candidates.iter().any(|one| one.stored.is_some());
    let mut played = BTreeMap::new();
    let counts = SETTINGS.map(|setting| {
        let percent_a_day = if has_stored { setting.percent_a_day } else { 0 };
        let missed = *played
            .entry((percent_a_day, setting.is_patient))
            .or_insert_with(|| missed(setting));
        let count = MissCount {
            questions: 1,
            missed: u32::from(missed),
        };
        (setting, count)
    });
    Some(Replayed {
        known: Known::of(&SearchView { candidates }),
        counts: counts.to_vec(),
    })
}
