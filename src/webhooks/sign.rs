//! What proves to a receiver who sent it: the signature of Standard Webhooks 1.0. Pure.
//!
//! `webhook-signature` is `v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`; a secret is shown as `whsec_` and its base64. While
//! a secret is being replaced there is a signature with each, apart by a space.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use rand::Rng as _;
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::contract::webhooks::ShownSecret;

/// Bytes of a new secret; the standard has 24 to 64.
const SECRET_BYTES: usize = 32;
const PREFIX: &str = "whsec_";

/// What an endpoint's deliveries are signed with. Not printed, wiped from memory when dropped.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// A new one.
    #[must_use]
    pub fn random() -> Self {
        let mut bytes = Zeroizing::new(vec![0; SECRET_BYTES]);
        rand::rng().fill_bytes(&mut bytes);
        Self(bytes)
    }

    /// One that was held.
    #[must_use]
    pub fn of_bytes(bytes: Zeroizing<Vec<u8>>) -> Self {
        Self(bytes)
    }

    /// For sealing, and nothing else.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// As its owner is shown it, once.
    #[must_use]
    pub fn shown(&self) -> ShownSecret {
        // As large as it gets, so that no half of it stays behind in memory that was given back.
        let mut shown = Zeroizing::new(String::with_capacity(
            PREFIX.len() + self.0.len() * 4 / 3 + 4,
        ));
        shown.push_str(PREFIX);
        STANDARD.encode_string(&*self.0, &mut shown);
        ShownSecret(shown)
    }

    /// The signature of one message at one time, in seconds.
    #[must_use]
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

/// The header: a signature with each secret, the newest first.
#[must_use]
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

    /// The vector that every library of the standard is tested with.
    #[test]
    fn the_standards_vector() {
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
    fn a_secret_is_new_each_time_and_is_not_printed() {
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
    fn while_it_is_replaced_there_is_a_signature_with_each() {
        let secrets = [Secret::random(), Secret::random()];
        let signed = header(&secrets, "dlv_1", 12, "{}");
        let expected: Vec<_> = secrets
            .iter()
            .map(|secret| secret.signature("dlv_1", 12, "{}"))
            .collect();
        assert_eq!(signed.split(' ').collect::<Vec<_>>(), expected);
    }
}
