//! Price factors around 1 for season, holidays, weekday and lead time.

use jiff::ToSpan as _;
use jiff::civil::{Date, Weekday};

use crate::draws::{days_between, real};

/// The factor of the time of the year: high in summer, low after the winter holidays.
pub(crate) fn season(date: Date, latitude: f64) -> f64 {
    let day = f64::from(date.day_of_year());
    let summer = if latitude < -5.0 {
        hill(day, 15.0, 38.0)
    } else {
        hill(day, 210.0, 42.0)
    };
    let spring = hill(day, 125.0, 30.0);
    let lull = hill(day, 32.0, 20.0) + hill(day, 320.0, 18.0);
    1.0 + 0.22 * summer + 0.05 * spring - 0.09 * lull
}

/// The factor of the winter holidays and Easter.
pub(crate) fn holiday(date: Date) -> f64 {
    let day = f64::from(date.day_of_year());
    let winter = hill(day, 356.0, 4.0) + 0.8 * hill(day, 2.0, 2.5);
    let from_easter = days_between(easter(date.year()), date);
    let spring = real((from_easter + 1).abs());
    1.0 + 0.42 * winter + 0.20 * (-(spring / 4.0).powi(2)).exp()
}

/// Flights: low in midweek, high at weekends.
pub(crate) fn flight_weekday(date: Date) -> f64 {
    match date.weekday() {
        Weekday::Monday => 0.98,
        Weekday::Tuesday => 0.90,
        Weekday::Wednesday => 0.91,
        Weekday::Thursday => 1.00,
        Weekday::Friday => 1.10,
        Weekday::Saturday => 1.03,
        Weekday::Sunday => 1.12,
    }
}

/// Hotel nights: Friday and Saturday are high for leisure hotels, low for business hotels.
pub(crate) fn night_weekday(date: Date, leisure: bool) -> f64 {
    match (date.weekday(), leisure) {
        (Weekday::Friday | Weekday::Saturday, true) => 1.16,
        (Weekday::Sunday, true) => 0.92,
        (Weekday::Friday | Weekday::Saturday, false) => 0.88,
        (Weekday::Sunday, false) => 0.86,
        (Weekday::Tuesday | Weekday::Wednesday, false) => 1.09,
        _ => 1.0,
    }
}

/// Flights: highest in the last days, lowest about seven weeks ahead.
pub(crate) fn flight_lead(days: i64) -> f64 {
    let days = real(days.max(0));
    0.95 + 0.75 * (-days / 6.5).exp() + 0.07 * (1.0 - (-((days - 50.0) / 70.0).powi(2)).exp())
}

/// Hotels: rises more slowly, and falls on the day of arrival.
pub(crate) fn stay_lead(days: i64) -> f64 {
    let days = real(days.max(0));
    let tonight = if days < 1.0 { 0.90 } else { 1.0 };
    tonight * (0.97 + 0.22 * (-days / 12.0).exp() + 0.05 * (1.0 - (-days / 150.0).exp()))
}

/// A bell curve over the days of a year, 1 at `centre`, continuous at the new year.
fn hill(day: f64, centre: f64, width: f64) -> f64 {
    let apart = (day - centre).rem_euclid(365.25);
    (-(apart.min(365.25 - apart) / width).powi(2)).exp()
}

/// Easter Sunday of a Gregorian year (Gauss, as corrected by Meeus).
fn easter(year: i16) -> Date {
    let year_number = i32::from(year);
    let (a, b, c) = (year_number % 19, year_number / 100, year_number % 100);
    let h = (19 * a + b - b / 4 - (b - (b + 8) / 25 + 1) / 3 + 15) % 30;
    let l = (32 + 2 * (b % 4) + 2 * (c / 4) - h - c % 4) % 7;
    let m = (a + 11 * h + 22 * l) / 451;
    Date::constant(year, 3, 22).saturating_add((h + l - 7 * m).days())
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn easter_dates_are_correct() {
        for (year, month, day) in [
            (2024, 3, 31),
            (2025, 4, 20),
            (2026, 4, 5),
            (2027, 3, 28),
            (2038, 4, 25),
        ] {
            assert_eq!(easter(year), date(year, month, day));
        }
    }

    #[test]
    fn summers_and_holidays_are_expensive() {
        assert!(season(date(2027, 7, 28), 40.0) > season(date(2027, 2, 3), 40.0) * 1.2);
        assert!(season(date(2027, 1, 12), -34.0) > season(date(2027, 7, 12), -34.0));
        assert!(holiday(date(2026, 12, 22)) > 1.35);
        assert!(holiday(date(2027, 3, 27)) > 1.15);
        assert!(holiday(date(2027, 10, 12)) < 1.01);
    }

    #[test]
    fn flights_are_cheapest_about_seven_weeks_ahead() {
        let leads: Vec<f64> = (0..300).map(flight_lead).collect();
        let best = (0..300)
            .min_by(|a, b| leads[*a].total_cmp(&leads[*b]))
            .expect("days");
        assert!((30..70).contains(&best), "{best}");
        assert!(leads[0] > 1.6 && leads[3] > leads[14] && leads[200] > leads[50]);
        assert!(stay_lead(1) > stay_lead(20));
    }
}
