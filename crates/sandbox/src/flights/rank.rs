//! The sort keys of an itinerary.

/// The sort keys of an itinerary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rank {
    pub(super) price: i64,
    pub(super) minutes: i64,
    pub(super) stops: usize,
}

impl Rank {
    pub(super) fn of(price: i64, minutes: i64, stops: usize) -> Self {
        Self {
            price,
            minutes,
            stops,
        }
    }

    /// The engine's `Overall`: price first, but an hour costs what four percent of the fare do.
    pub(super) fn overall(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "prices and minutes are small")]
        let (price, minutes) = (self.price as f64, self.minutes as f64);
        price * (1.0 + 0.04 * minutes / 60.0)
    }
}
