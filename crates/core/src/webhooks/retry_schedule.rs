//! The outcome of a try: delivered, retried or failed. Pure.
//!
//! | Result of a try | Delivery | Endpoint |
//! |---|---|---|
//! | 2xx within 10 s | delivered | its failures are reset |
//! | 410, no such mailbox | failed, `gone` | switched off |
//! | 5xx about a mail or its recipient, 204 or 400 of the relay | failed, `refused` | as after the last try |
//! | any other, not the last try | retried after the next delay, or a longer `Retry-After` | |
//! | any other, the last try | failed, `tries_spent` | switched off if none succeeded for 5 days; a channel 3 days |
//!
//! A test switches nothing off, whatever its result.
//!
//! A failure at a URL that the endpoint has left meanwhile is retried and does not count: the
//! endpoint's `epoch` distinguishes them.

use std::time::Duration;

use jiff::Timestamp;

const HOURS: u64 = 3_600;

/// The delay of each retry (monitors.md, rule 56). The first try is made at once.
pub const DELAYS: [Duration; 7] = [
    Duration::from_secs(5),
    Duration::from_secs(300),
    Duration::from_secs(1_800),
    Duration::from_secs(2 * HOURS),
    Duration::from_secs(5 * HOURS),
    Duration::from_secs(10 * HOURS),
    Duration::from_secs(10 * HOURS),
];

/// The number of tries of a delivery.
pub const MAX_TRIES: u16 = 8;
/// An endpoint without a success for this long is switched off.
pub const SWITCH_OFF_AFTER: Duration = Duration::from_secs(5 * 24 * HOURS);
/// A channel without a success for this long is paused.
pub const CHANNEL_PAUSED_AFTER: Duration = Duration::from_secs(3 * 24 * HOURS);
/// The longest `Retry-After` that is honoured.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(10 * HOURS);
/// The largest random addition, as a fraction of the delay: it spreads deliveries that failed
/// together.
const JITTER: f64 = 0.1;

/// What a receiver said of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiverAnswer {
    /// It has it.
    Accepted,
    /// It wants no more of any, or does not exist.
    Gone,
    /// It never takes this one.
    Refused,
    /// It does not have it now, or it is unknown whether it has.
    Unclear,
}

impl ReceiverAnswer {
    /// Of a receiver by HTTP: the status of its response, if any.
    pub fn of_http(status: Option<u16>) -> Self {
        match status {
            Some(200..=299) => Self::Accepted,
            Some(410) => Self::Gone,
            _ => Self::Unclear,
        }
    }
}

/// The outcome of a try for its delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TryOutcome {
    /// The receiver accepted it.
    Delivered,
    /// It is retried.
    Retry {
        /// The time until the retry.
        after: Duration,
    },
    /// It was the last try.
    Spent,
    /// The receiver wants no more.
    Gone,
    /// The receiver never takes this one.
    Refused,
}

impl TryOutcome {
    /// The word that the SQL function `end_try` takes.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Retry { .. } => "again",
            Self::Spent => "spent",
            Self::Gone => "gone",
            Self::Refused => "refused",
        }
    }

    /// The time until the retry, if any.
    pub(super) fn after(self) -> Option<Duration> {
        match self {
            Self::Retry { after } => Some(after),
            Self::Delivered | Self::Spent | Self::Gone | Self::Refused => None,
        }
    }
}

/// The outcome of a try after `failures` failures of at most `most`. `chance` is a random number from 0
/// to 1.
pub fn try_outcome(
    answer: ReceiverAnswer,
    retry_after: Option<Duration>,
    failures: u16,
    max_tries: u16,
    chance: f64,
) -> TryOutcome {
    match answer {
        ReceiverAnswer::Accepted => return TryOutcome::Delivered,
        ReceiverAnswer::Gone => return TryOutcome::Gone,
        ReceiverAnswer::Refused => return TryOutcome::Refused,
        ReceiverAnswer::Unclear => {}
    }
    let Some(delay) = DELAYS
        .get(usize::from(failures))
        .filter(|_| failures + 1 < max_tries)
    else {
        return TryOutcome::Spent;
    };
    let least = delay.mul_f64(1.0 + JITTER * chance.clamp(0.0, 1.0));
    TryOutcome::Retry {
        after: least.max(retry_after.unwrap_or_default().min(MAX_RETRY_AFTER)),
    }
}

/// Parses a `Retry-After`: seconds or a date. `None` for anything else.
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
        match try_outcome(
            ReceiverAnswer::of_http(status),
            None,
            failures,
            MAX_TRIES,
            0.0,
        ) {
            TryOutcome::Retry { after } => format!("{} s", after.as_secs()),
            outcome => outcome.as_str().to_owned(),
        }
    }

    #[test]
    fn failures_are_retried_after_the_documented_delays() {
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
            try_outcome(ReceiverAnswer::Unclear, None, 0, 1, 0.5),
            TryOutcome::Spent,
            "a test event has one try"
        );
        let refused = try_outcome(ReceiverAnswer::Refused, None, 0, MAX_TRIES, 0.5);
        assert_eq!(refused, TryOutcome::Refused, "not tried again");
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
    fn retry_after_delays_within_bounds_and_never_shortens() {
        let after = |seconds| {
            try_outcome(
                ReceiverAnswer::Unclear,
                Some(Duration::from_secs(seconds)),
                1,
                MAX_TRIES,
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
        fn jitter_adds_at_most_a_tenth(failures in 0_u16..7, chance in 0.0..=1.0_f64) {
            let (after, delay) = (try_outcome(ReceiverAnswer::Unclear, None, failures, MAX_TRIES, chance).after().unwrap(), DELAYS[usize::from(failures)]);
            prop_assert!(after >= delay && after <= delay.mul_f64(1.101));
        }

        #[test]
        fn any_retry_after_header_is_parsed_without_a_panic(header in ".{0,60}") {
            let _ = retry_after(&header, Timestamp::UNIX_EPOCH);
        }
    }
}
