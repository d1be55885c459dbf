//! Whether a market's price differs from the baseline's: pure.
//!
//! Prices are noisy, so one price on each side says nothing: only ranges that do not overlap are a gap. A room that differs is another
//! product, and so is another board.

use rust_decimal::Decimal;

use super::cell::{BestOffer, Seen, difference};
use crate::contract::scans::{Parity, ParityVerdict};

/// Compares the searches of a market with those of the baseline, for the same stay.
pub(crate) fn parity(baseline: &[Seen], market: &[Seen]) -> Parity {
    let (base, here) = (Samples::of(baseline), Samples::of(market));
    let compares = base.compares_with(&here);
    let measured = base
        .lowest()
        .zip(here.lowest())
        .filter(|_| compares)
        .map(|(base, here)| difference(base, here));
    let verdict = if !compares {
        ParityVerdict::NotComparable
    } else if base.prices.len() < 2 || here.prices.len() < 2 {
        ParityVerdict::Insufficient
    } else if base.highest() < here.lowest() || here.highest() < base.lowest() {
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

/// The prices of one side, and what they are for.
struct Samples {
    prices: Vec<Decimal>,
    /// Currency, room and board, in lower case; more than one where the samples differ.
    products: Vec<[String; 3]>,
}

impl Samples {
    fn of(seen: &[Seen]) -> Self {
        let mut samples = Self {
            prices: Vec::new(),
            products: Vec::new(),
        };
        for (seen, (price, currency)) in seen
            .iter()
            .filter_map(|seen| Some((seen, seen.price.as_ref()?)))
        {
            let BestOffer { seller, board, .. } = seen.offer.clone().unwrap_or_default();
            let word = |text: Option<String>| text.unwrap_or_default().trim().to_lowercase();
            let product = [currency.to_lowercase(), word(seller), word(board)];
            samples.prices.push(*price);
            if !samples.products.contains(&product) {
                samples.products.push(product);
            }
        }
        samples
    }

    /// All the prices of both sides are for one product. A side without a price contradicts nothing.
    fn compares_with(&self, other: &Self) -> bool {
        let mut products = self.products.iter().chain(&other.products);
        let first = products.next();
        products.all(|product| Some(product) == first)
    }

    fn lowest(&self) -> Option<Decimal> {
        self.prices.iter().min().copied()
    }

    fn highest(&self) -> Option<Decimal> {
        self.prices.iter().max().copied()
    }

    fn count(&self) -> u32 {
        u32::try_from(self.prices.len()).unwrap_or(u32::MAX)
    }
}
