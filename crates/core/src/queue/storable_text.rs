//! What the database accepts of a marketplace's texts.

/// The most characters of a marketplace's text that are stored as an error or reason.
const MAX_TEXT_CHARS: usize = 500;
/// The longest deep link that is stored, in bytes; browsers and servers may reject longer ones.
const MAX_LINK_BYTES: usize = 8_192;

/// Whether a deep link can be stored whole; a truncated link is useless.
pub(super) fn is_storable_link(link: &str) -> bool {
    link.len() <= MAX_LINK_BYTES && !link.contains('\0')
}

/// Text without NUL, which the database rejects, cut to [`MAX_TEXT_CHARS`].
pub(super) fn storable(text: &str) -> String {
    text.chars()
        .filter(|character| *character != '\0')
        .take(MAX_TEXT_CHARS)
        .collect()
}
