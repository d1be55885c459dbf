//! How often a setting has missed the cheapest by more than 1 %: counts, no model.

use std::collections::BTreeMap;

use crate::Candidate;
use crate::candidate::age_in_days;
use farescan_contract::string_enum::string_enum;

/// Fewer questions than this say nothing.
const MIN_QUESTIONS: u32 = 30;

/// How the bounds are made, and whether patience ends the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Setting {
    /// By how many percent a day a price may have fallen.
    pub percent_a_day: u8,
    /// Whether it ends when some searches in a row have found nothing better.
    pub is_patient: bool,
}

string_enum! {
    /// What is known before a question, as far as its misses depend on it.
    pub enum Known {
        /// Fewer than three in ten dates have a stored answer.
        Little = "little",
        /// Fewer than nine in ten have one.
        Part = "part",
        /// A calendar of at most a day.
        Day = "1_day",
        /// A calendar of at most three days.
        Days3 = "3_days",
        /// A calendar of at most a week.
        Days7 = "7_days",
        /// A calendar of at most two weeks.
        Days14 = "14_days",
        /// An older calendar.
        Older = "older",
    }
}

/// Of so many questions so many were missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MissCount {
    /// The questions.
    pub questions: u32,
    /// Those in which another date was cheaper by more than 1 %.
    pub missed: u32,
}

/// What a question is asked with: stored before its first decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingChoice {
    /// The setting.
    pub setting: Setting,
    /// The count that its answer declares; `None`: nobody knows.
    pub counted: Option<MissCount>,
}

/// Counted misses.
#[derive(Debug, Clone, Default)]
pub struct Misses {
    /// The caller's own.
    pub own: BTreeMap<(Known, Setting), MissCount>,
    /// Whether those of recorded calendars hold where there are too few: for flights, not for stays.
    pub has_prior: bool,
}

const fn setting(percent_a_day: u8, is_patient: bool) -> Setting {
    Setting {
        percent_a_day,
        is_patient,
    }
}

/// What is used where nothing was counted.
const USUAL: Setting = setting(6, true);
/// Never ends before everything was searched.
pub(super) const EVERYTHING: Setting = setting(u8::MAX, false);
/// All settings, the one with the fewest searches first.
pub(super) const SETTINGS: [Setting; 7] = [
    setting(0, true),
    setting(1, true),
    setting(2, true),
    setting(4, true),
    USUAL,
    setting(6, false),
    setting(10, false),
];

/// What was counted on recorded calendars: of low-cost airlines twice (432 and 352 questions), of
/// long-haul routes (1,188). Of each setting the set with the most misses is listed, because nobody
/// knows which one a route is like. Settings without patience were counted on the first set only.
/// Partly known calendars have no count: what was counted does not hold in the laboratory.
fn prior(known: Known, setting: Setting) -> Option<MissCount> {
    let ages = [Known::Day, Known::Days3, Known::Days7, Known::Days14];
    let counts: [(u32, u32); 4] = match (setting.percent_a_day, setting.is_patient) {
        (4, true) => [(1_188, 25), (1_188, 39), (352, 18), (352, 20)],
        (6, true) => [(1_188, 25), (1_188, 38), (1_188, 45), (1_188, 46)],
        (6, false) => [(432, 4), (432, 15), (432, 5), (432, 8)],
        (10, false) => [(432, 4), (432, 9), (432, 0), (432, 0)],
        _ => return None,
    };
    let mut of_ages = ages.into_iter().zip(counts);
    let (_, (questions, missed)) = of_ages.find(|(age, _)| *age == known)?;
    Some(MissCount { questions, missed })
}

impl MissCount {
    /// The share of the questions that were missed. Never 0: that none was missed so far does not
    /// prove the rule, so one counts as missed then.
    pub fn share(self) -> f64 {
        f64::from(self.missed.max(1)) / f64::from(self.questions.max(1))
    }

    /// Whether the share would not be above `max_risk` with one more question, missed.
    fn is_at_most(self, max_risk: f64) -> bool {
        f64::from(self.missed) + 1.0 <= max_risk * (f64::from(self.questions) + 1.0)
    }
}

impl Known {
    /// What is known of candidates before their question.
    pub fn of(candidates: &[Candidate]) -> Self {
        let stored = candidates.iter().filter(|one| one.stored.is_some());
        let (stored, all) = (stored.count(), candidates.len());
        match age_in_days(candidates) {
            _ if 10 * stored < 3 * all => Self::Little,
            _ if 10 * stored < 9 * all => Self::Part,
            0..=1 => Self::Day,
            2..=3 => Self::Days3,
            4..=7 => Self::Days7,
            8..=14 => Self::Days14,
            _ => Self::Older,
        }
    }
}

impl Misses {
    /// The caller's own count once it is of enough questions, before that the one of recorded
    /// calendars; `None`: too few.
    fn count(&self, known: Known, setting: Setting) -> Option<MissCount> {
        let own = self.own.get(&(known, setting)).copied();
        let own = own.filter(|own| own.questions >= MIN_QUESTIONS);
        own.or_else(|| prior(known, setting).filter(|_| self.has_prior))
    }

    /// The setting with the fewest searches whose counted misses are few enough; the usual one where
    /// nothing was counted; everything is searched where all have missed too often.
    pub fn choose(&self, known: Known, max_risk: f64) -> SettingChoice {
        let counts = SETTINGS.map(|setting| SettingChoice {
            setting,
            counted: self.count(known, setting),
        });
        let is_good = |counted: MissCount| counted.is_at_most(max_risk);
        let good = counts.iter().find(|one| one.counted.is_some_and(is_good));
        let is_counted = counts.iter().any(|one| one.counted.is_some());
        let setting = if is_counted || max_risk <= 0.0 {
            EVERYTHING
        } else {
            USUAL
        };
        let counted = None;
        good.copied().unwrap_or(SettingChoice { setting, counted })
    }
}
