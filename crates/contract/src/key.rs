//! The format of a marketplace key (gateway.md, rule 12). Text that could be a key is never shown.

/// The longest key (gateway.md, rule 12).
pub const MAX_KEY_BYTES: usize = 512;

/// Placeholders of examples; only a string of this list is ever echoed (gateway.md, rule 12).
pub const PLACEHOLDERS: &[&str] = &[
    "YOUR_API_KEY",
    "<API_KEY>",
    "API_KEY",
    "your-api-key",
    "<YOUR_API_KEY>",
    "<your-api-key>",
    "{API_KEY}",
    "{{API_KEY}}",
    "$API_KEY",
    "${API_KEY}",
    "YOUR_KEY",
    "your-key",
    "<KEY>",
    "YOUR_API_KEY_HERE",
    "INSERT_API_KEY_HERE",
    "YOUR_MARKETPLACE_KEY",
    "<MARKETPLACE_KEY>",
    "MARKETPLACE_KEY",
    "YOUR_RAPIDAPI_KEY",
    "RAPIDAPI_KEY",
    "REPLACE_ME",
    "CHANGE_ME",
    "CHANGEME",
    "SIGN-UP-FOR-KEY",
];

/// Why a text is not a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyFormatError {
    /// Empty, over 512 bytes, white space inside, or not visible ASCII.
    Malformed,
    /// A placeholder of an example, as spelled in [`PLACEHOLDERS`].
    Placeholder(&'static str),
}

/// Parses the bytes as a key.
///
/// # Errors
/// When they cannot be one.
pub fn parse_key(bytes: &[u8]) -> Result<&str, KeyFormatError> {
    if bytes.is_empty() || bytes.len() > MAX_KEY_BYTES || !bytes.iter().all(u8::is_ascii_graphic) {
        return Err(KeyFormatError::Malformed);
    }
    let key = std::str::from_utf8(bytes).map_err(|_| KeyFormatError::Malformed)?;
    match PLACEHOLDERS
        .iter()
        .find(|placeholder| placeholder.eq_ignore_ascii_case(key))
    {
        Some(placeholder) => Err(KeyFormatError::Placeholder(placeholder)),
        None => Ok(key),
    }
}
