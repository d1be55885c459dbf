//! A risk on the command line: `5%`, `0.05`.

/// Reads a risk as a share. The service checks its bounds.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let (number, percent) = match text.strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    let number: f64 = number
        .trim()
        .parse()
        .map_err(|_| format!("{text:?} is not a risk such as 5% or 0.05"))?;
    Ok(number / percent)
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn a_risk_is_a_share_or_percent() {
        for (text, expected) in [("5%", 0.05), ("0.05", 0.05), ("2.5 %", 0.025), ("0", 0.0)] {
            assert_eq!(share(text), Ok(expected), "{text}");
        }
        for text in ["", "%", "five", "5 percent"] {
            assert!(share(text).unwrap_err().contains("5%"), "{text}");
        }
    }
}
