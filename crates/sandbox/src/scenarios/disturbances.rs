//! Effects on top of any family: sell-out, changes within the day, outliers.

use std::ops::RangeInclusive;

use jiff::civil::DateTime;

use super::bounds::{Bounds, Checked, WholeBounds, table};
use super::error::ScenarioError;
use crate::draws::{Draw, day_number};

table! {
    /// `[sell_out]`: a departure has no offer from some day on.
    SellOut "sell_out" {
        /// The share of the departures that sell out.
        share: f64 = 0.1, in 0.0..=1.0;
        /// How many days before departure they do; whole days.
        days_before: WholeBounds = WholeBounds::of(1.0, 21.0), in 0.0..=361.0;
    }
}

impl SellOut {
    pub(super) fn is_sold_out(&self, departure: Draw, days_to_departure: i64) -> bool {
        let drawn = departure.of("sell-out");
        drawn.of("share").chance(self.share)
            && days_to_departure <= self.days_before.draw(drawn.of("days"))
    }
}

table! {
    /// `[within_day]`: on some days a price is higher or lower for some hours.
    WithinDay "within_day" {
        /// The probability for each departure and day.
        chance: f64 = 0.1, in 0.0..=1.0;
        /// The duration in whole hours, within the day (UTC).
        hours: WholeBounds = WholeBounds::of(2.0, 8.0), in 1.0..=24.0;
        /// By how much: multiplied or divided, equally likely.
        ratio: Bounds = Bounds::of(1.20, 1.25), in 1.0..=5.0;
    }
}

impl WithinDay {
    /// The factor of a departure's price at an instant.
    pub(super) fn factor(&self, departure: Draw, at: DateTime) -> f64 {
        let day = departure.of("within day").nth(day_number(at.date()));
        if !day.of("is").chance(self.chance) {
            return 1.0;
        }
        let hours = self.hours.draw(day.of("hours"));
        let begin = day.of("begin").below(24 - hours + 1);
        if !(begin..begin + hours).contains(&i64::from(at.hour())) {
            return 1.0;
        }
        let ratio = self.ratio.draw(day.of("ratio"));
        if day.of("up").chance(0.5) {
            ratio
        } else {
            1.0 / ratio
        }
    }
}

table! {
    /// `[outliers]`: wrong prices. One lasts for the hour in which it is seen.
    Outliers "outliers" {
        /// The probability for each departure and hour.
        chance: f64 = 0.01, in 0.0..=1.0;
        /// One of these is multiplied with the price.
        factors: Vec<f64> = vec![3.0, 50.0, 0.0], in 0.0..=1_000.0;
    }
}

impl Outliers {
    /// The factor of an outlier at this instant, if there is one.
    pub(super) fn factor(&self, departure: Draw, at: DateTime) -> Option<f64> {
        let hour = departure
            .of("outlier")
            .nth(day_number(at.date()))
            .nth(at.hour().into());
        hour.of("is")
            .chance(self.chance)
            .then(|| *hour.of("factor").pick(&self.factors))
    }
}

impl Checked for Vec<f64> {
    fn check(&self, field: &str, allowed: RangeInclusive<f64>) -> Result<(), ScenarioError> {
        ScenarioError::unless(!self.is_empty(), field, "none", "at least one factor")?;
        self.iter()
            .try_for_each(|factor| factor.check(field, allowed.clone()))
    }
}
