//! Prices in arguments.

use serde_json::Number;

/// A price, kept as written.
///
/// # Errors
/// What was found instead, and what is expected.
pub fn amount(text: &str) -> Result<Number, String> {
    text.parse()
        .map_err(|_| format!("found {text:?}; expected an amount such as 150"))
}
