//! A session of the dashboard: the caller's key, sealed for a cookie.
//!
//! The browser keeps it and the service stores only the generation, so any process with the same
//! ring opens it.
//! XChaCha20-Poly1305 with a random nonce, under a key of the ring for this use alone. The text is
//! base64url of: version, length of the ring key's id, id, nonce, ciphertext. Version and id are
//! associated data. The sealed bytes are the expiry in microseconds, the generation of the caller's
//! sessions, the form token and the key.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use jiff::{SignedDuration, Timestamp};
use rand::Rng as _;
use zeroize::Zeroizing;

use super::master_keys::Keyring;
use crate::search::CallerKey;

/// The format of the text.
const VERSION: u8 = 2;
const NONCE_BYTES: usize = 24;
/// The bytes of a form token.
pub const TOKEN_BYTES: usize = 16;
const EXPIRY_BYTES: usize = 8;
const GENERATION_BYTES: usize = 4;
/// Longer texts are not sessions: the longest key, the longest id and all else in base64.
const MAX_TEXT_CHARS: usize = 1_024;

/// A caller signed in to the dashboard.
#[derive(Clone, Debug)]
pub struct BrowserSession {
    /// The caller's key.
    pub key: CallerKey,
    /// Of the caller's sessions when it began: it has ended if that of the tenant is another.
    pub generation: i32,
    /// What each form of this session sends back.
    pub form_token: [u8; TOKEN_BYTES],
    /// When the caller has to sign in again.
    pub expires_at: Timestamp,
}

/// Why a text is no session. Never holds the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// It was changed, or the ring lacks the key that sealed it.
    #[error("the session was changed, or sealed under another master key")]
    Unreadable,
    /// Its time is over.
    #[error("the session has expired")]
    Expired,
}

impl BrowserSession {
    /// How long a session lasts.
    pub const LIFETIME: SignedDuration = SignedDuration::from_hours(12);

    /// A new session of `key`, from `now`.
    pub fn begin(key: CallerKey, generation: i32, now: Timestamp) -> Self {
        let mut form_token = [0; TOKEN_BYTES];
        rand::rng().fill_bytes(&mut form_token);
        Self {
            key,
            generation,
            form_token,
            expires_at: now.saturating_add(Self::LIFETIME).unwrap_or(Timestamp::MAX),
        }
    }

    /// The text of a cookie.
    pub fn seal(&self, ring: &Keyring) -> String {
        let primary = ring.primary();
        let mut nonce = [0; NONCE_BYTES];
        rand::rng().fill_bytes(&mut nonce);
        let head = head(&primary.id);
        let expiry = self.expires_at.as_microsecond().to_be_bytes();
        let plain = Zeroizing::new(
            [
                expiry.as_slice(),
                &self.generation.to_be_bytes(),
                &self.form_token,
                self.key.expose().as_bytes(),
            ]
            .concat(),
        );
        let message = Payload {
            msg: &plain,
            aad: &head,
        };
        let sealed = XChaCha20Poly1305::new((&*primary.sessions).into())
            .encrypt(&XNonce::from(nonce), message)
            .expect("sealing fails for messages over 256 GiB only, keys are short");
        URL_SAFE_NO_PAD.encode([head.as_slice(), &nonce, &sealed].concat())
    }

    /// Opens the text of a cookie.
    ///
    /// # Errors
    /// When it was changed, was sealed under another master key, or has expired.
    pub fn open(ring: &Keyring, text: &str, now: Timestamp) -> Result<Self, SessionError> {
        let session = Self::unseal(ring, text).ok_or(SessionError::Unreadable)?;
        if session.expires_at <= now {
            return Err(SessionError::Expired);
        }
        Ok(session)
    }

