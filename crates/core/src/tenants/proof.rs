//! Keyed digests: what this service can recognise as its own, without storing it.
//!
//! HMAC-SHA256 under a key of the ring for this use alone, its first 16 bytes. A code of 40 random bits
//! under a plain hash could be found from a copy of the database.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::master_keys::{Keyring, RingKey};

/// The bytes of a digest.
pub const PROOF_BYTES: usize = 16;

/// The digest of these parts under the ring's primary. `label` separates uses.
pub fn make(ring: &Keyring, label: &str, parts: &[&[u8]]) -> [u8; PROOF_BYTES] {
    let digest = mac(ring.primary(), label, parts).finalize().into_bytes();
    let mut proof = [0; PROOF_BYTES];
    proof.copy_from_slice(&digest[..PROOF_BYTES]);
    proof
}

/// The digests of these parts under each key of the ring, the primary's first: what was stored under an
/// earlier one is found with them.
pub fn make_all(ring: &Keyring, label: &str, parts: &[&[u8]]) -> Vec<Vec<u8>> {
    let one = |key| mac(key, label, parts).finalize().into_bytes()[..PROOF_BYTES].to_vec();
    ring.keys().iter().map(one).collect()
}

/// Whether a digest is that of these parts under any key of the ring. Takes as long for each wrong one.
pub fn check(ring: &Keyring, label: &str, parts: &[&[u8]], proof: &[u8]) -> bool {
    proof.len() == PROOF_BYTES
        && ring.keys().iter().any(|key| {
            let mac = mac(key, label, parts);
            mac.verify_truncated_left(proof).is_ok()
        })
}

fn mac(key: &RingKey, label: &str, parts: &[&[u8]]) -> Hmac<Sha256> {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(key.proofs.as_ref()).expect("HMAC takes keys of any length");
    // With their lengths, so that no other parts give the same bytes.
    for part in std::iter::once(label.as_bytes()).chain(parts.iter().copied()) {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(ids: &str) -> Keyring {
        let entry = |id: &str| format!("{id}:{}", format!("{:02x}", id.as_bytes()[0]).repeat(32));
        Keyring::parse(&ids.split(' ').map(entry).collect::<Vec<_>>().join(",")).unwrap()
    }

    #[test]
    fn a_digest_holds_for_its_use_its_parts_and_each_key_of_the_ring() {
        let proof = make(&ring("a"), "code", &[b"one", b"two"]);
        assert!(check(&ring("a"), "code", &[b"one", b"two"], &proof));
        assert!(check(&ring("b a"), "code", &[b"one", b"two"], &proof));
        let all = make_all(&ring("b a"), "code", &[b"one", b"two"]);
        assert_eq!((all.len(), all[1].as_slice()), (2, proof.as_slice()));
        assert!(!check(&ring("b"), "code", &[b"one", b"two"], &proof));
        assert!(!check(&ring("a"), "other", &[b"one", b"two"], &proof));
        assert!(!check(&ring("a"), "code", &[b"onet", b"wo"], &proof));
        assert!(!check(&ring("a"), "code", &[b"one", b"two"], &proof[..8]));
        assert!(!check(&ring("a"), "code", &[b"one", b"two"], &[]));
    }
}
