//! A question that was answered by searching everything, played again with each setting: what the
//! counts of a caller are made of.

use rust_decimal::Decimal;

use crate::misses::SETTINGS;
use crate::{BoundSearch, Candidate, Ends, Known, Setting, SettingChoice, Wanted, play};

/// A price within one percent of the cheapest counts as it.
const TOLERANCE: Decimal = Decimal::from_parts(101, 0, 0, false, 2);

/// What each setting would have answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replayed {
    /// What was known before.
    pub known: Known,
    /// Whether each setting missed.
    pub missed: Vec<(Setting, bool)>,
}

/// Plays the question again. `candidates` have what was stored before it, `found` what all searches
/// of it have found, plausible prices only. `None`: no offer was found, so there was nothing to miss.
pub fn replay(candidates: &[Candidate], found: &[Option<Decimal>]) -> Option<Replayed> {
    let cheapest = found.iter().flatten().min()?;
    let limit = cheapest.checked_mul(TOLERANCE)?;
    let missed = |setting| {
        let counted = None;
        let search = BoundSearch {
            wanted: Wanted::Cheapest,
            ends: Ends::Answered(SettingChoice { setting, counted }),
            most: usize::MAX,
        };
        let played = play(&search, &mut candidates.to_vec(), |at| found[at]);
        let named = played.end.best;
        (setting, named.is_none_or(|(_, named)| named > limit))
    };
    Some(Replayed {
        known: Known::of(candidates),
        missed: SETTINGS.map(missed).to_vec(),
    })
}
