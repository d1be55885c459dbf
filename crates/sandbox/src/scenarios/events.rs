//! Events: departures around some dates are dearer.

use jiff::civil::Date;
use serde::Deserialize;

use super::bounds::{Bounds, check_number};
use super::error::ScenarioError;
use crate::draws::{Draw, day_number};

/// At most one drawn event is in each block of so many days.
const BLOCK_DAYS: i64 = 7;

/// `[events]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FareEvents {
    /// Drawn events of each route in a year.
    per_year: f64,
    /// Events of all routes.
    dates: Vec<Date>,
    /// The days on each side after which a peak has fallen to 37 %.
    width_days: Bounds,
    /// The height in steps of the ladder.
    steps: Bounds,
}

impl Default for FareEvents {
    fn default() -> Self {
        Self {
            per_year: 8.0,
            dates: Vec::new(),
            width_days: [1.0, 4.0].into(),
            steps: [2.0, 5.0].into(),
        }
    }
}

impl FareEvents {
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        check_number("events.per_year", self.per_year, 0.0..=52.0)?;
        self.width_days.check("events.width_days", 0.1..=20.0)?;
        self.steps.check("events.steps", -20.0..=20.0)
    }

    /// The steps by which events raise a departure: those of its highest peak.
    pub(super) fn steps(&self, route: Draw, departure: Date) -> f64 {
        let day = day_number(departure);
        let reach = 1 + 60 / BLOCK_DAYS;
        let block = day.div_euclid(BLOCK_DAYS);
        #[expect(clippy::cast_precision_loss, reason = "seven days")]
        let chance = self.per_year * BLOCK_DAYS as f64 / 365.0;
        let drawn = (block - reach..=block + reach).filter_map(|block| {
            let event = route.of("event").nth(block);
            let offset = i64::try_from(event.of("day").below(7)).unwrap_or_default();
            event
                .of("is")
                .chance(chance)
                .then_some((event, block * BLOCK_DAYS + offset))
        });
        let fixed = self.dates.iter().map(|date| {
            let centre = day_number(*date);
            (route.of("fixed event").nth(centre), centre)
        });
        drawn
            .chain(fixed)
            .map(|(event, centre)| {
                #[expect(clippy::cast_precision_loss, reason = "a distance of some weeks")]
                let distance = (day - centre) as f64 / self.width_days.draw(event.of("width"));
                self.steps.draw(event.of("steps")) * (-distance.powi(2)).exp()
            })
            .max_by(|one, other| one.abs().total_cmp(&other.abs()))
            .unwrap_or(0.0)
    }
}
