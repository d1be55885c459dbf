//! Sales: on some days a group of a route's departures falls together, for some days.

use jiff::civil::Date;
use serde::Deserialize;

use super::MAX_HORIZON_DAYS;
use super::bounds::{Bounds, check_number, check_share};
use super::error::ScenarioError;
use super::unchanged::UnchangedShares;
use crate::draws::{Draw, day_number};

/// The departures among which a sale takes its share: those of so many days.
const CONCERNED_DAYS: u16 = 180;

/// `[sales]`. A departure's part in sales is proportional to its hazard of a change, so that sales
/// make the same share of all drops at any time before departure. With the ladder's measured
/// hazards the defaults make a third of all drops.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Sales {
    /// The probability that a sale begins on a day, for each route.
    chance_per_day: f64,
    /// The share of the departures of the next 180 days that a sale concerns.
    share_of_dates: f64,
    /// Departures are concerned in blocks of so many neighbouring days.
    block_days: u16,
    /// The fall in steps of the ladder.
    steps: Bounds,
    /// The duration in days.
    days: Bounds,
    /// The probability that a sale concerns a departure, by the days to departure when it begins.
    /// Not in the file: follows from the ladder's hazards.
    #[serde(skip)]
    parts: Vec<f64>,
}

impl Default for Sales {
    fn default() -> Self {
        Self {
            chance_per_day: 0.13,
            share_of_dates: 0.2,
            block_days: 1,
            steps: [1.0, 2.0].into(),
            days: [2.0, 6.0].into(),
            parts: Vec::new(),
        }
    }
}

impl Sales {
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        check_share("sales.chance_per_day", self.chance_per_day)?;
        check_share("sales.share_of_dates", self.share_of_dates)?;
        check_number("sales.block_days", self.block_days.into(), 1.0..=90.0)?;
        self.steps.check_whole("sales.steps", 1.0..=10.0)?;
        self.days.check_whole("sales.days", 1.0..=60.0)
    }

    /// Distributes the sales over the days to departure, in proportion to the hazards.
    pub(super) fn follow(&mut self, unchanged: &UnchangedShares) {
        let hazards = |days: u16| (0..days).map(|days| unchanged.hazard(days.into()));
        let mean = hazards(CONCERNED_DAYS).sum::<f64>() / f64::from(CONCERNED_DAYS);
        let scale = if mean > 0.0 {
            self.share_of_dates / mean
        } else {
            0.0
        };
        self.parts = hazards(MAX_HORIZON_DAYS)
            .map(|hazard| (scale * hazard).min(1.0))
            .collect();
    }

    fn part(&self, days_to_departure: i64) -> f64 {
        let index = usize::try_from(days_to_departure).unwrap_or(0);
        self.parts
            .get(index)
            .or(self.parts.last())
            .copied()
            .unwrap_or(0.0)
    }

    /// About the probability that a sale moves a departure until tomorrow, so many days before
    /// departure today: one begins or ends and no deeper one hides it.
    pub(super) fn change_rate(&self, days_to_departure: i64) -> f64 {
        let tomorrow = days_to_departure - 1;
        let lasts = self.days.middle();
        let begun = |ago: i64| self.chance_per_day * self.part(tomorrow + ago);
        let in_none: f64 = (1..lasts).map(|ago| 1.0 - begun(ago)).product();
        let depths = self.depths();
        let is_hidden = (1.0 - in_none) * (depths + 1.0) / (2.0 * depths);
        (begun(0) + begun(lasts)) * (1.0 - is_hidden)
    }

    /// The share of a sale's moves that one step the other way cancels.
    pub(super) fn cancel_share(&self) -> f64 {
        if self.steps.low() > 1.0 {
            0.0
        } else {
            0.5 / self.depths()
        }
    }

    /// The number of different falls.
    fn depths(&self) -> f64 {
        1.0 + self.steps.high() - self.steps.low()
    }

    /// How many steps a departure is down on a day: the deepest of the sales that concern it.
    pub(super) fn steps(&self, route: Draw, departure: Date, day: i64) -> i64 {
        let departs = day_number(departure);
        let block = departs.div_euclid(self.block_days.max(1).into());
        #[expect(clippy::cast_possible_truncation, reason = "at most 60 days")]
        let longest = self.days.high() as i64;
        (day - longest + 1..=day)
            .filter_map(|begin| {
                let sale = route.of("sale").nth(begin);
                let lasts = sale.of("begins").chance(self.chance_per_day)
                    && day < begin + self.days.draw_whole(sale.of("days"));
                let concerned = lasts
                    && sale
                        .of("group")
                        .nth(block)
                        .chance(self.part(departs - begin));
                concerned.then(|| self.steps.draw_whole(sale.of("steps")))
            })
            .max()
            .unwrap_or(0)
    }
}
