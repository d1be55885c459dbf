//! A row of numbers as a row of bars.

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// One bar for each number, from the lowest to the highest; a blank where there is none.
pub fn sparkline(numbers: &[Option<Decimal>]) -> String {
    let known = || numbers.iter().flatten();
    let (Some(least), Some(most)) = (known().min(), known().max()) else {
        return String::new();
    };
    let span = most.saturating_sub(*least);
    let bar = |number: &Decimal| {
        let share = number.saturating_sub(*least).checked_div(span);
        let share = share.map(|share| share * Decimal::from(BARS.len() - 1));
        let place = share
            .and_then(|share| share.round().to_usize())
            .unwrap_or(0);
        BARS[place.min(BARS.len() - 1)]
    };
    numbers
        .iter()
        .map(|number| number.as_ref().map_or(' ', bar))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_spans_from_the_lowest_to_the_highest() {
        let numbers =
            [Some(100), Some(135), None, Some(170)].map(|number| number.map(Decimal::from));
        assert_eq!(sparkline(&numbers), "▁▅ █");
        assert_eq!(sparkline(&[Some(Decimal::ONE), Some(Decimal::ONE)]), "▁▁");
        assert_eq!(sparkline(&[None]), "");
        let widest = [Some(Decimal::new(1, 28)), Some(Decimal::MAX)];
        assert_eq!(sparkline(&widest), "▁█");
    }
}
