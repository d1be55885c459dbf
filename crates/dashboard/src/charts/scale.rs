//! From numbers and dates to places in a plot, and the round values at its axes.

use jiff::civil::{Date, Weekday, date};
use jiff::{ToSpan as _, Zoned};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

/// The epoch of [`day_number`].
const EPOCH: Date = date(1970, 1, 1);

/// A date as days since 1970.
pub(super) fn day_number(day: Date) -> i32 {
    i32::try_from(day.duration_since(EPOCH).as_hours() / 24).unwrap_or_default()
}

/// The date of a [`day_number`].
pub(super) fn day_of(number: i32) -> Date {
    EPOCH.saturating_add(number.days())
}

/// A vertical axis from one round number to another.
#[derive(Debug, Clone)]
pub(super) struct ValueScale {
    low: Decimal,
    high: Decimal,
    step: Decimal,
}

impl ValueScale {
    /// A scale that holds all values, with about `lines` lines at multiples of 1, 2, 2.5 or 5
    /// times a power of ten, at least `smallest` apart.
    pub(super) fn around(
        values: impl IntoIterator<Item = Decimal>,
        lines: u32,
        smallest: Decimal,
    ) -> Self {
        let (mut low, mut high) = values
            .into_iter()
            .fold(None, |range: Option<(Decimal, Decimal)>, value| {
                Some(range.map_or((value, value), |(low, high)| {
                    (low.min(value), high.max(value))
                }))
            })
            .unwrap_or_default();
        if low == high {
            // A flat line stands in the middle.
            let margin = (high.abs() / Decimal::TEN).max(smallest);
            low = low.saturating_sub(margin);
            high = high.saturating_add(margin);
        }
        let step = round_step(
            high.saturating_sub(low) / Decimal::from(lines.max(1)),
            smallest,
        );
        Self {
            low: whole_steps(low, step, Decimal::floor),
            high: whole_steps(high, step, Decimal::ceil),
            step,
        }
    }

    /// Where a value stands, from 0 at the bottom to 1 at the top.
    pub(super) fn share(&self, value: Decimal) -> f64 {
        let (above, height) = (
            value.saturating_sub(self.low),
            self.high.saturating_sub(self.low),
        );
        let share = above.checked_div(height);
        share.and_then(|share| share.to_f64()).unwrap_or_default()
    }

    /// The round values of the axis, from the bottom.
    pub(super) fn ticks(&self) -> impl Iterator<Item = Decimal> {
        std::iter::successors(Some(self.low), |tick| {
            // A step that is too small for such a number adds nothing.
            tick.checked_add(self.step).filter(|next| next > tick)
        })
        .take_while(|tick| *tick <= self.high)
        .map(|tick| tick.normalize())
    }
}

/// The multiple of `step` at `value` as `round` says; the value itself where it is too large for one.
fn whole_steps(value: Decimal, step: Decimal, round: fn(&Decimal) -> Decimal) -> Decimal {
    let steps = value.checked_div(step).map(|steps| round(&steps));
    steps
        .and_then(|steps| steps.checked_mul(step))
        .unwrap_or(value)
}

/// The next round number: 1, 2, 2.5 or 5 times a power of ten, a multiple of `smallest`.
fn round_step(exact: Decimal, smallest: Decimal) -> Decimal {
    let mut power = smallest;
    loop {
        let steps = [
            Decimal::ONE,
            Decimal::TWO,
            Decimal::new(25, 1),
            Decimal::from(5),
        ];
        for step in steps.map(|step| step.saturating_mul(power)) {
            let is_multiple = step
                .checked_rem(smallest)
                .is_some_and(|rest| rest.is_zero());
            if step >= exact && is_multiple {
                return step;
            }
        }
        match power.checked_mul(Decimal::TEN) {
            Some(next) => power = next,
            None => return power,
        }
    }
}

/// A label at the horizontal axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tick {
    pub(super) at: i32,
    pub(super) text: String,
}

/// Round dates between two days: at most `most`, at days, Mondays or firsts of a month.
pub(super) fn date_ticks(first: i32, last: i32, most: usize) -> Vec<Tick> {
    let days = usize::try_from(last - first).unwrap_or_default() + 1;
    let tick = |day: Date, text: &str| Tick {
        at: day_number(day),
        text: day.strftime(text).to_string(),
    };
    for step in [1_usize, 2] {
        if days.div_ceil(step) <= most {
            return (first..=last)
                .step_by(step)
                .map(|at| tick(day_of(at), "%-d %b"))
                .collect();
        }
    }
    let mondays: Vec<_> = (first..=last)
        .filter(|at| day_of(*at).weekday() == Weekday::Monday)
        .collect();
    for weeks in [1, 2] {
        if mondays.len().div_ceil(weeks) <= most {
            return mondays
                .into_iter()
                .step_by(weeks)
                .map(|at| tick(day_of(at), "%-d %b"))
                .collect();
        }
    }
    let firsts: Vec<_> = (first..=last).filter(|at| day_of(*at).day() == 1).collect();
    let months = [1, 2, 3, 6, 12]
        .into_iter()
        .find(|months| firsts.len().div_ceil(*months) <= most)
        .unwrap_or(24);
    let text = if days > 200 { "%b %Y" } else { "%-d %b" };
    firsts
        .into_iter()
        .step_by(months)
        .map(|at| tick(day_of(at), text))
        .collect()
}

