//! An age on the command line: `90min`, `6h`, `3d`.

use jiff::{Span, SpanRelativeTo, Unit};

/// Reads an age as whole seconds; a day has 24 hours. The service checks its bounds.
pub fn seconds(text: &str) -> Result<u32, String> {
    let expected = || format!("{text:?} is not an age such as 90min, 6h or 3d");
    let age: Span = text.parse().map_err(|_| expected())?;
    let seconds = age
        .total((Unit::Second, SpanRelativeTo::days_are_24_hours()))
        .map_err(|_| expected())?;
    // Exact: an age has far fewer seconds than a float counts without gaps.
    format!("{seconds:.0}").parse().map_err(|_| expected())
}

/// An age for people, rounded down: `90 s`, `12 min`, `5 h`, `3 d`.
pub fn roughly(seconds: u64) -> String {
    let units = [(86_400, "d"), (3_600, "h"), (60, "min")];
    let unit = units.into_iter().find(|(unit, _)| seconds >= 2 * unit);
    let (unit, name) = unit.unwrap_or((1, "s"));
    format!("{} {name}", seconds / unit)
}

#[cfg(test)]
mod tests {
    use super::{roughly, seconds};

    #[test]
    fn an_age_has_two_of_its_unit_at_least() {
        for (seconds, expected) in [
            (0, "0 s"),
            (119, "119 s"),
            (120, "2 min"),
            (7_199, "119 min"),
            (7_200, "2 h"),
            (200_000, "2 d"),
        ] {
            assert_eq!(roughly(seconds), expected);
        }
    }

    #[test]
    fn ages_are_spans_of_fixed_length() {
        for (text, expected) in [
            ("90min", 5400),
            ("6h", 21_600),
            ("3d", 259_200),
            ("1d 2h", 93_600),
        ] {
            assert_eq!(seconds(text), Ok(expected), "{text}");
        }
        for text in ["", "6", "1 month", "-1h", "soon"] {
            assert!(seconds(text).unwrap_err().contains("90min"), "{text}");
        }
    }
}
