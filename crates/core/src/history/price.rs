//! A price with a fast comparison. Pure.

use std::cmp::Ordering;

use rust_decimal::prelude::ToPrimitive as _;
use rust_decimal::{Decimal, RoundingStrategy};
use serde::{Deserialize, Serialize};

/// Decimal places of a short price: the most that a currency of fares and rates has.
const SCALE: u32 = 3;

/// An exact price in major units. Each price has exactly one representation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum CompactPrice {
    /// In thousandths: nearly all prices.
    Short(i64),
    Long(LongPrice),
}

/// A price with more digits than a short one can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "(i128, u32)", into = "(i128, u32)")]
pub(super) struct LongPrice(Decimal);

impl From<Decimal> for CompactPrice {
    fn from(price: Decimal) -> Self {
        let price = price.normalize();
        let short = || {
            let digits = i64::try_from(price.mantissa()).ok()?;
            digits.checked_mul(10_i64.pow(SCALE.checked_sub(price.scale())?))
        };
        short().map_or(Self::Long(LongPrice(price)), Self::Short)
    }
}

impl CompactPrice {
    /// Rounded to thousandths, half away from zero; `None` if it does not fit.
    pub(super) fn thousandths(self) -> Option<i64> {
        match self {
            Self::Short(digits) => Some(digits),
            Self::Long(LongPrice(price)) => price
                .round_dp_with_strategy(SCALE, RoundingStrategy::MidpointAwayFromZero)
                .checked_mul(10_i64.pow(SCALE).into())?
                .to_i64(),
        }
    }
}

impl From<CompactPrice> for Decimal {
    /// Without trailing zeros.
    fn from(price: CompactPrice) -> Self {
        match price {
            CompactPrice::Short(digits) => Self::new(digits, SCALE).normalize(),
            CompactPrice::Long(LongPrice(price)) => price,
        }
    }
}

impl Ord for CompactPrice {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Short(one), Self::Short(other)) => one.cmp(other),
            _ => Decimal::from(*self).cmp(&Decimal::from(*other)),
        }
    }
}

/// Collects prices to compute minimum, median and maximum.
#[derive(Debug, Default)]
pub(super) struct PriceAccumulator {
    /// Kept apart from `long`: plain integers sort several times faster.
    short: Vec<i64>,
    long: Vec<CompactPrice>,
}

/// Minimum, median and maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriceRange {
    /// The minimum.
    pub lowest: Decimal,
    /// The median: for an even count, the exact mean of the two middle prices.
    pub middle: Decimal,
    /// The maximum.
    pub highest: Decimal,
}

impl PriceAccumulator {
    pub(super) fn push(&mut self, price: CompactPrice) {
        match price {
            CompactPrice::Short(digits) => self.short.push(digits),
            CompactPrice::Long(_) => self.long.push(price),
        }
    }

    /// Takes the prices of another one.
    pub(super) fn absorb(&mut self, other: Self) {
        self.short.extend(other.short);
        self.long.extend(other.long);
    }

    pub(super) fn len(&self) -> usize {
        self.short.len() + self.long.len()
    }

    /// Drains the prices; `None` if there are none.
    pub(super) fn take_range(&mut self) -> Option<PriceRange> {
        if self.long.is_empty() {
            self.short.sort_unstable();
            let range = range(self.short.len(), |place| {
                CompactPrice::Short(self.short[place])
            });
            self.short.clear();
            return range;
        }
        let mut all = std::mem::take(&mut self.long);
        all.extend(self.short.drain(..).map(CompactPrice::Short));
        all.sort_unstable();
        range(all.len(), |place| all[place])
    }
}

/// `at` returns the price at a position, in ascending order.
fn range(count: usize, at: impl Fn(usize) -> CompactPrice) -> Option<PriceRange> {
    let last = count.checked_sub(1)?;
    let (lower, upper) = (Decimal::from(at(last / 2)), Decimal::from(at(count / 2)));
    // The sum of both might overflow.
    let between = upper
        .checked_sub(lower)
        .map(|between| lower + between / Decimal::TWO);
    let middle = between.unwrap_or_else(|| lower / Decimal::TWO + upper / Decimal::TWO);
    Some(PriceRange {
        lowest: at(0).into(),
        middle: middle.normalize(),
        highest: at(last).into(),
    })
}

