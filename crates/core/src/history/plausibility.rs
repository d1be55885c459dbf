//! Prices that are far off their own history (history.md, rules 43 to 47). Pure.
//!
//! The prices of one product are given day by day. Each is compared with the usual price of its
//! departure or stay, unless other dates moved with it on its day. Whoever changes a rule here
//! changes the statement of docs/guides/is-that-a-good-price.md too.

use std::collections::HashMap;

/// By how much a price must differ from the usual one, up or down.
pub(super) const FACTOR: f64 = 2.25;
/// The usual price is the median of so many days.
const DAYS: usize = 3;
/// The oldest of these days, in days before the price's own.
pub(super) const MAX_AGE_DAYS: i32 = 30;
/// So many other dates that moved too make a common movement …
const MOVED_DATES: usize = 3;
/// … if they are one in so many of the dates that can be compared.
const ONE_IN: usize = 10;

/// Departure or check-in, and return or check-out if any, in days since 1970.
pub type DatePair = (i32, Option<i32>);

/// A price of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriceOfDay {
    /// Its departure or stay.
    pub dates: DatePair,
    /// In thousandths, more than 0.
    pub price: i64,
    /// Whether the search was complete. A partial answer may lack the lowest offer, so its price
    /// is compared, and nothing is compared with it.
    pub is_complete: bool,
}

/// What a departure or stay cost lately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MedianPrice {
    /// The median, in thousandths.
    pub price: i64,
    /// The oldest of its days, in days since 1970.
    pub since: i32,
}

/// The last complete price of each of the newest days of a departure or stay, oldest first.
type LastPrices = [Option<(i32, i64)>; DAYS];

/// The newest prices of one product, by which those of the next day are judged.
#[derive(Debug, Clone, Default)]
pub struct PlausibilityCheck {
    /// Where each departure or stay is in `known`: a year asks for it once for each price.
    places: HashMap<DatePair, usize>,
    known: Vec<PricesOfDates>,
}

/// The prices of a departure or stay.
#[derive(Debug, Clone, Copy, Default)]
struct PricesOfDates {
    newest: LastPrices,
    /// The last complete one of the day that is being checked.
    last: Option<i64>,
}

impl PlausibilityCheck {
    /// For each price of a day, in the order of their times, the usual price if it is implausible.
    /// Days must ascend, and all prices of a day are given together.
    pub fn check_day(&mut self, day: i32, prices: &[PriceOfDay]) -> Vec<Option<MedianPrice>> {
        let (mut places, mut complete) = (Vec::with_capacity(prices.len()), Vec::new());
        for seen in prices {
            let place = self.place(seen.dates);
            places.push(place);
            if seen.is_complete && self.known[place].last.replace(seen.price).is_none() {
                complete.push(place);
            }
        }
        let mut moves = None;
        let implausible = prices.iter().zip(places).map(|(seen, place)| {
            let known = &self.known[place];
            let usual = known.usual_price(day)?;
            let ratio = ratio(seen.price, usual);
            if !is_far(ratio) {
                return None;
            }
            // Most days have no such price.
            let moves = moves.get_or_insert_with(|| self.moves(day, &complete));
            (!is_common(moves, known.last_ratio(day), ratio)).then_some(usual)
        });
        let implausible = implausible.collect();
        for place in complete {
            self.known[place].end_day(day);
        }
        implausible
    }

    fn place(&mut self, dates: DatePair) -> usize {
        *self.places.entry(dates).or_insert_with(|| {
            self.known.push(PricesOfDates::default());
            self.known.len() - 1
        })
    }

    /// The ratios of the last prices of a day to the usual ones, ascending: a day may have many far
    /// prices, each compared with all dates.
    fn moves(&self, day: i32, complete: &[usize]) -> Vec<f64> {
        let ratios = complete.iter();
        let mut ratios: Vec<_> = ratios
            .filter_map(|place| self.known[*place].last_ratio(day))
            .collect();
        ratios.sort_unstable_by(f64::total_cmp);
        ratios
    }
}

impl PricesOfDates {
    /// `None` if there are too few prices.
    fn usual_price(&self, day: i32) -> Option<MedianPrice> {
        let (since, _) = self.newest[0]?;
        if day.saturating_sub(since) > MAX_AGE_DAYS {
            return None;
        }
        let mut prices = self
            .newest
            .map(|newest| newest.map_or(0, |(_, price)| price));
        prices.sort_unstable();
        let price = prices[DAYS / 2];
        Some(MedianPrice { price, since })
    }

    /// The ratio of the day's last price to the usual one, if it can be compared.
    fn last_ratio(&self, day: i32) -> Option<f64> {
        Some(ratio(self.last?, self.usual_price(day)?))
    }

