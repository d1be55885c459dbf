//! The caller's marketplace key, between the request (or grant) and the marketplace.
//!
//! `api` reads and validates it; `tenants` stores it.

use secrecy::{ExposeSecret, SecretString};

/// A caller's marketplace key. Only [`CallerKey::expose`] returns its text. Dropping it wipes the
/// memory; `Debug` shows nothing (security.md, rule 1).
#[derive(Clone, Debug)]
pub struct CallerKey(SecretString);

impl CallerKey {
    /// The text comes from a grant or has been validated (gateway.md, rule 12).
    pub fn new(text: impl Into<String>) -> Self {
        Self(SecretString::from(text.into()))
    }

    /// The key's text: only for the marketplace's header, for sealing and for the fingerprint.
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
