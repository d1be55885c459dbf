//! When a failure is tried again, and when no more. Pure.
//!
//! | What came of a try | Delivery | Endpoint |
//! |---|---|---|
//! | 2xx within 10 s | delivered | its failures are forgotten |
//! | 410 | failed, `gone` | switched off |
//! | anything else, not the last | again after the next delay, or after `Retry-After` if that is longer | |
//! | the same, the last | failed, `tries_spent` | switched off if nothing was delivered for five days |
//!
//! What failed at a URL that the endpoint has left meanwhile is none of this: it is tried again, and does not count (the migration `epochs`).

use std::time::Duration;

use jiff::Timestamp;

const HOURS: u64 = 3_600;

/// From one failure to the next try (jobs-api, "Monitors"); the first try is made at once.
pub const DELAYS: [Duration; 7] = [
    Duration::from_secs(5),
    Duration::from_secs(300),
    Duration::from_secs(1_800),
    Duration::from_secs(2 * HOURS),
    Duration::from_secs(5 * HOURS),
    Duration::from_secs(10 * HOURS),
    Duration::from_secs(10 * HOURS),
];

/// Failures after which a delivery is given up.
pub const MOST_TRIES: u16 = 8;
/// How long an endpoint may go without a success.
pub const PATIENCE: Duration = Duration::from_secs(5 * 24 * HOURS);
/// The longest `Retry-After` that is honoured: the longest delay.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(10 * HOURS);
/// The share of a delay that chance may add, so that what failed together does not come again together.
const JITTER: f64 = 0.1;

/// What a try means for its delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The receiver took it.
    Delivered,
    /// It is tried again.
    Again {
        /// Not before so long.
        after: Duration,
    },
    /// It was the last try.
    Spent,
    /// The receiver wants no more.
    Gone,
}

impl Fate {
    /// The word of the database's function.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Again { .. } => "again",
            Self::Spent => "spent",
            Self::Gone => "gone",
        }
    }

    /// How long until the next try.
    pub(super) fn after(self) -> Option<Duration> {
        match self {
            Self::Again { after } => Some(after),
            Self::Delivered | Self::Spent | Self::Gone => None,
        }
    }
}

/// The fate of a delivery that had failed `failures` times of at most `most` before this try. `status` is what was answered, if anything
/// was; `chance` is from 0 to 1.
#[must_use]
pub fn fate(
    status: Option<u16>,
    retry_after: Option<Duration>,
    failures: u16,
    most: u16,
    chance: f64,
) -> Fate {
    match status {
        Some(200..=299) => return Fate::Delivered,
        Some(410) => return Fate::Gone,
        _ => {}
    }
    let Some(delay) = DELAYS
        .get(usize::from(failures))
        .filter(|_| failures + 1 < most)
    else {
        return Fate::Spent;
    };
    let least = delay.mul_f64(1.0 + JITTER * chance.clamp(0.0, 1.0));
    Fate::Again {
        after: least.max(retry_after.unwrap_or_default().min(LONGEST_RETRY_AFTER)),
    }
}

/// What a `Retry-After` says: seconds, or a date. What is neither says nothing.
#[must_use]
pub fn retry_after(header: &str, now: Timestamp) -> Option<Duration> {
    let header = header.trim();
    if let Ok(seconds) = header.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let until = jiff::fmt::rfc2822::parse(header).ok()?.timestamp();
    Some(Duration::try_from(until.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seconds(status: Option<u16>, failures: u16) -> String {
        match fate(status, None, failures, MOST_TRIES, 0.0) {
            Fate::Again { after } => format!("{} s", after.as_secs()),
            fate => fate.word().to_owned(),
        }
    }

    #[test]
    fn the_promised_schedule() {
        let after: Vec<_> = (0..8)
            .map(|failures| seconds(Some(503), failures))
            .collect();
        assert_eq!(
            after,
            [
                "5 s", "300 s", "1800 s", "7200 s", "18000 s", "36000 s", "36000 s", "spent"
            ]
        );
        assert_eq!(
            fate(None, None, 0, 1, 0.5),
            Fate::Spent,
            "a test has one try"
        );
    }

    #[test]
    fn only_2xx_is_delivered_and_only_410_is_gone() {
        for status in 100..=599 {
            let expected = match status {
                200..=299 => "delivered",
                410 => "gone",
                _ => "5 s",
            };
            assert_eq!(seconds(Some(status), 0), expected, "{status}");
        }
        assert_eq!(seconds(None, 3), "7200 s");
    }

    #[test]
    fn retry_after_makes_it_later_within_bounds_and_never_earlier() {
        let after = |seconds| {
            fate(
                Some(429),
                Some(Duration::from_secs(seconds)),
                1,
                MOST_TRIES,
                0.0,
            )
            .after()
            .unwrap()
            .as_secs()
        };
        assert_eq!(
            [
                after(0),
                after(10),
                after(300),
                after(1_000),
                after(u64::MAX)
            ],
            [300, 300, 300, 1_000, 36_000]
        );
        let now = "2026-11-06T08:49:37Z".parse().unwrap();
        for (header, expected) in [
            ("120", Some(120)),
            (" 7 ", Some(7)),
            ("Fri, 06 Nov 2026 08:50:07 GMT", Some(30)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(0)),
            ("-1", None),
            ("soon", None),
            ("", None),
            ("99999999999999999999999", None),
        ] {
            assert_eq!(
                retry_after(header, now).map(|wait| wait.as_secs()),
                expected,
                "{header:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn chance_adds_a_tenth_at_most(failures in 0_u16..7, chance in 0.0..=1.0_f64) {
            let (after, delay) = (fate(None, None, failures, MOST_TRIES, chance).after().unwrap(), DELAYS[usize::from(failures)]);
            prop_assert!(after >= delay && after <= delay.mul_f64(1.101));
        }

        #[test]
        fn no_header_breaks_it(header in ".{0,60}") {
            let _ = retry_after(&header, Timestamp::UNIX_EPOCH);
        }
    }
}
