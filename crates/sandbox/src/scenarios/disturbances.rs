//! Effects on top of any family: sell-out, changes within the day, outliers.

use jiff::civil::DateTime;
use serde::Deserialize;

use super::bounds::{Bounds, check_number, check_share};
use super::error::ScenarioError;
use crate::draws::{Draw, day_number};

/// `[sell_out]`: a departure has no offer from some day on.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SellOut {
    /// The share of the departures that sell out.
    share: f64,
    /// How many days before departure they do; whole days.
    days_before: Bounds,
}

impl Default for SellOut {
    fn default() -> Self {
        Self {
            share: 0.1,
            days_before: [1.0, 21.0].into(),
        }
    }
}

impl SellOut {
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        check_share("sell_out.share", self.share)?;
        self.days_before
            .check_whole("sell_out.days_before", 0.0..=361.0)
    }

    pub(super) fn is_sold_out(&self, departure: Draw, days_to_departure: i64) -> bool {
        let drawn = departure.of("sell-out");
        drawn.of("share").chance(self.share)
            && days_to_departure <= self.days_before.draw_whole(drawn.of("days"))
    }
}

/// `[within_day]`: on some days a price is higher or lower for some hours.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WithinDay {
    /// The probability for each departure and day.
    chance: f64,
    /// The duration in whole hours, within the day (UTC).
    hours: Bounds,
    /// By how much: multiplied or divided, equally likely.
    ratio: Bounds,
}

impl Default for WithinDay {
    fn default() -> Self {
        Self {
            chance: 0.1,
            hours: [2.0, 8.0].into(),
            ratio: [1.20, 1.25].into(),
        }
    }
}

impl WithinDay {
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        check_share("within_day.chance", self.chance)?;
        self.hours.check_whole("within_day.hours", 1.0..=24.0)?;
        self.ratio.check("within_day.ratio", 1.0..=5.0)
    }

    /// The factor of a departure's price at an instant.
    pub(super) fn factor(&self, departure: Draw, at: DateTime) -> f64 {
        let day = departure.of("within day").nth(day_number(at.date()));
        if !day.of("is").chance(self.chance) {
            return 1.0;
        }
        let hours = self.hours.draw_whole(day.of("hours"));
        let latest = usize::try_from(24 - hours).unwrap_or_default();
        let begin = i64::try_from(day.of("begin").below(latest + 1)).unwrap_or_default();
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

/// `[outliers]`: wrong prices. One lasts for the hour in which it is seen.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Outliers {
    /// The probability for each departure and hour.
    chance: f64,
    /// One of these is multiplied with the price.
    factors: Vec<f64>,
}

impl Default for Outliers {
    fn default() -> Self {
        Self {
            chance: 0.01,
            factors: vec![3.0, 50.0, 0.0],
        }
    }
}

impl Outliers {
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        check_share("outliers.chance", self.chance)?;
        if self.factors.is_empty() {
            return Err(ScenarioError::field(
                "outliers.factors",
                "none",
                "at least one factor",
            ));
        }
        for factor in &self.factors {
            check_number("outliers.factors", *factor, 0.0..=1_000.0)?;
        }
        Ok(())
    }

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
