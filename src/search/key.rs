//! The caller's marketplace key, on its way from the request (or a grant) to the marketplace.
//!
//! Here: [`CallerKey`], which cannot be printed. Not here: where a request may carry it and what a well-formed one looks like
//! (`http`), how it is kept for ordered work (`tenants`).

use secrecy::{ExposeSecret, SecretString};

/// A caller's marketplace key. Its text leaves only through [`CallerKey::expose`]; it is wiped from memory when dropped, and `Debug`
/// shows nothing of it (security.md, "Keys").
#[derive(Clone, Debug)]
pub struct CallerKey(SecretString);

impl CallerKey {
    /// A key whose form was already checked (contract 12), or that comes out of a grant.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(SecretString::from(text.into()))
    }

    /// The key's text: for the marketplace's header, for sealing and for its fingerprint, for nothing else.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_nothing_of_the_key() {
        let key = CallerKey::new("canary-0123456789");
        assert_eq!(key.expose(), "canary-0123456789");
        assert!(!format!("{key:?} {key:#?}").contains("canary"));
    }
}
