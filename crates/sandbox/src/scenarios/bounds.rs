//! Numbers of a scenario's file and their checks.

use std::fmt;
use std::ops::RangeInclusive;

use serde::Deserialize;

use super::error::ScenarioError;
use crate::draws::{Draw, whole};

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
    pub(super) const fn of(low: f64, high: f64) -> Self {
        Self { low, high }
    }

    pub(super) fn draw(self, draw: Draw) -> f64 {
        draw.between(self.low, self.high)
    }

    /// A draw on a scale where equal ratios are equally likely. Both ends must be positive.
    pub(super) fn draw_by_ratio(self, draw: Draw) -> f64 {
        draw.between(self.low.ln(), self.high.ln()).exp()
    }
}

/// [`Bounds`] that are whole numbers, as are the draws between them.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(transparent)]
pub(super) struct WholeBounds(Bounds);

impl WholeBounds {
    pub(super) const fn of(low: f64, high: f64) -> Self {
        Self(Bounds::of(low, high))
    }

    /// From `low` to `high`, both included.
    pub(super) fn draw(self, draw: Draw) -> i64 {
        whole(draw.between(self.0.low, self.0.high + 1.0).floor())
    }

    /// The number in the middle, rounded down.
    pub(super) fn middle(self) -> i64 {
        whole(f64::midpoint(self.0.low, self.0.high).floor())
    }

    pub(super) fn low(self) -> f64 {
        self.0.low
    }

    pub(super) fn high(self) -> f64 {
        self.0.high
    }
}

/// Values of a field that lie in a range.
pub(super) trait Checked {
    /// # Errors
    /// The value of `field` does not lie in the range.
    fn check(&self, field: &str, allowed: RangeInclusive<f64>) -> Result<(), ScenarioError>;
}

impl Checked for f64 {
    fn check(&self, field: &str, allowed: RangeInclusive<f64>) -> Result<(), ScenarioError> {
        let (least, most) = (allowed.start(), allowed.end());
        let expected = format!("a number from {least} to {most}");
        ScenarioError::unless(allowed.contains(self), field, self, expected)
    }
}

impl Checked for u16 {
    fn check(&self, field: &str, allowed: RangeInclusive<f64>) -> Result<(), ScenarioError> {
        f64::from(*self).check(field, allowed)
    }
}

impl Checked for Option<[f64; 7]> {
    fn check(&self, field: &str, allowed: RangeInclusive<f64>) -> Result<(), ScenarioError> {
        let mut numbers = self.iter().flatten();
        numbers.try_for_each(|number| number.check(field, allowed.clone()))
    }
}

impl Checked for Bounds {
    fn check(&self, field: &str, allowed: RangeInclusive<f64>) -> Result<(), ScenarioError> {
        let (least, most) = (allowed.start(), allowed.end());
        let expected = format!("[low, high] with {least} <= low <= high <= {most}");
        let contained = allowed.contains(&self.low) && allowed.contains(&self.high);
        ScenarioError::unless(self.low <= self.high && contained, field, self, expected)
    }
}

impl Checked for WholeBounds {
    fn check(&self, field: &str, allowed: RangeInclusive<f64>) -> Result<(), ScenarioError> {
        self.0.check(field, allowed)?;
        let is_whole = self.low().fract() == 0.0 && self.high().fract() == 0.0;
        ScenarioError::unless(is_whole, field, self.0, "[low, high] of whole numbers")
    }
}

/// A table of the file: the default of each field and, after `in`, the values that are allowed.
macro_rules! table {
    (
        $(#[$doc:meta])*
        $name:ident $table:literal {
            $($(#[$field_doc:meta])* $field:ident: $kind:ty = $default:expr $(, in $allowed:expr)?;)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub(super) struct $name {
            $($(#[$field_doc])* $field: $kind,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl $name {
            pub(super) fn check(&self) -> Result<(), $crate::scenarios::ScenarioError> {
                use $crate::scenarios::bounds::Checked as _;
                $($(self.$field.check(concat!($table, ".", stringify!($field)), $allowed)?;)?)*
                Ok(())
            }
        }
    };
}
pub(super) use table;
