//! Numbers of a scenario's file and their checks.

use std::fmt;
use std::ops::RangeInclusive;

use serde::Deserialize;

use super::error::ScenarioError;
use crate::draws::Draw;

/// A low and a high end, `[low, high]` in the file; draws between them are uniform.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(from = "[f64; 2]")]
pub(super) struct Bounds {
    low: f64,
    high: f64,
}

impl From<[f64; 2]> for Bounds {
    fn from([low, high]: [f64; 2]) -> Self {
        Self { low, high }
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {}]", self.low, self.high)
    }
}

impl Bounds {
    pub(super) fn draw(self, draw: Draw) -> f64 {
        draw.between(self.low, self.high)
    }

    /// A draw on a scale where equal ratios are equally likely. Both ends must be positive.
    pub(super) fn draw_by_ratio(self, draw: Draw) -> f64 {
        draw.between(self.low.ln(), self.high.ln()).exp()
    }

    /// A whole number from `low` to `high`, both included.
    pub(super) fn draw_whole(self, draw: Draw) -> i64 {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the file's check bounds both ends"
        )]
        let whole = draw.between(self.low, self.high + 1.0).floor() as i64;
        whole
    }

    /// The whole number in the middle, rounded down.
    pub(super) fn middle(self) -> i64 {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the file's check bounds both ends"
        )]
        let middle = f64::midpoint(self.low, self.high) as i64;
        middle
    }

    pub(super) fn low(self) -> f64 {
        self.low
    }

    pub(super) fn high(self) -> f64 {
        self.high
    }

    pub(super) fn check(
        self,
        field: &str,
        allowed: RangeInclusive<f64>,
    ) -> Result<(), ScenarioError> {
        if self.low <= self.high && allowed.contains(&self.low) && allowed.contains(&self.high) {
            return Ok(());
        }
        let (least, most) = (allowed.start(), allowed.end());
        Err(ScenarioError::field(
            field,
            self,
            format!("[low, high] with {least} <= low <= high <= {most}"),
        ))
    }

    pub(super) fn check_whole(
        self,
        field: &str,
        allowed: RangeInclusive<f64>,
    ) -> Result<(), ScenarioError> {
        self.check(field, allowed)?;
        if self.low.fract() == 0.0 && self.high.fract() == 0.0 {
            return Ok(());
        }
        Err(ScenarioError::field(
            field,
            self,
            "[low, high] of whole numbers",
        ))
    }
}

/// Checks that a number lies in a range.
pub(super) fn check_number(
    field: &str,
    value: f64,
    allowed: RangeInclusive<f64>,
) -> Result<(), ScenarioError> {
    if allowed.contains(&value) {
        return Ok(());
    }
    let (least, most) = (allowed.start(), allowed.end());
    Err(ScenarioError::field(
        field,
        value,
        format!("a number from {least} to {most}"),
    ))
}

/// Checks a share or a probability.
pub(super) fn check_share(field: &str, value: f64) -> Result<(), ScenarioError> {
    check_number(field, value, 0.0..=1.0)
}