/// The days of runs, or the times of those on the day of the one before: at most `most`, evenly spaced.
pub(super) fn run_ticks(slots: &[Zoned], most: usize) -> Vec<Tick> {
    let mut before = None;
    let shown = (0_i32..)
        .zip(slots)
        .step_by(slots.len().div_ceil(most).max(1));
    shown
        .map(|(at, slot)| {
            let is_same_day = before.replace(slot.date()) == Some(slot.date());
            let format = if is_same_day { "%H:%M" } else { "%-d %b" };
            let text = slot.strftime(format).to_string();
            Tick { at, text }
        })
        .collect()
}

/// Round numbers of days before a departure, down to 0: at most `most`.
pub(super) fn lead_ticks(longest: i32, most: usize) -> Vec<Tick> {
    let step = [1, 2, 5, 7, 14, 30, 60, 90, 180, 365]
        .into_iter()
        .find(|step| usize::try_from(longest / step).unwrap_or_default() < most)
        .unwrap_or(730);
    (0..=longest / step)
        .map(|tick| Tick {
            at: tick * step,
            text: (tick * step).to_string(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(values: &[i64]) -> ValueScale {
        let values = values.iter().map(|value| Decimal::from(*value));
        ValueScale::around(values, 4, Decimal::new(1, 2))
    }

    #[test]
    fn runs_have_their_days_and_those_of_one_day_their_times() {
        let slot = |text: &str| format!("{text}[UTC]").parse::<Zoned>().unwrap();
        let slots = ["2026-11-30T06:00", "2026-11-30T18:00", "2026-12-01T06:00"].map(slot);
        let of = |most| {
            let ticks = run_ticks(&slots, most).into_iter();
            ticks.map(|tick| (tick.at, tick.text)).collect::<Vec<_>>()
        };
        let tick = |at: i32, text: &str| (at, text.to_owned());
        assert_eq!(
            of(5),
            [tick(0, "30 Nov"), tick(1, "18:00"), tick(2, "1 Dec")]
        );
        assert_eq!(of(2), [tick(0, "30 Nov"), tick(2, "1 Dec")]);
        assert!(run_ticks(&[], 5).is_empty());
    }

    fn ticks(scale: &ValueScale) -> Vec<String> {
        scale.ticks().map(|tick| tick.to_string()).collect()
    }

    #[test]
    fn an_axis_has_round_numbers_around_all_values() {
        for (values, expected) in [
            (&[307, 481][..], &["300", "350", "400", "450", "500"][..]),
            (&[0, 7], &["0", "2", "4", "6", "8"]),
            (&[1, 1_000], &["0", "250", "500", "750", "1000"]),
            (&[100], &["90", "95", "100", "105", "110"]),
        ] {
            let scale = scale(values);
            assert_eq!(ticks(&scale), expected, "{values:?}");
            for value in values {
                let share = scale.share(Decimal::from(*value));
                assert!((0.0..=1.0).contains(&share), "{values:?}: {share}");
            }
        }
    }

    #[test]
    fn an_axis_of_counts_has_whole_numbers() {
        for most in 0..40_u32 {
            let scale = ValueScale::around([0.into(), most.into()], 4, Decimal::ONE);
            assert!(scale.ticks().all(|tick| tick.is_integer()), "{most}");
            assert!(scale.ticks().count() <= 7, "{most}");
        }
    }

    #[test]
    fn an_axis_holds_every_price_that_there_can_be() {
        let most = Decimal::MAX;
        for values in [
            vec![most],
            vec![most, Decimal::new(1, 2)],
            vec![most, most - Decimal::ONE],
            vec![Decimal::new(1, 28), most / Decimal::TWO],
        ] {
            let scale = ValueScale::around(values.clone(), 4, Decimal::new(1, 2));
            assert!(scale.ticks().take(100).count() < 100, "{values:?}");
            for value in values {
                let share = scale.share(value);
                assert!((0.0..=1.0).contains(&share), "{value}: {share}");
            }
        }
    }

    #[test]
    fn dates_at_an_axis_are_round_and_few() {
        let texts = |first: Date, days: i32| {
            let first = day_number(first);
            date_ticks(first, first + days - 1, 6)
                .into_iter()
                .map(|tick| tick.text)
                .collect::<Vec<_>>()
        };
        let autumn = date(2026, 10, 30);
        assert_eq!(texts(autumn, 3), ["30 Oct", "31 Oct", "1 Nov"]);
        assert_eq!(
            texts(autumn, 30),
            ["2 Nov", "9 Nov", "16 Nov", "23 Nov"],
            "Mondays"
        );
        assert_eq!(
            texts(autumn, 120),
            ["1 Nov", "1 Dec", "1 Jan", "1 Feb"],
            "firsts"
        );
        assert_eq!(texts(autumn, 400)[0], "Nov 2026");
        for days in 1..500 {
            assert!(texts(autumn, days).len() <= 6, "{days}");
        }
    }

    #[test]
    fn days_before_departure_end_at_zero() {
        for longest in 0..800 {
            let ticks = lead_ticks(longest, 7);
            assert_eq!(ticks[0].at, 0);
            assert!(ticks.len() <= 7, "{longest}");
            assert!(ticks.iter().all(|tick| tick.at <= longest));
        }
    }

    #[test]
    fn a_day_number_is_its_date() {
        for day in [date(1969, 12, 31), EPOCH, date(2027, 2, 28)] {
            assert_eq!(day_of(day_number(day)), day);
        }
    }
}
