//! What a marketplace key looks like (contract 12), wherever it comes from. No text of a key that could be one is ever shown.

/// The longest key (contract 12).
pub const MAX_KEY_BYTES: usize = 512;

/// What examples write where the key belongs; only a string of this list is ever echoed (contract 12).
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

/// Why a text is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotAKey {
    /// Empty, over 512 bytes, white space inside, or not visible ASCII.
    Malformed,
    /// An example's stand-in for a key, as the fixed list spells it.
    Placeholder(&'static str),
}

/// The key that the bytes are.
///
/// # Errors
/// When they cannot be one.
pub fn read_key(bytes: &[u8]) -> Result<&str, NotAKey> {
    if bytes.is_empty() || bytes.len() > MAX_KEY_BYTES || !bytes.iter().all(u8::is_ascii_graphic) {
        return Err(NotAKey::Malformed);
    }
    let key = std::str::from_utf8(bytes).map_err(|_| NotAKey::Malformed)?;
    match PLACEHOLDERS
        .iter()
        .find(|placeholder| placeholder.eq_ignore_ascii_case(key))
    {
        Some(placeholder) => Err(NotAKey::Placeholder(placeholder)),
        None => Ok(key),
    }
}