impl PartialOrd for CompactPrice {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl From<LongPrice> for (i128, u32) {
    fn from(LongPrice(price): LongPrice) -> Self {
        (price.mantissa(), price.scale())
    }
}

impl TryFrom<(i128, u32)> for LongPrice {
    type Error = rust_decimal::Error;

    fn try_from((digits, scale): (i128, u32)) -> Result<Self, Self::Error> {
        Decimal::try_from_i128_with_scale(digits, scale).map(Self)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The largest mantissa of a `Decimal`.
    const MAX_MANTISSA: i128 = 79_228_162_514_264_337_593_543_950_335;

    /// Mostly usual prices, and some that only a `Decimal` can hold.
    pub(in crate::history) fn decimal() -> impl Strategy<Value = Decimal> {
        let all = (-MAX_MANTISSA..=MAX_MANTISSA, 0_u32..=28)
            .prop_map(|(digits, scale)| Decimal::from_i128_with_scale(digits, scale));
        let long = (any::<i64>(), 0_u32..8).prop_map(|(digits, scale)| Decimal::new(digits, scale));
        let usual =
            (0_i64..1_000_000, 0_u32..3).prop_map(|(digits, scale)| Decimal::new(digits, scale));
        prop_oneof![1 => all, 1 => long, 4 => usual]
    }

    proptest! {
        #[test]
        fn compact_prices_keep_value_and_order(one in decimal(), other in decimal()) {
            let (short, too) = (CompactPrice::from(one), CompactPrice::from(other));
            prop_assert_eq!(Decimal::from(short), one);
            prop_assert_eq!(Decimal::from(short).scale(), one.normalize().scale());
            prop_assert_eq!(short.cmp(&too), one.cmp(&other));
            prop_assert_eq!(short == too, one == other);
        }
    }

    #[test]
    fn the_median_is_exact_for_short_and_long_prices() {
        for (prices, expected) in [
            (vec![], None),
            (vec!["3"], Some(["3", "3", "3"])),
            (vec!["200", "100"], Some(["100", "150", "200"])),
            (
                vec!["163", "200", "164", "100"],
                Some(["100", "163.5", "200"]),
            ),
            (vec!["0.001", "0.002"], Some(["0.001", "0.0015", "0.002"])),
            (
                vec![
                    "-79228162514264337593543950334",
                    "79228162514264337593543950334",
                ],
                Some([
                    "-79228162514264337593543950334",
                    "0",
                    "79228162514264337593543950334",
                ]),
            ),
            (vec!["3", "0.00001", "2"], Some(["0.00001", "2", "3"])),
            (
                vec![
                    "79228162514264337593543950335",
                    "79228162514264337593543950333",
                ],
                Some([
                    "79228162514264337593543950333",
                    "79228162514264337593543950334",
                    "79228162514264337593543950335",
                ]),
            ),
        ] {
            let mut all = PriceAccumulator::default();
            for price in &prices {
                all.push(price.parse::<Decimal>().unwrap().into());
            }
            assert_eq!(all.len(), prices.len());
            let range = all.take_range().map(|range| {
                [range.lowest, range.middle, range.highest].map(|price| price.to_string())
            });
            assert_eq!(
                range,
                expected.map(|prices| prices.map(str::to_owned)),
                "{prices:?}"
            );
            assert_eq!(
                (all.len(), all.take_range()),
                (0, None),
                "they are taken out"
            );
        }
    }

    #[test]
    fn usual_prices_are_short() {
        for (price, digits) in [
            ("0", 0),
            ("164", 164_000),
            ("163.50", 163_500),
            ("-5", -5_000),
            ("0.001", 1),
        ] {
            assert_eq!(
                CompactPrice::from(price.parse::<Decimal>().unwrap()),
                CompactPrice::Short(digits),
                "{price}"
            );
        }
        for price in [
            "0.0001",
            "9223372036854776",
            "79228162514264337593543950335",
        ] {
            assert!(
                matches!(
                    CompactPrice::from(price.parse::<Decimal>().unwrap()),
                    CompactPrice::Long(_)
                ),
                "{price}"
            );
        }
    }
}
