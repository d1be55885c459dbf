//! Prices without any structure.

use super::bounds::{Bounds, table};
use crate::draws::Draw;

table! {
    /// `[structureless]`: each price is drawn alone, for each route, departure and day. Nothing that
    /// was seen says anything about what was not.
    Structureless "structureless" {
        /// From the lowest to the highest price; equal ratios are equally likely.
        price: Bounds = Bounds::of(30.0, 600.0), in 1.0..=100_000.0;
    }
}

impl Structureless {
    pub(super) fn price(&self, departure: Draw, day: i64) -> f64 {
        self.price
            .draw_by_ratio(departure.of("structureless").nth(day))
    }
}
