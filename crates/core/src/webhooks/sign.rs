//! Signatures of Standard Webhooks 1.0. Pure.
//!
//! `webhook-signature` is `v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`. A secret is
//! written as `whsec_` and its base64. During a rotation the header has a signature with each
//! secret, separated by a space.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use rand::Rng as _;
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::contract::monitors::ShownSecret;

/// Bytes of a new secret; the standard allows 24 to 64.
const SECRET_BYTES: usize = 32;
const PREFIX: &str = "whsec_";

/// A signing secret. Never printed; wiped from memory when dropped.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// A new random secret.
    pub fn random() -> Self {
        let mut bytes = Zeroizing::new(vec![0; SECRET_BYTES]);
        rand::rng().fill_bytes(&mut bytes);
        Self(bytes)
    }

    /// A stored secret.
    pub fn from_bytes(bytes: Zeroizing<Vec<u8>>) -> Self {
        Self(bytes)
    }

    /// The bytes, for sealing only.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The secret as its owner sees it once.
    pub fn shown(&self) -> ShownSecret {
        // The full capacity: growing the buffer would leave copies in freed memory.
        let mut shown = Zeroizing::new(String::with_capacity(
            PREFIX.len() + self.0.len() * 4 / 3 + 4,
        ));
        shown.push_str(PREFIX);
        STANDARD.encode_string(&*self.0, &mut shown);
        ShownSecret(shown)
    }

    /// The signature of a message at a time in Unix seconds.
    pub fn signature(&self, id: &str, timestamp: i64, body: &str) -> String {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body.as_bytes());
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret([not shown])")
    }
}

/// The header value: a signature with each secret, newest first.
pub fn header(secrets: &[Secret], id: &str, timestamp: i64, body: &str) -> String {
    secrets
        .iter()
        .map(|secret| secret.signature(id, timestamp, body))
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Secret {
        Secret(Zeroizing::new(
            STANDARD.decode(text.trim_start_matches(PREFIX)).unwrap(),
        ))
    }

    /// The test vector of the standard's libraries.
    #[test]
    fn the_signature_matches_the_standards_test_vector() {
        let secret = secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let signature = secret.signature(
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            r#"{"test": 2432232314}"#,
        );
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(
            secret.shown().0.as_str(),
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        );
    }

    #[test]
    fn a_secret_is_random_and_never_printed() {
        let (one, other) = (Secret::random(), Secret::random());
        assert_ne!(one.shown(), other.shown());
        assert_eq!(
            STANDARD
                .decode(&one.shown().0[PREFIX.len()..])
                .unwrap()
                .len(),
            SECRET_BYTES
        );
        let shown = one.shown();
        assert!(!format!("{one:?} {shown:?}").contains(&shown.0[PREFIX.len()..]));
    }

    #[test]
    fn the_header_has_a_signature_with_each_secret() {
        let secrets = [Secret::random(), Secret::random()];
        let signed = header(&secrets, "dlv_1", 12, "{}");
        let expected: Vec<_> = secrets
            .iter()
            .map(|secret| secret.signature("dlv_1", 12, "{}"))
            .collect();
        assert_eq!(signed.split(' ').collect::<Vec<_>>(), expected);
    }
}
