//! Where a price stands among those beside it.

use rust_decimal::Decimal;

/// The plausible prices of a table in one currency, ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PriceFifths(Vec<Decimal>);

impl FromIterator<Decimal> for PriceFifths {
    fn from_iter<I: IntoIterator<Item = Decimal>>(prices: I) -> Self {
        let mut prices: Vec<_> = prices.into_iter().collect();
        prices.sort_unstable();
        Self(prices)
    }
}

impl PriceFifths {
    /// The fifth that a price is in: 1 for the cheapest, 5 for the dearest.
    pub fn fifth(&self, price: Decimal) -> usize {
        let cheaper = self.0.partition_point(|other| *other < price);
        (1 + cheaper * 5 / self.0.len().max(1)).min(5)
    }

    pub fn lowest(&self) -> Option<Decimal> {
        self.0.first().copied()
    }

    /// The middle price.
    pub fn median(&self) -> Option<Decimal> {
        self.0.get(self.0.len() / 2).copied()
    }

    /// How many prices there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

/// The most frequent currency, the first of equally frequent ones.
pub fn most_frequent<'a>(currencies: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut counts = Vec::<(&str, usize)>::new();
    for currency in currencies {
        match counts.iter_mut().find(|(known, _)| *known == currency) {
            Some((_, count)) => *count += 1,
            None => counts.push((currency, 1)),
        }
    }
    let most = counts.into_iter().rev().max_by_key(|(_, count)| *count);
    most.map(|(currency, _)| currency)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_in_the_fifth_of_its_rank() {
        let fifths: PriceFifths = (1..=10).map(Decimal::from).collect();
        let of: Vec<_> = (1..=11).map(|price| fifths.fifth(price.into())).collect();
        assert_eq!(of, [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 5]);
        assert_eq!(fifths.lowest(), Some(Decimal::ONE));
        assert_eq!(fifths.median(), Some(Decimal::from(6)));
        assert_eq!(PriceFifths::default().fifth(Decimal::ONE), 1);
    }

    #[test]
    fn the_first_of_equally_frequent_currencies_counts() {
        assert_eq!(
            most_frequent(["EUR", "USD", "USD"].into_iter()),
            Some("USD")
        );
        assert_eq!(most_frequent(["EUR", "USD"].into_iter()), Some("EUR"));
        assert_eq!(most_frequent(std::iter::empty()), None);
    }
}
