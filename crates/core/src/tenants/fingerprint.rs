//! The keyed digest of a marketplace key, which identifies its caller.
//!
//! HMAC-SHA256 under a key of the ring, its first 16 bytes, stored with the ring key's id. A plain
//! hash could be tried against lists of leaked keys.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::master_keys::{Keyring, RingKey};
use crate::search::CallerKey;

/// A caller's fingerprint under one key of the ring.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    /// The ring key that made it.
    pub key_id: String,
    /// The first 16 bytes of the HMAC.
    pub digest: [u8; 16],
}

impl Fingerprint {
    /// The caller's fingerprints under every key of the ring, the primary's first.
    pub fn all(ring: &Keyring, key: &CallerKey) -> Vec<Self> {
        ring.keys()
            .iter()
            .map(|ring_key| Self::under(ring_key, key))
            .collect()
    }

    fn under(ring_key: &RingKey, key: &CallerKey) -> Self {
        let mut mac = Hmac::<Sha256>::new_from_slice(ring_key.fingerprints.as_ref())
            .expect("HMAC takes keys of any length");
        mac.update(key.expose().as_bytes());
        let code = mac.finalize().into_bytes();
        let mut digest = [0; 16];
        digest.copy_from_slice(&code[..16]);
        Self {
            key_id: ring_key.id.clone(),
            digest,
        }
    }

    /// Id of the advisory lock that serialises the first requests of one caller.
    pub(super) fn advisory_lock_id(&self) -> i64 {
        let [a, b, c, d, e, f, g, h, ..] = self.digest;
        i64::from_be_bytes([a, b, c, d, e, f, g, h])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(text: &str) -> Keyring {
        let entries = text
            .split(' ')
            .map(|id| format!("{id}:{}", format!("{:02x}", id.as_bytes()[0]).repeat(32)));
        Keyring::parse(&entries.collect::<Vec<_>>().join(",")).unwrap()
    }

    #[test]
    fn a_key_has_one_fingerprint_per_key_of_the_ring() {
        let key = CallerKey::new("key-of-a-caller");
        let (before, after) = (
            Fingerprint::all(&ring("a"), &key),
            Fingerprint::all(&ring("b a"), &key),
        );
        assert_eq!(
            after
                .iter()
                .map(|fingerprint| fingerprint.key_id.as_str())
                .collect::<Vec<_>>(),
            ["b", "a"]
        );
        assert_eq!(after[1], before[0]);
        assert_ne!(after[0].digest, after[1].digest);
        assert_ne!(
            Fingerprint::all(&ring("a"), &CallerKey::new("key-of-another")),
            before
        );
    }

    /// Tenants are found by these bytes: a change orphans every tenant. Computed with Python's
    /// hmac.
    #[test]
    fn the_form_is_fixed() {
        let [fingerprint] = Fingerprint::all(&ring("a"), &CallerKey::new("key-of-a-caller"))
            .try_into()
            .unwrap();
        assert_eq!(
            format!("{:032x}", u128::from_be_bytes(fingerprint.digest)),
            "879f0791fdeaa9b7c98a7c618f85b1a0"
        );
    }
}
