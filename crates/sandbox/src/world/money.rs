//! Currencies: fixed exchange rates and display formats.
//!
//! Rates never change, so that a history in one currency shows fares and not exchange rates.

/// One currency of the table.
#[derive(Debug, PartialEq)]
pub(crate) struct SandboxCurrency {
    /// ISO 4217, upper-case.
    pub(crate) code: &'static str,
    /// Units for one US dollar.
    per_dollar: f64,
    sign: &'static str,
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
            .map(|currency| currency.code)
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Dollars as whole units of this currency, at least one. The engines have no minor units.
    pub(crate) fn whole(&self, dollars: f64) -> i64 {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "prices are far below 2^53 units"
        )]
        let units = (dollars * self.per_dollar).round() as i64;
        units.max(1)
    }

    /// An amount of another currency in this one, exact in the same currency. Zero stays zero.
    pub(crate) fn exchange(&self, units: i64, from: &str) -> i64 {
        match Self::find(from) {
            Some(from) if from.code != self.code && units > 0 => {
                #[expect(
                    clippy::cast_precision_loss,
                    reason = "prices are far below 2^53 units"
                )]
                let dollars = units as f64 / from.per_dollar;
                self.whole(dollars)
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

const fn currency(code: &'static str, per_dollar: f64, sign: &'static str) -> SandboxCurrency {
    SandboxCurrency {
        code,
        per_dollar,
        sign,
    }
}

const CURRENCIES: &[SandboxCurrency] = &[
    currency("USD", 1.0, "$"),
    currency("EUR", 0.90, "€"),
    currency("GBP", 0.78, "£"),
    currency("ILS", 3.60, "₪"),
    currency("JPY", 150.0, "¥"),
    currency("CHF", 0.86, "CHF "),
    currency("CAD", 1.37, "CA$"),
    currency("AUD", 1.52, "A$"),
    currency("NZD", 1.66, "NZ$"),
    currency("INR", 85.0, "₹"),
    currency("CNY", 7.20, "CN¥"),
    currency("HKD", 7.80, "HK$"),
    currency("SGD", 1.33, "S$"),
    currency("KRW", 1_380.0, "₩"),
    currency("THB", 34.0, "฿"),
    currency("TRY", 40.0, "₺"),
    currency("SEK", 10.2, "SEK "),
    currency("NOK", 10.6, "NOK "),
    currency("DKK", 6.70, "DKK "),
    currency("PLN", 3.90, "PLN "),
    currency("CZK", 22.5, "CZK "),
    currency("HUF", 360.0, "HUF "),
    currency("MXN", 18.5, "MX$"),
    currency("BRL", 5.50, "R$"),
    currency("ZAR", 18.0, "ZAR "),
    currency("AED", 3.67, "AED "),
];

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
