//! The sandbox's own clock: set to an instant, and faster than the real one.

use std::str::FromStr;

use jiff::Timestamp;

/// The highest speed: a year in about half a minute.
const MAX_SPEED: u32 = 1_000_000;

/// `START`, `xSPEED` or `START,xSPEED`, such as `2027-01-04T06:00:00Z,x1440`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SandboxClock {
    /// What it shows when the sandbox starts; `None`: the real time.
    pub start: Option<Timestamp>,
    /// Its seconds in a real second; 0 stands still.
    pub speed: u32,
}

/// A specification that is not a [`SandboxClock`].
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{part}: found `{found}`, expected {expected}; such as `2027-01-04T06:00:00Z,x1440`: a day passes in a minute"
)]
pub struct ClockSpecError {
    part: &'static str,
    found: String,
    expected: String,
}

impl FromStr for SandboxClock {
    type Err = ClockSpecError;

    fn from_str(spec: &str) -> Result<Self, ClockSpecError> {
        let (start, speed) = match spec.split_once(',') {
            Some((start, speed)) => (Some(start), Some(speed)),
            None if spec.starts_with('x') => (None, Some(spec)),
            None => (Some(spec), None),
        };
        Ok(Self {
            start: start.map(read_start).transpose()?,
            speed: speed.map_or(Ok(1), read_speed)?,
        })
    }
}

fn read_start(text: &str) -> Result<Timestamp, ClockSpecError> {
    text.parse().map_err(|_| ClockSpecError {
        part: "the start",
        found: text.to_owned(),
        expected: "an instant with its offset, such as 2027-01-04T06:00:00Z".to_owned(),
    })
}

fn read_speed(text: &str) -> Result<u32, ClockSpecError> {
    text.strip_prefix('x')
        .and_then(|number| number.parse().ok())
        .filter(|speed| *speed <= MAX_SPEED)
        .ok_or_else(|| ClockSpecError {
            part: "the speed",
            found: text.to_owned(),
            expected: format!("x and a whole number from 0 (stands still) to {MAX_SPEED}"),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_a_speed_or_both() {
        let start = Some("2027-01-04T06:00:00Z".parse::<Timestamp>().unwrap());
        for (spec, clock) in [
            ("2027-01-04T06:00:00Z", SandboxClock { start, speed: 1 }),
            (
                "2027-01-04T08:00:00+02:00,x0",
                SandboxClock { start, speed: 0 },
            ),
            (
                "2027-01-04T06:00:00Z,x1440",
                SandboxClock {
                    start,
                    speed: 1_440,
                },
            ),
            (
                "x60",
                SandboxClock {
                    start: None,
                    speed: 60,
                },
            ),
        ] {
            assert_eq!(spec.parse(), Ok(clock), "{spec}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (spec, part, found) in [
            ("2027-01-04", "the start", "`2027-01-04`"),
            ("tomorrow,x2", "the start", "`tomorrow`"),
            ("2027-01-04T06:00:00Z,1440", "the speed", "`1440`"),
            ("x-3", "the speed", "`x-3`"),
            ("x1000001", "the speed", "`x1000001`"),
            ("", "the start", "``"),
        ] {
            let error = spec.parse::<SandboxClock>().unwrap_err().to_string();
            assert!(
                error.starts_with(part) && error.contains(found),
                "{spec}: {error}"
            );
            assert!(error.contains("expected"), "{spec}: {error}");
        }
    }
}