    fn unseal(ring: &Keyring, text: &str) -> Option<Self> {
        if text.len() > MAX_TEXT_CHARS {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (&[version, id_length], rest) = bytes.split_first_chunk()?;
        let (id, rest) = rest.split_at_checked(id_length.into())?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_BYTES>()?;
        let key = ring.key(std::str::from_utf8(id).ok()?)?;
        if version != VERSION {
            return None;
        }
        let message = Payload {
            msg: sealed,
            aad: &head(&key.id),
        };
        let plain = XChaCha20Poly1305::new((&*key.sessions).into())
            .decrypt(&XNonce::from(*nonce), message)
            .map(Zeroizing::new)
            .ok()?;
        let (expiry, rest) = plain.split_first_chunk::<EXPIRY_BYTES>()?;
        let (generation, rest) = rest.split_first_chunk::<GENERATION_BYTES>()?;
        let (form_token, key) = rest.split_first_chunk::<TOKEN_BYTES>()?;
        Some(Self {
            key: CallerKey::new(std::str::from_utf8(key).ok()?),
            generation: i32::from_be_bytes(*generation),
            form_token: *form_token,
            expires_at: Timestamp::from_microsecond(i64::from_be_bytes(*expiry)).ok()?,
        })
    }
}

/// The readable beginning: version, length of the id, id.
fn head(id: &str) -> Vec<u8> {
    // An id has at most 32 characters.
    let length = u8::try_from(id.len()).unwrap_or(u8::MAX);
    [&[VERSION, length], id.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(entries: &str) -> Keyring {
        let entry = |id: &str| format!("{id}:{}", format!("{:02x}", id.as_bytes()[0]).repeat(32));
        Keyring::parse(&entries.split(' ').map(entry).collect::<Vec<_>>().join(",")).unwrap()
    }

    fn now() -> Timestamp {
        "2027-01-01T08:00:00Z".parse().unwrap()
    }

    fn sealed(under: &str) -> String {
        BrowserSession::begin(CallerKey::new("canary-0123456789"), 7, now()).seal(&ring(under))
    }

    #[test]
    fn a_session_opens_after_the_primary_changed() {
        let begun = BrowserSession::begin(CallerKey::new("canary-0123456789"), 7, now());
        let text = begun.seal(&ring("a"));
        let opened = BrowserSession::open(&ring("b a"), &text, now()).unwrap();
        assert_eq!(opened.key.expose(), "canary-0123456789");
        assert_eq!(opened.form_token, begun.form_token);
        assert_eq!(opened.expires_at, begun.expires_at);
        assert_eq!(opened.generation, 7);
        assert_eq!(
            BrowserSession::open(&ring("b"), &text, now()).unwrap_err(),
            SessionError::Unreadable
        );
        assert_ne!(text, begun.seal(&ring("a")), "each has a nonce of its own");
    }

    #[test]
    fn a_session_ends_at_its_expiry() {
        let (ring, text) = (ring("a"), sealed("a"));
        let end = now() + BrowserSession::LIFETIME;
        let before = end - SignedDuration::from_micros(1);
        assert!(BrowserSession::open(&ring, &text, before).is_ok());
        assert_eq!(
            BrowserSession::open(&ring, &text, end).unwrap_err(),
            SessionError::Expired
        );
    }

    #[test]
    fn a_changed_session_does_not_open() {
        let (ring, text) = (ring("a b"), sealed("a"));
        let bytes = URL_SAFE_NO_PAD.decode(&text).unwrap();
        for index in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[index] ^= 3;
            let changed = URL_SAFE_NO_PAD.encode(changed);
            assert_eq!(
                BrowserSession::open(&ring, &changed, now()).unwrap_err(),
                SessionError::Unreadable,
                "byte {index}"
            );
        }
        for end in 0..text.len() {
            assert!(BrowserSession::open(&ring, &text[..end], now()).is_err());
        }
        assert!(BrowserSession::open(&ring, &"A".repeat(2_000), now()).is_err());
    }

    #[test]
    fn debug_shows_no_key() {
        let begun = BrowserSession::begin(CallerKey::new("canary-0123456789"), 7, now());
        assert!(!format!("{begun:?}").contains("canary"));
    }
}
