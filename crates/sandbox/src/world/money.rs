//! Currencies: fixed exchange rates and display formats.
//!
//! Rates never change, so that a history in one currency shows fares and not exchange rates.

use std::sync::LazyLock;

use serde::{Deserialize, Deserializer, de::Error};

use crate::draws::{real, whole};

/// One currency of the table.
#[derive(Debug, PartialEq, Deserialize)]
pub(crate) struct SandboxCurrency {
    /// ISO 4217, upper-case.
    pub(crate) code: String,
    /// Units for one US dollar.
    per_dollar: f64,
    sign: String,
}

impl SandboxCurrency {
    /// The currency of an ISO code in any letter case.
    pub(crate) fn find(code: &str) -> Option<&'static Self> {
        CURRENCIES
            .iter()
            .find(|currency| currency.code.eq_ignore_ascii_case(code))
    }

    /// All codes, for an error message.
    pub(crate) fn codes() -> String {
        CURRENCIES
            .iter()
            .map(|currency| currency.code.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// US dollars, the default of every body.
    pub(crate) fn dollar() -> &'static Self {
        &CURRENCIES[0]
    }

    /// Reads the code of a known currency.
    pub(crate) fn of_code<'de, D>(reader: D) -> Result<&'static Self, D::Error>
    where
        D: Deserializer<'de>,
    {
        Self::find(&String::deserialize(reader)?).ok_or(D::Error::custom("an unknown currency"))
    }

    /// Dollars as whole units of this currency, at least one. The engines have no minor units.
    pub(crate) fn whole(&self, dollars: f64) -> i64 {
        whole(dollars * self.per_dollar).max(1)
    }

    /// An amount of another currency in this one, exact in the same currency. Zero stays zero.
    pub(crate) fn exchange(&self, units: i64, from: &str) -> i64 {
        match Self::find(from) {
            Some(from) if from.code != self.code && units > 0 => {
                self.whole(real(units) / from.per_dollar)
            }
            _ => units,
        }
    }

    /// The display form, such as `$1,204` or `CHF 310`.
    pub(crate) fn show(&self, units: i64) -> String {
        let digits = units.to_string();
        let mut grouped = String::with_capacity(digits.len() + 4);
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        format!("{}{grouped}", self.sign)
    }
}

static CURRENCIES: LazyLock<Vec<SandboxCurrency>> =
    LazyLock::new(|| super::table(include_str!("currencies.csv")));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_rounded_grouped_and_have_a_sign() {
        for (code, dollars, units, shown) in [
            ("usd", 228.4, 228, "$228"),
            ("ILS", 1_000.0, 3_600, "₪3,600"),
            ("KRW", 1_000.0, 1_380_000, "₩1,380,000"),
            ("CHF", 0.1, 1, "CHF 1"),
        ] {
            let currency = SandboxCurrency::find(code).expect(code);
            assert_eq!(currency.whole(dollars), units);
            assert_eq!(currency.show(units), shown);
        }
        assert!(SandboxCurrency::find("XXX").is_none());
    }
}
