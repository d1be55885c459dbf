//! Sales: on some days a group of a route's departures falls together, for some days.

use jiff::civil::Date;

use super::MAX_HORIZON_DAYS;
use super::bounds::{WholeBounds, table};
use super::unchanged::UnchangedShares;
use crate::draws::{Draw, day_number, whole};

/// The departures among which a sale takes its share: those of so many days.
const CONCERNED_DAYS: u16 = 180;

table! {
    /// `[sales]`. A departure's part in sales is proportional to its hazard of a change, so that sales
    /// make the same share of all drops at any time before departure. With the ladder's measured
    /// hazards the defaults make a third of all drops.
    Sales "sales" {
        /// The probability that a sale begins on a day, for each route.
        chance_per_day: f64 = 0.13, in 0.0..=1.0;
        /// The share of the departures of the next 180 days that a sale concerns.
        share_of_dates: f64 = 0.2, in 0.0..=1.0;
        /// Departures are concerned in blocks of so many neighbouring days.
        block_days: u16 = 1, in 1.0..=90.0;
        /// The fall in steps of the ladder.
        steps: WholeBounds = WholeBounds::of(1.0, 2.0), in 1.0..=10.0;
        /// The duration in days.
        days: WholeBounds = WholeBounds::of(2.0, 6.0), in 1.0..=60.0;
    }
}

/// The sales of a ladder.
pub(super) struct LadderSales<'a> {
    sales: &'a Sales,
    unchanged: &'a UnchangedShares,
    /// A departure's part in a sale for each part of its hazard.
    scale: f64,
}

impl<'a> LadderSales<'a> {
    /// Distributes the sales over the days to departure, in proportion to the hazards.
    pub(super) fn new(sales: &'a Sales, unchanged: &'a UnchangedShares) -> Self {
        let days = f64::from(CONCERNED_DAYS);
        let hazards = (0..CONCERNED_DAYS).map(|days| unchanged.hazard(days.into()));
        let mean = hazards.sum::<f64>() / days;
        Self {
            sales,
            unchanged,
            scale: if mean > 0.0 {
                sales.share_of_dates / mean
            } else {
                0.0
            },
        }
    }

    /// The probability that a sale concerns a departure in so many days when it begins.
    fn part(&self, days_to_departure: i64) -> f64 {
        let days = days_to_departure.clamp(0, i64::from(MAX_HORIZON_DAYS) - 1);
        (self.scale * self.unchanged.hazard(days)).min(1.0)
    }

    /// About the probability that a sale moves a departure until tomorrow, so many days before
    /// departure today: one begins or ends and no deeper one hides it.
    pub(super) fn change_rate(&self, days_to_departure: i64) -> f64 {
        let tomorrow = days_to_departure - 1;
        let lasts = self.sales.days.middle();
        let begun = |ago: i64| self.sales.chance_per_day * self.part(tomorrow + ago);
        let in_none: f64 = (1..lasts).map(|ago| 1.0 - begun(ago)).product();
        let depths = self.depths();
        let is_hidden = (1.0 - in_none) * (depths + 1.0) / (2.0 * depths);
        (begun(0) + begun(lasts)) * (1.0 - is_hidden)
    }

    /// The share of a sale's moves that one step the other way cancels.
    pub(super) fn cancel_share(&self) -> f64 {
        if self.sales.steps.low() > 1.0 {
            0.0
        } else {
            0.5 / self.depths()
        }
    }

    /// The number of different falls.
    fn depths(&self) -> f64 {
        1.0 + self.sales.steps.high() - self.sales.steps.low()
    }

    /// How many steps a departure is down on a day: the deepest of the sales that concern it.
    pub(super) fn steps(&self, route: Draw, departure: Date, day: i64) -> i64 {
        let departs = day_number(departure);
        let block = departs.div_euclid(self.sales.block_days.max(1).into());
        let longest = whole(self.sales.days.high());
        (day - longest + 1..=day)
            .filter_map(|begin| {
                let sale = route.of("sale").nth(begin);
                let lasts = sale.of("begins").chance(self.sales.chance_per_day)
                    && day < begin + self.sales.days.draw(sale.of("days"));
                let group = sale.of("group").nth(block);
                let concerned = lasts && group.chance(self.part(departs - begin));
                concerned.then(|| self.sales.steps.draw(sale.of("steps")))
            })
            .max()
            .unwrap_or(0)
    }
}
