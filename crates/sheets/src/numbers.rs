//! Numbers, prices, percentages and durations as text.

use farescan_contract::scans::RequestRange;
use rust_decimal::{Decimal, RoundingStrategy};

/// A number with thousands separated: `2,412`.
pub fn count(number: impl Into<u64>) -> String {
    group_digits(&number.into().to_string())
}

/// `1 request`, `2,000 searches`.
pub fn counted(number: impl Into<u64>, singular: &str) -> String {
    let number = number.into();
    let ending = match number {
        1 => "",
        _ if singular.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{} {singular}{ending}", count(number))
}

/// `16`, or `16 to 32`.
pub fn range(least: u64, most: u64) -> String {
    if least == most {
        count(least)
    } else {
        format!("{} to {}", count(least), count(most))
    }
}

/// `1 request`, `3 to 6 requests`.
pub fn requests(least: impl Into<u64>, most: impl Into<u64>) -> String {
    let (least, most) = (least.into(), most.into());
    if least == most {
        counted(least, "request")
    } else {
        format!("{} requests", range(least, most))
    }
}

/// A range of requests: `3 to 6 requests`.
pub fn request_range(range: RequestRange) -> String {
    requests(range.least, range.most)
}

/// A rate with at most one place: `1,200`, `2.5`.
pub fn rate(number: f64) -> String {
    let text = format!("{number:.1}");
    let (whole, place) = text.split_once('.').unwrap_or((&text, "0"));
    match place {
        "0" => group_digits(whole),
        _ => format!("{}.{place}", group_digits(whole)),
    }
}

/// A price in whole units where it has no fraction, else exact with two places at least, and with
/// thousands separated: `1,234.50`.
pub fn amount(price: Decimal) -> String {
    let price = price.normalize();
    let places = match usize::try_from(price.scale()) {
        Ok(1) => 2,
        Ok(scale) => scale,
        Err(_) => 0,
    };
    let text = format!("{price:.places$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let (sign, digits) = whole
        .strip_prefix('-')
        .map_or(("", whole), |digits| ("-", digits));
    let grouped = group_digits(digits);
    if fraction.is_empty() {
        format!("{sign}{grouped}")
    } else {
        format!("{sign}{grouped}.{fraction}")
    }
}

/// A price with its currency: `1,234 USD`.
pub fn price(price: Decimal, currency: &str) -> String {
    format!("{} {currency}", amount(price))
}

/// A price with its currency, if that is known.
pub fn amount_in(price: Decimal, currency: Option<&str>) -> String {
    match currency {
        Some(currency) => self::price(price, currency),
        None => amount(price),
    }
}

/// The difference of a price to an earlier or other one in percent, exact. Round it once, where it is
/// shown: the API's own percentage is rounded to two places already.
pub fn percent_of(price: Decimal, base: Decimal) -> Option<Decimal> {
    price
        .checked_sub(base)?
        .checked_mul(Decimal::ONE_HUNDRED)?
        .checked_div(base)
}

/// `+5.8 %`, with a real minus sign.
pub fn signed_percent(percent: Decimal) -> String {
    let rounded = percent.round_dp_with_strategy(1, RoundingStrategy::MidpointAwayFromZero);
    format!("{}{:.1} %", sign(rounded), rounded.abs())
}

/// `+12.50`, with a real minus sign.
pub fn signed_amount(difference: Decimal) -> String {
    format!("{}{}", sign(difference), amount(difference.abs()))
}

fn sign(number: Decimal) -> &'static str {
    if number.is_sign_negative() && !number.is_zero() {
        "−"
    } else {
        "+"
    }
}

/// A duration in its two largest units: `1 h 5 min`.
pub fn duration(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) if minutes < 5 && !seconds.is_multiple_of(60) => {
            format!("{minutes} min {} s", seconds % 60)
        }
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

/// An age in its largest unit: `3 d`, or `now` below a minute.
pub fn short_age(seconds: u64) -> String {
    match (seconds / 86_400, seconds / 3_600, seconds / 60) {
        (0, 0, 0) => "now".to_owned(),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, _) => format!("{hours} h"),
        (days, ..) => format!("{days} d"),
    }
}

fn group_digits(digits: &str) -> String {
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_have_separated_thousands_and_two_places() {
        for (given, shown) in [
            ("305", "305"),
            ("305.00", "305"),
            ("1234.5", "1,234.50"),
            ("-1234567", "-1,234,567"),
            ("0.5", "0.50"),
            ("0.003", "0.003"),
            ("199.999", "199.999"),
        ] {
            assert_eq!(amount(given.parse().unwrap()), shown);
        }
        assert_eq!(price(Decimal::from(1_200), "USD"), "1,200 USD");
        assert_eq!(amount_in(Decimal::from(1_200), None), "1,200");
        assert_eq!([rate(1_200.0), rate(2.54)], ["1,200", "2.5"]);
    }

    #[test]
    fn nouns_have_their_plural() {
        for (number, singular, shown) in [
            (0_u64, "request", "0 requests"),
            (1, "request", "1 request"),
            (12_000, "request", "12,000 requests"),
            (1, "search", "1 search"),
            (2_000, "search", "2,000 searches"),
        ] {
            assert_eq!(counted(number, singular), shown);
        }
    }

    #[test]
    fn a_range_of_one_number_is_that_number() {
        assert_eq!([range(3, 3), range(3, 6_000)], ["3", "3 to 6,000"]);
        assert_eq!(
            [requests(1_u64, 1_u64), requests(3_u64, 6_u64)],
            ["1 request", "3 to 6 requests"]
        );
        assert_eq!(
            [
                signed_amount(Decimal::new(125, 1)),
                signed_amount(Decimal::from(-3))
            ],
            ["+12.50", "−3"]
        );
    }

    #[test]
    fn a_percentage_is_rounded_once() {
        // To two places it is 5.65, which would round to 5.7.
        let percent = percent_of("211.29".parse().unwrap(), "200".parse().unwrap());
        assert_eq!(signed_percent(percent.unwrap()), "+5.6 %");
        assert_eq!(percent_of(Decimal::ONE, Decimal::ZERO), None);
        for (percent, shown) in [
            ("14.45", "+14.5 %"),
            ("-2.65", "−2.7 %"),
            ("-18.7", "−18.7 %"),
            ("-0.04", "+0.0 %"),
        ] {
            assert_eq!(signed_percent(percent.parse().unwrap()), shown);
        }
    }

    #[test]
    fn an_age_has_one_unit() {
        for (seconds, written) in [(59, "now"), (60, "1 min"), (7_199, "1 h"), (90_000, "1 d")] {
            assert_eq!(short_age(seconds), written);
        }
    }

    #[test]
    fn durations_have_two_units() {
        for (seconds, shown) in [
            (0, "0 s"),
            (59, "59 s"),
            (61, "1 min 1 s"),
            (600, "10 min"),
            (3_700, "1 h 1 min"),
            (90_000, "1 d 1 h"),
        ] {
            assert_eq!(duration(seconds), shown);
        }
    }
}
