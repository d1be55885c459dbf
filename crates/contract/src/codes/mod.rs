//! Countries and currencies that exist, and the ones that a caller may have meant.
//!
//! `countries.tsv` is ISO 3166-1 (code, three-letter code, name) as of the crate `rust_iso3166` 0.2.0
//! of June 2026. `currencies.tsv` is ISO 4217 (code, name, and for a former currency its successor)
//! as of the crate `iso_currency` 0.7.1, without metals and units of account.
//!
//! Scans and the command line use them (scans.md, rule 12). The synchronous endpoints forward any
//! code of the right form (gateway.md, rule 8).

use serde_json::Value;

use super::field::FieldValue;
use super::primitives::{CountryCode, Currency};
use super::validation::ValidationError;

const COUNTRIES: &str = include_str!("countries.tsv");
const CURRENCIES: &str = include_str!("currencies.tsv");
/// Codes that domains, the European Union and languages use for a country.
const OTHER_CODES: [(&str, &str); 3] = [("UK", "GB"), ("EL", "GR"), ("EN", "GB")];
/// The most codes that an error suggests.
const MAX_SUGGESTED: usize = 3;
/// The least similarity at which a name is suggested.
const MIN_SIMILARITY: f64 = 0.8;

/// The error of a field of a search whose country or currency does not exist. `None` also for a
/// value of the wrong form, which has an error of its own.
pub fn unknown_code(field: &str, path: impl AsRef<str>, value: &Value) -> Option<ValidationError> {
    let text = value.as_str()?;
    let expected = match field {
        "proxy_country" if CountryCode::read(value).is_ok() => country(text).err()?,
        "currency" if Currency::read(value).is_ok() => currency(text).err()?,
        _ => return None,
    };
    Some(ValidationError::new(path, value, expected))
}

/// Whether a country exists.
///
/// # Errors
/// What was expected instead.
pub fn country(text: &str) -> Result<(), String> {
    let code = text.to_ascii_uppercase();
    let entries = || COUNTRIES.lines().filter_map(|line| line.split_once('\t'));
    if entries().any(|(known, _)| known == code) {
        return Ok(());
    }
    let elsewhere = OTHER_CODES.iter().find(|(other, _)| *other == code);
    let is_meant = |known: &str, names: &str| match (elsewhere, names.split_once('\t')) {
        (Some((_, meant)), _) => known == *meant,
        (None, Some((three_letters, name))) => three_letters == code || is_similar(name, text),
        (None, None) => false,
    };
    let meant = entries().filter_map(|(known, names)| {
        let name = names.split('\t').next_back()?;
        is_meant(known, names).then(|| (known.to_ascii_lowercase(), name))
    });
    Err(format!(
        "the code of a country (ISO 3166-1), such as \"de\"{}",
        suggestion(meant)
    ))
}

/// Whether a currency exists.
///
/// # Errors
/// What was expected instead.
pub fn currency(text: &str) -> Result<(), String> {
    let code = text.to_ascii_uppercase();
    let entries = || {
        CURRENCIES.lines().filter_map(|line| {
            let (known, rest) = line.split_once('\t')?;
            Some((known, rest.split_once('\t').unwrap_or((rest, ""))))
        })
    };
    let successor = match entries().find(|(known, _)| *known == code) {
        Some((_, (_, ""))) => return Ok(()),
        Some((_, (_, successor))) => Some(successor),
        None => None,
    };
    let meant = entries().filter(|(known, (name, later))| match successor {
        Some(successor) => *known == successor,
        None => {
            later.is_empty() && (strsim::osa_distance(known, &code) <= 1 || is_similar(name, text))
        }
    });
    Err(format!(
        "the code of a currency (ISO 4217), such as \"USD\"{}",
        suggestion(meant.map(|(known, (name, _))| (known.to_owned(), name)))
    ))
}

/// Every country: its code, its three-letter code and its name.
pub fn countries() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    COUNTRIES.lines().filter_map(|line| {
        let mut fields = line.split('\t');
        Some((fields.next()?, fields.next()?, fields.next()?))
    })
}

/// Every currency in use: its code and its name.
pub fn currencies() -> impl Iterator<Item = (&'static str, &'static str)> {
    CURRENCIES.lines().filter_map(|line| {
        let mut fields = line.split('\t');
        let currency = (fields.next()?, fields.next()?);
        fields.next().is_none_or(str::is_empty).then_some(currency)
    })
}

fn is_similar(name: &str, text: &str) -> bool {
    let (name, text) = (name.to_lowercase(), text.to_lowercase());
    strsim::normalized_damerau_levenshtein(&name, &text) >= MIN_SIMILARITY
}

/// `; did you mean "gb" (United Kingdom)?`; empty without any.
fn suggestion(meant: impl Iterator<Item = (String, &'static str)>) -> String {
    let codes: Vec<_> = meant
        .take(MAX_SUGGESTED)
        .map(|(code, name)| format!("\"{code}\" ({name})"))
        .collect();
    if codes.is_empty() {
        return String::new();
    }
    format!("; did you mean {}?", codes.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_exist_is_refused_with_what_was_meant() {
        for known in ["de", "GB", "us", "il"] {
            assert_eq!(country(known), Ok(()), "{known}");
        }
        for known in ["USD", "eur", "ILS", "VES", "XAF"] {
            assert_eq!(currency(known), Ok(()), "{known}");
        }
        let of_country = "the code of a country (ISO 3166-1), such as \"de\"";
        for (text, meant) in [
            ("uk", "; did you mean \"gb\" (United Kingdom)?"),
            ("USA", "; did you mean \"us\" (United States)?"),
            ("Germny", "; did you mean \"de\" (Germany)?"),
            ("xx", ""),
            ("zz", ""),
        ] {
            assert_eq!(country(text), Err(format!("{of_country}{meant}")), "{text}");
        }
        let of_currency = "the code of a currency (ISO 4217), such as \"USD\"";
        for (text, meant) in [
            ("ZZZ", ""),
            ("XAU", "; did you mean \"XAF\" (CFA franc BEAC)?"),
            ("EUX", "; did you mean \"EUR\" (Euro)?"),
            ("hrk", "; did you mean \"EUR\" (Euro)?"),
        ] {
            let found = currency(text);
            assert_eq!(found, Err(format!("{of_currency}{meant}")), "{text}");
        }
    }
}
