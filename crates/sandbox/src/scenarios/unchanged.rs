//! How likely a price is the same a day later, by days to departure.

use std::ops::RangeInclusive;

use serde::Deserialize;

use super::bounds::Checked;
use super::error::ScenarioError;

/// Shares of prices that are the same a day later: `[[last day to departure, share], …]`, in
/// ascending order. The last share also holds for more days.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(transparent)]
pub(super) struct UnchangedShares(Vec<(u16, f64)>);

impl Default for UnchangedShares {
    /// Measured on 809,000 pairs of next-day prices of 20 routes of one low-cost airline.
    fn default() -> Self {
        Self(vec![
            (3, 0.35),
            (7, 0.51),
            (14, 0.65),
            (30, 0.70),
            (60, 0.77),
            (90, 0.81),
            (120, 0.87),
            (361, 0.97),
        ])
    }
}

impl UnchangedShares {
    /// The probability that the price of a departure in `days` days changes until tomorrow.
    pub(super) fn hazard(&self, days: i64) -> f64 {
        let bin = self
            .0
            .iter()
            .find(|(last, _)| days <= i64::from(*last))
            .or(self.0.last());
        bin.map_or(0.0, |(_, share)| 1.0 - share)
    }
}

impl Checked for UnchangedShares {
    fn check(&self, field: &str, allowed: RangeInclusive<f64>) -> Result<(), ScenarioError> {
        let ascending = self.0.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let found: Vec<_> = self.0.iter().map(|(last, _)| last.to_string()).collect();
        ScenarioError::unless(
            !self.0.is_empty() && ascending,
            field,
            format!("days [{}]", found.join(", ")),
            "at least one [last day to departure, share], with ascending days",
        )?;
        self.0.iter().try_for_each(|(last, share)| {
            share.check(&format!("{field}, up to {last} days"), allowed.clone())
        })
    }
}
