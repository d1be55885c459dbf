//! Prices without any structure.

use serde::Deserialize;

use super::bounds::Bounds;
use super::error::ScenarioError;
use crate::draws::Draw;

/// `[structureless]`: each price is drawn alone, for each route, departure and day. Nothing that
/// was seen says anything about what was not.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Structureless {
    /// From the lowest to the highest price; equal ratios are equally likely.
    price: Bounds,
}

impl Default for Structureless {
    fn default() -> Self {
        Self {
            price: [30.0, 600.0].into(),
        }
    }
}

impl Structureless {
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        self.price.check("structureless.price", 1.0..=100_000.0)
    }

    pub(super) fn price(&self, departure: Draw, day: i64) -> f64 {
        self.price
            .draw_by_ratio(departure.of("structureless").nth(day))
    }
}