    fn end_day(&mut self, day: i32) {
        if let Some(price) = self.last.take() {
            self.newest.rotate_left(1);
            self.newest[DAYS - 1] = Some((day, price));
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "the statement of the guide divides doubles too"
)]
fn ratio(price: i64, usual: MedianPrice) -> f64 {
    price as f64 / usual.price as f64
}

fn is_far(ratio: f64) -> bool {
    ratio >= FACTOR || ratio * FACTOR <= 1.0
}

/// Whether enough other dates moved the same way, at least half as far: by the root of the ratio.
/// `moves` are ascending, with `own` of the same dates if it can be compared.
fn is_common(moves: &[f64], own: Option<f64>, ratio: f64) -> bool {
    let moved_too = |other: f64| {
        let half = other * other;
        if ratio > 1.0 {
            half >= ratio
        } else {
            half <= ratio
        }
    };
    let all = moves.len();
    let moved = if ratio > 1.0 {
        all - moves.partition_point(|other| !moved_too(*other))
    } else {
        moves.partition_point(|other| moved_too(*other))
    };
    let others = all - usize::from(own.is_some());
    let moved = moved - usize::from(own.is_some_and(moved_too));
    moved >= MOVED_DATES && ONE_IN * moved >= others
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(date: i32, price: i64) -> PriceOfDay {
        PriceOfDay {
            dates: (date, None),
            price: 1_000 * price,
            is_complete: true,
        }
    }

    /// A check that saw each date at these prices, one on each of the first days.
    fn after(dates: i32, prices: &[i64]) -> PlausibilityCheck {
        let mut check = PlausibilityCheck::default();
        for (day, price) in (0..).zip(prices) {
            let seen: Vec<_> = (0..dates).map(|date| seen(date, *price)).collect();
            check.check_day(day, &seen);
        }
        check
    }

    /// Which of the prices of a day are marked; date by date.
    fn marked(check: &PlausibilityCheck, day: i32, prices: &[i64]) -> Vec<bool> {
        let seen = (0..).zip(prices).map(|(date, price)| seen(date, *price));
        let marked = check.clone().check_day(day, &seen.collect::<Vec<_>>());
        marked.iter().map(Option::is_some).collect()
    }

    #[test]
    fn a_price_is_compared_with_the_median_of_three_days_of_the_last_thirty() {
        let check = after(1, &[100, 120, 50, 80, 90]);
        for (day, price, expected) in [
            (5, 180, true),
            (5, 179, false),
            (5, 36, false),
            (5, 35, true),
            (5, 4_000, true),
            (32, 180, true),
            // The oldest of the three days is 31 days ago.
            (33, 180, false),
        ] {
            assert_eq!(marked(&check, day, &[price]), [expected], "{day} {price}");
        }
        let usual = check.clone().check_day(5, &[seen(0, 180)]);
        let expected = MedianPrice {
            price: 80_000,
            since: 2,
        };
        assert_eq!(usual, [Some(expected)]);
        assert_eq!(marked(&after(1, &[100, 100]), 2, &[1]), [false], "two days");
    }

    #[test]
    fn of_a_day_the_last_complete_price_counts() {
        let mut check = after(1, &[100, 100]);
        let partial = PriceOfDay {
            is_complete: false,
            ..seen(0, 10)
        };
        check.check_day(2, &[seen(0, 300), seen(0, 100), partial]);
        assert_eq!(marked(&check, 3, &[225]), [true]);
        let marks = check.check_day(3, &[partial]);
        assert!(marks[0].is_some(), "a partial price is compared");
    }

    #[test]
    fn several_dates_that_move_together_are_no_error() {
        let check = after(40, &[100; 3]);
        let with = |moved: usize, price: i64, of: usize| -> Vec<bool> {
            let mut prices = vec![100; of];
            prices[0] = 40;
            prices[1..=moved].fill(price);
            marked(&check, 3, &prices)
        };
        assert!(with(2, 60, 10)[0], "two others are not several");
        assert!(!with(3, 60, 10)[0]);
        assert!(with(3, 64, 10)[0], "0.64 is less than half as far as 0.4");
        assert!(with(3, 250, 10)[0], "the others rose");
        assert!(!with(3, 60, 31)[0], "3 of 30");
        assert!(with(3, 60, 32)[0], "3 of 31");
        // A price that stays: the median follows on the third day.
        let mut check = after(1, &[100; 3]);
        let days: Vec<_> = (3..6)
            .map(|day| check.check_day(day, &[seen(0, 300)]))
            .collect();
        let days: Vec<_> = days.iter().map(|day| day[0].is_some()).collect();
        assert_eq!(days, [true, true, false]);
    }
}
