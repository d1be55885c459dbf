//! A price that can be compared quickly: pure.

use std::cmp::Ordering;

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

/// How many digits behind the point a short price has: as many as the currencies with the most of those that fares and rates are sold in.
const SCALE: u32 = 3;

/// A price in major units, exactly as it was seen. One price has one form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Price {
    /// In thousandths: nearly every price there is.
    Short(i64),
    Long(Long),
}

/// A price of more digits than a short one can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "(i128, u32)", into = "(i128, u32)")]
pub(super) struct Long(Decimal);

impl From<Decimal> for Price {
    fn from(price: Decimal) -> Self {
        let price = price.normalize();
        let short = || {
            let digits = i64::try_from(price.mantissa()).ok()?;
            digits.checked_mul(10_i64.pow(SCALE.checked_sub(price.scale())?))
        };
        short().map_or(Self::Long(Long(price)), Self::Short)
    }
}

impl From<Price> for Decimal {
    /// Without zeros at its end.
    fn from(price: Price) -> Self {
        match price {
            Price::Short(digits) => Self::new(digits, SCALE).normalize(),
            Price::Long(Long(price)) => price,
        }
    }
}

impl Ord for Price {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Short(one), Self::Short(other)) => one.cmp(other),
            _ => Decimal::from(*self).cmp(&Decimal::from(*other)),
        }
    }
}

/// Prices of which the lowest, the middle and the highest are wanted.
#[derive(Debug, Default)]
pub(super) struct Prices {
    /// Numbers by themselves, which are sorted several times as fast.
    short: Vec<i64>,
    long: Vec<Price>,
}

/// What prices come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) lowest: Decimal,
    /// Of an even number the mean of the two in the middle, exactly.
    pub(super) middle: Decimal,
    pub(super) highest: Decimal,
}

impl Prices {
    pub(super) fn push(&mut self, price: Price) {
        match price {
            Price::Short(digits) => self.short.push(digits),
            Price::Long(_) => self.long.push(price),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.short.len() + self.long.len()
    }

    /// Takes all of them out; `None`: there were none.
    pub(super) fn take_range(&mut self) -> Option<Range> {
        if self.long.is_empty() {
            self.short.sort_unstable();
            let range = range(self.short.len(), |place| Price::Short(self.short[place]));
            self.short.clear();
            return range;
        }
        let mut all = std::mem::take(&mut self.long);
        all.extend(self.short.drain(..).map(Price::Short));
        all.sort_unstable();
        range(all.len(), |place| all[place])
    }
}

/// Of prices from the lowest to the highest.
fn range(count: usize, at: impl Fn(usize) -> Price) -> Option<Range> {
    let last = count.checked_sub(1)?;
    let (lower, upper) = (Decimal::from(at(last / 2)), Decimal::from(at(count / 2)));
    // Not the half of their sum, which might be larger than a decimal can be.
    let between = upper
        .checked_sub(lower)
        .map(|between| lower + between / Decimal::TWO);
    let middle = between.unwrap_or_else(|| lower / Decimal::TWO + upper / Decimal::TWO);
    Some(Range {
        lowest: at(0).into(),
        middle: middle.normalize(),
        highest: at(last).into(),
    })
}

impl PartialOrd for Price {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl From<Long> for (i128, u32) {
    fn from(Long(price): Long) -> Self {
        (price.mantissa(), price.scale())
    }
}

impl TryFrom<(i128, u32)> for Long {
    type Error = rust_decimal::Error;

    fn try_from((digits, scale): (i128, u32)) -> Result<Self, Self::Error> {
        Decimal::try_from_i128_with_scale(digits, scale).map(Self)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The most digits that a decimal can have.
    const MOST: i128 = 79_228_162_514_264_337_593_543_950_335;

    /// Usual prices, and whatever else a decimal can be.
    pub(in crate::history) fn decimal() -> impl Strategy<Value = Decimal> {
        let all = (-MOST..=MOST, 0_u32..=28)
            .prop_map(|(digits, scale)| Decimal::from_i128_with_scale(digits, scale));
        let long = (any::<i64>(), 0_u32..8).prop_map(|(digits, scale)| Decimal::new(digits, scale));
        let usual =
            (0_i64..1_000_000, 0_u32..3).prop_map(|(digits, scale)| Decimal::new(digits, scale));
        prop_oneof![1 => all, 1 => long, 4 => usual]
    }

    proptest! {
        #[test]
        fn a_price_is_what_it_was_and_stands_where_it_stood(one in decimal(), other in decimal()) {
            let (short, too) = (Price::from(one), Price::from(other));
            prop_assert_eq!(Decimal::from(short), one);
            prop_assert_eq!(Decimal::from(short).scale(), one.normalize().scale());
            prop_assert_eq!(short.cmp(&too), one.cmp(&other));
            prop_assert_eq!(short == too, one == other);
        }
    }

    #[test]
    fn the_middle_of_prices_is_exact_whatever_their_form() {
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
            let mut all = Prices::default();
            for price in &prices {
                all.push(price.parse::<Decimal>().unwrap().into());
            }
            assert_eq!(all.len(), prices.len());
            let told = all.take_range().map(|range| {
                [range.lowest, range.middle, range.highest].map(|price| price.to_string())
            });
            assert_eq!(
                told,
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
                Price::from(price.parse::<Decimal>().unwrap()),
                Price::Short(digits),
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
                    Price::from(price.parse::<Decimal>().unwrap()),
                    Price::Long(_)
                ),
                "{price}"
            );
        }
    }
}
