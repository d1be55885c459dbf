//! Events: departures around some dates are dearer.

use jiff::civil::Date;

use super::bounds::{Bounds, table};
use crate::draws::{Draw, day_number, real};

/// At most one drawn event is in each block of so many days.
const BLOCK_DAYS: i64 = 7;

table! {
    /// `[events]`.
    FareEvents "events" {
        /// Drawn events of each route in a year.
        per_year: f64 = 8.0, in 0.0..=52.0;
        /// Events of all routes.
        dates: Vec<Date> = Vec::new();
        /// The days on each side after which a peak has fallen to 37 %.
        width_days: Bounds = Bounds::of(1.0, 4.0), in 0.1..=20.0;
        /// The height in steps of the ladder.
        steps: Bounds = Bounds::of(2.0, 5.0), in -20.0..=20.0;
    }
}

impl FareEvents {
    /// The steps by which events raise a departure: those of its highest peak.
    pub(super) fn steps(&self, route: Draw, departure: Date) -> f64 {
        let day = day_number(departure);
        let reach = 1 + 60 / BLOCK_DAYS;
        let block = day.div_euclid(BLOCK_DAYS);
        let chance = self.per_year * real(BLOCK_DAYS) / 365.0;
        let drawn = (block - reach..=block + reach).filter_map(|block| {
            let event = route.of("event").nth(block);
            let centre = block * BLOCK_DAYS + event.of("day").below(7);
            event.of("is").chance(chance).then_some((event, centre))
        });
        let fixed = self.dates.iter().map(|date| {
            let centre = day_number(*date);
            (route.of("fixed event").nth(centre), centre)
        });
        drawn
            .chain(fixed)
            .map(|(event, centre)| {
                let distance = real(day - centre) / self.width_days.draw(event.of("width"));
                self.steps.draw(event.of("steps")) * (-distance.powi(2)).exp()
            })
            .max_by(|one, other| one.abs().total_cmp(&other.abs()))
            .unwrap_or(0.0)
    }
}
