//! Numbers, times and prices as text.

use farescan_sheets::numbers::amount;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rust_decimal::Decimal;

/// A price that may be absent.
pub fn price_or(value: Option<Decimal>, absent: &str) -> String {
    value.map_or_else(|| absent.to_owned(), amount)
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
