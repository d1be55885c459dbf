//! One trip of a search: its legs and its price.

use crate::draws::real;
use crate::world::timetable::Leg;

/// The legs of a trip and its price, in the currency of the search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Itinerary<'a> {
    pub(super) price: i64,
    pub(super) out: &'a Leg,
    pub(super) back: Option<&'a Leg>,
}

impl<'a> Itinerary<'a> {
    pub(super) fn legs(self) -> impl Iterator<Item = &'a Leg> {
        std::iter::once(self.out).chain(self.back)
    }

    pub(super) fn minutes(self) -> i64 {
        self.legs().map(|leg| leg.minutes).sum()
    }

    pub(super) fn stops(self) -> usize {
        self.legs().map(|leg| leg.stops.len()).sum()
    }

    /// The engine's `Overall`: price first, but an hour costs what four percent of the fare do.
    pub(super) fn overall(self) -> f64 {
        real(self.price) * (1.0 + 0.04 * real(self.minutes()) / 60.0)
    }
}
