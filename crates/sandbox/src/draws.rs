//! Seeded pseudo-random draws, the source of every invented number of the sandbox.
//!
//! A [`Draw`] is a node in a tree of words and numbers; the root is the sandbox's seed. Its values
//! are a pure function of its path, so a price never depends on the order of requests.

use jiff::civil::Date;

/// One node under the seed. The same path always gives the same values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draw(u64);

impl Draw {
    /// The root of the tree for `seed`.
    pub(super) fn seeded(seed: u64) -> Self {
        Self(mix(seed ^ 0x6661_7265_7363_616e))
    }

    /// The child named `word`.
    pub(super) fn of(self, word: &str) -> Self {
        // FNV-1a over the word, then one finaliser round to spread short similar words.
        let hashed = word.bytes().fold(self.0, |state, byte| {
            (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self(mix(hashed ^ 0x9e37_79b9_7f4a_7c15))
    }

    /// The child numbered `number`.
    pub(super) fn nth(self, number: i64) -> Self {
        Self(mix(self.0
            ^ mix(number
                .cast_unsigned()
                .wrapping_add(0x2545_f491_4f6c_dd1d))))
    }

    /// The child for a calendar day.
    pub(super) fn day(self, date: Date) -> Self {
        self.nth(day_number(date))
    }

    /// Uniform in `0.0 .. 1.0`.
    pub(super) fn unit(self) -> f64 {
        real((mix(self.0) >> 11).cast_signed()) / 9_007_199_254_740_992.0
    }

    /// Uniform in `low .. high`.
    pub(super) fn between(self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// True with this probability.
    pub(super) fn chance(self, share: f64) -> bool {
        self.unit() < share
    }

    /// Uniform in `0 .. count`; 0 for an empty range.
    pub(super) fn below(self, count: i64) -> i64 {
        (mix(self.0) % count.max(1).cast_unsigned()).cast_signed()
    }

    /// One of `choices`, which must not be empty.
    pub(super) fn pick<T>(self, choices: &[T]) -> &T {
        let index = self.below(i64::try_from(choices.len()).unwrap_or(i64::MAX));
        &choices[usize::try_from(index).unwrap_or(0)]
    }

    /// A standard normal value (Box and Muller).
    pub(super) fn normal(self) -> f64 {
        let radius = (-2.0 * self.of("radius").unit().max(f64::MIN_POSITIVE).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.of("angle").unit()).cos()
    }

    /// A smooth curve in `-1.0 ..= 1.0` over the days, with a new direction every `period` days.
    pub(super) fn wave(self, date: Date, period: i64) -> f64 {
        let day = day_number(date);
        let (step, within) = (day.div_euclid(period), day.rem_euclid(period));
        let at = |n: i64| self.nth(n).between(-1.0, 1.0);
        let share = real(within) / real(period);
        let eased = (1.0 - (share * std::f64::consts::PI).cos()) / 2.0;
        at(step) * (1.0 - eased) + at(step + 1) * eased
    }
}

/// Days since 1970-01-01.
pub(super) fn day_number(date: Date) -> i64 {
    days_between(Date::constant(1970, 1, 1), date)
}

/// Whole days from one date to another; negative when `to` is earlier.
pub(super) fn days_between(from: Date, to: Date) -> i64 {
    to.duration_since(from).as_hours() / 24
}

/// The nearest whole number.
#[expect(clippy::cast_possible_truncation, reason = "far below 2^53")]
pub(super) fn whole(number: f64) -> i64 {
    number.round() as i64
}

/// A whole number as a fraction.
#[expect(clippy::cast_precision_loss, reason = "at most 2^53")]
pub(super) fn real(number: i64) -> f64 {
    number as f64
}

/// The finaliser of splitmix64.
fn mix(state: u64) -> u64 {
    let mut bits = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn equal_paths_give_equal_values_and_others_do_not() {
        let root = Draw::seeded(7);
        assert_eq!(
            root.of("a").nth(3).unit().to_bits(),
            root.of("a").nth(3).unit().to_bits()
        );
        assert_ne!(root.of("a").unit().to_bits(), root.of("b").unit().to_bits());
        assert_ne!(
            root.of("a").unit().to_bits(),
            Draw::seeded(8).of("a").unit().to_bits()
        );
        assert_ne!(
            root.of("ab").of("c").unit().to_bits(),
            root.of("a").of("bc").unit().to_bits()
        );
    }

    #[test]
    fn draws_are_uniform_and_normal_ones_are_centred() {
        let root = Draw::seeded(1);
        let mean =
            |read: fn(Draw) -> f64| (0..4_000).map(|n| read(root.nth(n))).sum::<f64>() / 4_000.0;
        assert!((mean(Draw::unit) - 0.5).abs() < 0.02);
        assert!(mean(Draw::normal).abs() < 0.05);
        assert!((0..4_000).all(|n| (0..5).contains(&root.nth(n).below(5))));
    }

    #[test]
    fn a_wave_moves_a_little_each_day() {
        let draw = Draw::seeded(3).of("drift");
        let days: Vec<f64> = (0..200)
            .map(|n| draw.wave(date(2027, 1, 1) + jiff::Span::new().days(n), 21))
            .collect();
        assert!(days.iter().all(|value| value.abs() <= 1.0));
        assert!(days.windows(2).all(|pair| (pair[0] - pair[1]).abs() < 0.2));
    }
}
