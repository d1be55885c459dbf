//! Numbers, times and prices as text.

use farescan_sheets::numbers::amount;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rust_decimal::Decimal;

/// An age from which a price counts as old.
pub const DAY_SECONDS: u64 = 86_400;

/// A price that may be absent.
pub fn price_or(value: Option<Decimal>, absent: &str) -> String {
    value.map_or_else(|| absent.to_owned(), amount)
}

/// An age for a cell of a calendar: `3h`, and from a day on `9d`.
pub fn short_age(seconds: u64) -> String {
    match seconds {
        0..=3_599 => format!("{}m", seconds / 60),
        3_600..DAY_SECONDS => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / DAY_SECONDS),
    }
}

/// A time in the zone of this machine: `2026-11-22 20:04`.
pub fn time(time: Timestamp) -> String {
    time.to_zoned(TimeZone::system())
        .strftime("%Y-%m-%d %H:%M")
        .to_string()
}

/// A time with its seconds: `20:04:07.123`.
pub fn clock(time: Timestamp) -> String {
    time.to_zoned(TimeZone::system())
        .strftime("%Y-%m-%d %H:%M:%S%.3f")
        .to_string()
}

/// A time that may be absent.
pub fn time_or(value: Option<Timestamp>, absent: &str) -> String {
    value.map_or_else(|| absent.to_owned(), time)
}

/// The zone in which times are shown.
pub fn zone() -> String {
    TimeZone::system().iana_name().unwrap_or("UTC").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_one_unit() {
        assert_eq!(
            [59, 3_600, 86_399, 86_400].map(short_age),
            ["0m", "1h", "23h", "1d"]
        );
    }
}
