//! Whether a market's price differs from the baseline's: pure.
//!
//! Prices are noisy, so one price on each side proves nothing: a gap is two ranges that do not
//! overlap. Equal samples do not show how much a price varies, so a range is never taken narrower
//! than [`MIN_RANGE_PERCENT`]. Another room or another board is another product.

use rust_decimal::Decimal;

use super::cell::{BestOffer, ItemObservation, difference};
use crate::contract::SearchStatus;
use crate::contract::scans::{Parity, ParityVerdict};

/// The least width of a range, in percent of the baseline's lowest price: a difference that rounding
/// or a conversion may make is no gap.
const MIN_RANGE_PERCENT: Decimal = Decimal::ONE;

/// Compares the prices of a market with those of the baseline, for the same stay.
pub fn parity(baseline: &[ItemObservation], market: &[ItemObservation]) -> Parity {
    let (base, here) = (ParitySide::of(baseline), ParitySide::of(market));
    let is_comparable = base.is_comparable_with(&here);
    let measured = base
        .lowest()
        .zip(here.lowest())
        .filter(|_| is_comparable)
        .map(|(base, here)| difference(base, here));
    let verdict = if !is_comparable {
        ParityVerdict::NotComparable
    } else if base.prices.len() < 2 || here.prices.len() < 2 {
        ParityVerdict::Insufficient
    } else if is_gap(&base, &here) {
        ParityVerdict::Gap
    } else {
        ParityVerdict::Noise
    };
    Parity {
        difference: measured.map(|(amount, _)| amount),
        difference_percent: measured.and_then(|(_, percent)| percent),
        samples: here.count(),
        baseline_samples: base.count(),
        verdict,
    }
}

/// Whether an answer may be compared: a partial one may lack the cheapest offer, which looks like a gap,
/// and so does an implausible price (monitors.md, rule 42).
pub fn is_whole(observation: &ItemObservation) -> bool {
    observation.search_status == Some(SearchStatus::Ok) && !observation.is_implausible
}

/// The width of the range of the cheaper of two sides, in percent of the baseline's lowest price, to two
/// decimals: a gap is a difference of the lowest prices that is larger ([`is_gap`]).
pub fn noise_percent(baseline: &[ItemObservation], market: &[ItemObservation]) -> Option<Decimal> {
    let (base, here) = (ParitySide::of(baseline), ParitySide::of(market));
    let lowest = base.lowest()?;
    let width = |side: &ParitySide| {
        let (low, high) = side.range(Decimal::ZERO)?;
        Some(high.saturating_sub(low))
    };
    let cheaper = if here.lowest()? < lowest {
        &here
    } else {
        &base
    };
    let percent = width(cheaper)?
        .checked_mul(Decimal::ONE_HUNDRED)?
        .checked_div(lowest)?;
    Some(percent.max(MIN_RANGE_PERCENT).round_dp(2).normalize())
}

/// Whether the ranges of two sides with prices do not overlap.
fn is_gap(base: &ParitySide, here: &ParitySide) -> bool {
    let lowest = base.lowest().unwrap_or_default();
    let least_width = lowest.saturating_mul(MIN_RANGE_PERCENT) / Decimal::ONE_HUNDRED;
    match (base.range(least_width), here.range(least_width)) {
        (Some(base), Some(here)) => base.1 < here.0 || here.1 < base.0,
        _ => false,
    }
}

/// The prices of one market, and their products.
struct ParitySide {
    prices: Vec<Decimal>,
    /// Currency, room and board, in lower case; more than one where the samples differ.
    products: Vec<[String; 3]>,
}

impl ParitySide {
    fn of(observations: &[ItemObservation]) -> Self {
        let mut samples = Self {
            prices: Vec::new(),
            products: Vec::new(),
        };
        for (observation, (price, currency)) in observations
            .iter()
            .filter(|observation| !observation.is_implausible)
            .filter_map(|observation| Some((observation, observation.price.as_ref()?)))
        {
            let BestOffer { seller, board, .. } = observation.offer.clone().unwrap_or_default();
            let normalized = |text: Option<String>| text.unwrap_or_default().trim().to_lowercase();
            let product = [
                currency.to_lowercase(),
                normalized(seller),
                normalized(board),
            ];
            samples.prices.push(*price);
            if !samples.products.contains(&product) {
                samples.products.push(product);
            }
        }
        samples
    }

    /// All prices of both markets are for one product. A market without a price fits any product.
    fn is_comparable_with(&self, other: &Self) -> bool {
        let mut products = self.products.iter().chain(&other.products);
        let first = products.next();
        products.all(|product| Some(product) == first)
    }

    fn lowest(&self) -> Option<Decimal> {
        self.prices.iter().min().copied()
    }

    /// The lowest and the highest price, moved apart evenly to at least this width.
    fn range(&self, least_width: Decimal) -> Option<(Decimal, Decimal)> {
        let (low, high) = (self.lowest()?, self.prices.iter().max().copied()?);
        let more = least_width
            .saturating_sub(high.saturating_sub(low))
            .max(Decimal::ZERO)
            / Decimal::TWO;
        Some((low.saturating_sub(more), high.saturating_add(more)))
    }

    fn count(&self) -> u32 {
        u32::try_from(self.prices.len()).unwrap_or(u32::MAX)
    }
}
