//! How often a setting has missed the cheapest by more than 1 %: counts, no model.

use std::collections::BTreeMap;

use super::age::age_in_days;
use crate::SearchView;
use farescan_contract::string_enum::string_enum;

/// Fewer questions than this say nothing.
pub const MIN_QUESTIONS: u32 = 30;

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

/// Counted misses: the caller's own, over those of recorded calendars.
#[derive(Debug, Clone, Default)]
pub struct Misses {
    own: BTreeMap<(Known, Setting), MissCount>,
    has_prior: bool,
}

const fn setting(percent_a_day: u8, is_patient: bool) -> Setting {
    Setting {
        percent_a_day,
        is_patient,
    }
}

/// All settings, the one with the fewest searches first.
pub const SETTINGS: [Setting; 7] = [
    setting(0, true),
    setting(1, true),
    setting(2, true),
    setting(4, true),
    USUAL,
    setting(6, false),
    setting(10, false),
];
/// What is used where nothing was counted.
const USUAL: Setting = setting(6, true);
/// Never ends before everything was searched.
const EVERYTHING: Setting = setting(u8::MAX, false);

/// What was counted on recorded calendars: of low-cost airlines twice (432 and 352 questions), of
/// long-haul routes (1,188). Of each setting the set with the most misses is listed, because nobody
/// knows which one a route is like. Settings without patience were counted on the first set only.
/// Partly known calendars have no row: what was counted does not hold in the laboratory.
const PRIOR: [(Known, Setting, MissCount); 16] = {
    const fn row(
        known: Known,
        setting: Setting,
        questions: u32,
        missed: u32,
    ) -> (Known, Setting, MissCount) {
        (known, setting, MissCount { questions, missed })
    }
    [
        row(Known::Day, setting(4, true), 1_188, 25),
        row(Known::Days3, setting(4, true), 1_188, 39),
        row(Known::Days7, setting(4, true), 352, 18),
        row(Known::Days14, setting(4, true), 352, 20),
        row(Known::Day, USUAL, 1_188, 25),
        row(Known::Days3, USUAL, 1_188, 38),
        row(Known::Days7, USUAL, 1_188, 45),
        row(Known::Days14, USUAL, 1_188, 46),
        row(Known::Day, setting(6, false), 432, 4),
        row(Known::Days3, setting(6, false), 432, 15),
        row(Known::Days7, setting(6, false), 432, 5),
        row(Known::Days14, setting(6, false), 432, 8),
        row(Known::Day, setting(10, false), 432, 4),
        row(Known::Days3, setting(10, false), 432, 9),
        row(Known::Days7, setting(10, false), 432, 0),
        row(Known::Days14, setting(10, false), 432, 0),
    ]
};

impl SettingChoice {
    /// That of a watch, which does not end by it.
    pub const OF_WATCH: Self = Self {
        setting: setting(3, false),
        counted: None,
    };
}

impl Setting {
    pub(super) fn growth(self) -> f64 {
        f64::from(self.percent_a_day) / 100.0
    }

    pub(super) fn searches_everything(self) -> bool {
        self == EVERYTHING
    }
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
    /// What is known in a view, before its question.
    pub fn of(view: &SearchView<'_>) -> Self {
        let all = view.candidates.len();
        let stored = view
            .candidates
            .iter()
            .filter(|candidate| candidate.stored.is_some())
            .count();
        if 10 * stored < 3 * all {
            return Self::Little;
        }
        if 10 * stored < 9 * all {
            return Self::Part;
        }
        match age_in_days(view.candidates) {
            0..=1 => Self::Day,
            2..=3 => Self::Days3,
            4..=7 => Self::Days7,
            8..=14 => Self::Days14,
            _ => Self::Older,
        }
    }
}

impl Misses {
    /// Flights: the counts of recorded calendars, and the caller's own.
    pub fn of_flights(own: BTreeMap<(Known, Setting), MissCount>) -> Self {
        Self {
            own,
            has_prior: true,
        }
    }

    /// Stays: only the caller's own counts.
    pub fn of_stays(own: BTreeMap<(Known, Setting), MissCount>) -> Self {
        Self {
            own,
            has_prior: false,
        }
    }

    /// The caller's own count once it is of enough questions, before that the one of recorded
    /// calendars; `None`: too few.
    pub fn count(&self, known: Known, setting: Setting) -> Option<MissCount> {
        let own = self.own.get(&(known, setting)).copied();
        let prior = || {
            let mut rows = PRIOR.iter().filter(|_| self.has_prior);
            let row = rows.find(|row| (row.0, row.1) == (known, setting));
            row.map(|row| row.2)
        };
        own.filter(|own| own.questions >= MIN_QUESTIONS)
            .or_else(prior)
    }

    /// The setting with the fewest searches whose counted misses are few enough; the usual one where
    /// nothing was counted; everything is searched where all have missed too often.
    pub fn choose(&self, known: Known, max_risk: f64) -> SettingChoice {
        let counts = SETTINGS.map(|setting| (setting, self.count(known, setting)));
        let is_good =
            |count: Option<MissCount>| count.is_some_and(|count| count.is_at_most(max_risk));
        let good = counts.into_iter().find(|(_, count)| is_good(*count));
        let is_counted = counts.iter().any(|(_, count)| count.is_some());
        let setting = if is_counted || max_risk <= 0.0 {
            EVERYTHING
        } else {
            USUAL
        };
        let (setting, counted) = good.unwrap_or((setting, None));
        SettingChoice { setting, counted }
    }
}
