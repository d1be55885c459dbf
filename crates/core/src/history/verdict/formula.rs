//! The arithmetic of a verdict, in double precision. The order of the operations is part of the
//! definition: the same order gives the same bits in SQL.

use crate::contract::history_verdict::{BecameCheaper, PriceClass};

/// How many prices a pool of more prices counts for beside the bin's own.
const PRIOR: f64 = 50.0;
/// The 97.5 % quantile of the normal distribution, for intervals of 95 %.
const Z: f64 = 1.96;

/// Where a price stands among some prices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) lower: u32,
    pub(super) equal: u32,
    pub(super) total: u32,
}

impl Standing {
    pub(super) fn higher(self) -> u32 {
        self.total - self.lower - self.equal
    }

    /// The number of lower prices, an equal one counting as half.
    fn rank(self) -> f64 {
        f64::from(self.lower) + f64::from(self.equal) / 2.0
    }

    /// Whether this price alone holds the middle: less than a fifth is lower, and less than a
    /// fifth is higher.
    pub(super) fn holds_the_middle(self) -> bool {
        let is_less_than_a_fifth = |count: u32| u64::from(count) * 5 < u64::from(self.total);
        self.equal > 0 && is_less_than_a_fifth(self.lower) && is_less_than_a_fifth(self.higher())
    }
}

/// The percentile of a price by its standing in its bin, in its bin and the two beside it, and in
/// all bins (history.md, rule 36). None of them may be empty.
pub(super) fn percentile(own: Standing, near: Standing, all: Standing) -> f64 {
    let all = all.rank() / f64::from(all.total);
    let near = (near.rank() + PRIOR * all) / (f64::from(near.total) + PRIOR);
    let own = (own.rank() + PRIOR * near) / (f64::from(own.total) + PRIOR);
    percent(own)
}

/// The class of a percentile, as it is shown.
pub(super) fn class(percentile: f64) -> PriceClass {
    match percentile {
        low if low <= 20.0 => PriceClass::Low,
        below if below <= 40.0 => PriceClass::Below,
        typical if typical <= 60.0 => PriceClass::Typical,
        above if above <= 80.0 => PriceClass::Above,
        _ => PriceClass::High,
    }
}

/// `count` of `n` with its Wilson interval (history.md, rule 39). `n` must not be 0.
pub(super) fn became_cheaper(count: u32, n: u32) -> BecameCheaper {
    let (total, share) = (f64::from(n), f64::from(count) / f64::from(n));
    let spread = Z * (share * (1.0 - share) / total + Z * Z / (4.0 * total * total)).sqrt();
    let (middle, scale) = (share + Z * Z / (2.0 * total), 1.0 + Z * Z / total);
    BecameCheaper {
        n,
        count,
        percent: percent(share),
        percent_from: percent(((middle - spread) / scale).max(0.0)),
        percent_to: percent(((middle + spread) / scale).min(1.0)),
    }
}

/// A share in percent, rounded half up to one decimal.
fn percent(share: f64) -> f64 {
    (share * 1000.0 + 0.5).floor() / 10.0
}
