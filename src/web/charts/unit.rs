//! What a number of a chart counts, and how it is written.

use rust_decimal::Decimal;

/// What a chart shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit<'a> {
    /// Prices in this ISO currency.
    Money(&'a str),
    /// Whole numbers of something.
    Count,
}

impl Unit<'_> {
    /// A number as it stands at an axis or in a table.
    #[must_use]
    pub fn label(self, number: Decimal) -> String {
        match self {
            Self::Money(currency) => money(number, currency),
            Self::Count => grouped(number),
        }
    }

    /// The smallest useful distance between two lines of an axis.
    pub(super) fn smallest_step(self) -> Decimal {
        match self {
            Self::Money(_) => Decimal::new(1, 2),
            Self::Count => Decimal::ONE,
        }
    }
}

/// Currencies whose symbol stands for one currency alone, or is commonly read so.
const SYMBOLS: [(&str, &str); 7] = [
    ("USD", "$"),
    ("EUR", "€"),
    ("GBP", "£"),
    ("ILS", "₪"),
    ("INR", "₹"),
    ("JPY", "¥"),
    ("KRW", "₩"),
];

/// An amount with its currency: `€1,305`, `$89.50`, `420 CHF`. A fraction has two digits.
#[must_use]
pub fn money(amount: Decimal, currency: &str) -> String {
    let (sign, text) = match grouped(amount) {
        text if text.starts_with('-') => ("\u{2212}", text[1..].to_owned()),
        text => ("", text),
    };
    match SYMBOLS.iter().find(|(code, _)| *code == currency) {
        Some((_, symbol)) => format!("{sign}{symbol}{text}"),
        // Not broken between lines.
        None => format!("{sign}{text}\u{a0}{currency}"),
    }
}

/// A number with a comma between thousands, and no fraction or one of two digits.
fn grouped(number: Decimal) -> String {
    let number = number.round_dp(2).normalize();
    let text = if number.is_integer() {
        number.to_string()
    } else {
        format!("{number:.2}")
    };
    let (sign, digits) = text
        .strip_prefix('-')
        .map_or(("", text.as_str()), |digits| ("-", digits));
    let (whole, fraction) = digits
        .split_once('.')
        .map_or((digits, None), |(whole, fraction)| (whole, Some(fraction)));
    let mut grouped = String::from(sign);
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if let Some(fraction) = fraction {
        grouped.push('.');
        grouped.push_str(fraction);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_written_with_its_currency() {
        for (amount, currency, written) in [
            ("305", "EUR", "€305"),
            ("305.00", "EUR", "€305"),
            ("89.5", "USD", "$89.50"),
            ("1234567.891", "GBP", "£1,234,567.89"),
            ("999", "JPY", "¥999"),
            ("1000", "CHF", "1,000\u{a0}CHF"),
            ("-12.5", "USD", "\u{2212}$12.50"),
            ("0", "AUD", "0\u{a0}AUD"),
        ] {
            assert_eq!(money(amount.parse().unwrap(), currency), written);
        }
    }

    #[test]
    fn a_count_has_no_currency() {
        assert_eq!(Unit::Count.label(Decimal::from(12_500)), "12,500");
    }
}
