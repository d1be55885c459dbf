//! The fare ladder: a list of fares, and a walk on it for each departure.

use jiff::civil::Date;

use super::bounds::{Bounds, table};
use super::events::FareEvents;
use super::sales::{LadderSales, Sales};
use super::unchanged::UnchangedShares;
use super::weekdays::WeekdaySteps;
use crate::draws::{Draw, day_number, real, whole};

table! {
    /// `[ladder]`: each departure's price is one of its route's fares and moves by steps.
    Ladder "ladder" {
        /// A route's lowest fare, without sales.
        lowest: Bounds = Bounds::of(20.0, 60.0), in 1.0..=10_000.0;
        /// From one fare to the next higher one.
        ratio: Bounds = Bounds::of(1.20, 1.25), in 1.01..=2.0;
        /// The number of fares.
        fares: u16 = 16, in 2.0..=40.0;
        /// The step that a departure tends to, before the effects below; the lowest fare is 0.
        level: f64 = 4.0, in 0.0..=40.0;
        /// Standard deviation of a departure's own tendency, in steps.
        spread: f64 = 1.0, in 0.0..=10.0;
        /// The season: a smooth curve over the departures, this high in steps …
        season: f64 = 2.0, in 0.0..=20.0;
        /// … with a new direction after so many days.
        season_days: u16 = 30, in 1.0..=366.0;
        /// Steps that are added until the day of departure …
        rise: f64 = 5.0, in -20.0..=20.0;
        /// … over so many days before it.
        rise_days: u16 = 28, in 1.0..=366.0;
        /// How strongly a change goes towards the tendency: added to the probability of a step up, for
        /// each step that the fare is below it.
        pull: f64 = 0.2, in 0.0..=1.0;
        /// The share of prices that are the same a day later, by days to departure.
        unchanged: UnchangedShares = UnchangedShares::default(), in 0.0..=1.0;
        /// A departure changes so many times as often as `unchanged` says; equal ratios are equally
        /// likely. Few changes are long stretches at one fare.
        pace: Bounds = Bounds::of(1.0, 1.0), in 0.01..=100.0;
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
        let LadderEffects {
            weekdays,
            events,
            sales,
        } = effects;
        let tendency = self.level
            + self.season * season
            + self.spread * own.of("tendency").normal()
            + weekdays.map_or(0.0, |weekdays| weekdays.steps(route, departure))
            + events.map_or(0.0, |events| events.steps(route, departure));
        let mut path = LadderPath {
            ladder: self,
            sales: sales.map(|sales| LadderSales::new(sales, &self.unchanged)),
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
    sales: Option<LadderSales<'a>>,
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
    fn tendency_now(&self) -> f64 {
        let span = f64::from(self.ladder.rise_days);
        let share = 1.0 - real(self.days_to_departure()) / span;
        self.tendency + self.ladder.rise * share.clamp(0.0, 1.0)
    }

    fn nearest_step(&self) -> i64 {
        whole(self.tendency_now()).clamp(0, self.ladder.highest_step())
    }

    /// The step on the next day. One draw decides whether there is a change, and then, scaled, its
    /// direction: a change at an end of the ladder goes inwards, so that it is one.
    fn advance(&mut self) {
        let days = self.days_to_departure();
        // The price is the same tomorrow if neither a sale nor the fare's own walk changes it, or if
        // both do and cancel each other.
        let same = 1.0 - self.ladder.unchanged.hazard(days);
        let hazard = self.sales.as_ref().map_or(1.0 - same, |sales| {
            let by_sale = sales.change_rate(days).min(0.9);
            let (kept, cancelled) = (1.0 - by_sale, by_sale * sales.cancel_share());
            ((kept - same) / (kept - cancelled)).clamp(0.0, 1.0)
        }) * self.pace;
        self.day += 1;
        let drawn = self.changes.nth(self.day).unit();
        if drawn >= hazard {
            return;
        }
        let below = self.tendency_now() - real(self.step);
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
        let sales = self.sales.as_ref();
        let fall = sales.map_or(0, |sales| sales.steps(self.route, self.departure, self.day));
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
