//! The fare ladder: a list of fares, and a walk on it for each departure.

use jiff::civil::Date;
use serde::Deserialize;

use super::bounds::{Bounds, check_number};
use super::error::ScenarioError;
use super::events::FareEvents;
use super::sales::Sales;
use super::unchanged::UnchangedShares;
use super::weekdays::WeekdaySteps;
use crate::draws::{Draw, day_number};

/// `[ladder]`: each departure's price is one of its route's fares and moves by steps.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Ladder {
    /// A route's lowest fare, without sales.
    lowest: Bounds,
    /// From one fare to the next higher one.
    ratio: Bounds,
    /// The number of fares.
    fares: u16,
    /// The step that a departure tends to, before the effects below; the lowest fare is 0.
    level: f64,
    /// Standard deviation of a departure's own tendency, in steps.
    spread: f64,
    /// The season: a smooth curve over the departures, this high in steps …
    season: f64,
    /// … with a new direction after so many days.
    season_days: u16,
    /// Steps that are added until the day of departure …
    rise: f64,
    /// … over so many days before it.
    rise_days: u16,
    /// How strongly a change goes towards the tendency: added to the probability of a step up, for
    /// each step that the fare is below it.
    pull: f64,
    /// The share of prices that are the same a day later, by days to departure.
    unchanged: UnchangedShares,
    /// A departure changes so many times as often as `unchanged` says; equal ratios are equally
    /// likely. Few changes are long stretches at one fare.
    pace: Bounds,
}

impl Default for Ladder {
    fn default() -> Self {
        Self {
            lowest: [20.0, 60.0].into(),
            ratio: [1.20, 1.25].into(),
            fares: 16,
            level: 4.0,
            spread: 1.0,
            season: 2.0,
            season_days: 30,
            rise: 5.0,
            rise_days: 28,
            pull: 0.2,
            unchanged: UnchangedShares::default(),
            pace: [1.0, 1.0].into(),
        }
    }
}

/// What moves the fares of a ladder.
#[derive(Clone, Copy, Debug)]
pub(super) struct LadderEffects<'a> {
    pub(super) weekdays: Option<&'a WeekdaySteps>,
    pub(super) events: Option<&'a FareEvents>,
    pub(super) sales: Option<&'a Sales>,
}

impl Ladder {
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        self.lowest.check("ladder.lowest", 1.0..=10_000.0)?;
        self.ratio.check("ladder.ratio", 1.01..=2.0)?;
        check_number("ladder.fares", self.fares.into(), 2.0..=40.0)?;
        check_number("ladder.level", self.level, 0.0..=40.0)?;
        check_number("ladder.spread", self.spread, 0.0..=10.0)?;
        check_number("ladder.season", self.season, 0.0..=20.0)?;
        check_number("ladder.season_days", self.season_days.into(), 1.0..=366.0)?;
        check_number("ladder.rise", self.rise, -20.0..=20.0)?;
        check_number("ladder.rise_days", self.rise_days.into(), 1.0..=366.0)?;
        check_number("ladder.pull", self.pull, 0.0..=1.0)?;
        self.pace.check("ladder.pace", 0.01..=100.0)?;
        self.unchanged.check("ladder.unchanged")
    }

    pub(super) fn unchanged(&self) -> &UnchangedShares {
        &self.unchanged
    }

    /// The fare of a step. Steps below 0 are fares of sales.
    pub(super) fn fare(&self, route: Draw, step: i64) -> f64 {
        let lowest = self.lowest.draw(route.of("lowest"));
        let ratio = |step: i64| self.ratio.draw(route.of("ratio").nth(step));
        if step >= 0 {
            (0..step).fold(lowest, |fare, step| fare * ratio(step))
        } else {
            (step..0).fold(lowest, |fare, step| fare / ratio(step))
        }
    }

    /// The steps of a departure for each day from `opening` on, the first day of its sale.
    pub(super) fn path<'a>(
        &'a self,
        effects: LadderEffects<'a>,
        route: Draw,
        departure: Date,
        opening: i64,
    ) -> LadderPath<'a> {
        let own = route.of("departure").day(departure);
        let season = route
            .of("season")
            .wave(departure, self.season_days.max(1).into());
        let tendency = self.level
            + self.season * season
            + self.spread * own.of("tendency").normal()
            + effects
                .weekdays
                .map_or(0.0, |weekdays| weekdays.steps(route, departure))
            + effects
                .events
                .map_or(0.0, |events| events.steps(route, departure));
        let mut path = LadderPath {
            ladder: self,
            sales: effects.sales,
            route,
            changes: own.of("changes"),
            pace: self.pace.draw_by_ratio(own.of("pace")),
            departure,
            tendency,
            day: opening,
            step: 0,
        };
        path.step = path.nearest_step();
        path
    }

    fn highest_step(&self) -> i64 {
        i64::from(self.fares) - 1
    }
}

/// The walk of one departure's fare; an endless iterator over days.
pub(super) struct LadderPath<'a> {
    ladder: &'a Ladder,
    sales: Option<&'a Sales>,
    route: Draw,
    changes: Draw,
    pace: f64,
    departure: Date,
    tendency: f64,
    /// The next day.
    day: i64,
    /// The step on that day, without sales.
    step: i64,
}

impl LadderPath<'_> {
    fn days_to_departure(&self) -> i64 {
        day_number(self.departure) - self.day
    }

    /// The tendency on this day, with the rise before departure.
    #[expect(clippy::cast_precision_loss, reason = "days of one selling period")]
    fn tendency_now(&self) -> f64 {
        let span = f64::from(self.ladder.rise_days);
        let share = 1.0 - self.days_to_departure() as f64 / span;
        self.tendency + self.ladder.rise * share.clamp(0.0, 1.0)
    }

    #[expect(clippy::cast_possible_truncation, reason = "clamped to the ladder")]
    fn nearest_step(&self) -> i64 {
        (self.tendency_now().round() as i64).clamp(0, self.ladder.highest_step())
    }

    /// The step on the next day. One draw decides whether there is a change, and then, scaled, its
    /// direction: a change at an end of the ladder goes inwards, so that it is one.
    fn advance(&mut self) {
        let days = self.days_to_departure();
        // The price is the same tomorrow if neither a sale nor the fare's own walk changes it, or if
        // both do and cancel each other.
        let same = 1.0 - self.ladder.unchanged.hazard(days);
        let hazard = self.sales.map_or(1.0 - same, |sales| {
            let by_sale = sales.change_rate(days).min(0.9);
            let (kept, cancelled) = (1.0 - by_sale, by_sale * sales.cancel_share());
            ((kept - same) / (kept - cancelled)).clamp(0.0, 1.0)
        }) * self.pace;
        self.day += 1;
        let drawn = self.changes.nth(self.day).unit();
        if drawn >= hazard {
            return;
        }
        #[expect(clippy::cast_precision_loss, reason = "a ladder has at most 40 steps")]
        let below = self.tendency_now() - self.step as f64;
        let up = (0.5 + self.ladder.pull * below).clamp(0.02, 0.98);
        self.step = match self.step {
            0 => 1,
            step if step >= self.ladder.highest_step() => step - 1,
            step if drawn / hazard.min(1.0) < up => step + 1,
            step => step - 1,
        };
    }
}

impl Iterator for LadderPath<'_> {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        let fall = self
            .sales
            .map_or(0, |sales| sales.steps(self.route, self.departure, self.day));
        let step = self.step - fall;
        self.advance();
        Some(step)
    }

    /// Skips days without asking for their sales.
    fn nth(&mut self, days: usize) -> Option<i64> {
        for _ in 0..days {
            self.advance();
        }
        self.next()
    }
}
